"""Bearer tokens for the API: short JSON Web Tokens that name a user and nothing else.

The directory, not the token, has the user's role. So a token needs no revocation list: each request reads the
user, and a disabled user is rejected.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import jwt

from solotable.web import JwtSettings

ISSUER = "solotable-portal"
AUDIENCE = "portal-api"
TOKEN_SECONDS = 3600


def token_settings(secret: str) -> JwtSettings:
    """Return the settings that verify the tokens of `issue_token`."""
    # A claim never gives a role.
    return JwtSettings(issuer=ISSUER, audience=AUDIENCE, secrets=[secret], fixed_roles=frozenset())


def issue_token(
    secret: str, user_id: str, *, seconds: int = TOKEN_SECONDS, clock: Callable[[], float] = time.time
) -> str:
    """Return a token of a user, for `Authorization: Bearer`."""
    now = int(clock())
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": user_id, "iat": now, "exp": now + seconds}
    return jwt.encode(claims, secret, algorithm="HS256")
