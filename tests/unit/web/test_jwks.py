"""JWKS keys: cached, rotated, used through outages, and fetched at a limited rate."""

from __future__ import annotations

import asyncio
import json
import threading
from http.client import IncompleteRead
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import jwt as pyjwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from solotable.errors import TransportError
from solotable.web import JwksSettings
from solotable.web.auth.jwks import JwksCache, fetch, parse_jwks

ONE = rsa.generate_private_key(public_exponent=65537, key_size=2048)
TWO = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def entry(kid: str, key: rsa.RSAPrivateKey = ONE, **changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(pyjwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    return made | {"kid": kid} | changes


class Provider:
    """A provider with responses and a clock that the test sets."""

    def __init__(self, *kids: str) -> None:
        self.now = 0.0
        self.fetches = 0
        self.answer: bytes | Exception = b""
        self.offer(*kids)
        settings = JwksSettings(url="https://id.example/keys", fetch=self.fetch, clock=lambda: self.now)
        self.cache = JwksCache(settings)

    def offer(self, *kids: str) -> None:
        self.answer = json.dumps({"keys": [entry(kid) for kid in kids]}).encode()

    def fetch(self, url: str) -> bytes:
        self.fetches += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def knows(self, kid: str) -> bool:
        return asyncio.run(self.cache.key(kid)) is not None


def test_keys_are_fetched_once_while_they_are_fresh() -> None:
    provider = Provider("a", "b")
    assert [provider.knows(kid) for kid in "abab"] == [True] * 4
    assert provider.fetches == 1


def test_unknown_ids_fetch_no_more_often_than_allowed() -> None:
    provider = Provider("a")
    assert not any(provider.knows(f"made-up-{number}") for number in range(50))
    assert provider.fetches == 1
    provider.now = 31
    assert not any(provider.knows(f"made-up-{number}") for number in range(50))
    assert provider.fetches == 2


def test_a_new_key_is_found_and_a_withdrawn_one_ends() -> None:
    provider = Provider("old")
    assert provider.knows("old")
    provider.offer("new")
    provider.now = 31
    assert provider.knows("new")
    assert not provider.knows("old")


def test_a_withdrawn_key_ends_without_a_request_for_another() -> None:
    provider = Provider("old")
    assert provider.knows("old")
    provider.offer("new")
    provider.now = 601
    assert not provider.knows("old")


@pytest.mark.parametrize(
    "answer", [OSError("down"), IncompleteRead(b"{"), b"", b"<html>", b"[]", b'{"keys": []}', b"[" * 100_000]
)
def test_keys_are_used_through_an_outage_but_not_for_ever(answer: bytes | Exception) -> None:
    provider = Provider("a")
    assert provider.knows("a")
    provider.answer = answer
    provider.now = 3_600
    assert provider.knows("a")
    assert provider.fetches == 2
    assert provider.knows("a")
    assert provider.fetches == 2
    provider.now = 86_401
    with pytest.raises(TransportError):
        provider.knows("a")


def test_an_outage_from_the_start_does_not_reject_the_token() -> None:
    provider = Provider("a")
    provider.answer = OSError("down")
    with pytest.raises(TransportError):
        provider.knows("a")


def test_many_requests_at_once_fetch_once() -> None:
    provider = Provider("a")

    async def ask() -> list[object]:
        return await asyncio.gather(*(provider.cache.key("a") for _ in range(20)))

    assert None not in asyncio.run(ask())
    assert provider.fetches == 1


def test_only_rsa_keys_for_signatures_are_taken() -> None:
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505  # it is to be left out
    entries = [
        entry("good"),
        entry("enc", use="enc"),
        entry("other", alg="RS512"),
        entry("weak", weak),
        entry("broken", n="!"),
        {"kty": "oct", "kid": "hmac", "k": "c2VjcmV0", "alg": "HS256"},
        {"kty": "RSA"},
        "text",
    ]
    assert set(parse_jwks(json.dumps({"keys": entries}).encode())) == {"good"}


def test_a_document_that_is_too_large_is_rejected() -> None:
    with pytest.raises(ValueError, match="too large"):
        parse_jwks(b" " * 1_000_001)


class Elsewhere(BaseHTTPRequestHandler):
    """A provider that redirects to another path of this machine, which has keys."""

    def do_GET(self) -> None:
        there = self.path == "/there"
        self.send_response(200 if there else 302)
        self.send_header("location", "/there")
        self.end_headers()
        self.wfile.write(b"keys" if there else b"")

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


def test_keys_are_fetched_where_the_settings_say_and_nowhere_else() -> None:
    with HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_port}"
        assert fetch(f"{place}/there") == b"keys"
        with pytest.raises(OSError, match="302"):
            fetch(f"{place}/moved")
        server.shutdown()
