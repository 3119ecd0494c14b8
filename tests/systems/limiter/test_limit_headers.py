"""The headers of limits: RateLimit and RateLimit-Policy, X-RateLimit-*, for every kind of limit."""

from __future__ import annotations

import math
from typing import Any

import pytest

from solotable.errors import DataError
from solotable.systems.limiter import Limit, Limiter
from solotable.systems.limiter.errors import RateLimitExceeded
from solotable.systems.limiter.http.dependency import limit_problems, rate_limited
from solotable.systems.limiter.http.limit_responses import HeaderStyle, headers_of, problem_response
from solotable.systems.limiter.http.middleware import RateLimitMiddleware
from tests.store.opening import Clock

from .either import either
from .ground import ACME, Place

DAY = 86_400


def after_one(place: Place, limit: Limit, amount: int = 1) -> dict[str, str]:
    limiter = Limiter(place.db, ACME, limits=[limit])
    with limiter.acquire("ann", "r", {limit.name: amount}) as lease:
        return headers_of(lease.statuses)


@pytest.mark.parametrize(
    "limit, policy, service",
    [
        (Limit("rpm", 60, 60, 60), '"rpm";q=60;w=60', '"rpm";r=59;t=1'),
        # A burst of 10 that fills at 2 a second: 10 in 5 seconds.
        (Limit("burst", 10, 2, 1), '"burst";q=10;w=5', '"burst";r=9;t=1'),
        (Limit("slow", 1, 3, 10), '"slow";q=1;w=4', '"slow";r=0;t=4'),
        (Limit.fixed_window("fixed", 10, DAY), f'"fixed";q=10;w={DAY}', None),
        (Limit.sliding_window("sliding", 10, 60), '"sliding";q=10;w=60', None),
        (Limit.session("chat", 5, 3600), '"chat";q=5;w=3600', '"chat";r=4;t=3600'),
    ],
)
def test_every_kind_of_limit_has_its_policy(
    place: Place, clock: Clock, limit: Limit, policy: str, service: str | None
) -> None:
    headers = after_one(place, limit)
    assert headers["ratelimit-policy"] == policy
    if service is not None:
        assert headers["ratelimit"] == service
    reset = int(headers["ratelimit"].partition(";t=")[2])
    assert headers["x-ratelimit-reset"] == str(reset)
    # At the told time the limit is full, and not a second before.
    limiter = Limiter(place.db, ACME, limits=[limit])
    for seconds, is_full in ((reset - 1, False), (1, True)):
        clock.seconds += seconds
        assert (limiter.available("ann", "r")[limit.name] == limit.capacity) is is_full or reset == 1


def test_a_concurrency_limit_has_no_window(place: Place) -> None:
    headers = after_one(place, Limit.concurrency("jobs", 5, 60))
    assert headers["ratelimit-policy"] == '"jobs";q=5;qu="concurrent-requests"'
    assert headers["ratelimit"] == '"jobs";r=4;t=60'


def test_a_calendar_resets_at_the_end_of_its_period(place: Place, clock: Clock) -> None:
    clock.seconds += 3600.5
    headers = after_one(place, Limit.calendar("quota", 100, "day"))
    assert headers["ratelimit-policy"] == f'"quota";q=100;w={DAY}'
    assert headers["ratelimit"] == f'"quota";r=99;t={math.ceil(-clock.seconds % DAY)}'


def test_several_limits_are_in_one_field_the_tightest_first(place: Place, mode: str) -> None:
    limiter = either(place, mode, limits=[Limit("rpm", 4, 4, DAY), Limit("tpm", 1000, 1000, DAY)])
    with limiter.acquire("ann", "r", {"rpm": 1, "tpm": 900}) as lease:
        headers = headers_of(lease.statuses)
    assert headers["ratelimit-policy"] == f'"tpm";q=1000;w={DAY}, "rpm";q=4;w={DAY}'
    assert headers["ratelimit"] == '"tpm";r=100;t=77760, "rpm";r=3;t=21600'
    assert headers["x-ratelimit-limit"] == "1000"
    assert headers["x-ratelimit-remaining-rpm"] == "3"
    assert "ann" not in str(headers)


def test_a_refusal_has_the_same_fields(place: Place, mode: str) -> None:
    limiter = either(place, mode, limits=[Limit("rpm", 1, 1, DAY)])
    with limiter.acquire("ann", "r", {"rpm": 1}):
        pass
    for remembered in (False, True):
        with pytest.raises(RateLimitExceeded) as caught, limiter.acquire("ann", "r", {"rpm": 1}):
            pass
        headers = problem_response(caught.value).headers
        assert headers["ratelimit"] == f'"rpm";r=0;t={DAY}', remembered
        assert headers["retry-after"] == str(DAY)


STYLES: dict[HeaderStyle, set[str]] = {
    "both": {"ratelimit", "ratelimit-policy", "x-ratelimit-limit"},
    "ietf": {"ratelimit", "ratelimit-policy"},
    "x": {"x-ratelimit-limit"},
    "none": set(),
}


@pytest.mark.parametrize("style", STYLES)
def test_the_program_chooses_the_headers(place: Place, style: HeaderStyle) -> None:
    limiter = Limiter(place.db, ACME, limits=[Limit("rpm", 1, 1, DAY)])
    with limiter.acquire("ann", "r", {"rpm": 1}) as lease:
        found = headers_of(lease.statuses, style)
    assert {name for name in found if not name.endswith(("remaining", "reset"))} == STYLES[style]
    with pytest.raises(RateLimitExceeded) as caught, limiter.acquire("ann", "r", {"rpm": 1}):
        pass
    assert set(problem_response(caught.value, style).headers) >= {"retry-after", *STYLES[style]}


def test_another_style_is_rejected_where_it_is_given() -> None:
    wrong: Any = "all"
    for attempt in (
        lambda: RateLimitMiddleware(None, None, headers=wrong),  # type: ignore[arg-type]  # not reached
        lambda: rate_limited(None, headers=wrong),  # type: ignore[arg-type]  # not reached
        lambda: limit_problems(None, headers=wrong),  # type: ignore[arg-type]  # not reached
    ):
        with pytest.raises(DataError, match="headers"):
            attempt()
