"""The limiter's errors as HTTP responses, and the headers of limits. For any framework.

A refusal is a problem of RFC 9457, in the form that `solotable.web` gives to every other one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from urllib.parse import quote

from solotable.systems.limiter.errors import (
    EntityDenied,
    LimiterUnavailable,
    LimitStatus,
    NeverSatisfiable,
    RateLimitExceeded,
)

MEDIA_TYPE = "application/problem+json"
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


def problem_response(error: Exception) -> ProblemResponse:
    """Return the response to one of LIMIT_ERRORS."""
    if isinstance(error, RateLimitExceeded):
        content = error.as_dict()
        return ProblemResponse(
            status=429,
            slug="rate-limit-exceeded",
            title="Rate limit exceeded",
            detail=str(error),
            headers={"retry-after": error.retry_after_header, **headers_of(error.statuses)},
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


def headers_of(statuses: Iterable[LimitStatus]) -> dict[str, str]:
    """Return the X-RateLimit headers: of the tightest limit, and of each limit by name if there are several.

    `Reset` is the number of seconds until the limit is untouched again, rounded up.
    """
    found: dict[str, LimitStatus] = {}
    for status in statuses:
        name = status.limit.name.lower()
        if status.available is not None and (name not in found or _headroom(status) < _headroom(found[name])):
            found[name] = status
    if not found:
        return {}
    headers = _headers(min(found.values(), key=_headroom), "")
    if len(found) > 1:
        for name, status in found.items():
            headers |= _headers(status, f"-{name}")
    return headers


def _headroom(status: LimitStatus) -> tuple[bool, Fraction]:
    """Order limits by how tight they are: first those that refuse, then by the fraction that is left."""
    return not status.exceeded, Fraction(status.available or 0, status.limit.capacity)


def _headers(status: LimitStatus, suffix: str) -> dict[str, str]:
    limit, available = status.limit, status.available or 0
    return {
        f"x-ratelimit-limit{suffix}": str(limit.capacity),
        f"x-ratelimit-remaining{suffix}": str(max(0, available)),
        f"x-ratelimit-reset{suffix}": str(math.ceil(status.reset_after_seconds)),
    }
