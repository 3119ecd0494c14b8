"""`solotable limiter whois`: from an API key or an address to the entity that the middleware limits."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import pytest

from solotable.systems.limiter import AsyncLimiter
from solotable.systems.limiter.http.identity import by_address, by_header
from solotable.systems.limiter.http.middleware import RateLimitMiddleware

from .conftest import Ran, Run

SECRET = "sk-a-long-and-random-text"


@pytest.fixture
def lim(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("SOLOTABLE_URL", "sqlite:///l.db")

    def run_(*arguments: str) -> Ran:
        return run("limiter", *arguments)

    assert run_("system", "set-defaults", "rpm=100/day").code == 0
    return run_


def request(entity: Any, headers: list[tuple[bytes, bytes]], client: str) -> None:
    """Send one request through the middleware."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None: ...

    async def work() -> None:
        limiter = AsyncLimiter.open("sqlite:///l.db")
        scope = {"type": "http", "path": "/", "headers": headers, "client": (client, 1)}
        await RateLimitMiddleware(app, limiter, entity=entity)(scope, None, send)  # type: ignore[arg-type]  # not used
        await limiter.close()

    asyncio.run(work())


def test_a_key_is_found_and_never_printed(
    lim: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    request(by_header("x-api-key"), [(b"x-api-key", SECRET.encode())], "192.0.2.7")
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{SECRET}\n"))
    ran = lim("whois", "--header", "-", "--json")
    entity = by_header("x-api-key")({"headers": [(b"x-api-key", SECRET.encode())]})
    assert (ran.json["entity"], ran.json["source"], ran.json["mode"]) == (entity, "system", "enforce")
    (limit,) = ran.json["limits"]
    assert (limit["limit"], limit["available"]) == ("rpm", 99)
    shown = lim("whois", "--header", SECRET)
    assert shown.out.startswith(f"{entity}\n")
    assert "The limits are set for the system" in shown.err
    assert SECRET not in ran.out + ran.err + shown.out + shown.err + caplog.text


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8:7:1:aaaa::9", "fe80::1%eth0"])
def test_an_address_is_found(lim: Run, address: str) -> None:
    request(by_address, [], address)
    (limit,) = lim("whois", "--address", address, "--json").json["limits"]
    assert limit["available"] == 99
    assert "99" in lim("whois", "--address", address).out


def test_what_is_asked_must_be_clear(lim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lim("whois").code == 2
    assert lim("whois", "--header", "a", "--address", "192.0.2.7").code == 2
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    ran = lim("whois", "--header", "-")
    assert (ran.code, "empty" in ran.err) == (2, True)
    assert lim("system", "delete-defaults").code == 0
    bare = lim("whois", "--address", "192.0.2.7")
    assert (bare.code, bare.out.strip()) == (0, "ip:192.0.2.7")
    assert "No limits are stored" in bare.err


@pytest.mark.parametrize("address", ["nonsense", "300.1.1.1", "", "192.0.2.7:8080"])
def test_what_is_not_an_address_is_rejected(lim: Run, address: str) -> None:
    ran = lim("whois", "--address", address)
    assert (ran.code, ran.out) == (2, "")
    assert f"{address!r} is not an address" in ran.err
