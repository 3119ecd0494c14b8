"""Names of limits that an entity does not have: an error of the program, or ignored with a warning (L7)."""

from __future__ import annotations

import logging
from typing import Any

import httpx2
import pytest
from fastapi import Depends, FastAPI

from solotable.errors import DataError
from solotable.systems.limiter import AsyncLimiter, Limit, NoLimits
from solotable.systems.limiter.http.dependency import limit_problems, rate_limited
from solotable.systems.limiter.http.middleware import RateLimitMiddleware
from tests.store.opening import Clock

from .either import either
from .ground import ACME, Place

RPM = Limit("rpm", 3, 3, 86_400)
TPM = Limit("tpm", 1_000, 1_000, 86_400)
CALLER = "ip:192.0.2.7"


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]


def test_l7_a_name_that_the_entity_lacks_is_an_error_or_ignored(
    place: Place, mode: str, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = either(place, mode, limits=[RPM])
    limiter.set_limits([TPM], entity="ann", resource="gpt-4")
    with pytest.raises(DataError, match="rpm"), limiter.acquire("ann", "gpt-4", {"rpm": 1}):
        pass
    for _ in range(2):
        with limiter.acquire("ann", "gpt-4", {"rpm": 1, "tpm": 10}, unknown_limits="ignore") as lease:
            # What the application adds later is ignored in the same way.
            lease.adjust(rpm=5, tpm=5)
            assert lease.consumed == {"tpm": 15}
    assert limiter.available("ann", "gpt-4") == {"tpm": 970}
    expected = "'ann' has no limit 'rpm' for 'gpt-4'; nothing was taken from it."
    assert warnings(caplog) == [expected]
    clock.seconds += 61
    with limiter.acquire("ann", "gpt-4", {"rpm": 9}, unknown_limits="ignore") as lease:
        assert lease.consumed == {}
    assert warnings(caplog) == [expected, expected]
    assert limiter.available("ann", "gpt-4") == {"tpm": 970}


def test_l7_a_name_of_the_parent_is_not_unknown(place: Place, mode: str) -> None:
    limiter = either(place, mode)
    limiter.create_entity("org")
    limiter.create_entity("ben", parent="org", cascade=True)
    limiter.set_limits([RPM], entity="ben")
    limiter.set_limits([TPM], entity="org")
    with limiter.acquire("ben", "r", {"rpm": 1, "tpm": 400, "other": 1}, unknown_limits="ignore"):
        pass
    assert limiter.available("ben", "r") == {"rpm": 2, "tpm": 600}


def test_l7_no_limits_at_all_stay_an_error(place: Place, mode: str) -> None:
    limiter = either(place, mode)
    with pytest.raises(NoLimits), limiter.acquire("ann", "r", {"rpm": 1}, unknown_limits="ignore"):
        pass
    with pytest.raises(DataError, match="unknown_limits"):
        limiter.acquire("ann", "r", {"rpm": 1}, unknown_limits="skip")


async def answer(scope: Any, receive: Any, send: Any) -> None:
    scope["state"]["lease"].adjust(words=3)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})


def requested(place: Place, app: Any) -> list[int]:
    async def work() -> list[int]:
        transport = httpx2.ASGITransport(app=app, client=("192.0.2.7", 1), raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://x.example") as http:
            return [(await http.get("/")).status_code for _ in range(2)]

    return place.wait(work())


def test_l7_limits_of_an_operator_do_not_break_the_requests_of_a_client(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = AsyncLimiter(place.adb, ACME, limits=[RPM, Limit("words", 99, 99, 86_400)])
    place.wait(limiter.set_limits([TPM], entity=CALLER))
    assert requested(place, RateLimitMiddleware(answer, limiter)) == [200, 200]
    assert len(warnings(caplog)) == 2  # rpm of the middleware, words of the application
    assert place.wait(limiter.available(CALLER, "http")) == {"tpm": 1_000}
    strict = RateLimitMiddleware(answer, limiter, unknown_limits="raise")
    with pytest.raises(DataError):
        place.wait(strict({"type": "http", "headers": [], "client": ("192.0.2.7", 1)}, None, None))  # type: ignore[arg-type]  # not reached


def test_l7_the_same_for_a_route(place: Place) -> None:
    limiter = AsyncLimiter(place.adb, ACME, limits=[RPM])
    place.wait(limiter.set_limits([TPM], entity=CALLER))
    app = FastAPI()
    limit_problems(app)
    entity = lambda request: CALLER  # noqa: E731 - used once

    @app.get("/", dependencies=[Depends(rate_limited(limiter, entity=entity))])
    async def limited() -> str:
        return "ok"

    assert requested(place, app) == [200, 200]
