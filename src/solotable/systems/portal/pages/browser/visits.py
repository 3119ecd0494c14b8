"""The guard of pages: who is signed in, which role a page needs, and whether a form is ours.

A page without a session leads to the sign-in page. Every form has a token that derives from the session, so
another site cannot send it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from fastapi import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from solotable import AsyncDatabase
from solotable.pages.forms import Form, read_form
from solotable.systems.browser.redirects import see
from solotable.systems.browser.render import POLICY, Done, NavigationLink, Renderer, UserHeader
from solotable.systems.browser.sessions import SessionCookie, is_form_token
from solotable.systems.http.rate_limits import take
from solotable.systems.portal.identity.sessions import SESSION_HOURS, Sessions, SignedIn
from solotable.systems.portal.roles import Caller, Role
from solotable.systems.portal.services.notifications.inbox import Inbox
from solotable.web import get_database

COOKIE = SessionCookie("portal_session", SESSION_HOURS * 3600)
#: The inbox alone has a script, which listens for messages.
LIVE_POLICY = f"{POLICY}; script-src 'self'; connect-src 'self'"
#: The main navigation: label, path, the role that sees it.
_LINKS: tuple[tuple[str, str, Role], ...] = (
    ("Library", "/", "Viewer"),
    ("Inbox", "/inbox", "Viewer"),
    ("Subscriptions", "/subscriptions", "Viewer"),
    ("Analytics", "/analytics", "Admin"),
    ("People", "/people", "Admin"),
)

Handler = Callable[["Visit"], Awaitable[Response]]


@dataclass(slots=True)
class Visit:
    """One request of a signed-in user to a page."""

    request: Request
    signed_in: SignedIn
    form: Form
    header: UserHeader

    @property
    def caller(self) -> Caller:
        """The user, with the role that they have now."""
        return self.signed_in.caller

    @property
    def db(self) -> AsyncDatabase:
        """The app's database."""
        return get_database(self.request)

    @property
    def state(self) -> Any:
        """The app's state: storage, search index, directory."""
        return self.request.app.state

    def query(self, name: str) -> str:
        """Return a query parameter, empty without one."""
        return self.request.query_params.get(name, "")

    async def page(
        self,
        template: str,
        *,
        status: int = 200,
        policy: str = POLICY,
        done: Done | None = None,
        **context: Any,
    ) -> HTMLResponse:
        """Return a page with the user's header and the number of unread messages."""
        self.header = header_of(self.caller, self.request.url.path, await Inbox(self.db).unread(self.caller))
        return renderer_of(self.request).respond(
            template,
            status=status,
            policy=policy,
            user=self.header,
            form_token=self.signed_in.form_token,
            done=done,
            **context,
        )

    def check_token(self, given: str) -> None:
        """Raise 403 for a form that was not made for this session."""
        if not is_form_token(self.signed_in.token, given):
            raise HTTPException(403, "This form is from another session. Load the page again.")


def guarded(
    handler: Handler, least: Role, *, reads_form: bool = True
) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of a page that needs a role; `reads_form=False` leaves the body to the handler."""

    async def endpoint(request: Request) -> Response:
        signed_in = await find_session(request)
        if signed_in is None:
            return to_sign_in(request)
        visit = Visit(request, signed_in, Form(), header_of(signed_in.caller, request.url.path, 0))
        request.scope["state"]["visit"] = visit
        signed_in.caller.require(least)
        if request.method == "POST":
            await take(request, "forms", f"user:{visit.caller.user_id}")
            if reads_form:
                visit.form = await read_form(request)
                visit.check_token(visit.form.value("form_token"))
        return await handler(visit)

    return endpoint


def renderer_of(request: Request) -> Renderer:
    """Return the app's renderer."""
    return cast(Renderer, request.app.state.renderer)


def header_of(caller: Caller, path: str, unread: int) -> UserHeader:
    """Return the header of a page for a user."""
    first = "/" + path.split("/")[1]
    section = "/" if first == "/content" else first
    links = tuple(
        NavigationLink(
            label=label, href=href, current=href == section, count=unread if href == "/inbox" else 0
        )
        for label, href, least in _LINKS
        if caller.has(least)
    )
    return UserHeader(name=caller.name or caller.user_id, role=caller.role, links=links)


async def find_session(request: Request) -> SignedIn | None:
    """Return the session of the request's cookie; None without an open one."""
    token = COOKIE.read(request)
    return None if token is None else await Sessions(get_database(request)).find(token)


def to_sign_in(request: Request) -> RedirectResponse:
    """Return a redirect to the sign-in page that leads back here."""
    if request.method not in ("GET", "HEAD") or str(request.url.path) == "/inbox/stream":
        return see("/sign-in")
    query = f"?{request.url.query}" if request.url.query else ""
    return see(f"/sign-in?next={quote(request.url.path + query, safe='/')}")
