"""JSON Web Tokens: verify them with PyJWT and read their claims.

The settings decide the algorithm, never the token: HS256 with secrets, RS256 with public keys, no others.
Headers that bring a key (`jwk`, `jku`, `x5u`) are ignored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jwt as pyjwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from solotable.errors import DeclarationError

from .jwks import JwksCache, JwksSettings, is_strong
from .principal import Principal

_SHORTEST_SECRET = 32
#: The end of the year 9999; a later time is not from an issuer's clock.
_LATEST = 253_402_300_799
#: A claim by its name, or by its path: ("realm_access", "roles").
ClaimPath = str | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtSettings:
    """How to verify the tokens of one issuer, and which claims to read.

    Set `secrets` (HS256; each of them verifies, for rotation), `public_keys` (RS256; PEM by key id) or
    `jwks` (RS256; a URL). A token needs `sub` and `exp`.
    """

    issuer: str
    audience: str
    secrets: Sequence[str] = field(default=(), repr=False)
    public_keys: Mapping[str, str] = field(default_factory=dict)
    jwks: JwksSettings | str | None = None
    leeway_seconds: float = 30.0
    roles_claim: ClaimPath = "roles"
    tenants_claim: ClaimPath = "tenants"
    name_claim: ClaimPath = "name"
    email_claim: ClaimPath = "email"
    #: The roles of every user of this issuer, instead of the claim.
    fixed_roles: frozenset[str] | None = None
    #: The roles to accept from the claim; None accepts all.
    allowed_roles: frozenset[str] | None = None
    #: Roles that reach every tenant. No claim does that alone.
    all_tenants_roles: frozenset[str] = frozenset()
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        if not self.issuer or not self.audience:
            raise DeclarationError(
                "JwtSettings needs an issuer and an audience; without them any token would be valid."
            )
        if not (self.secrets or self.public_keys or self.jwks):
            raise DeclarationError(f"JwtSettings of {self.issuer}: set secrets, public_keys or jwks.")
        if isinstance(self.secrets, str):
            raise DeclarationError("secrets takes a list of strings, got one string.")
        for secret in self.secrets:
            if len(secret.encode()) < _SHORTEST_SECRET:
                raise DeclarationError(f"An HS256 secret needs at least {_SHORTEST_SECRET} bytes.")
            if "-----BEGIN" in secret:
                raise DeclarationError(
                    "An HS256 secret must not be a PEM key; put a PEM key into public_keys."
                )


class TokenVerifier:
    """Verifies the tokens of one issuer."""

    def __init__(self, settings: JwtSettings) -> None:
        self._settings = settings
        self._static = {kid: _public_key(kid, pem) for kid, pem in settings.public_keys.items()}
        given = settings.jwks
        remote = JwksSettings(url=given) if isinstance(given, str) else given
        self._jwks = None if remote is None else JwksCache(remote)

    @staticmethod
    def issuer_of(token: str) -> str | None:
        """Return the issuer that a token claims, unverified; it only selects the verifier."""
        try:
            claims = pyjwt.decode(token, options={"verify_signature": False})
        except (pyjwt.PyJWTError, ValueError, RecursionError):
            return None
        issuer = claims.get("iss")
        return issuer if isinstance(issuer, str) else None

    async def principal(self, token: str) -> Principal | None:
        """Return the principal of a token, or None when the token is invalid."""
        try:
            header = pyjwt.get_unverified_header(token)
        except (pyjwt.PyJWTError, ValueError, RecursionError):
            return None
        # RFC 7515 4.1.11: reject a token with critical extensions that the reader does not know.
        if "crit" in header:
            return None
        match header.get("alg"):
            case "HS256":
                keys: Sequence[Any] = self._settings.secrets
            case "RS256":
                keys = await self._public_keys(header.get("kid"))
            case _:
                return None
        for key in keys:
            claims = self._claims(token, key, header["alg"])
            if claims is not None:
                return self._principal_of(claims)
        return None

    async def _public_keys(self, kid: object) -> list[RSAPublicKey]:
        if kid is None:
            # A token without a key id is verified only where there is exactly one key.
            return list(self._static.values()) if len(self._static) == 1 and self._jwks is None else []
        if not isinstance(kid, str):
            return []
        known = self._static.get(kid)
        if known is None and self._jwks is not None:
            known = await self._jwks.key(kid)
        return [] if known is None else [known]

    def _claims(self, token: str, key: Any, algorithm: str) -> dict[str, Any] | None:
        try:
            claims = pyjwt.decode(
                token,
                key,
                algorithms=[algorithm],
                issuer=self._settings.issuer,
                audience=self._settings.audience,
                # `_in_time` checks the times, with the settings' clock.
                options={
                    "require": ["exp", "sub", "iss", "aud"],
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except (pyjwt.PyJWTError, ValueError, RecursionError):
            return None
        return claims if self._in_time(claims) else None

    def _in_time(self, claims: dict[str, Any]) -> bool:
        now, leeway = self._settings.clock(), self._settings.leeway_seconds
        expires, begins, issued = claims["exp"], claims.get("nbf", 0), claims.get("iat", 0)
        # In Python a bool is an int, and comparisons with NaN are always false.
        if not all(type(each) in (int, float) and 0 <= each <= _LATEST for each in (expires, begins, issued)):
            return False
        return bool(now - leeway < expires and begins <= now + leeway and issued <= now + leeway)

    def _principal_of(self, claims: dict[str, Any]) -> Principal | None:
        settings = self._settings
        roles = settings.fixed_roles
        if roles is None:
            roles = _texts(_claim(claims, settings.roles_claim))
            if roles is not None and settings.allowed_roles is not None:
                roles &= settings.allowed_roles
        tenants = _texts(_claim(claims, settings.tenants_claim))
        subject = claims["sub"]
        if roles is None or tenants is None or not isinstance(subject, str) or not subject:
            return None
        return Principal(
            id=subject,
            kind="jwt",
            issuer=settings.issuer,
            name=_text(_claim(claims, settings.name_claim)),
            email=_text(_claim(claims, settings.email_claim)),
            roles=roles,
            tenants=None if roles & settings.all_tenants_roles else tenants,
        )


def _claim(claims: dict[str, Any], path: ClaimPath) -> object:
    found: Any = claims
    for name in (path,) if isinstance(path, str) else path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _texts(claim: object) -> frozenset[str] | None:
    """Return a claim as a set of strings, empty when absent; None when it is anything else."""
    if claim is None:
        return frozenset()
    if isinstance(claim, str):
        return frozenset({claim} if claim else ())
    if isinstance(claim, list) and all(isinstance(each, str) and each for each in claim):
        return frozenset(claim)
    return None


def _text(claim: object) -> str | None:
    return claim if isinstance(claim, str) and claim else None


def _public_key(kid: str, pem: str) -> RSAPublicKey:
    try:
        key = load_pem_public_key(pem.encode())
    except ValueError as error:
        raise DeclarationError(f"Public key {kid!r} is not in PEM form.") from error
    if not isinstance(key, RSAPublicKey) or not is_strong(key):
        raise DeclarationError(f"Public key {kid!r} is not an RSA key of at least 2048 bits.")
    return key
