"""The limiter's errors as HTTP responses, and the headers of limits. For any framework.

A refusal is a problem of RFC 9457, in the form that `solotable.web` gives to every other one. RateLimit and
RateLimit-Policy are those of draft-ietf-httpapi-ratelimit-headers-11 (May 2026); sections below are its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, get_args
from urllib.parse import quote

from solotable.errors import DataError
from solotable.systems.limiter.admin.limits import Limit
from solotable.systems.limiter.errors import (
    EntityDenied,
    LimiterUnavailable,
    LimitStatus,
    NeverSatisfiable,
    RateLimitExceeded,
)

MEDIA_TYPE = "application/problem+json"
#: "ietf": RateLimit and RateLimit-Policy of the draft. "x": X-RateLimit-*.
HeaderStyle = Literal["both", "ietf", "x", "none"]
#: RFC 9651: an integer has at most 15 digits.
_LARGEST_INTEGER = 10**15 - 1
#: The errors with their own response; every other one is the application's.
LIMIT_ERRORS = (RateLimitExceeded, NeverSatisfiable, EntityDenied, LimiterUnavailable)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemResponse:
    """The response to a request that the limiter refused."""

    status: int
    slug: str
    title: str
    detail: str
    headers: dict[str, str] = field(default_factory=dict)
    members: dict[str, Any] = field(default_factory=dict)

    def body(self, path: str, request_id: str | None) -> bytes:
        """Return the problem as JSON."""
        problem = {
            "type": f"urn:problem:solotable:{self.slug}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "instance": quote(path),
            "request_id": request_id,
            **self.members,
        }
        return json.dumps(problem, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def problem_response(error: Exception, headers: HeaderStyle = "both") -> ProblemResponse:
    """Return the response to one of LIMIT_ERRORS."""
    if isinstance(error, RateLimitExceeded):
        content = error.as_dict()
        return ProblemResponse(
            status=429,
            slug="rate-limit-exceeded",
            title="Rate limit exceeded",
            detail=str(error),
            headers={"retry-after": error.retry_after_header, **headers_of(error.statuses, headers)},
            members={name: content[name] for name in ("retry_after_seconds", "limits")},
        )
    if isinstance(error, NeverSatisfiable):
        # Not a 429 with Retry-After: a client that waits would wait for ever (C1.13).
        return ProblemResponse(
            status=422,
            slug="never-satisfiable",
            title="More than the limit ever holds",
            detail=str(error),
            members={"limit": error.limit.as_dict()},
        )
    if isinstance(error, EntityDenied):
        return ProblemResponse(
            status=403,
            slug="entity-denied",
            title="Denied by an operator",
            detail=str(error),
            members={
                "entity": error.entity,
                "resource": error.resource,
                "since": None if error.since is None else error.since.isoformat().replace("+00:00", "Z"),
                "limit": None if error.limit is None else error.limit.name,
            },
        )
    return ProblemResponse(
        status=503,
        slug="limiter-unavailable",
        title="Temporarily unavailable",
        detail="The limiter is unavailable; try again later.",
        headers={"retry-after": "1"},
    )


def check_header_style(style: HeaderStyle) -> HeaderStyle:
    """Return a style of headers, or raise DataError."""
    if style not in get_args(HeaderStyle):
        raise DataError(f'headers is "both", "ietf", "x" or "none"; got {style!r}.')
    return style


def headers_of(statuses: Iterable[LimitStatus], style: HeaderStyle = "both") -> dict[str, str]:
    """Return the headers of limits: RateLimit-Policy and RateLimit, and X-RateLimit-*.

    Each limit has its name. In RateLimit the tightest is first, and X-RateLimit-Limit without a name is that
    one's; RateLimit-Policy keeps its order, as it has to stay the same (section 3). A limit in shadow mode is
    not shown. An entity is never named, so `pk` is left out.
    """
    found: dict[str, LimitStatus] = {}
    for status in statuses if style != "none" else ():
        if status.available is None or not (status.enforced or status.limit.soft):
            continue
        name = status.limit.name.lower()
        if name not in found or _headroom(status) < _headroom(found[name]):
            found[name] = status
    if not found:
        return {}
    ordered = sorted(found.items(), key=lambda pair: _headroom(pair[1]))
    headers: dict[str, str] = {}
    if style != "x":
        headers["ratelimit-policy"] = ", ".join(map(_policy, found.values()))
        headers["ratelimit"] = ", ".join(_service_limit(status) for _, status in ordered)
    if style != "ietf":
        headers |= _headers(ordered[0][1], "")
        if len(found) > 1:
            for name, status in found.items():
                headers |= _headers(status, f"-{name}")
    return headers


def _headroom(status: LimitStatus) -> tuple[bool, Fraction]:
    """Order limits by how tight they are: first those that refuse, then by the fraction that is left."""
    return not status.exceeded, Fraction(status.available or 0, status.limit.capacity)


def _policy(status: LimitStatus) -> str:
    """Return a limit as an item of RateLimit-Policy: its quota, and the seconds that the quota is for.

    `qu` has a registered unit or is left out (section 3.1.2): the unit of a limit is what its callers count.
    """
    limit = status.limit
    quota = f'"{limit.name}";q={limit.capacity}'
    if limit.kind == "concurrency":
        return f'{quota};qu="concurrent-requests"'
    return f"{quota};w={min(_window(limit), _LARGEST_INTEGER)}"


def _window(limit: Limit) -> int:
    """Return the seconds of a limit's quota: a token bucket has its capacity in the time that it fills."""
    if limit.kind == "token_bucket":
        return -(-limit.capacity * limit.period_seconds // limit.refill)
    return limit.period_seconds


def _service_limit(status: LimitStatus) -> str:
    """Return a limit as an item of RateLimit: what is left, and its effective window."""
    left, window = max(0, status.available or 0), _effective_window(status)
    service_limit = f'"{status.limit.name}";r={left}'
    return service_limit if window is None else f"{service_limit};t={min(window, _LARGEST_INTEGER)}"


def _effective_window(status: LimitStatus) -> int | None:
    """Return the seconds within which a client can use no more than what is left (section 4.1.2).

    Of a limit that refuses it is the wait, so that Retry-After is not earlier (section 6). Of a limit that
    refills all the time it is at least the time that the rate of the policy takes for what is left: otherwise
    a client would infer a higher rate from both (section 8.5). A concurrency limit has none: any lease may
    end at any time.
    """
    limit = status.limit
    if limit.kind == "concurrency":
        return None
    if status.exceeded:
        return math.ceil(status.retry_after_seconds)
    left, until_more = max(0, status.available or 0), math.ceil(status.more_after_seconds)
    if limit.kind in ("fixed_window", "calendar", "session"):
        return until_more or _window(limit)
    paced = -(-left * _window(limit) // limit.capacity)
    return max(1, paced, until_more)


def _headers(status: LimitStatus, suffix: str) -> dict[str, str]:
    return {
        f"x-ratelimit-limit{suffix}": str(status.limit.capacity),
        f"x-ratelimit-remaining{suffix}": str(max(0, status.available or 0)),
        f"x-ratelimit-reset{suffix}": str(math.ceil(status.reset_after_seconds)),
    }
