"""`/sign-in`, `/sign-out`, `/invitations/{link}` and `/account`: how a user gets in and out."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from fastapi import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from solotable.pages.forms import FieldError, Form, read_form
from solotable.systems.browser.redirects import local_path, see
from solotable.systems.browser.sessions import form_token, is_form_token
from solotable.systems.errors import InvalidInput
from solotable.systems.portal.identity.directory import LocalDirectory
from solotable.systems.portal.identity.sessions import Sessions
from solotable.systems.portal.routes.requests.rate_limits import take_sign_in
from solotable.web import get_database

from .browser.visits import COOKIE, Visit, find_session, renderer_of

#: The cookie of forms without a session; its token keeps other sites from signing a browser in.
_FORM_COOKIE = "portal_form"
_MAY = {
    "Viewer": "you read and download approved content.",
    "Contributor": "you write drafts and attach files.",
    "Approver": "you approve, deprecate and expire content.",
    "Admin": "you do everything, and manage people.",
}


@dataclass(frozen=True, slots=True)
class SignInPage:
    """The sign-in form; `next` is where it leads."""

    next: str


@dataclass(frozen=True, slots=True)
class InvitationPage:
    """The form that accepts an invitation."""

    name: str
    email: str
    role: str


@dataclass(frozen=True, slots=True)
class AccountPage:
    """The user's own page."""

    email: str
    may: str


async def show_sign_in(request: Request) -> Response:
    """Show the sign-in form."""
    page = SignInPage(local_path(request.query_params.get("next", "/")))
    return _respond(request, "sign-in.html", page, Form())


async def sign_in(request: Request) -> Response:
    """Open a session, or show the form again; the text does not say whether the address is known."""
    form = await _read(request)
    email = form.value("email").strip().lower()
    await take_sign_in(request, email[:254])
    profile = await _local(request).verify(email, form.value("password"))
    page = SignInPage(local_path(form.value("next")))
    if profile is None:
        wrong = FieldError("email", "The address or the password is wrong, or the account is disabled.")
        kept = Form.of(email=form.value("email")).with_errors([wrong])
        return _respond(request, "sign-in.html", page, kept, status=422)
    return await _open(request, profile.user_id, page.next)


async def show_invitation(request: Request) -> Response:
    """Show the form of an invitation; 404 if it was used or has expired."""
    return _respond(request, "invitation.html", await _invitation(request), Form())


async def accept_invitation(request: Request) -> Response:
    """Set the password of an invited user, and sign them in."""
    form = await _read(request)
    link = request.path_params["link"]
    await take_sign_in(request, link.partition(".")[0][:254])
    page = await _invitation(request)
    try:
        profile = await _local(request).accept(link, form.value("password"))
    except InvalidInput as error:
        kept = Form().with_errors([FieldError("password", str(error))])
        return _respond(request, "invitation.html", page, kept, status=422)
    return await _open(request, profile.user_id, "/")


async def show_account(visit: Visit) -> Response:
    """Show who is signed in."""
    page = AccountPage(visit.signed_in.email, _MAY[visit.caller.role])
    return await visit.page("account.html", page=page)


async def sign_out(visit: Visit) -> Response:
    """End this session, or all sessions of the user."""
    sessions = Sessions(visit.db)
    if visit.form.value("everywhere"):
        await sessions.close_all(visit.caller.user_id)
    await sessions.close(visit.signed_in.token)
    response = see("/sign-in")
    COOKIE.clear(visit.request, response)
    return response


async def _open(request: Request, user_id: str, path: str) -> Response:
    # A new token: one that was set before signing in must not become a session.
    old = await find_session(request)
    sessions = Sessions(get_database(request))
    if old is not None:
        await sessions.close(old.token)
    response = see(path)
    COOKIE.set(request, response, await sessions.open(user_id))
    response.delete_cookie(_FORM_COOKIE, path="/", httponly=True, samesite="strict")
    return response


async def _invitation(request: Request) -> InvitationPage:
    found = await _local(request).invited(request.path_params["link"])
    return InvitationPage(found.name, found.email, found.role)


async def _read(request: Request) -> Form:
    form = await read_form(request)
    if not is_form_token(request.cookies.get(_FORM_COOKIE, ""), form.value("form_token")):
        raise HTTPException(403, "This form is too old. Load the page again.")
    return form


def _respond(
    request: Request, template: str, page: SignInPage | InvitationPage, form: Form, *, status: int = 200
) -> HTMLResponse:
    secret = request.cookies.get(_FORM_COOKIE) or secrets.token_urlsafe(24)
    response = renderer_of(request).respond(
        template, status=status, page=page, form=form, form_token=form_token(secret)
    )
    response.set_cookie(
        _FORM_COOKIE,
        secret,
        max_age=3600,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return response


def _local(request: Request) -> LocalDirectory:
    if not isinstance(request.app.state.directory, LocalDirectory):
        raise HTTPException(404, "Users sign in at their identity provider.")
    return request.app.state.directory
