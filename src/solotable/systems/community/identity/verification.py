"""The verification of e-mail addresses: a message with a link, and the token in it."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from solotable import AsyncDatabase
from solotable.systems.community.entities.users import User
from solotable.systems.community.roles import Caller
from solotable.systems.community.services.drafts import ProfilePatch
from solotable.systems.community.services.users import OwnProfile, Users
from solotable.systems.errors import InvalidInput
from solotable.systems.mail.port import Mailer, MailMessage

from .email_proofs import PROOF_HOURS, EmailProofs
from .sessions import Now, utc_now

_TEXT = """Open this page to confirm that {email} is your address:

{base_url}/verify-email?token={token}

The link works for {hours} hours. If you did not ask for it, do nothing.
"""


class EmailVerification:
    """Sends proofs of addresses, and accepts them."""

    def __init__(
        self,
        db: AsyncDatabase,
        proofs: EmailProofs,
        mailer: Mailer | None,
        *,
        base_url: str,
        now: Now = utc_now,
    ) -> None:
        self._users = Users(db, now=now)
        self._proofs = proofs
        self._mailer = mailer
        self._base_url = base_url

    async def start(self, caller: Caller, email: str) -> OwnProfile:
        """Store the caller's address as not verified, and send a message to it."""
        stored = await self._users.update(caller, ProfilePatch(email=email))
        assert self._mailer is not None
        assert stored.email is not None
        token = self._proofs.issue(stored.did, stored.email)
        text = _TEXT.format(
            email=stored.email, base_url=self._base_url, token=quote(token), hours=PROOF_HOURS
        )
        message = MailMessage(to=stored.email, subject="Confirm your e-mail address", text=text)
        await asyncio.to_thread(self._mailer.send, message)
        return stored

    async def finish(self, token: str, *, did: str | None = None) -> User:
        """Mark the address of a token as verified, or raise InvalidInput; `did` must be its user if given."""
        owner, email = self._proofs.verify(token)
        if did is not None and did != owner:
            raise InvalidInput("token: is of another user.")
        return await self._users.verify_email(owner, email)
