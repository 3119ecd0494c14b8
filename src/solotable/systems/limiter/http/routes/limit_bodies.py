"""Bodies of limits, of schedules and of the levels that they are set at, each with an example."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StrictInt, model_validator

from solotable.errors import DataError
from solotable.systems.limiter.admin.calendar_period import Per
from solotable.systems.limiter.admin.entities import Mode, OnUnavailable, StoredLimits
from solotable.systems.limiter.admin.limits import (
    LONGEST_PERIOD_SECONDS,
    MOST_LIMITS,
    MOST_TOKENS,
    Limit,
    LimitKind,
)
from solotable.systems.limiter.admin.resolve import EffectiveLimits, Source
from solotable.systems.limiter.admin.schedule import MOST_WINDOWS, Schedule, ScheduleWindow

from .dependencies import LIMIT

_LIMIT = {"name": "rpm", "kind": "token_bucket", "capacity": 60, "refill": 60, "period_seconds": 60}
_LIMITS = [{"name": "rpm", "refill": 60, "period_seconds": 60}]
_SCHEDULE = {"timezone": "UTC", "windows": [{"when": "mon-fri 08:00-18:00", "limits": _LIMITS}]}
_LEVEL = {
    "entity": "user-1",
    "resource": None,
    "limits": [_LIMIT],
    "on_unavailable": None,
    "mode": "enforce",
    "revision": 1,
}


def request(example: Any) -> ConfigDict:
    """Return the configuration of a request body: unknown members are rejected."""
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [example]})


def response(example: Any) -> ConfigDict:
    """Return the configuration of a response body."""
    return ConfigDict(from_attributes=True, json_schema_extra={"examples": [example]})


class LimitBody(BaseModel):
    """A limit of any kind: `capacity` and `refill` default to each other; only a calendar has no period.

    A calendar has `per`, `timezone` and `anchor` instead. Capacity 0 denies every call that names
    the limit; a soft limit admits calls that exceed it.
    """

    model_config = request(_LIMITS[0])

    name: Annotated[str, Field(pattern=LIMIT)]
    kind: LimitKind = "token_bucket"
    refill: Annotated[int, Field(ge=0, le=MOST_TOKENS, strict=True)] | None = None
    period_seconds: Annotated[int, Field(ge=1, le=LONGEST_PERIOD_SECONDS, strict=True)] | None = None
    capacity: Annotated[int, Field(ge=0, le=MOST_TOKENS, strict=True)] | None = None
    soft: bool = False
    per: Per | None = None
    timezone: str | None = None
    anchor: StrictInt | str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        try:
            self.limit()
        except DataError as error:
            raise ValueError(str(error)) from error
        return self

    def limit(self) -> Limit:
        """Return the limit."""
        return Limit.from_dict(self.model_dump())


LimitList = Annotated[list[LimitBody], Field(min_length=1, max_length=MOST_LIMITS)]


def limits_of(bodies: list[LimitBody] | None) -> list[Limit] | None:
    """Return the limits of a request."""
    return None if bodies is None else [each.limit() for each in bodies]


class LimitOut(BaseModel):
    """A limit with every number; of a calendar also its periods."""

    model_config = response(_LIMIT)

    name: str
    kind: LimitKind = "token_bucket"
    capacity: int
    refill: int
    period_seconds: int
    soft: bool = False
    per: Per | None = None
    timezone: str | None = None
    anchor: str | None = None


class ScheduleWindowBody(BaseModel):
    """Days and times, and the limits then."""

    model_config = request({"when": "mon-fri 08:00-18:00", "limits": _LIMITS})

    when: str
    limits: LimitList


class ScheduleBody(BaseModel):
    """Limits by weekday and time of day; the first window that has the time applies."""

    model_config = request(_SCHEDULE)

    timezone: str = "UTC"
    windows: Annotated[list[ScheduleWindowBody], Field(min_length=1, max_length=MOST_WINDOWS)]


class LimitsBody(BaseModel):
    """The limits of a level, which replace its limits; with a schedule, those outside of its windows.

    Without `mode`, that does not change.
    """

    model_config = request({"limits": _LIMITS, "mode": "shadow"})

    limits: LimitList
    schedule: ScheduleBody | None = None
    mode: Mode | None = None

    def content(self) -> list[Limit] | Schedule:
        """Return the limits, or the schedule."""
        limits = [each.limit() for each in self.limits]
        return limits if self.schedule is None else schedule_of(limits, self.schedule)


def schedule_of(limits: list[Limit], body: ScheduleBody) -> Schedule:
    """Return the schedule of a request."""
    windows = [ScheduleWindow(each.when, [limit.limit() for limit in each.limits]) for each in body.windows]
    return Schedule(limits, windows, timezone=body.timezone)


class ScheduleWindowOut(BaseModel):
    """Days and times, and the limits then."""

    model_config = response({"when": "mon-fri 08:00-18:00", "limits": [_LIMIT]})

    when: str
    limits: list[LimitOut]


class ScheduleOut(BaseModel):
    """Limits by weekday and time of day."""

    model_config = response({"timezone": "UTC", "windows": [{"when": "sat,sun", "limits": [_LIMIT]}]})

    timezone: str
    windows: list[ScheduleWindowOut]


class SystemBody(BaseModel):
    """The system's limits, and what happens when the table is unavailable; at least one of them."""

    model_config = request({"limits": _LIMITS, "on_unavailable": "allow"})

    limits: LimitList | None = None
    schedule: ScheduleBody | None = None
    on_unavailable: OnUnavailable | None = None
    mode: Mode | None = None

    def content(self) -> list[Limit] | Schedule | None:
        """Return the limits, or the schedule."""
        limits = limits_of(self.limits)
        if self.schedule is None:
            return limits
        if limits is None:
            raise DataError("A schedule needs limits, which apply outside of its windows.")
        return schedule_of(limits, self.schedule)


class LevelOut(BaseModel):
    """What is stored at one level; null is all entities, or all resources."""

    model_config = response(_LEVEL)

    entity: str | None = None
    resource: str | None = None
    limits: list[LimitOut] | None = None
    schedule: ScheduleOut | None = None
    on_unavailable: OnUnavailable | None = None
    mode: Mode
    revision: int

    @classmethod
    def of(cls, stored: StoredLimits) -> Self:
        """Return the body of a level."""
        return cls(**stored.as_dict(), revision=stored.revision)


class EffectiveOut(BaseModel):
    """Which limits apply, and of which level."""

    model_config = response(
        {"limits": [_LIMIT], "source": "entity", "parent": None, "cascade": False, "mode": "enforce"}
    )

    limits: list[LimitOut] | None = None
    source: Source | None = None
    parent: str | None = None
    cascade: bool
    mode: Mode
    #: Of a schedule: the window that applies, null outside of all, and until when.
    window: str | None = None
    until: datetime | None = None

    @classmethod
    def of(cls, effective: EffectiveLimits) -> Self:
        """Return the body of what applies."""
        limits = effective.limits
        names = ("source", "parent", "cascade", "mode", "window", "until")
        return cls(
            limits=None if limits is None else [LimitOut(**limit.as_dict()) for limit in limits],
            **{name: getattr(effective, name) for name in names},
        )


class EntityLimitsOut(BaseModel):
    """The levels that are stored for an entity; with a resource also what applies to that."""

    model_config = response({"entity": "user-1", "levels": [_LEVEL], "effective": None})

    entity: str
    levels: list[LevelOut]
    effective: EffectiveOut | None = None
