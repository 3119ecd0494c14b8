"""`/auth`: log in at the identity provider, and sessions."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Annotated, cast

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from starlette.responses import RedirectResponse

from solotable.systems.browser.redirects import local_path, see
from solotable.systems.browser.sessions import SessionCookie
from solotable.systems.community.entities.users import SESSION_DAYS
from solotable.systems.community.errors import AccountDeleted
from solotable.systems.community.identity.port import IdentityProvider, LoginRejected
from solotable.systems.community.services.accounts import Accounts
from solotable.systems.community.services.users import OwnProfile, Users
from solotable.systems.http.sealing import Seal
from solotable.systems.routes import PUBLIC, JsonRoute
from solotable.web import DatabaseDep

from .requests.access import allow, sessions_of
from .requests.dependencies import CallDep
from .requests.rate_limits import limit_address, limit_logins
from .schemas.bodies import LoginResult, Me

router = APIRouter(
    prefix="/auth", tags=["auth"], route_class=JsonRoute, dependencies=[Depends(limit_address)]
)

LOGIN_SECONDS = 600
#: What the app keeps of a login in the browser until the provider sends it back.
_LOGIN = SessionCookie("community_login", LOGIN_SECONDS)
SESSION = SessionCookie("community_session", SESSION_DAYS * 86_400)
_Text = Annotated[str, Query(max_length=2000)]


@router.get("/login", status_code=303, response_class=RedirectResponse, **PUBLIC)
async def log_in(
    request: Request,
    handle: Annotated[str | None, Query(max_length=253, description="Filled in at the provider.")] = None,
    next: Annotated[str, Query(max_length=2000, description="The path to return to.")] = "/",  # noqa: A002
) -> Response:
    """Send the browser to the identity provider."""
    await limit_logins(request)
    start = await _provider(request).begin(handle=handle)
    now = request.app.state.settings.now().timestamp()
    pending = {**start.pending, "next": local_path(next), "until": str(now + LOGIN_SECONDS)}
    response = RedirectResponse(start.url, status_code=303)
    _LOGIN.set(request, response, _seal(request).seal(json.dumps(pending)))
    return response


@router.get(
    "/callback",
    responses={303: {"description": "The session is in a cookie; the browser returns to its page."}},
    **PUBLIC,
)
async def finish_login(
    request: Request,
    db: DatabaseDep,
    state: _Text = "",
    iss: _Text = "",
    code: _Text = "",
    error: _Text = "",
) -> LoginResult:
    """Open a session. A browser gets it in a cookie; with `Accept: application/json` it is in the body."""
    await limit_logins(request)
    opened = _seal(request).open(_LOGIN.read(request) or "")
    pending = {} if opened is None else json.loads(opened)
    # A browser forgets the cookie by itself; a copy of it ends here.
    if request.app.state.settings.now().timestamp() >= float(pending.get("until", 0)):
        raise LoginRejected("This login was not started in this browser, or took too long. Start again.")
    answer = {"state": state, "iss": iss, "code": code} | ({"error": error} if error else {})
    identity = await _provider(request).finish(pending, answer)
    deleted = False
    try:
        await Users(db, now=request.app.state.settings.now).sign_in(identity.did, handle=identity.handle)
    except AccountDeleted:
        # The user may come in, to recover the account.
        deleted = True
    agent = request.headers.get("user-agent", "")
    token = await sessions_of(request).open(identity.did, user_agent=agent)
    expires = request.app.state.settings.now() + timedelta(days=SESSION_DAYS)
    if "application/json" in request.headers.get("accept", ""):
        result = LoginResult(token=token, expires_at=expires, did=identity.did, deleted=deleted)
        response = Response(result.model_dump_json(), media_type="application/json")
    else:
        response = see("/account" if deleted else local_path(pending["next"]))
        SESSION.set(request, response, token)
    _LOGIN.clear(request, response)
    # FastAPI returns a Response as it is.
    return response  # type: ignore[return-value]


@router.get("/me", **allow("leaving"))
async def get_me(call: CallDep) -> Me:
    """Return the user of the session."""
    user = call.client.user
    profile = None if user is None else OwnProfile.model_validate(user, from_attributes=True)
    return Me(did=call.did, deleted=user is None, profile=profile)


@router.post("/logout", status_code=204, **allow("leaving"))
async def log_out(
    call: CallDep,
    everywhere: Annotated[bool, Query(description="End all sessions of the user.")] = False,
) -> None:
    """End this session, or all sessions."""
    if everywhere:
        await Accounts(call.db).revoke_sessions(call.did)
    else:
        await sessions_of(call.request).close(call.did, call.client.session_id)


def _provider(request: Request) -> IdentityProvider:
    provider = cast(IdentityProvider | None, request.app.state.settings.provider)
    if provider is None:
        raise HTTPException(404, "This community has no identity provider.")
    return provider


def _seal(request: Request) -> Seal:
    return cast(Seal, request.app.state.login_seal)
