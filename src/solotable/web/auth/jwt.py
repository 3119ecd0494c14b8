"""JSON Web Tokens: which are believed, and what they say. PyJWT does the cryptography.

The settings decide on the algorithm, never the token: HS256 meets secrets only, RS256 public keys
only, and nothing else is accepted. Headers that bring their own key (`jwk`, `jku`, `x5u`) are not read.
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

from .jwks import JwksCache, JwksSettings, strong
from .principal import Principal

_SHORTEST_SECRET = 32
#: The end of the year 9999. A token that says it is valid for longer was not made by an issuer's clock.
_LATEST = 253_402_300_799
#: A claim by its name, or by the way to it: ("realm_access", "roles").
ClaimPath = str | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtSettings:
    """The tokens of one issuer, and which of their claims say what.

    Set `secrets` (HS256; every one verifies, so a new one can be added before the old one goes),
    `public_keys` (RS256; PEM by key id) or `jwks` (RS256; a URL). A token needs `sub` and `exp`.
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
    #: What everybody of this issuer is; the claim is then not read.
    fixed_roles: frozenset[str] | None = None
    #: The roles that are let in from the claim; None lets in all.
    allowed_roles: frozenset[str] | None = None
    #: Whoever has one of these reaches every tenant. No claim does that by itself.
    all_tenants_roles: frozenset[str] = frozenset()
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        if not self.issuer or not self.audience:
            raise DeclarationError("Tokens need an issuer and an audience; without them any token would do.")
        if not (self.secrets or self.public_keys or self.jwks):
            raise DeclarationError(f"Tokens of {self.issuer}: set secrets, public_keys or jwks.")
        if isinstance(self.secrets, str):
            raise DeclarationError("secrets is a list of texts, not one text.")
        for secret in self.secrets:
            if len(secret.encode()) < _SHORTEST_SECRET:
                raise DeclarationError(f"An HS256 secret has at least {_SHORTEST_SECRET} bytes.")
            if "-----BEGIN" in secret:
                raise DeclarationError("An HS256 secret is no key in PEM form; set it in public_keys.")


class Verifier:
    """Verifies the tokens of one issuer."""

    def __init__(self, settings: JwtSettings) -> None:
        self._settings = settings
        self._static = {kid: _public_key(kid, pem) for kid, pem in settings.public_keys.items()}
        given = settings.jwks
        remote = JwksSettings(url=given) if isinstance(given, str) else given
        self._jwks = None if remote is None else JwksCache(remote)

    @staticmethod
    def issuer_of(token: str) -> str | None:
        """Return the issuer that a token claims, unverified: it only chooses who verifies it."""
        try:
            claims = pyjwt.decode(token, options={"verify_signature": False})
        except (pyjwt.PyJWTError, ValueError, RecursionError):
            return None
        issuer = claims.get("iss")
        return issuer if isinstance(issuer, str) else None

    async def principal(self, token: str) -> Principal | None:
        """Return whom a token stands for, or None when it is not to be believed."""
        try:
            header = pyjwt.get_unverified_header(token)
        except (pyjwt.PyJWTError, ValueError, RecursionError):
            return None
        # RFC 7515 4.1.11: what a token declares critical and the reader does not know, refuses it.
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
                return self._judge(claims)
        return None

    async def _public_keys(self, kid: object) -> list[RSAPublicKey]:
        if kid is None:
            # Without a name a token is verified where there is no choice.
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
                # The times are judged below, by the clock that the settings bring.
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
        # A bool is an int to Python, and a comparison with NaN or infinity says nothing about time.
        if not all(type(each) in (int, float) and 0 <= each <= _LATEST for each in (expires, begins, issued)):
            return False
        return bool(now - leeway < expires and begins <= now + leeway and issued <= now + leeway)

    def _judge(self, claims: dict[str, Any]) -> Principal | None:
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
    """Return a claim as a set of texts, empty when it is absent; None when it is something else."""
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
    except ValueError as refused:
        raise DeclarationError(f"Public key {kid!r} is not in PEM form.") from refused
    if not isinstance(key, RSAPublicKey) or not strong(key):
        raise DeclarationError(f"Public key {kid!r} is no RSA key of at least 2048 bits.")
    return key
