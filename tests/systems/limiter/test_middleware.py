"""Limits around any ASGI application, and of single FastAPI routes: headers, refusals, what is given back."""

from __future__ import annotations

import asyncio
import json
import string
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import httpx2
import pytest
from fastapi import Depends, FastAPI, HTTPException, Request
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect

from solotable.errors import NotFound, TransportError
from solotable.systems.limiter import AsyncLease, AsyncLimiter, Limit, NoLimits
from solotable.systems.limiter.admin.names import entity_name
from solotable.systems.limiter.http.dependency import by_principal, limit_problems, rate_limited
from solotable.systems.limiter.http.identity import by_address, by_header, entity_of
from solotable.systems.limiter.http.limit_responses import headers_of, problem_response
from solotable.systems.limiter.http.middleware import RateLimitMiddleware
from solotable.web import ApiKey, Auth, install
from solotable.web.http.problems import ProblemType, problem

#: Limits that do not fill up while a test runs.
RPM = Limit("rpm", 3, 3, 86_400)
TPM = Limit("tpm", 1_000, 1_000, 86_400)
SECRET = "a-long-and-random-text"
Run = Callable[[httpx2.AsyncClient], Awaitable[Any]]


def opened(*limits: Limit, **options: Any) -> AsyncLimiter:
    return AsyncLimiter.open("sqlite://", limits=limits or (RPM,), **options)


def driven(app: Any, work: Run, *, client: tuple[str, int] = ("192.0.2.7", 1)) -> Any:
    """Run requests against an application."""

    async def all_of_it() -> Any:
        transport = httpx2.ASGITransport(app=app, client=client, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://x.example") as http:
            return await work(http)

    return asyncio.run(all_of_it())


async def plain(scope: Any, receive: Any, send: Any) -> None:
    """An application of no framework: the path says what happens."""
    path = scope["path"]
    if path == "/crash":
        raise RuntimeError("on purpose")
    if path.startswith("/tokens/"):
        scope["state"]["lease"].adjust(tpm=int(path.rpartition("/")[2]))
    if path == "/more":
        await scope["state"]["lease"].consume(rpm=3)
    status = int(path[1:]) if path[1:].isdecimal() else 200
    await send({"type": "http.response.start", "status": status, "headers": [(b"x-own", b"1")]})
    await send({"type": "http.response.body", "body": b"ok"})


def test_requests_are_limited_by_address_with_headers() -> None:
    limiter = opened()
    app = RateLimitMiddleware(plain, limiter)

    async def work(http: httpx2.AsyncClient) -> list[httpx2.Response]:
        return [await http.get("/") for _ in range(4)]

    *served, refused = driven(app, work)
    assert [each.status_code for each in served] == [200, 200, 200]
    assert [each.headers["x-ratelimit-remaining"] for each in served] == ["2", "1", "0"]
    assert served[0].headers["x-own"] == "1"
    assert (served[0].headers["x-ratelimit-limit"], served[0].headers["x-ratelimit-reset"]) == ("3", "28800")
    assert "x-ratelimit-limit-rpm" not in served[0].headers
    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/problem+json"
    assert 28_700 < int(refused.headers["retry-after"]) <= 28_800
    assert refused.json()["limits"][0]["entity"] == "ip:192.0.2.7"
    (other,) = driven(app, lambda http: asyncio.gather(http.get("/")), client=("192.0.2.8", 1))
    assert other.status_code == 200


def test_a_header_of_the_caller_is_not_an_address() -> None:
    app = RateLimitMiddleware(plain, opened())

    async def work(http: httpx2.AsyncClient) -> list[int]:
        answers = [await http.get("/", headers={"x-forwarded-for": f"10.0.0.{each}"}) for each in range(4)]
        return [each.status_code for each in answers]

    assert driven(app, work) == [200, 200, 200, 429]


def test_c1_14_an_exception_gives_back_and_a_status_only_if_it_is_named() -> None:
    limiter = opened()
    app = RateLimitMiddleware(plain, limiter, give_back_on=(503,))

    async def work(http: httpx2.AsyncClient) -> list[int]:
        left = []
        for path in ("/crash", "/503", "/500", "/404"):
            await http.get(path)
            left.append((await limiter.available("ip:192.0.2.7", "http"))["rpm"])
        return left

    assert driven(app, work) == [3, 3, 2, 1]


async def streaming(scope: Any, receive: Any, send: Any) -> None:
    """An application that fails in the middle: behind a good answer, behind a bad one, or when it is left."""
    path = scope["path"]
    scope["state"]["lease"].adjust(tpm=40)
    if path == "/left":
        assert (await receive())["type"] == "http.request"
        assert (await receive())["type"] == "http.disconnect"
    else:
        status = 200 if path == "/half" else 500
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"most of it", "more_body": True})
    if path == "/cancelled":
        raise asyncio.CancelledError
    raise RuntimeError("on purpose")


