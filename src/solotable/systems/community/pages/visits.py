"""The guard of pages: who is signed in, and whether a form is ours.

Public pages have a visit without a session. Every form has a token that derives from the session, so another
site cannot send it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from urllib.parse import quote

from fastapi import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from solotable import AsyncDatabase
from solotable.pages.forms import Form, read_form
from solotable.systems.browser.redirects import see
from solotable.systems.browser.render import Done, NavigationLink, Renderer, UserHeader
from solotable.systems.browser.sessions import form_token, is_form_token
from solotable.systems.community.identity.sessions import OpenSession, Sessions
from solotable.systems.community.roles import VISITOR, Caller
from solotable.systems.community.routes.auth import SESSION
from solotable.systems.community.routes.requests.rate_limits import LimitName, limit_address, user_subject
from solotable.systems.community.settings import CommunitySettings
from solotable.systems.http.rate_limits import take
from solotable.web import Auth, get_database

#: The name of the installation leads to the neighbourhoods.
_LINKS = (("My sites", "/sites"),)

Handler = Callable[["Visit"], Awaitable[Response]]


@dataclass(slots=True)
class Visit:
    """One request of a browser to a page."""

    request: Request
    session: OpenSession | None
    #: The token of the session's cookie; empty without a session.
    token: str
    form: Form

    @property
    def caller(self) -> Caller:
        """The caller of services."""
        return VISITOR if self.session is None else Caller(did=self.session.did)

    @property
    def did(self) -> str:
        """The user, on a page that needs a session."""
        return self.caller.require_user()

    @property
    def db(self) -> AsyncDatabase:
        """The app's database."""
        return get_database(self.request)

    @property
    def settings(self) -> CommunitySettings:
        """The settings of the installation."""
        return cast(CommunitySettings, self.request.app.state.settings)

    @property
    def now(self) -> datetime:
        """The current time."""
        return self.settings.now()

    @property
    def header(self) -> UserHeader | None:
        """The signed-in user in the header of the page."""
        if self.session is None:
            return None
        user, path = self.session.user, self.request.url.path
        links = tuple(
            NavigationLink(label=label, href=href, current=path.startswith(href)) for label, href in _LINKS
        )
        name = self.session.did if user is None else user.display_name
        return UserHeader(name=name, links=() if user is None else links)

    def query(self, name: str) -> str:
        """Return a query parameter, empty without one."""
        return self.request.query_params.get(name, "")

    def path_part(self, name: str) -> str:
        """Return a part of the path."""
        part: str = self.request.path_params[name]
        return part

    async def take(self, name: LimitName) -> None:
        """Take a token of the user's limit."""
        await take(self.request, name, user_subject(self.did))

    def page(
        self,
        template: str,
        *,
        status: int = 200,
        done: Done | None = None,
        headers: dict[str, str] | None = None,
        **context: Any,
    ) -> HTMLResponse:
        """Return a page with the user's header."""
        renderer = cast(Renderer, self.request.app.state.renderer)
        return renderer.respond(
            template,
            status=status,
            headers={"cache-control": "no-store", **(headers or {})},
            user=self.header,
            form_token=form_token(self.token) if self.token else "",
            done=done,
            **context,
        )


def opened(
    handler: Handler, *, needs_session: bool, for_leaving: bool = False
) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of a page; without a session it leads to the login, if it needs one."""

    async def endpoint(request: Request) -> Response:
        await limit_address(request)
        session, token = await find_session(request)
        visit = Visit(request, session, token, Form())
        request.scope["state"]["visit"] = visit
        if session is None and needs_session:
            return _to_login(request)
        if session is not None and session.user is None and needs_session and not for_leaving:
            return see("/account")
        if session is not None:
            await visit.take("user")
        if request.method == "POST":
            visit.form = await read_form(request)
            if not token or not is_form_token(token, visit.form.value("form_token")):
                raise HTTPException(403, "This form is from another session. Load the page again.")
        return await handler(visit)

    return endpoint


async def find_session(request: Request) -> tuple[OpenSession | None, str]:
    """Return the session of the request's cookie and its token; None and nothing without an open one."""
    token = SESSION.read(request)
    if token is None:
        return None, ""
    try:
        principal = await cast(Auth, request.app.state.auth).verify_token(token)
    except HTTPException:
        return None, ""
    session = await cast(Sessions, request.app.state.sessions).find(principal, token)
    return session, "" if session is None else token


def _to_login(request: Request) -> Response:
    path = "/"
    if request.method in ("GET", "HEAD"):
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return see(f"/auth/login?next={quote(path, safe='/')}")
