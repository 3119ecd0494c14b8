"""The public keys of an identity provider, by its JWKS URL: fetched seldom, kept through its outages.

A token with an unknown key id asks for the keys again, but not more often than the settings allow:
whoever sends made-up ids cannot make this server hammer the provider.
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

from solotable.errors import DeclarationError, TransportError

_LARGEST_BYTES = 1_000_000
_TIMEOUT_SECONDS = 5.0
_FEWEST_BITS = 2048
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class _StayHere(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: one could lead to a place that the settings would have refused."""

    def redirect_request(self, *args: Any, **more: Any) -> None:
        return None


_opener = urllib.request.build_opener(_StayHere)


def fetch(url: str) -> bytes:
    """Return what a URL answers; blocking."""
    with _opener.open(url, timeout=_TIMEOUT_SECONDS) as answer:
        body: bytes = answer.read(_LARGEST_BYTES + 1)
    return body


@dataclass(frozen=True, slots=True, kw_only=True)
class JwksSettings:
    """Where the keys are, and how long they are good for."""

    url: str
    #: Keys are fetched again after this time, so that one that was withdrawn goes.
    fresh_seconds: float = 600.0
    #: Unknown key ids and failed fetches cause no further fetch within this time.
    pause_seconds: float = 30.0
    #: How long keys are used when the provider does not answer.
    stale_seconds: float = 86_400.0
    fetch: Callable[[str], bytes] = fetch
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            raise DeclarationError(f"{self.url!r}: keys are fetched over https, or from this machine.")


class JwksCache:
    """The keys of one provider."""

    def __init__(self, settings: JwksSettings) -> None:
        self._settings = settings
        self._keys: dict[str, RSAPublicKey] = {}
        self._fetched = self._tried = float("-inf")
        self._fetching: asyncio.Lock | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def key(self, kid: str) -> RSAPublicKey | None:
        """Return the key with this id, None when the provider has none; TransportError when it is out."""
        # While one request fetches, others go on with the keys that they know.
        if self._wanting(kid) and not (kid in self._keys and self._lock().locked()):
            async with self._lock():
                # Another request may have fetched while this one waited.
                if self._wanting(kid):
                    await self._refresh()
        if self._settings.clock() - self._fetched > self._settings.stale_seconds:
            raise TransportError("The keys that tokens are verified with cannot be fetched; try later.")
        return self._keys.get(kid)

    def _wanting(self, kid: str) -> bool:
        now = self._settings.clock()
        if now - self._tried < self._settings.pause_seconds:
            return False
        return kid not in self._keys or now - self._fetched >= self._settings.fresh_seconds

    async def _refresh(self) -> None:
        try:
            keys = parse(await asyncio.to_thread(self._settings.fetch, self._settings.url))
        except (OSError, HTTPException, ValueError, RecursionError):
            return
        else:
            self._keys, self._fetched = keys, self._settings.clock()
        finally:
            # Afterwards: those who wait for the first keys must not go on without them.
            self._tried = self._settings.clock()

    def _lock(self) -> asyncio.Lock:
        # An app may be started again on another loop, as test clients do; a lock belongs to one.
        loop = asyncio.get_running_loop()
        if self._fetching is None or self._loop is not loop:
            self._fetching, self._loop = asyncio.Lock(), loop
        return self._fetching


def parse(body: bytes) -> dict[str, RSAPublicKey]:
    """Return the RSA keys for signatures of a JWKS document by their ids; others are left out."""
    if len(body) > _LARGEST_BYTES:
        raise ValueError("The JWKS document is too large.")
    document = json.loads(body)
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ValueError("This is no JWKS document.")
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
    return key if isinstance(key, RSAPublicKey) and strong(key) else None


def strong(key: RSAPublicKey) -> bool:
    """Say whether an RSA key is long enough to be believed."""
    return key.key_size >= _FEWEST_BITS
