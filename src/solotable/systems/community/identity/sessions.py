"""Sessions: an HS256 token for 7 days, and an item that every request reads, so that it can end.

A session ends by a logout, by the deletion or the purge of its account, and after 7 days. The token names the
user and the session; the table has the SHA-256 of the token only.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import jwt

from solotable import AsyncDatabase, new_id
from solotable.systems.community.entities.accounts import AccountDeletion
from solotable.systems.community.entities.users import SESSION_DAYS, Session, User
from solotable.web import JwtSettings, Principal

ISSUER = "solotable-community"
AUDIENCE = "community-api"
_LONGEST_AGENT = 300

Now = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


def token_settings(secrets: Sequence[str], now: Now = utc_now) -> JwtSettings:
    """Return the settings that verify session tokens; the id of the session becomes the principal's name."""
    return JwtSettings(
        issuer=ISSUER,
        audience=AUDIENCE,
        secrets=secrets,
        # A token gives no role.
        fixed_roles=frozenset(),
        name_claim="sid",
        leeway_seconds=0,
        clock=lambda: now().timestamp(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSession:
    """A user with an open session; `user` is None during the 30 days after they deleted their account."""

    did: str
    session_id: str
    user: User | None


class Sessions:
    """The sessions of all users."""

    def __init__(self, db: AsyncDatabase, secret: str, *, now: Now = utc_now) -> None:
        self._db = db
        self._secret = secret
        self._now = now

    async def open(self, did: str, *, user_agent: str = "") -> str:
        """Return the token of a new session."""
        now = self._now().replace(microsecond=0)
        expires = now + timedelta(days=SESSION_DAYS)
        session_id = new_id()
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": did,
            "sid": session_id,
            "iat": int(now.timestamp()),
            "exp": int(expires.timestamp()),
        }
        token = jwt.encode(claims, self._secret, algorithm="HS256")
        session = Session(
            did=did,
            session_id=session_id,
            digest=_digest(token),
            user_agent=user_agent[:_LONGEST_AGENT],
            expires_at=expires,
        )
        await self._db.create(session)
        return token

    async def find(self, principal: Principal, token: str) -> OpenSession | None:
        """Return the session of a verified token; None if it ended, or its account is gone."""
        did, session_id = principal.id, principal.name or ""
        session, user, deletion = await self._db.get_many(
            Session.key(did=did, session_id=session_id),
            User.key(did=did),
            AccountDeletion.key(did=did),
            consistent=True,
        )
        # TTL deletes within days; the time counts until then (C2.9).
        if session is None or session.expires_at <= self._now() or (user is None and deletion is None):
            return None
        if not hmac.compare_digest(session.digest, _digest(token)):
            return None
        return OpenSession(did=did, session_id=session_id, user=user)

    async def close(self, did: str, session_id: str) -> None:
        """End a session."""
        await self._db.delete(Session, did=did, session_id=session_id)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
