"""Request and response bodies of the API, each with an example."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, StrictFloat, StrictInt, model_validator

from solotable.systems.limiter.admin.entities import Mode, OnUnavailable
from solotable.systems.limiter.admin.limits import (
    MOST_LIMITS,
    MOST_TOKENS,
)
from solotable.systems.limiter.buckets.acquire import Decision
from solotable.systems.limiter.buckets.targets import MOST_RESOURCES
from solotable.systems.limiter.errors import LimitStatus
from solotable.systems.limiter.http.http_leases import AcquiredLease, StoredLease

from .dependencies import ENTITY, LIMIT, NAMESPACE, RESOURCE
from .limit_bodies import LimitList, request, response

_ID = "01JD0QK7V3M8Z6X2T9R4C5B1AE"
_TIME = "2026-11-15T09:30:00Z"
_STATUS = {
    "entity": "user-1",
    "resource": "gpt-4",
    "limit": "rpm",
    "capacity": 60,
    "available": 59,
    "requested": 1,
    "exceeded": False,
    "retry_after_seconds": 0,
    "enforced": True,
}
_LEASE = {
    "lease_id": _ID,
    "entity": "user-1",
    "resource": "gpt-4",
    "consumed": {"rpm": 1, "tpm": 500},
    "also": {},
    "ended": None,
    "held_until": None,
    "expires": _TIME,
    "version": 1,
}

# Strict: a string that looks like a number, or true, is a mistake of the client.
Tokens = Annotated[StrictInt | StrictFloat, Field(ge=0, le=MOST_TOKENS, allow_inf_nan=False)]
#: In responses: whole if possible.
Number = int | float
LimitText = Annotated[str, Field(pattern=LIMIT)]
Amounts = Annotated[dict[LimitText, Tokens], Field(min_length=1, max_length=MOST_LIMITS)]
EntityText = Annotated[str, Field(pattern=ENTITY)]
ResourceText = Annotated[str, Field(pattern=RESOURCE)]
#: What to take from other resources.
Also = Annotated[dict[ResourceText, Amounts], Field(max_length=MOST_RESOURCES - 1)]
Plain = str | int | float | bool | None


class StatusOut(BaseModel):
    """One limit at the time of a call; `available` is null if the bucket was not read."""

    model_config = response(_STATUS)

    entity: str
    resource: str
    limit: str
    capacity: int
    available: int | None = None
    requested: Number
    exceeded: bool
    retry_after_seconds: float
    enforced: bool

    @classmethod
    def of(cls, status: LimitStatus) -> Self:
        """Return the body of a status."""
        return cls(**status.as_dict())


class AcquireBody(BaseModel):
    """What to take, and from which entity; only operators may send `limits`."""

    model_config = request({"entity": "user-1", "resource": "gpt-4", "consume": {"rpm": 1, "tpm": 500}})

    entity: EntityText
    resource: ResourceText
    consume: Amounts
    also: Also | None = None
    limits: LimitList | None = None
    on_unavailable: OnUnavailable | None = None


class CheckBody(BaseModel):
    """What an acquire would take."""

    model_config = request({"entity": "user-1", "resource": "gpt-4", "consume": {"rpm": 1}})

    entity: EntityText
    resource: ResourceText
    consume: Amounts
    also: Also | None = None


class AdjustBody(BaseModel):
    """What the call has consumed in all, by limit; limits that are not named do not change."""

    model_config = request({"consumed": {"tpm": 812}})

    consumed: Annotated[dict[LimitText, Tokens], Field(max_length=MOST_LIMITS)] = {}
    also: Also | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.consumed and not self.also:
            raise ValueError("consumed or also is needed")
        return self


class LeaseOut(BaseModel):
    """A lease: what a call has taken so far.

    `held_until` is when tokens of concurrency limits are free, unless the lease is extended.
    """

    model_config = response(_LEASE)

    lease_id: str
    entity: str
    resource: str
    consumed: dict[str, Number]
    also: dict[str, dict[str, Number]] = {}
    ended: datetime | None = None
    held_until: datetime | None = None
    expires: datetime
    version: int

    @classmethod
    def of(cls, lease: StoredLease) -> Self:
        """Return the body of a lease."""
        tokens = {"consumed": lease.tokens, "also": lease.also_tokens}
        return cls(**{**lease.model_dump(include=set(cls.model_fields)), **tokens})


class AcquireOut(BaseModel):
    """A lease, and the limits after it; null if the entity is not limited, or the table was unavailable.

    `exceeded` are soft limits, `shadow_refusal` is what a level in shadow mode would have refused.
    """

    model_config = response(
        {"limited": True, "lease": _LEASE, "limits": [_STATUS], "exceeded": [], "shadow_refusal": None}
    )

    limited: bool
    lease: LeaseOut | None = None
    limits: list[StatusOut]
    exceeded: list[StatusOut] = []
    shadow_refusal: str | None = None

    @classmethod
    def of(cls, acquired: AcquiredLease) -> Self:
        """Return the body of an acquire."""
        return cls(
            limited=acquired.lease is not None,
            lease=None if acquired.lease is None else LeaseOut.of(acquired.lease),
            limits=[StatusOut.of(each) for each in acquired.statuses],
            exceeded=[StatusOut.of(each) for each in acquired.exceeded],
            shadow_refusal=None if acquired.shadow_refusal is None else str(acquired.shadow_refusal),
        )


class CheckOut(BaseModel):
    """Whether an acquire would be admitted now, and every limit; `refusal` says why not."""

    model_config = response(
        {"admitted": True, "retry_after_seconds": 0, "refusal": None, "limits": [_STATUS]}
    )

    admitted: bool
    retry_after_seconds: float
    refusal: str | None = None
    limits: list[StatusOut]

    @classmethod
    def of(cls, decision: Decision) -> Self:
        """Return the body of a decision."""
        return cls(
            admitted=decision.admitted,
            retry_after_seconds=decision.retry_after_seconds,
            refusal=None if decision.refusal is None else str(decision.refusal),
            limits=[StatusOut.of(each) for each in decision.statuses],
        )


class AvailabilityOut(BaseModel):
    """The available tokens, and every limit that applies."""

    model_config = response(
        {"entity": "user-1", "resource": "gpt-4", "available": {"rpm": 59}, "limits": [_STATUS]}
    )

    entity: str
    resource: str
    available: dict[str, int]
    limits: list[StatusOut]


class WaitOut(BaseModel):
    """The seconds until enough is available, if nothing else is taken."""

    model_config = response({"entity": "user-1", "resource": "gpt-4", "wait_seconds": 1.5})

    entity: str
    resource: str
    wait_seconds: float


class EntityBody(BaseModel):
    """A limited entity; one without a parent, a name and metadata need not be created."""

    model_config = request({"entity_id": "user-1", "name": "Ann", "parent": "org-1", "cascade": True})

    entity_id: EntityText
    name: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    parent: EntityText | None = None
    cascade: bool = False
    metadata: Annotated[dict[str, Plain], Field(max_length=50)] | None = None


class EntityOut(BaseModel):
    """A limited entity."""

    model_config = response(
        {
            "entity_id": "user-1",
            "name": "Ann",
            "parent_id": "org-1",
            "cascade": True,
            "metadata": {},
            "created": _TIME,
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


class ParentBody(BaseModel):
    """The parent of an entity, null for none; without `cascade` that does not change."""

    model_config = request({"parent": "org-1", "cascade": True})

    parent: EntityText | None
    cascade: bool | None = None


class ModeBody(BaseModel):
    """How limits apply: `bypass` admits an entity without limits, `deny` refuses it; null is `enforce`."""

    model_config = request({"mode": "enforce"})

    mode: Mode | None


class ResetBody(BaseModel):
    """The limits to make full again; null is every limit, or every resource."""

    model_config = request({"resource": "gpt-4", "limits": ["tpm"]})

    resource: ResourceText | None = None
    limits: Annotated[list[LimitText], Field(min_length=1, max_length=MOST_LIMITS)] | None = None


class TopUpBody(BaseModel):
    """The tokens to add to each limit, up to its capacity."""

    model_config = request({"resource": "gpt-4", "tokens": {"tpm": 5000}})

    resource: ResourceText
    tokens: Amounts


class TopUpOut(BaseModel):
    """The available tokens after a top-up."""

    model_config = response({"entity": "user-1", "resource": "gpt-4", "available": {"tpm": 9000}})

    entity: str
    resource: str
    available: dict[str, int]


class DashboardRow(BaseModel):
    """An entity with its limits for a resource; empty if none are set."""

    model_config = response({"entity_id": "user-1", "name": "Ann", "parent_id": None, "limits": [_STATUS]})

    entity_id: str
    name: str
    parent_id: str | None = None
    limits: list[StatusOut]


class UsageOut(BaseModel):
    """What an entity used of a resource in one window."""

    model_config = response(
        {
            "entity": "user-1",
            "resource": "gpt-4",
            "window": "hour",
            "start": "2026-11-15T09:00:00Z",
            "end": "2026-11-15T10:00:00Z",
            "events": 3,
            "tokens": {"rpm": 3, "tpm": 1720},
        }
    )

    entity: str
    resource: str
    window: str
    start: datetime
    end: datetime
    events: int
    tokens: dict[str, Number]


class LimitUsageOut(BaseModel):
    """What was used of one limit: in all, on average, and at most in one window."""

    model_config = response({"total": 1720, "mean": 860.0, "peak": 1000, "peak_at": _TIME})

    total: Number
    mean: float
    peak: Number
    peak_at: datetime


class SummaryOut(BaseModel):
    """The totals of usage rows."""

    model_config = response(
        {"window": "hour", "since": None, "until": None, "windows": 0, "events": 0, "limits": {}}
    )

    window: str
    since: datetime | None = None
    until: datetime | None = None
    windows: int
    events: int
    limits: dict[str, LimitUsageOut]


class AuditOut(BaseModel):
    """Who changed what, and when."""

    model_config = response(
        {
            "at": _TIME,
            "event_id": _ID,
            "action": "limits_set",
            "entity": "user-1",
            "title": "user-1",
            "actor_id": "ops",
            "snapshot": {"rules": "rpm=60/60"},
            "changes": {},
        }
    )

    at: datetime
    event_id: str
    action: str
    entity: str | None = None
    resource: str | None = None
    title: str
    actor_id: str | None = None
    actor_name: str | None = None
    actor_email: str | None = None
    request_id: str | None = None
    snapshot: dict[str, Any]
    changes: dict[str, Any]


class NamespaceBody(BaseModel):
    """The name of a new namespace."""

    model_config = request({"name": "acme"})

    name: Annotated[str, Field(pattern=NAMESPACE)]


class NamespaceOut(BaseModel):
    """A namespace; its items are stored under `id`."""

    model_config = response(
        {"name": "acme", "id": _ID, "status": "active", "deleted": None, "created": _TIME}
    )

    name: str
    id: str
    status: Literal["active", "deleted", "purging"]
    deleted: datetime | None = None
    created: datetime | None = None


class PurgeOut(BaseModel):
    """How far a purge is; repeat the request until it is done."""

    model_config = response({"namespace": "acme", "looked_at": 1000, "removed": 12, "done": False})

    namespace: str
    looked_at: int
    removed: int
    done: bool


class Health(BaseModel):
    """Whether the table responds."""

    model_config = response({"status": "ok"})

    status: Literal["ok"]
