"""From the headers of a request to a principal: API keys, and JSON Web Tokens by `jwt`.

A request without a credential is anonymous. One with a wrong, doubled or second credential is
refused wherever it goes: nothing falls back from a bad credential to fewer rights.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fastapi import HTTPException, Request

from solotable.errors import DeclarationError

from .jwt import JwtSettings, Verifier
from .principal import ANONYMOUS, Principal

_SHORTEST_KEY = 20
_LONGEST_CREDENTIAL = 8192
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key by its SHA-256, and whom it stands for; the key itself is kept nowhere.

    Keys are long and random, so one round of SHA-256 is enough; it is no way to keep passwords.
    """

    id: str
    sha256: str
    roles: frozenset[str]
    #: None is all tenants.
    tenants: frozenset[str] | None
    name: str | None = None
    email: str | None = None

    def __post_init__(self) -> None:
        if not _SHA256.fullmatch(self.sha256):
            raise DeclarationError(f"API key {self.id!r}: sha256 is 64 lower-case hex digits.")

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
        """Return the record of a key that is known in full, as in a demo or from the environment."""
        if len(secret) < _SHORTEST_KEY:
            raise DeclarationError(f"API key {id!r} is shorter than {_SHORTEST_KEY} characters.")
        held = None if tenants is None else _texts(tenants, "tenants")
        return cls(
            id=id,
            sha256=hashlib.sha256(secret.encode()).hexdigest(),
            roles=_texts(roles, "roles"),
            tenants=held,
            name=name,
            email=email,
        )

    def principal(self) -> Principal:
        """Return whom the key stands for."""
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

    Several token settings, one for each issuer, let several identity pools in.
    """

    def __init__(
        self, *, api_keys: Iterable[ApiKey] = (), jwt: JwtSettings | Sequence[JwtSettings] | None = None
    ) -> None:
        self._keys = [(bytes.fromhex(key.sha256), key.principal()) for key in api_keys]
        given = [] if jwt is None else [jwt] if isinstance(jwt, JwtSettings) else list(jwt)
        self._verifiers = {settings.issuer: Verifier(settings) for settings in given}
        if len(self._verifiers) != len(given):
            raise DeclarationError("Two token settings name the same issuer; each has one of its own.")
        if len({digest for digest, _ in self._keys}) != len(self._keys):
            raise DeclarationError("Two API keys are the same; each principal has one of its own.")

    async def principal(self, request: Request) -> Principal:
        """Return who asks, ANONYMOUS without a credential; refuse a wrong one with 401."""
        keys: list[str] = []
        tokens: list[str] = []
        # One pass over the raw headers, whose names ASGI has in lower case, is done on every request.
        for name, value in request.scope["headers"]:
            if name == b"x-api-key":
                keys.append(value.decode("latin-1"))
            elif name == b"authorization":
                tokens.append(value.decode("latin-1"))
        if not keys and not tokens:
            return ANONYMOUS
        if len(keys) + len(tokens) > 1:
            raise unauthorized("Send one credential: x-api-key or Authorization, and once.")
        if any(len(credential) > _LONGEST_CREDENTIAL for credential in (*keys, *tokens)):
            raise unauthorized("The credential is too long.")
        if keys:
            return self.of_key(keys[0])
        scheme, _, token = tokens[0].partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise unauthorized("Authorization is a Bearer token here.")
        return await self.of_token(token.strip())

    def of_key(self, secret: str) -> Principal:
        """Return whom an API key stands for."""
        digest = hashlib.sha256(secret.encode()).digest()
        found: Principal | None = None
        # Every key is compared, and each in constant time: how long it takes says nothing about any.
        for known, principal in self._keys:
            if hmac.compare_digest(digest, known):
                found = principal
        if found is None:
            raise unauthorized("The API key is not known.")
        return found

    async def of_token(self, token: str) -> Principal:
        """Return whom a token stands for."""
        verifier = self._verifiers.get(Verifier.issuer_of(token) or "")
        if verifier is None:
            raise unauthorized("The token is not valid here.")
        principal = await verifier.principal(token)
        if principal is None:
            raise unauthorized("The token is not valid here.")
        return principal


def unauthorized(detail: str) -> HTTPException:
    """Return the refusal of a credential; why a token failed is not told."""
    return HTTPException(401, detail, headers={"www-authenticate": 'Bearer, ApiKey header="x-api-key"'})


def _texts(values: Iterable[str], what: str) -> frozenset[str]:
    # A string is an iterable of its letters: roles="ADMIN" would be five roles.
    if isinstance(values, str):
        raise DeclarationError(f"{what} is a set of texts, not one text: {what}=[{values!r}].")
    return frozenset(values)
