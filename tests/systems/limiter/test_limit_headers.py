"""The headers of limits: RateLimit and RateLimit-Policy, X-RateLimit-*, for every kind of limit."""

from __future__ import annotations

import math
import re
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
    with limiter.acquire("ann", f"r{amount}", {limit.name: amount}) as lease:
        return headers_of(lease.statuses)


@pytest.mark.parametrize(
    "limit, policy, service",
    [
        # 59 tokens are those of 59 seconds: the rate of the policy.
        (Limit("rpm", 60, 60, 60), '"rpm";q=60;w=60', '"rpm";r=59;t=59'),
        # A burst of 10 that fills at 2 a second: 10 in 5 seconds.
        (Limit("burst", 10, 2, 1), '"burst";q=10;w=5', '"burst";r=9;t=5'),
        (Limit("slow", 1, 3, 10), '"slow";q=1;w=4', '"slow";r=0;t=4'),
        (Limit.session("chat", 5, 3600), '"chat";q=5;w=3600', '"chat";r=4;t=3600'),
    ],
)
def test_every_kind_of_limit_has_its_policy(place: Place, limit: Limit, policy: str, service: str) -> None:
    headers = after_one(place, limit)
    assert headers["ratelimit-policy"] == policy
    assert headers["ratelimit"] == service


def test_x_ratelimit_reset_is_when_the_limit_is_full(place: Place, clock: Clock) -> None:
    for limit in KINDS[:4]:
        reset = int(after_one(place, limit)["x-ratelimit-reset"])
        limiter = Limiter(place.db, ACME, limits=[limit])
        for seconds, is_full in ((reset - 1, False), (1, True)):
            clock.seconds += seconds
            assert (limiter.available("ann", "r1")[limit.name] == limit.capacity) is is_full or reset == 1


def items(field: str) -> dict[str, dict[str, str]]:
    """Parse a field of the draft: a List of Strings with parameters (RFC 9651)."""
    found: dict[str, dict[str, str]] = {}
    for item in field.split(", "):
        name, *parameters = item.split(";")
        assert re.fullmatch(r'"[\x20-\x21\x23-\x5b\x5d-\x7e]*"', name), item
        found[name.strip('"')] = dict(each.split("=", 1) for each in parameters)
    return found


