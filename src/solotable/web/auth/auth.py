"""Authentication of a request by its headers: API keys, and JSON Web Tokens (`jwt`).

A request without a credential is anonymous. A wrong, repeated or second credential is a 401 on every route
that reads credentials; a bad credential never falls back to fewer rights.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fastapi import HTTPException, Request

from solotable.errors import DeclarationError

from .jwt import JwtSettings, TokenVerifier
from .principal import ANONYMOUS, Principal

_SHORTEST_KEY = 20
_LONGEST_CREDENTIAL = 8192
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key by its SHA-256, and its principal; the key itself is not stored.

    Keys are long and random, so one round of SHA-256 is enough. Do not hash passwords this way.
    """

    id: str
    sha256: str
    roles: frozenset[str]
    #: None for all tenants.
    tenants: frozenset[str] | None
    name: str | None = None
    email: str | None = None

    def __post_init__(self) -> None:
        if not _SHA256.fullmatch(self.sha256):
            raise DeclarationError(f"API key {self.id!r}: sha256 takes 64 lower-case hex digits.")

    @classmethod
    def of(
        cls,
        secret: str,
        *,
        id: str,  # noqa: A002  # the field's name
        roles: Iterable[str],
        tenants: Iterable[str] | None,
        name: str | None = None,
        email: str | None = None,
    ) -> ApiKey:
        """Return the record of a key given in clear, for example from an environment variable."""
        if len(secret) < _SHORTEST_KEY:
            raise DeclarationError(f"API key {id!r} is shorter than {_SHORTEST_KEY} characters.")
        reached = None if tenants is None else _texts(tenants, "tenants")
        return cls(
            id=id,
            sha256=hashlib.sha256(secret.encode()).hexdigest(),
            roles=_texts(roles, "roles"),
            tenants=reached,
            name=name,
            email=email,
        )

    def principal(self) -> Principal:
        """Return the principal of the key."""
        return Principal(
            id=self.id,
            kind="api-key",
            name=self.name,
            email=self.email,
            roles=self.roles,
            tenants=self.tenants,
        )


class Auth:
    """Verifies `x-api-key` and `Authorization: Bearer`.

    For several identity providers pass several JwtSettings, one per issuer.
    """

    def __init__(
        self, *, api_keys: Iterable[ApiKey] = (), jwt: JwtSettings | Sequence[JwtSettings] | None = None
    ) -> None:
        self._keys = [(bytes.fromhex(key.sha256), key.principal()) for key in api_keys]
        given = [] if jwt is None else [jwt] if isinstance(jwt, JwtSettings) else list(jwt)
        self._verifiers = {settings.issuer: TokenVerifier(settings) for settings in given}
        if len(self._verifiers) != len(given):
            raise DeclarationError("Two JwtSettings have the same issuer; pass one per issuer.")
        if len({digest for digest, _ in self._keys}) != len(self._keys):
            raise DeclarationError("Two API keys have the same sha256; give each principal its own key.")

    async def principal(self, request: Request) -> Principal:
        """Return the principal of a request, ANONYMOUS without a credential; 401 for a wrong one."""
        keys: list[str] = []
        tokens: list[str] = []
        # One pass over the raw headers, because every request does it; ASGI has their names in lower case.
        for name, value in request.scope["headers"]:
            if name == b"x-api-key":
                keys.append(value.decode("latin-1"))
            elif name == b"authorization":
                tokens.append(value.decode("latin-1"))
        if not keys and not tokens:
            return ANONYMOUS
        if len(keys) + len(tokens) > 1:
            raise unauthorized("Send one credential, once: x-api-key or Authorization.")
        if any(len(credential) > _LONGEST_CREDENTIAL for credential in (*keys, *tokens)):
            raise unauthorized("The credential is too long.")
        if keys:
            return self.verify_key(keys[0])
        scheme, _, token = tokens[0].partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise unauthorized("Authorization takes a Bearer token.")
        return await self.verify_token(token.strip())

    def verify_key(self, secret: str) -> Principal:
        """Return the principal of an API key; 401 for an unknown key."""
        digest = hashlib.sha256(secret.encode()).digest()
        found: Principal | None = None
        # Compare every key in constant time, so that the duration reveals nothing.
        for known, principal in self._keys:
            if hmac.compare_digest(digest, known):
                found = principal
        if found is None:
            raise unauthorized("Unknown API key.")
        return found

    async def verify_token(self, token: str) -> Principal:
        """Return the principal of a token; 401 for an invalid token."""
        verifier = self._verifiers.get(TokenVerifier.issuer_of(token) or "")
        if verifier is None:
            raise unauthorized("Invalid token.")
        principal = await verifier.principal(token)
        if principal is None:
            raise unauthorized("Invalid token.")
        return principal


def unauthorized(detail: str) -> HTTPException:
    """Return a 401; the detail does not say why a token failed."""
    return HTTPException(401, detail, headers={"www-authenticate": 'Bearer, ApiKey header="x-api-key"'})


def _texts(values: Iterable[str], what: str) -> frozenset[str]:
    # A string iterates over its letters: roles="ADMIN" would be five roles.
    if isinstance(values, str):
        raise DeclarationError(f"{what} takes a list of strings, got one string; write {what}=[{values!r}].")
    return frozenset(values)