@pytest.mark.parametrize(
    "path, left", [("/half", 860), ("/left", 860), ("/bad", 1_000), ("/cancelled", 1_000)]
)
def test_who_breaks_off_an_answer_is_charged_for_it(path: str, left: int) -> None:
    limiter = opened(RPM, TPM)
    app = RateLimitMiddleware(streaming, limiter, consume={"tpm": 100})
    received = [{"type": "http.request", "body": b""}, {"type": "http.disconnect"}]

    async def receive() -> Any:
        return received.pop(0)

    async def send(message: Any) -> None: ...

    async def work() -> int:
        scope = {"type": "http", "path": path, "headers": [], "client": ("192.0.2.7", 1)}
        with pytest.raises((RuntimeError, asyncio.CancelledError)):
            await app(scope, receive, send)
        return (await limiter.available("ip:192.0.2.7", "http"))["tpm"]

    assert asyncio.run(work()) == left


def test_a_handler_adjusts_its_lease_and_may_take_more() -> None:
    limiter = opened(RPM, TPM)
    app = RateLimitMiddleware(plain, limiter, consume=lambda scope: {"rpm": 1, "tpm": 100})

    async def work(http: httpx2.AsyncClient) -> Any:
        first = await http.get("/tokens/40")
        left = await limiter.available("ip:192.0.2.7", "http")
        return first, left, await http.get("/more")

    first, left, more = driven(app, work)
    assert left == {"rpm": 2, "tpm": 860}
    # The headers are those of the acquire; the tightest limit has the plain ones.
    assert first.headers["x-ratelimit-limit"] == first.headers["x-ratelimit-limit-rpm"] == "3"
    assert first.headers["x-ratelimit-remaining-tpm"] == "900"
    assert more.status_code == 429


def test_impossible_and_unavailable_acquires_have_their_own_responses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limiter = opened()

    async def get(http: httpx2.AsyncClient) -> httpx2.Response:
        return await http.get("/a b")

    never = driven(RateLimitMiddleware(plain, limiter, consume={"rpm": 4}), get)
    assert (never.status_code, "retry-after" in never.headers) == (422, False)
    assert never.json()["instance"] == "/a%20b"

    async def broken(request: object) -> None:
        raise TransportError("no route to the table")

    monkeypatch.setattr(limiter._engine, "handle", broken)
    down = driven(RateLimitMiddleware(plain, limiter), get)
    assert (down.status_code, down.headers["retry-after"]) == (503, "1")
    assert "route" not in down.text
    allowed = driven(RateLimitMiddleware(plain, limiter, on_unavailable="allow"), get)
    assert (allowed.status_code, "x-ratelimit-limit" in allowed.headers) == (200, False)


def test_a_table_that_is_lost_after_the_answer_does_not_spoil_it(monkeypatch: pytest.MonkeyPatch) -> None:
    limiter = opened(RPM, TPM)

    async def broken(request: object) -> None:
        raise TransportError("no route to the table")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await plain({**scope, "path": "/"}, receive, send)
        scope["state"]["lease"].adjust(tpm=1)
        monkeypatch.setattr(limiter._engine, "handle", broken)

    answer = driven(RateLimitMiddleware(app, limiter), lambda http: http.get("/"))
    assert (answer.status_code, answer.text) == (200, "ok")