def parameters(headers: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return those of the policy and those of the service limit."""
    (policy,), (service,) = items(headers["ratelimit-policy"]).values(), items(headers["ratelimit"]).values()
    return policy, service


KINDS = [
    Limit("bucket", 60, 60, 60),
    Limit.fixed_window("fixed", 60, 60),
    Limit.sliding_window("sliding", 60, 60),
    Limit.session("session", 60, 60),
    Limit.calendar("calendar", 60, "hour"),
    Limit("most", 10**12, 1, 86_400),
    Limit("fast", 10, 3000, 1),
]
JOBS = Limit.concurrency("jobs", 60, 60)


def test_names_are_strings_and_parameters_integers(place: Place) -> None:
    """Draft 11, sections 3 and 4: a policy requires q, a service limit r; w is never zero; no pk."""
    for limit in [*KINDS, JOBS]:
        policy, service = parameters(after_one(place, limit))
        numbers = {name: value for name, value in {**policy, **service}.items() if name != "qu"}
        assert all(re.fullmatch(r"\d{1,15}", value) for value in numbers.values())
        assert {"q"} <= policy.keys() <= {"q", "qu", "w"}
        assert {"r"} <= service.keys() <= {"r", "t"}
        assert policy.get("w") != "0"


def test_the_unit_is_the_default_or_a_registered_one(place: Place) -> None:
    """Draft 11, 3.1.2: qu is a String of the registry; without it the unit is requests."""
    for limit in [*KINDS, JOBS]:
        policy, _ = parameters(after_one(place, limit))
        assert policy.get("qu") == ('"concurrent-requests"' if limit is JOBS else None)


@pytest.mark.parametrize("part", [0.0, 0.02, 0.5, 1.0])
def test_r_in_t_seconds_is_not_faster_than_the_policy(place: Place, clock: Clock, part: float) -> None:
    """Draft 11, 6 and 8.5: the ratio of r and t is capped; a window is over at its end, whatever is left."""
    clock.seconds += -clock.seconds % 3600
    for limit in KINDS:
        amount = max(1, round(limit.capacity * part)) if part else 0
        policy, service = parameters(after_one(place, limit, amount) if amount else untouched(place, limit))
        assert int(service["t"]) >= 1
        assert int(service["r"]) * int(policy["w"]) <= int(policy["q"]) * int(service["t"]), limit


def test_a_concurrency_limit_has_no_window(place: Place) -> None:
    """Draft 11: w and t are optional. Any lease may end at any time, so no time is known."""
    for headers in (after_one(place, JOBS), after_one(place, JOBS, 60), untouched(place, JOBS)):
        policy, service = parameters(headers)
        assert policy.keys() == {"q", "qu"}
        assert service.keys() == {"r"}


def untouched(place: Place, limit: Limit) -> dict[str, str]:
    return headers_of(Limiter(place.db, ACME, limits=[limit]).statuses("ann", "r"))


def test_no_more_than_r_is_available_before_t_if_nothing_is_left(place: Place, clock: Clock) -> None:
    """Draft 11, 4.1.2: t is the time within which a client can use no more than r."""
    for limit in KINDS:
        _, service = parameters(after_one(place, limit, limit.capacity))
        assert service["r"] == "0"
        limiter = Limiter(place.db, ACME, limits=[limit])
        clock.seconds += int(service["t"]) - 1
        assert limiter.available("ann", f"r{limit.capacity}")[limit.name] == 0 or service["t"] == "1"
        clock.seconds += 1
        assert limiter.available("ann", f"r{limit.capacity}")[limit.name] >= 1


@pytest.mark.parametrize("rest", [0, 3])
def test_retry_after_is_not_before_the_end_of_the_window_that_refuses(place: Place, rest: int) -> None:
    """Draft 11, section 6: so t of a limit that refuses is at most Retry-After."""
    for limit in KINDS:
        limiter = Limiter(place.db, ACME, limits=[limit])
        with limiter.acquire("ann", "r", {limit.name: limit.capacity - rest}):
            pass
        with pytest.raises(RateLimitExceeded) as caught, limiter.acquire("ann", "r", {limit.name: 5}):
            pass
        headers = problem_response(caught.value).headers
        _, service = parameters(headers)
        assert int(service["r"]) == rest
        assert int(headers["retry-after"]) >= int(service["t"]) >= 1


def test_the_policies_stay_the_same_from_response_to_response(place: Place) -> None:
    """Draft 11, section 3: RateLimit-Policy stays consistent; which limit is the tightest does not."""
    limiter = Limiter(place.db, ACME, limits=[Limit("rpm", 4, 4, DAY), Limit("tpm", 1000, 1000, DAY)])
    found = []
    for amounts in ({"rpm": 1, "tpm": 900}, {"rpm": 3}):
        with limiter.acquire("ann", "r", amounts) as lease:
            found.append(headers_of(lease.statuses))
    first, second = found
    assert first["ratelimit-policy"] == second["ratelimit-policy"]
    assert [next(iter(items(each["ratelimit"]))) for each in found] == ["tpm", "rpm"]


def test_a_calendar_s_window_is_the_rest_of_its_period(place: Place, clock: Clock) -> None:
    clock.seconds += 3600.5
    rest = math.ceil(-clock.seconds % DAY)
    limit = Limit.calendar("quota", 100, "day")
    assert untouched(place, limit)["ratelimit"] == f'"quota";r=100;t={rest}'
    headers = after_one(place, limit)
    assert headers["ratelimit-policy"] == f'"quota";q=100;w={DAY}'
    assert headers["ratelimit"] == f'"quota";r=99;t={rest}'


def test_several_limits_are_in_one_field_the_tightest_first(place: Place, mode: str) -> None:
    limiter = either(place, mode, limits=[Limit("rpm", 4, 4, DAY), Limit("tpm", 1000, 1000, DAY)])
    with limiter.acquire("ann", "r", {"rpm": 1, "tpm": 900}) as lease:
        headers = headers_of(lease.statuses)
    assert headers["ratelimit-policy"] == f'"rpm";q=4;w={DAY}, "tpm";q=1000;w={DAY}'
    assert headers["ratelimit"] == '"tpm";r=100;t=8640, "rpm";r=3;t=64800'
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
