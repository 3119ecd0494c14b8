"""Sessions of browsers: a random token in a cookie, its digest in the table, and tokens for forms.

A session ends when its user signs out, is disabled or changes their password, and after 12 hours.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from solotable import AsyncDatabase
from solotable.systems.browser.sessions import form_token
from solotable.systems.portal.roles import Caller

from .users import Session, User

SESSION_HOURS = 12


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A user with an open session; `form_token` is the hidden field of their forms."""

    caller: Caller
    email: str
    token: str

    @property
    def form_token(self) -> str:
        """Return the token that every form of this session sends."""
        return form_token(self.token)


class Sessions:
    """The sessions of all users of the local provider."""

    def __init__(self, db: AsyncDatabase) -> None:
        self._db = db

    async def open(self, user_id: str) -> str:
        """Return the token of a new session, or raise NotFound for an unknown user."""
        user = await self._db.require(User, user_id=user_id, consistent=True)
        token = secrets.token_urlsafe(32)
        expires = datetime.now(UTC) + timedelta(hours=SESSION_HOURS)
        session = Session(
            digest=_digest(token),
            user_id=user_id,
            generation=user.generation,
            expires=expires,
            # DynamoDB deletes expired items within days; `expires` is what counts until then.
            ttl=expires,
        )
        await self._db.create(session)
        return token

    async def find(self, token: str) -> SignedIn | None:
        """Return the user of a session; None if the session is over or the user has no access."""
        session = await self._db.get(Session, digest=_digest(token))
        if session is None or session.expires <= datetime.now(UTC):
            return None
        user = await self._db.get(User, user_id=session.user_id, consistent=True)
        if user is None or not user.enabled or user.generation != session.generation:
            return None
        return SignedIn(Caller(user_id=user.user_id, name=user.name, role=user.role), user.email, token)

    async def close(self, token: str) -> None:
        """End one session."""
        await self._db.delete(Session, digest=_digest(token))

    async def close_all(self, user_id: str) -> None:
        """End all sessions of a user."""
        user = await self._db.require(User, user_id=user_id, consistent=True)
        await self._db.update(User, user_id=user_id, version=user.version, add={"generation": 1})


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