def test_an_anonymous_caller_is_not_limited_and_a_missing_limit_is_hidden() -> None:
    async def nobody(scope: Any) -> None:
        return None

    get: Run = lambda http: http.get("/")  # noqa: E731 - said twice
    free = driven(RateLimitMiddleware(plain, opened(), entity=nobody), get)
    assert (free.status_code, "x-ratelimit-limit" in free.headers) == (200, False)
    bare = AsyncLimiter.open("sqlite://")
    with pytest.raises(NoLimits):
        asyncio.run(RateLimitMiddleware(plain, bare)(SCOPE, None, None))  # type: ignore[arg-type]  # not reached


SCOPE = {"type": "http", "path": "/", "headers": [], "client": ("192.0.2.7", 1)}


def test_other_protocols_than_http_pass() -> None:
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    limited = RateLimitMiddleware(app, opened())
    for kind in ("lifespan", "websocket"):
        asyncio.run(limited({"type": kind}, None, None))  # type: ignore[arg-type]  # not used
    assert seen == ["lifespan", "websocket"]


@given(st.text(max_size=300))
def test_every_text_has_a_valid_name(text: str) -> None:
    assert entity_name(entity_of(text))


@given(st.lists(st.text(alphabet=string.ascii_letters + ":#@ é\ud800", max_size=12), unique=True, min_size=2))
def test_two_texts_never_have_one_name(texts: list[str]) -> None:
    both = [*texts, *(entity_of(each) for each in texts if entity_of(each) != each)]
    assert len({entity_of(each) for each in both}) == len(both)


def test_addresses_and_keys_are_names() -> None:
    assert by_address({"client": None}) == "ip:none"
    assert entity_of(by_address({"client": ("fe80::1", 1)})) == "ip:fe80::1"
    assert entity_of(by_address({"client": ("fe80::1%eth0", 1)})).startswith("sha256:")
    assert by_address({"client": ("testclient", 1)}) == "ip:testclient"
    assert by_address({"client": ("::1", 1)}) == "ip:::1"
    identify = by_header("X-Api-Key")
    named = identify({"headers": [(b"x-api-key", SECRET.encode())], "client": None})
    assert SECRET not in named
    assert named.startswith("key:")
    assert identify({"headers": [], "client": ("192.0.2.7", 1)}) == "ip:192.0.2.7"


def test_all_addresses_of_an_ipv6_network_are_one_caller() -> None:
    def named(address: str) -> str:
        return entity_of(by_address({"client": (address, 1)}))

    mine = {named(f"2001:db8:7:1:{each:x}::{each:x}") for each in range(50)}
    assert mine == {"ip:2001:db8:7:1::"}
    assert named("2001:db8:7:2::1") not in mine
    assert named("::ffff:192.0.2.7") == named("::ffff:c000:207") == "ip:192.0.2.7"


def test_a_refusal_has_the_form_of_every_other_problem() -> None:
    limiter = opened()

    async def refused() -> Exception:
        try:
            async with limiter.acquire("u", "r", {"rpm": 3}), limiter.acquire("u", "r", {"rpm": 1}):
                raise AssertionError
        except Exception as error:  # noqa: BLE001 - whatever it is, it is looked at
            return error

    refusal = problem_response(asyncio.run(refused()))
    kind = ProblemType(status=429, slug=refusal.slug, title=refusal.title, detail=refusal.detail)
    scope = {"type": "http", "path": "/ä", "headers": [], "state": {"request_id": "r-1"}, "query_string": b""}
    scope["server"] = ("x.example", 80)
    theirs = problem(Request(scope), kind, **refusal.members)
    assert json.loads(refusal.body("/ä", "r-1")) == json.loads(bytes(theirs.body))


