"""DPoP proofs (RFC 9449): a signature by a key of the login, over the method, the URL and a nonce."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    derive_private_key,
    generate_private_key,
)

ALGORITHM = "ES256"
_TYPE = "dpop+jwt"
_BYTES = 32
#: The members of a public key on the curve P-256, and nothing else: a private key is rejected.
_MEMBERS = {"kty", "crv", "x", "y"}


class InvalidProof(ValueError):
    """A proof that is not signed by its key, or is for another request."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a valid proof says; `thumbprint` names its key."""

    thumbprint: str
    id: str
    nonce: str | None
    issued_at: float


class ProofKey:
    """The private key of one login."""

    def __init__(self, key: EllipticCurvePrivateKey) -> None:
        self._key = key

    @classmethod
    def new(cls) -> ProofKey:
        """Return a new key."""
        return cls(generate_private_key(SECP256R1()))

    @classmethod
    def from_text(cls, text: str) -> ProofKey:
        """Return the key of `to_text`."""
        return cls(derive_private_key(int(text, 16), SECP256R1()))

    def to_text(self) -> str:
        """Return the private key as text, to keep it until the browser comes back."""
        return f"{self._key.private_numbers().private_value:064x}"

    def public_jwk(self) -> dict[str, str]:
        """Return the public key as a JSON Web Key."""
        numbers = self._key.public_key().public_numbers()
        return {"kty": "EC", "crv": "P-256", "x": _encode(numbers.x), "y": _encode(numbers.y)}

    def sign(self, *, method: str, url: str, now: float, nonce: str | None = None) -> str:
        """Return the proof of one request."""
        claims = {"jti": secrets.token_urlsafe(16), "htm": method, "htu": url, "iat": int(now)}
        if nonce is not None:
            claims["nonce"] = nonce
        header = {"typ": _TYPE, "jwk": self.public_jwk()}
        return jwt.encode(claims, self._key, algorithm=ALGORITHM, headers=header)


def verify_proof(token: str, *, method: str, url: str) -> Proof:
    """Return what a proof says, or raise InvalidProof; the caller checks its time, id and nonce."""
    try:
        header = jwt.get_unverified_header(token)
        key = header.get("jwk")
        if header.get("typ") != _TYPE or not isinstance(key, dict) or set(key) != _MEMBERS:
            raise InvalidProof("the header is not that of a proof")
        claims = jwt.decode(
            token,
            jwt.PyJWK(key, ALGORITHM),
            algorithms=[ALGORITHM],
            options={"require": ["jti", "iat"], "verify_iat": False},
        )
    except jwt.PyJWTError as error:
        raise InvalidProof("the signature is not valid") from error
    if claims.get("htm") != method or claims.get("htu") != url:
        raise InvalidProof("the proof is for another request")
    nonce, issued = claims.get("nonce"), claims["iat"]
    if not isinstance(claims["jti"], str) or type(issued) not in (int, float):
        raise InvalidProof("jti or iat has a wrong type")
    return Proof(thumbprint(key), claims["jti"], nonce if isinstance(nonce, str) else None, issued)


def thumbprint(jwk: Mapping[str, Any]) -> str:
    """Return the name of a public key (RFC 7638)."""
    required = {name: jwk[name] for name in sorted(_MEMBERS)}
    return digest(json.dumps(required, separators=(",", ":")))


def digest(text: str) -> str:
    """Return the SHA-256 of a text in base64, as PKCE's S256 has it (RFC 7636).

    >>> digest("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
    """
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def _encode(number: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes(_BYTES)).decode().rstrip("=")
