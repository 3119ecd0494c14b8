"""`/account` and `/verify-email`: the user's own page, their data and its deletion, and e-mail links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.responses import JSONResponse, Response

from solotable.systems.browser.dates import plain_day
from solotable.systems.browser.redirects import see
from solotable.systems.browser.render import Done
from solotable.systems.community.entities.users import GRACE_DAYS, User
from solotable.systems.community.identity.sessions import Sessions
from solotable.systems.community.identity.verification import EmailVerification
from solotable.systems.community.routes.auth import SESSION
from solotable.systems.community.services.accounts import Accounts

from .visits import Visit

_MESSAGES = {
    "recovered": Done(title="Your account is back.", text="Your sites and profile are as they were."),
}


@dataclass(frozen=True, slots=True)
class AccountPage:
    """The account of the user; None after they deleted it."""

    did: str
    user: User | None


async def show_account(visit: Visit) -> Response:
    """Show the account."""
    assert visit.session is not None
    page = AccountPage(visit.session.did, visit.session.user)
    return visit.page("account.html", page=page, done=_MESSAGES.get(visit.query("done")))


async def sign_out(visit: Visit) -> Response:
    """End this session, or all sessions of the user."""
    assert visit.session is not None
    sessions: Sessions = visit.request.app.state.sessions
    if visit.form.value("everywhere"):
        await Accounts(visit.db).revoke_sessions(visit.session.did)
    await sessions.close(visit.session.did, visit.session.session_id)
    response = see("/")
    SESSION.clear(visit.request, response)
    return response


async def download_data(visit: Visit) -> Response:
    """Send everything that the user stored as a JSON file."""
    return _file("data", await Accounts(visit.db, now=visit.settings.now).export(visit.caller))


async def download_records(visit: Visit) -> Response:
    """Send the user's records in the form of the AT Protocol as a JSON file."""
    return _file("atproto", await Accounts(visit.db, now=visit.settings.now).export_atproto(visit.caller))


async def show_deletion(visit: Visit) -> Response:
    """Show what the deletion of the account does, and ask for it."""
    return visit.page("delete-account.html", page={"days": GRACE_DAYS, "deletion": None, "due": None})


async def delete(visit: Visit) -> Response:
    """Delete the account, end its sessions, and show the id of its receipt."""
    deletion = await Accounts(visit.db, now=visit.settings.now).delete(visit.caller)
    due = plain_day(deletion.due_at)
    # The session has ended, so the page has no user and no forms.
    visit.session, visit.token = None, ""
    page = {"days": GRACE_DAYS, "deletion": deletion, "due": due}
    response = visit.page("delete-account.html", page=page)
    SESSION.clear(visit.request, response)
    return response


async def recover(visit: Visit) -> Response:
    """Recover a deleted account."""
    await Accounts(visit.db, now=visit.settings.now).recover(visit.did)
    return see("/account?done=recovered")


async def show_verification(visit: Visit) -> Response:
    """Show the form of a message's link: programs that open links verify nothing."""
    return visit.page("verify-email.html", page={"token": visit.query("token")[:2000], "email": ""})


async def verify_email(visit: Visit) -> Response:
    """Verify the address of a message's token."""
    settings = visit.settings
    proofs = visit.request.app.state.email_proofs
    verification = EmailVerification(
        visit.db, proofs, settings.mailer, base_url=settings.base_url, now=settings.now
    )
    user = await verification.finish(visit.form.value("token"), did=visit.did)
    return visit.page("verify-email.html", page={"token": "", "email": user.email})


def _file(kind: str, content: dict[str, Any]) -> Response:
    headers = {
        "cache-control": "no-store",
        "content-disposition": f'attachment; filename="community-{kind}.json"',
    }
    return JSONResponse(content, headers=headers)
