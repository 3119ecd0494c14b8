"""The bodies of leases, entities and limits: what is sent and what is answered, each with an example.

Those of usage, the audit trail and namespaces are in `records`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt

from solotable.systems.limiter.admin.entities import LimitedEntity, StoredLimits
from solotable.systems.limiter.admin.limits import (
    LONGEST_PERIOD_SECONDS,
    MOST_LIMITS,
    MOST_TOKENS,
    Limit,
    Limits,
)
from solotable.systems.limiter.admin.names import DEFAULT
from solotable.systems.limiter.admin.resolve import EffectiveLimits, Source
from solotable.systems.limiter.errors import LimitStatus
from solotable.systems.limiter.http.http_leases import AcquiredLease, StoredLease

from .dependencies import ENTITY, LIMIT, RESOURCE

EXAMPLE_ID = "01JD0QK7V3M8Z6X2T9R4C5B1AE"
EXAMPLE_AT = "2026-11-15T09:30:00Z"
_RPM = {"name": "rpm", "capacity": 60, "refill": 60, "period_seconds": 60}
_STATUS = {
    "entity": "user-1",
    "resource": "gpt-4",
    "limit": "rpm",
    "capacity": 60,
    "available": 59,
    "requested": 1,
    "exceeded": False,
    "retry_after_seconds": 0,
}
_LEVEL = {"entity": "user-1", "resource": None, "limits": [_RPM], "on_unavailable": None, "revision": 1}
_LEASE = {
    "lease_id": EXAMPLE_ID,
    "entity": "user-1",
    "resource": "gpt-4",
    "consumed": {"rpm": 1, "tpm": 500},
    "ended": None,
    "expires": EXAMPLE_AT,
    "version": 1,
}

OnUnavailable = Literal["block", "allow"]
# Strict: a text that looks like a number, or true, is a mistake of the caller's.
Tokens = Annotated[StrictInt | StrictFloat, Field(ge=0, le=MOST_TOKENS, allow_inf_nan=False)]
#: In answers: whole where it is.
Number = int | float
Amounts = Annotated[
    dict[Annotated[str, Field(pattern=LIMIT)], Tokens], Field(min_length=1, max_length=MOST_LIMITS)
]
EntityText = Annotated[str, Field(pattern=ENTITY)]
ResourceText = Annotated[str, Field(pattern=RESOURCE)]
Plain = str | int | float | bool | None


def sent(example: Any) -> ConfigDict:
    """Return the settings of a body that is sent: nothing in it that is not known."""
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [example]})


def answered(example: Any) -> ConfigDict:
    """Return the settings of a body that is answered."""
    return ConfigDict(json_schema_extra={"examples": [example]})


class LimitBody(BaseModel):
    """A limit: so many tokens each period, and how many it holds; without `capacity` as many as refill."""

    model_config = sent({"name": "rpm", "refill": 60, "period_seconds": 60})

    name: Annotated[str, Field(pattern=LIMIT)]
    refill: Annotated[int, Field(ge=1, le=MOST_TOKENS, strict=True)]
    period_seconds: Annotated[int, Field(ge=1, le=LONGEST_PERIOD_SECONDS, strict=True)]
    capacity: Annotated[int, Field(ge=1, le=MOST_TOKENS, strict=True)] | None = None

    def limit(self) -> Limit:
        """Return it as the limiter has it."""
        capacity = self.refill if self.capacity is None else self.capacity
        return Limit(self.name, capacity, self.refill, self.period_seconds)


LimitList = Annotated[list[LimitBody], Field(min_length=1, max_length=MOST_LIMITS)]


class LimitOut(BaseModel):
    """A limit with every number."""

    model_config = answered(_RPM)

    name: str
    capacity: int
    refill: int
    period_seconds: int


def limits_out(limits: Limits | None) -> list[LimitOut] | None:
    """Return limits as they are answered."""
    return None if limits is None else [LimitOut(**each.as_dict()) for each in limits]


class StatusOut(BaseModel):
    """One limit at the time of a call; `available` is null where nobody looked."""

    model_config = answered(_STATUS)

    entity: str
    resource: str
    limit: str
    capacity: int
    available: int | None = None
    requested: Number
    exceeded: bool
    retry_after_seconds: float

    @classmethod
    def of(cls, status: LimitStatus) -> Self:
        """Return a status as it is answered."""
        return cls(**status.as_dict())


class AcquireBody(BaseModel):
    """What is to be taken, and of whom; `limits` instead of the stored ones is for operators."""

    model_config = sent({"entity": "user-1", "resource": "gpt-4", "consume": {"rpm": 1, "tpm": 500}})

    entity: EntityText
    resource: ResourceText
    consume: Amounts
    limits: LimitList | None = None
    on_unavailable: OnUnavailable | None = None


class AdjustBody(BaseModel):
    """What the call has consumed in all, by limit; limits that are not named stay as they are."""

    model_config = sent({"consumed": {"tpm": 812}})

    consumed: Amounts


class LeaseOut(BaseModel):
    """A lease: what a call has taken so far."""

    model_config = answered(_LEASE)

    lease_id: str
    entity: str
    resource: str
    consumed: dict[str, Number]
    ended: datetime | None = None
    expires: datetime
    version: int

    @classmethod
    def of(cls, lease: StoredLease) -> Self:
        """Return a lease as it is answered."""
        return cls(
            lease_id=lease.lease_id,
            entity=lease.entity,
            resource=lease.resource,
            consumed=lease.tokens,
            ended=lease.ended,
            expires=lease.expires,
            version=lease.version,
        )


class AcquireOut(BaseModel):
    """A lease, null where the table could not be asked and that is allowed, and the limits after it."""

    model_config = answered({"limited": True, "lease": _LEASE, "limits": [_STATUS]})

    limited: bool
    lease: LeaseOut | None = None
    limits: list[StatusOut]

    @classmethod
    def of(cls, held: AcquiredLease) -> Self:
        """Return the answer to an acquire."""
        return cls(
            limited=held.lease is not None,
            lease=None if held.lease is None else LeaseOut.of(held.lease),
            limits=[StatusOut.of(each) for each in held.statuses],
        )


class AvailabilityOut(BaseModel):
    """How many tokens there are, and every limit that counts."""

    model_config = answered(
        {"entity": "user-1", "resource": "gpt-4", "available": {"rpm": 59}, "limits": [_STATUS]}
    )

    entity: str
    resource: str
    available: dict[str, int]
    limits: list[StatusOut]


class WaitOut(BaseModel):
    """In how many seconds there is enough, if nobody takes any."""

    model_config = answered({"entity": "user-1", "resource": "gpt-4", "wait_seconds": 1.5})

    entity: str
    resource: str
    wait_seconds: float


class EntityBody(BaseModel):
    """Whose calls are limited; one without a parent, a name and metadata need not be made."""

    model_config = sent({"entity_id": "user-1", "name": "Ann", "parent": "org-1", "cascade": True})

    entity_id: EntityText
    name: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    parent: EntityText | None = None
    cascade: bool = False
    metadata: Annotated[dict[str, Plain], Field(max_length=50)] | None = None


class EntityOut(BaseModel):
    """An entity."""

    model_config = answered(
        {
            "entity_id": "user-1",
            "name": "Ann",
            "parent_id": "org-1",
            "cascade": True,
            "metadata": {},
            "created": EXAMPLE_AT,
            "version": 1,
        }
    )

    entity_id: str
    name: str
    parent_id: str | None = None
    cascade: bool
    metadata: dict[str, Any]
    created: datetime | None = None
    version: int

    @classmethod
    def of(cls, entity: LimitedEntity) -> Self:
        """Return an entity as it is answered."""
        return cls(**entity.model_dump(include=set(cls.model_fields)))


class DashboardRow(BaseModel):
    """An entity with its limits for a resource; none where none are set."""

    model_config = answered({"entity_id": "user-1", "name": "Ann", "parent_id": None, "limits": [_STATUS]})

    entity_id: str
    name: str
    parent_id: str | None = None
    limits: list[StatusOut]


class LimitsBody(BaseModel):
    """The limits of a level, in place of those that it had."""

    model_config = sent({"limits": [{"name": "rpm", "refill": 60, "period_seconds": 60}]})

    limits: LimitList


class SystemBody(BaseModel):
    """The limits of last resort, and what happens when the table cannot be asked; at least one of them."""

    model_config = sent(
        {"limits": [{"name": "rpm", "refill": 60, "period_seconds": 60}], "on_unavailable": "allow"}
    )

    limits: LimitList | None = None
    on_unavailable: OnUnavailable | None = None


class LevelOut(BaseModel):
    """What is stored at one level; null is all entities, or all resources."""

    model_config = answered(_LEVEL)

    entity: str | None = None
    resource: str | None = None
    limits: list[LimitOut] | None = None
    on_unavailable: OnUnavailable | None = None
    revision: int

    @classmethod
    def of(cls, stored: StoredLimits) -> Self:
        """Return a level as it is answered."""
        return cls(
            entity=stored.entity,
            resource=None if stored.resource == DEFAULT else stored.resource,
            limits=limits_out(stored.limits),
            on_unavailable=stored.on_unavailable,
            revision=stored.revision,
        )


class EffectiveOut(BaseModel):
    """Which limits count, and by which level."""

    model_config = answered({"limits": [_RPM], "source": "entity", "parent": None, "cascade": False})

    limits: list[LimitOut] | None = None
    source: Source | None = None
    parent: str | None = None
    cascade: bool

    @classmethod
    def of(cls, settings: EffectiveLimits) -> Self:
        """Return settings as they are answered."""
        return cls(
            limits=limits_out(settings.limits),
            source=settings.source,
            parent=settings.parent,
            cascade=settings.cascade,
        )


class EntityLimitsOut(BaseModel):
    """The levels that are stored for an entity; with a resource also what counts for that."""

    model_config = answered({"entity": "user-1", "levels": [_LEVEL], "effective": None})

    entity: str
    levels: list[LevelOut]
    effective: EffectiveOut | None = None


class Health(BaseModel):
    """Whether the limiter can be asked."""

    model_config = answered({"status": "ok"})

    status: Literal["ok"]
