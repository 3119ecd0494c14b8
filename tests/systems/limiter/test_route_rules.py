"""Limits by route around any application: rules, exempt paths, denied clients, shadow mode."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from solotable.errors import DataError
from solotable.systems.limiter import AsyncLimiter, Limit
from solotable.systems.limiter.http.identity import by_header
from solotable.systems.limiter.http.middleware import RateLimitMiddleware
from solotable.systems.limiter.http.route_rules import RouteRule

from .ground import ACME, Place

RPM = Limit("rpm", 3, 3, 86_400)
TRIES = Limit("tries", 1, 1, 86_400)
CALLER = "ip:192.0.2.7"


async def answer(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})


def opened(place: Place, **options: Any) -> AsyncLimiter:
    return AsyncLimiter(place.adb, ACME, limits=[RPM, TRIES], **options)


def sent(place: Place, app: Any, *requests: str, **headers: str) -> list[httpx2.Response]:
    """Send requests such as "POST /login"."""

    async def work() -> list[httpx2.Response]:
        transport = httpx2.ASGITransport(app=app, client=("192.0.2.7", 1), raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://x.example") as http:
            return [await http.request(*each.split(), headers=headers) for each in requests]

    return place.wait(work())


def left(place: Place, limiter: AsyncLimiter, resource: str, entity: str = CALLER) -> dict[str, int]:
    return place.wait(limiter.available(entity, resource))


def test_health_checks_are_exempt_unless_all_paths_are_limited(place: Place) -> None:
    limiter = opened(place)
    for path in ("/health", "/healthz"):
        (response,) = sent(place, RateLimitMiddleware(answer, limiter), f"GET {path}")
        assert (response.status_code, "ratelimit" in response.headers) == (200, False)
    assert left(place, limiter, "http")["rpm"] == 3
    sent(place, RateLimitMiddleware(answer, limiter), "GET /health/deep", "GET /healthzz")
    assert left(place, limiter, "http")["rpm"] == 1
    sent(place, RateLimitMiddleware(answer, limiter, exempt=()), "GET /health")
    assert left(place, limiter, "http")["rpm"] == 0


def test_exempt_patterns_match_no_path_that_a_server_may_resolve_elsewhere(place: Place) -> None:
    limiter = opened(place)
    app = RateLimitMiddleware(answer, limiter, exempt=["/static/*", "/metrics"])
    sent(place, app, "GET /static/a/b.css", "GET /metrics", "GET /static/")
    assert left(place, limiter, "http")["rpm"] == 3

    async def raw(path: str, root: str = "") -> None:
        async def ignore(message: Any) -> None: ...

        scope = {"type": "http", "path": path, "root_path": root, "method": "GET", "headers": []}
        await app({**scope, "client": ("192.0.2.7", 1)}, None, ignore)  # type: ignore[arg-type]  # not used

    for path in ("/static/../admin", "/static//x", "/static/.."):
        place.wait(raw(path))
    assert left(place, limiter, "http")["rpm"] == 0
    # Behind a proxy that adds a prefix, patterns are those of the application.
    place.wait(raw("/api/static/x", "/api"))
    (refused,) = sent(place, app, "GET /other")
    assert refused.status_code == 429


def test_the_first_rule_that_matches_decides(place: Place) -> None:
    limiter = opened(place)
    rules = [
        RouteRule("/login", methods=["post"], resource="login", consume={"tries": 1}),
        RouteRule("/login", exempt=True),
        RouteRule("/keys/*", entity=by_header("x-api-key"), resource=lambda scope: "keys"),
        RouteRule("/report", methods=["GET"], consume=lambda scope: {"rpm": 2}),
        RouteRule("*", methods=["OPTIONS"], exempt=True),
    ]
    app = RateLimitMiddleware(answer, limiter, rules=rules)
    found = sent(place, app, "POST /login", "GET /login", "POST /login", "OPTIONS /report")
    assert [each.status_code for each in found] == [200, 200, 429, 200]
    assert left(place, limiter, "login") == {"rpm": 3, "tries": 0}
    assert left(place, limiter, "http") == {"rpm": 3, "tries": 1}
    # HEAD is GET without a body.
    assert [each.status_code for each in sent(place, app, "HEAD /report", "GET /report")] == [200, 429]
    key = {"x-api-key": "a-secret-key"}
    (named,) = sent(place, app, "GET /keys/1", **key)
    assert "a-secret-key" not in str(named.headers)
    entity = by_header("x-api-key")({"headers": [(b"x-api-key", b"a-secret-key")]})
    assert left(place, limiter, "keys", entity)["rpm"] == 2


@pytest.mark.parametrize(
    "wrong",
    [{"path": "login"}, {"path": "/a", "methods": "POST"}, {"path": "/a", "exempt": True, "resource": "r"}],
)
def test_a_rule_without_sense_is_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="rule"):
        RouteRule(**wrong)
    with pytest.raises(DataError, match="exempt"):
        RateLimitMiddleware(answer, None, exempt="/health")  # type: ignore[arg-type]  # not reached


def test_a_denied_client_gets_403_and_a_shadow_refusal_changes_nothing(place: Place) -> None:
    limiter = opened(place)
    app = RateLimitMiddleware(answer, limiter)
    place.wait(limiter.set_mode(CALLER, "deny"))
    (denied,) = sent(place, app, "GET /")
    assert (denied.status_code, "retry-after" in denied.headers) == (403, False)
    assert denied.json()["type"] == "urn:problem:solotable:entity-denied"
    place.wait(limiter.set_mode(CALLER, None))
    place.wait(limiter.set_limits([RPM], resource="http", mode="shadow"))
    limiter.invalidate_config_cache()
    found = sent(place, app, *["GET /"] * 5)
    assert [each.status_code for each in found] == [200] * 5
    # A client does not learn of limits that are on trial.
    assert not [name for each in found for name in each.headers if "ratelimit" in name]
