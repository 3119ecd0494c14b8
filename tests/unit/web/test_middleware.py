"""The middleware: request ids, body limits, response headers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI, Request
from starlette.types import Message

from solotable.errors import DeclarationError
from solotable.jobs.deliver import deliver
from solotable.web import install, limit_body

from . import app as shop


@pytest.mark.parametrize("given", ["r-1", "a" * 64, "01JD0QK7V3.x_y-z"])
def test_a_sane_request_id_is_taken_over(given: str) -> None:
    with shop.client(shop.make()) as http:
        answer = http.get("/nope", headers={"x-request-id": given})
        assert answer.headers["x-request-id"] == answer.json()["request_id"] == given


@pytest.mark.parametrize(
    "given", ["", "a" * 65, "a b", "a\tb", 'x"y', "<script>", "é", "a\\nb", "a;b", "../x", "%0a"]
)
def test_any_other_is_replaced(given: str) -> None:
    with shop.client(shop.make()) as http:
        answer = http.get("/nope", headers=[(b"x-request-id", given.encode())])
        made = answer.headers["x-request-id"]
        assert len(made) == 26
        assert answer.json()["request_id"] == made


def test_line_breaks_never_reach_the_response_or_the_log() -> None:
    sent = _play(shop.make(), [(b"x-request-id", b"a\r\nset-cookie: x=1")], [b""])
    headers = dict(sent[0]["headers"])
    assert b"\r" not in headers[b"x-request-id"]
    assert b"set-cookie" not in headers


def test_two_ids_are_none() -> None:
    with shop.client(shop.make()) as http:
        pairs = [(b"x-request-id", b"one"), (b"x-request-id", b"two")]
        made = http.get("/nope", headers=pairs).headers.get_list("x-request-id")
        assert len(made) == 1
        assert made[0] not in ("one", "two")


def test_the_id_and_the_caller_are_in_the_audit() -> None:
    app = shop.make()
    with shop.client(app, key=shop.EDITOR_KEY) as http:
        sent = {"thing_id": "1", "name": "Bridge"}
        assert http.post("/things", json=sent, headers={"x-request-id": "r-77"}).status_code == 201
        database = app.state.database
        from solotable._store import Database
        from solotable.jobs.sinks import AuditSink

        deliver(Database(database.engine._engine, database.scope), [AuditSink()])
        assert http.portal is not None
        page = http.portal.call(database.tenant("acme").audit)
    (event,) = page.items
    assert event.request_id == "r-77"
    assert (event.actor.id, event.actor.name, event.actor.email) == ("k-acme", "Ann", "a@x.org")


def _play(
    app: FastAPI,
    headers: list[tuple[bytes, bytes]],
    chunks: list[bytes],
    path: str = "/raw",
    **more: Any,
) -> list[dict[str, Any]]:
    """Send a body in chunks as servers do, and return the messages of the response."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": headers,
        "client": ("10.1.1.1", 1),
        "server": ("127.0.0.1", 80),
        **more,
    }
    sent: list[dict[str, Any]] = []
    given: list[Message] = [
        {"type": "http.request", "body": chunk, "more_body": number < len(chunks) - 1}
        for number, chunk in enumerate(chunks)
    ]
    app_given = len(given)

    async def receive() -> Message:
        return given.pop(0) if given else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(dict(message))

    asyncio.run(app(scope, receive, send))
    sent.append({"read": app_given - len(given)})
    return sent


@pytest.mark.parametrize("path", ["/raw", "/things"])
def test_a_body_over_the_limit_is_rejected_before_it_is_read(path: str) -> None:
    app = shop.make(max_body_bytes=1000)
    sent = _play(app, [(b"content-length", b"1001")], [b"x" * 1001], path)
    assert sent[0]["status"] == 413
    assert sent[-1]["read"] == 0


def test_a_streamed_body_is_rejected_above_the_limit() -> None:
    app = shop.make(max_body_bytes=1000)
    chunks = [b"x" * 400] * 100
    for headers in ([(b"transfer-encoding", b"chunked")], [(b"content-length", b"10")]):
        sent = _play(app, headers, list(chunks))
        assert sent[0]["status"] == 413
        assert dict(sent[0]["headers"])[b"content-type"] == b"application/problem+json"
        assert sent[-1]["read"] == 3