_WITHOUT_FRAMEWORK = """
import asyncio, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("fastapi", "starlette", "uvicorn", "jwt"):
            raise ImportError(f"{name} is not installed")

sys.meta_path.insert(0, Blocked())
from solotable.systems.limiter import AsyncLimiter, Limit
from solotable.systems.limiter.http.middleware import RateLimitMiddleware

async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})

async def main():
    limited = RateLimitMiddleware(app, AsyncLimiter.open("sqlite://", limits=[Limit("rpm", 1, 1, 86_400)]))
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "path": "/", "headers": [], "client": ("192.0.2.7", 1)}
    for _ in range(2):
        await limited(dict(scope), None, send)
    return [each["status"] for each in sent if "status" in each]

assert asyncio.run(main()) == [200, 429]
assert not [name for name in sys.modules if name.startswith("solotable.web")]
"""


def test_the_middleware_works_without_fastapi() -> None:
    command = [sys.executable, "-c", _WITHOUT_FRAMEWORK]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    assert done.returncode == 0, done.stderr


def test_no_limits_have_no_headers() -> None:
    assert headers_of([]) == {}


def of_app(request: Request) -> AsyncLimiter:
    found: AsyncLimiter = request.app.state.limiter
    return found


Limited = Annotated[AsyncLease, Depends(rate_limited(of_app, consume={"rpm": 1, "tpm": 100}))]


def fast(limiter: AsyncLimiter) -> FastAPI:
    """An app with limited routes, fitted as every other."""
    app = FastAPI()
    key = ApiKey.of(SECRET, id="ip:192.0.2.7", roles=[], tenants=[])
    install(app, auth=Auth(api_keys=[key]))
    limit_problems(app)
    app.state.limiter = limiter

    @app.get("/fine")
    async def fine(lease: Limited) -> dict[str, float]:
        lease.adjust(tpm=-60)
        return lease.consumed

    @app.get("/fail/{kind}")
    async def fail(kind: str, lease: Limited) -> None:
        raise {
            "not-found": NotFound("it is not there"),
            "teapot": HTTPException(418),
            "down": HTTPException(503),
            "crash": RuntimeError("on purpose"),
            "hung-up": ClientDisconnect(),
        }[kind]

    @app.get("/never", dependencies=[Depends(rate_limited(lambda request: limiter, consume={"rpm": 4}))])
    async def never() -> None: ...

    return app


def test_a_route_is_limited_by_its_principal_and_adjusts_its_lease() -> None:
    limiter = opened(RPM, TPM)

    async def work(http: httpx2.AsyncClient) -> Any:
        answers = [await http.get("/fine", headers={"x-api-key": SECRET}) for _ in range(4)]
        return answers, await limiter.available("id:ip:192.0.2.7", "http"), await http.get("/fine")

    (first, *_, refused), left, anonymous = driven(fast(limiter), work)
    assert first.json() == {"rpm": 1, "tpm": 40}
    assert first.headers["x-ratelimit-remaining-tpm"] == "900"
    assert left == {"rpm": 0, "tpm": 880}
    assert refused.status_code == 429
    assert refused.json()["request_id"] == refused.headers["x-request-id"]
    # Whoever has no credential is an address, and no principal can be named like one.
    assert anonymous.status_code == 200


@pytest.mark.parametrize(
    "kind, left", [("not-found", 2), ("teapot", 2), ("down", 3), ("crash", 3), ("hung-up", 2)]
)
def test_errors_of_callers_are_charged_and_those_of_the_application_given_back(kind: str, left: int) -> None:
    limiter = opened(RPM, TPM)

    async def work(http: httpx2.AsyncClient) -> Any:
        answer = await http.get(f"/fail/{kind}")
        return answer.status_code, (await limiter.available("ip:192.0.2.7", "http"))["rpm"]

    status, found = driven(fast(limiter), work)
    assert status == {"not-found": 404, "teapot": 418, "down": 503}.get(kind, 500)
    assert found == left


def test_a_route_that_asks_for_too_much_is_refused() -> None:
    assert driven(fast(opened()), lambda http: http.get("/never")).status_code == 422
    assert by_principal.__doc__
