"""Proofs of e-mail addresses: a token in a message, valid for 24 hours, for one user and one address."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import jwt

from solotable.systems.errors import InvalidInput

from .sessions import ISSUER, Now, utc_now

PROOF_HOURS = 24
#: Not the audience of sessions: neither token works as the other.
_AUDIENCE = "community-email"
_INVALID = "token: is not valid or older than 24 hours; ask for another message."


class EmailProofs:
    """Issues tokens with the first secret, and verifies with all of them."""

    def __init__(self, secrets: Sequence[str], *, now: Now = utc_now) -> None:
        self._secrets = secrets
        self._now = now

    def issue(self, did: str, email: str) -> str:
        """Return the token for a message to the address."""
        expires = self._now() + timedelta(hours=PROOF_HOURS)
        claims = {
            "iss": ISSUER,
            "aud": _AUDIENCE,
            "sub": did,
            "email": email,
            "exp": int(expires.timestamp()),
        }
        return jwt.encode(claims, self._secrets[0], algorithm="HS256")

    def verify(self, token: str) -> tuple[str, str]:
        """Return the user and the address of a token, or raise InvalidInput."""
        for secret in self._secrets:
            try:
                claims = jwt.decode(
                    token,
                    secret,
                    algorithms=["HS256"],
                    issuer=ISSUER,
                    audience=_AUDIENCE,
                    options={"require": ["exp", "sub", "email"], "verify_exp": False},
                )
            except (jwt.PyJWTError, ValueError, RecursionError):
                continue
            if self._now().timestamp() < claims["exp"]:
                return claims["sub"], claims["email"]
        raise InvalidInput(_INVALID)
