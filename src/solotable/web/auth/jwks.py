"""The public keys of an identity provider, fetched from its JWKS URL and used through its outages.

A token with an unknown key id causes another fetch, but not within `pause_seconds` of the last one: tokens
with made-up ids cannot make this server flood the provider.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

import jwt as pyjwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from solotable.cache import TTLCache
from solotable.errors import DeclarationError, TransportError

_LARGEST_BYTES = 1_000_000
_TIMEOUT_SECONDS = 5.0
_FEWEST_BITS = 2048
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: it could lead to a URL that the settings would reject."""

    def redirect_request(self, *args: Any, **more: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


def fetch(url: str) -> bytes:
    """Return the body at a URL; blocking."""
    with _opener.open(url, timeout=_TIMEOUT_SECONDS) as response:
        body: bytes = response.read(_LARGEST_BYTES + 1)
    return body


@dataclass(frozen=True, slots=True, kw_only=True)
class JwksSettings:
    """The URL of the keys, and how long they are valid."""

    url: str
    #: Keys are fetched again after this time, so that a withdrawn key ends.
    fresh_seconds: float = 600.0
    #: The shortest time between two fetches, whatever key ids tokens have.
    pause_seconds: float = 30.0
    #: How long keys are used while the provider does not answer.
    stale_seconds: float = 86_400.0
    fetch: Callable[[str], bytes] = fetch
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            raise DeclarationError(f"JWKS URL {self.url!r} needs https; http works for localhost only.")


class JwksCache:
    """The keys of one provider."""

    def __init__(self, settings: JwksSettings) -> None:
        self._settings = settings
        self._keys: dict[str, RSAPublicKey] = {}
        self._fetched = float("-inf")
        self._fetching = False
        #: The last fetch, successful or not; no other one starts while it is cached.
        self._fetches: TTLCache[str, None] = TTLCache(
            ttl_seconds=settings.pause_seconds, max_size=1, clock=settings.clock
        )

    async def key(self, kid: str) -> RSAPublicKey | None:
        """Return the key with this id, None when the provider has none; TransportError without any keys."""
        known = kid in self._keys
        # During a fetch, requests whose key is known do not wait.
        if (not known or self._age() >= self._settings.fresh_seconds) and not (known and self._fetching):
            await self._fetches.load_async(self._settings.url, self._fetch)
        if self._age() > self._settings.stale_seconds:
            raise TransportError("Cannot fetch the keys that verify tokens; try again later.")
        return self._keys.get(kid)

    def _age(self) -> float:
        return self._settings.clock() - self._fetched

    async def _fetch(self) -> None:
        self._fetching = True
        try:
            keys = parse_jwks(await asyncio.to_thread(self._settings.fetch, self._settings.url))
            self._keys, self._fetched = keys, self._settings.clock()
        except (OSError, HTTPException, ValueError, RecursionError):
            # The provider is out of reach: the known keys stay in use until they are stale.
            return
        finally:
            self._fetching = False


def parse_jwks(body: bytes) -> dict[str, RSAPublicKey]:
    """Return the RSA signature keys of a JWKS document by their ids; other keys are left out."""
    if len(body) > _LARGEST_BYTES:
        raise ValueError("The JWKS document is too large.")
    document = json.loads(body)
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ValueError("The body is not a JWKS document.")
    found = {}
    for entry in entries:
        key = _key(entry) if isinstance(entry, dict) else None
        if key is not None:
            found[entry["kid"]] = key
    if not found:
        raise ValueError("The JWKS document has no RSA key for signatures.")
    return found


def _key(entry: dict[str, Any]) -> RSAPublicKey | None:
    if not isinstance(entry.get("kid"), str) or entry.get("kty") != "RSA":
        return None
    if entry.get("use", "sig") != "sig" or entry.get("alg", "RS256") != "RS256":
        return None
    try:
        key = pyjwt.PyJWK(entry, algorithm="RS256").key
    except (pyjwt.PyJWTError, ValueError, TypeError):
        return None
    return key if isinstance(key, RSAPublicKey) and is_strong(key) else None


def is_strong(key: RSAPublicKey) -> bool:
    """Return whether an RSA key is long enough."""
    return key.key_size >= _FEWEST_BITS