def test_the_limit_holds_for_models_too() -> None:
    app = shop.make(max_body_bytes=1000)

    def body() -> Iterator[bytes]:
        yield b'{"thing_id": "1", "name": "'
        for _ in range(100):
            yield b"x" * 100
        yield b'"}'

    with shop.client(app, key=shop.EDITOR_KEY) as http:
        answer = http.post("/things", content=body(), headers={"content-type": "application/json"})
        assert answer.status_code == 413
        assert answer.json()["title"] in ("Content Too Large", "Request Entity Too Large")


def test_a_body_at_the_limit_passes() -> None:
    app = shop.make(max_body_bytes=1000)
    for headers in ([(b"content-length", b"1000")], []):
        sent = _play(app, headers, [b"x" * 500, b"x" * 500])
        assert (sent[0]["status"], sent[1]["body"]) == (200, b"1000")


@pytest.mark.parametrize("lengths", [[b"x"], [b"-1"], [b"1e9"], [b"5", b"6"], [b"9" * 30], [b""], [b"+5"]])
def test_an_invalid_length_is_rejected(lengths: list[bytes]) -> None:
    sent = _play(shop.make(), [(b"content-length", each) for each in lengths], [b"xxxxx"])
    assert sent[0]["status"] == 400


def test_responses_have_security_headers_that_apps_can_replace() -> None:
    app = shop.make(hsts_seconds=60)

    @app.get("/page")
    async def page() -> Any:
        from fastapi.responses import HTMLResponse

        return HTMLResponse("<p>", headers={"content-security-policy": "default-src 'self'"})

    with shop.client(app) as http:
        headers = http.get("/visitor").headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["cache-control"] == "no-store"
        assert "strict-transport-security" not in headers
        own = http.get("/page").headers
        assert own.get_list("content-security-policy") == ["default-src 'self'"]
        secure = http.get("https://shop.example/visitor").headers
        assert secure["strict-transport-security"] == "max-age=60"


def test_a_route_can_lower_the_limit_of_its_body() -> None:
    app = shop.make(max_body_bytes=100)

    @app.post("/small")
    async def small(request: Request) -> int:
        limit_body(request, 10)
        return len(await request.body())

    with shop.client(app) as http:
        assert http.post("/small", content=b"x" * 10).json() == 10
        large = http.post("/small", content=b"x" * 11)
        assert (large.status_code, large.json()["detail"]) == (413, "The body is larger than 10 bytes.")


def test_cors_is_off_unless_origins_are_named() -> None:
    preflight = {"origin": "https://a.example", "access-control-request-method": "GET"}
    with shop.client(shop.make()) as http:
        assert http.options("/things", headers=preflight).status_code == 405
        answer = http.get("/visitor", headers={"origin": "https://a.example"})
        assert not [name for name in answer.headers if name.startswith("access-control")]
    with shop.client(shop.make(cors_origins=["https://a.example"])) as http:
        allowed = http.options("/things", headers=preflight)
        assert allowed.headers["access-control-allow-origin"] == "https://a.example"
        # The page can read error responses as well.
        refused = http.get("/things", headers={"origin": "https://a.example"})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == "https://a.example"
        other = http.get("/things", headers={"origin": "https://b.example"})
        assert "access-control-allow-origin" not in other.headers
        assert "access-control-allow-credentials" not in allowed.headers


def test_one_string_is_rejected_as_a_list_of_origins() -> None:
    with pytest.raises(DeclarationError):
        install(FastAPI(), cors_origins="https://a.example")


def test_a_principal_does_not_leak_through_a_shared_state() -> None:
    app = shop.make()
    shared: dict[str, Any] = {"of": "the lifespan"}
    answers = []
    for headers in ([(b"x-api-key", shop.EDITOR_KEY.encode())], [], [(b"x-api-key", b"wrong")]):
        sent = _play(app, headers, [b""], path="/me", method="GET", state=shared)
        answers.append(sent[0]["status"])
    assert answers == [200, 401, 401]
    assert shared == {"of": "the lifespan"}
