"""The errors of the limiter.

SolotableError
├── RateLimitExceeded       not enough tokens now; see `retry_after_seconds`
├── NeverSatisfiable        more than a limit ever holds: waiting does not help (C1.13)
├── EntityDenied            an operator denies the entity, or a limit has capacity 0
├── NoLimits                no limits are set for the entity, the resource or the system
├── LeaseExpired            a lease was used after its end
├── TopUpInProgress         another call with the same key adds the tokens now
└── LimiterUnavailable      the table is unavailable, and on_unavailable is "block"
    └── UnreadableBucket    the item at a bucket's key is not a bucket of this limiter

Each can be pickled: a worker of a process pool may raise it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from solotable.errors import EngineError, ServiceError, SolotableError, TransportError

from .admin.limits import Limit, in_tokens


@dataclass(frozen=True, slots=True)
class LimitStatus:
    """One limit at the time of a call."""

    entity: str
    resource: str
    limit: Limit
    #: In tokens, rounded down; below zero in debt; None if the bucket was not read.
    available: int | None
    #: In thousandths of a token.
    requested_milli: int
    retry_after_seconds: float
    #: Whether exceeding it refuses the call: not if it is soft, or its level in shadow mode.
    enforced: bool = True
    #: The seconds until the limit is untouched again, if nothing else is taken.
    reset_after_seconds: float = 0.0
    #: The seconds until one token more is available; of an untouched limit, until its period ends, or 0.
    more_after_seconds: float = 0.0

    @property
    def requested(self) -> int | float:
        """The requested tokens."""
        return in_tokens(self.requested_milli)

    @property
    def exceeded(self) -> bool:
        """Whether the call asks for more than this limit has now."""
        return self.retry_after_seconds > 0

    def as_dict(self) -> dict[str, Any]:
        """Return the status as JSON has it."""
        return {
            "entity": self.entity,
            "resource": self.resource,
            "limit": self.limit.name,
            "capacity": self.limit.capacity,
            "available": self.available,
            "requested": self.requested,
            "exceeded": self.exceeded,
            "retry_after_seconds": self.retry_after_seconds,
            "enforced": self.enforced,
        }


class RateLimitExceeded(SolotableError):
    """Not enough tokens now; nothing was taken from any limit."""

    def __init__(self, statuses: Sequence[LimitStatus]) -> None:
        self.statuses = tuple(statuses)
        first = self.primary_violation
        super().__init__(
            f"{first.entity!r} asks for {first.requested} {first.limit.name} of {first.resource!r} and has "
            f"{first.available} left; try again in {self.retry_after_header} s."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.statuses,)

    @property
    def violations(self) -> tuple[LimitStatus, ...]:
        """The limits that refused."""
        return tuple(status for status in self.statuses if status.exceeded and status.enforced)

    @property
    def primary_violation(self) -> LimitStatus:
        """The limit with the longest wait."""
        return max(self.violations, key=lambda status: status.retry_after_seconds)

    @property
    def retry_after_seconds(self) -> float:
        """The seconds until every limit has enough, if nothing else is taken."""
        return self.primary_violation.retry_after_seconds

    @property
    def retry_after_header(self) -> str:
        """The value of a Retry-After header: whole seconds, rounded up."""
        return str(max(1, math.ceil(self.retry_after_seconds)))

    def as_dict(self) -> dict[str, Any]:
        """Return the body of a 429 response."""
        return {
            "error": "rate_limit_exceeded",
            "message": str(self),
            "retry_after_seconds": self.retry_after_seconds,
            "limits": [status.as_dict() for status in self.statuses],
        }


class NeverSatisfiable(SolotableError):
    """More than the limit ever holds."""

    def __init__(self, entity: str, resource: str, limit: Limit, requested_milli: int) -> None:
        super().__init__(
            f"{in_tokens(requested_milli)} {limit.name} are more than the {limit.capacity} that {entity!r} "
            f"ever has for {resource!r}; ask for less at once, or set a higher limit."
        )
        self.entity = entity
        self.resource = resource
        self.limit = limit
        self.requested_milli = requested_milli

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.entity, self.resource, self.limit, self.requested_milli)


class EntityDenied(SolotableError):
    """An operator denies the entity, or a limit that the call names has capacity 0; waiting does not help."""

    def __init__(
        self, entity: str, resource: str, since: datetime | None = None, limit: Limit | None = None
    ) -> None:
        what = "" if limit is None else f": its limit {limit.name!r} has capacity 0"
        when = "" if since is None else f" since {since:%Y-%m-%d %H:%M:%S} UTC"
        super().__init__(f"{entity!r} is denied on {resource!r}{when}{what}; an operator can change that.")
        self.entity = entity
        self.resource = resource
        self.since = since
        self.limit = limit

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.entity, self.resource, self.since, self.limit)


class NoLimits(SolotableError):
    """No limits are set at any level."""

    def __init__(self, entity: str, resource: str) -> None:
        super().__init__(
            f"No limits are set for {entity!r} and {resource!r}, nor for the system; "
            f"set some with set_limits(...), or give limits=[...]."
        )
        self.entity = entity
        self.resource = resource

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.entity, self.resource)


class TopUpInProgress(SolotableError):
    """Another call with the same key adds the tokens now; repeat the call in a minute."""

    def __init__(self) -> None:
        super().__init__("Another top-up with this key is in progress; repeat it in a minute.")


class LeaseExpired(SolotableError):
    """A lease was used after its `with` block."""

    def __init__(self) -> None:
        super().__init__("The lease ended with its block; acquire another one.")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


class LimiterUnavailable(SolotableError):
    """The table is unavailable; see `__cause__`."""


class UnreadableBucket(LimiterUnavailable):
    """The item at a bucket's key has another layout: another program wrote it, or it is damaged."""

    def __init__(self, partition: str, flaw: str) -> None:
        super().__init__(
            f"The item {partition!r} is not a bucket of this limiter: {flaw}. The limiter left it unchanged. "
            f"If another program wrote it, use another table or namespace; otherwise delete the item: the "
            f"bucket starts full."
        )
        self.partition = partition
        self.flaw = flaw

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.partition, self.flaw)


def is_unavailable(error: BaseException) -> bool:
    """Return whether an error means that the table is unavailable, not that a call was wrong."""
    if isinstance(error, ServiceError):
        return error.retryable
    return isinstance(error, (TransportError, EngineError, LimiterUnavailable))
