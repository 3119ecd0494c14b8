"""Leases that outlive a call, stored in the table so that any process can adjust or end them.

A lease is one small item: from which shards of which buckets how much was taken. It is charged when it is
acquired, so a lease that is never ended has consumed what it asked for; its item expires after an hour.

Consumption is given as a total, not as a difference, so that a change that is sent twice is made once. The
lease is changed first, under its version, then the buckets: of concurrent callers one settles each
difference. If a process dies between the two, that difference is not settled.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from solotable import ANY, FROM_SCOPE, TTL, AsyncDatabase, Json, Key, Version, new_id
from solotable.errors import (
    AlreadyExists,
    DataError,
    NotFound,
    OutcomeUnknown,
    ServiceError,
    SolotableError,
    VersionConflict,
)
from solotable.flow import Flow, arun
from solotable.systems.limiter.admin.entities import FlatEntity
from solotable.systems.limiter.admin.limits import MICROSECONDS, Amount, amounts_by_limit, in_tokens
from solotable.systems.limiter.buckets.acquire import Grant, LimiterContext, adjust, extend, held_until
from solotable.systems.limiter.buckets.shards import TakenTokens, read_shards, surviving_shard
from solotable.systems.limiter.buckets.writes.charge_request import Charge
from solotable.systems.limiter.errors import LeaseExpired, LimitStatus
from solotable.systems.limiter.lease import AcquireRequest
from solotable.systems.limiter.meters.rules import rules_from
from solotable.systems.limiter.rate_limiter import AsyncLimiter
from solotable.systems.limiter.table import limiter as table


class ChargedBucket(BaseModel):
    """A bucket that a lease has charged: which shards, and the limits at that time."""

    model_config = ConfigDict(frozen=True)

    entity: str
    rules: str
    revision: int
    shards: tuple[int, ...]
    #: By limit, the period that it was charged in.
    periods: dict[str, int] = {}
    #: The name of the hold in concurrency limits.
    hold: str = ""
    #: None: the lease's own resource.
    resource: str | None = None
    #: What a limit that is not enforced did not give.
    skipped: dict[str, int] = {}


class StoredLease(FlatEntity, table=table):
    """What a call has taken, until the lease is ended or expires."""

    key = Key("{namespace}#LEASE#{lease_id}", "LEASE")

    namespace: str = FROM_SCOPE
    lease_id: str
    entity: str
    resource: str
    #: The entity's own bucket, then its parent's.
    places: Annotated[list[ChargedBucket], Json()]
    #: By limit, in thousandths of a token.
    consumed: Annotated[dict[str, int], Json()]
    #: The same by other resources.
    also: Annotated[dict[str, dict[str, int]], Json()] = Field(default_factory=dict)
    #: The digest of the request, to tell a repetition from another request with the same key.
    asked: str
    ended: datetime | None = None
    #: When the first tokens of concurrency limits are free, unless the lease is extended.
    held_until: datetime | None = None
    version: Annotated[int, Version()] = 0
    expires: Annotated[datetime, TTL()]

    @property
    def tokens(self) -> dict[str, int | float]:
        """What is consumed, in tokens."""
        return _tokens(self.consumed)

    @property
    def also_tokens(self) -> dict[str, dict[str, int | float]]:
        """What is consumed from other resources, in tokens."""
        return {resource: _tokens(amounts) for resource, amounts in self.also.items()}

    @property
    def by_resource(self) -> dict[str, dict[str, int]]:
        """What is consumed from each resource."""
        return {self.resource: self.consumed, **self.also}


@dataclass(frozen=True, slots=True, kw_only=True)
class AcquiredLease:
    """The result of an acquire: the lease, None without limits or without the table, and every limit."""

    lease: StoredLease | None
    statuses: list[LimitStatus]
    exceeded: list[LimitStatus] = field(default_factory=list)
    shadow_refusal: SolotableError | None = None
    #: Whether the lease with this key existed already.
    repeated: bool = False


class HttpLeases:
    """The stored leases of a namespace."""

    def __init__(self, db: AsyncDatabase, limiter: AsyncLimiter, *, seconds: float = 3600.0) -> None:
        self._db = db
        self._store = db.tenant(limiter.namespace)
        self._limiter = limiter
        self._ttl = timedelta(seconds=seconds)

    async def acquire(self, request: AcquireRequest, *, key: str | None = None) -> AcquiredLease:
        """Take tokens and store the lease, or raise RateLimitExceeded.

        The same `key` again returns the stored lease, and takes nothing.
        """
        lease_id = new_id() if key is None else f"key-{hashlib.sha256(key.encode()).hexdigest()[:40]}"
        existing = None if key is None else await self._read(lease_id)
        if existing is not None and self._is_current(existing):
            return _repeat(existing, request)
        lease = self._limiter.acquire(
            request.entity,
            request.resource,
            request.consume,
            also=request.also,
            limits=request.limits,
            on_unavailable=request.on_unavailable,
        )
        stored: StoredLease | None = None
        unknown: BaseException | None = None
        try:
            # An exception in the block gives the tokens back.
            async with lease:
                lease.keeps_holds = True
                if lease.grant is None:
                    return AcquiredLease(lease=None, statuses=[], shadow_refusal=lease.shadow_refusal)
                new = self._new(lease_id, request, lease.grant)
                try:
                    if existing is None:
                        stored = await self._store.create(new)
                    else:
                        stored = await self._store.put(new.model_copy(update={"version": existing.version}))
                except BaseException as error:
                    if not _may_be_stored(error):
                        raise
                    # Given back now and by the stored lease, the tokens would be given back twice.
                    unknown = error
        except (AlreadyExists, VersionConflict):
            # Another request with the same key was first.
            return _repeat(await self.get(lease_id), request)
        if unknown is not None:
            raise unknown
        return AcquiredLease(
            lease=stored,
            statuses=lease.statuses,
            exceeded=lease.exceeded,
            shadow_refusal=lease.shadow_refusal,
        )

    async def get(self, lease_id: str) -> StoredLease:
        """Return a lease, ended or not, or raise NotFound."""
        found = await self._read(lease_id)
        if found is None or not self._is_current(found):
            raise _not_found(lease_id)
        return found

    async def adjust(
        self,
        lease_id: str,
        consumed: Mapping[str, Amount],
        *,
        also: Mapping[str, Mapping[str, Amount]] | None = None,
        version: int | Any = None,
    ) -> StoredLease:
        """Set what a call has consumed in all, by limit; never refused, into debt if necessary.

        `also` is the same for the other resources of the lease.
        """

        def change(found: StoredLease) -> dict[str, Any] | None:
            if found.ended is not None:
                raise LeaseExpired
            after = found.by_resource
            for resource, amounts in {found.resource: consumed, **(also or {})}.items():
                if resource not in after:
                    raise DataError(f"The lease takes nothing from {resource!r}.")
                known = _names(found, resource)
                given = dict.fromkeys(amounts, 0) | amounts_by_limit(known, amounts)
                after[resource] = {**after[resource], **given}
            return None if after == found.by_resource else _by_resource(found, after)

        return await self._modify(lease_id, change, version)

    async def end(self, lease_id: str, *, keep: bool, version: int | Any = None) -> StoredLease:
        """End a lease and give everything back, or `keep` what is consumed; only the first end counts."""

        def change(found: StoredLease) -> dict[str, Any] | None:
            if found.ended is not None:
                return None
            after = {
                resource: {
                    name: amount if keep and name not in _held(found, resource) else 0
                    for name, amount in amounts.items()
                }
                for resource, amounts in found.by_resource.items()
            }
            return {**_by_resource(found, after), "ended": self._now()}

        return await self._modify(lease_id, change, version)

    async def extend(self, lease_id: str, *, version: int | Any = None) -> StoredLease:
        """Keep a lease, and what it holds of concurrency limits, for the whole time from now.

        Raise LeaseExpired if the lease has ended, or if what it held has expired and is free.
        """
        found = await self.get(lease_id)
        if (error := self._unexpected(found, version)) is not None:
            raise error
        if found.ended is not None:
            raise LeaseExpired
        until = await arun(_extend(self._limiter.context, found), self._db)

        def change(found: StoredLease) -> dict[str, Any]:
            if found.ended is not None:
                raise LeaseExpired
            return {"held_until": _time(until), "expires": self._expiry(until)}

        return await self._modify(lease_id, change, version)

    async def _modify(
        self, lease_id: str, change: Callable[[StoredLease], dict[str, Any] | None], version: int | Any
    ) -> StoredLease:
        before: StoredLease | None = None
        error: SolotableError | None = None

        def apply(found: StoredLease) -> StoredLease | None:
            nonlocal before, error
            # An error is not raised here: `modify` would repeat after a VersionConflict.
            error = self._unexpected(found, version)
            changes = None if error is not None else change(found)
            before = None if changes is None else found
            return None if changes is None else found.model_copy(update=changes)

        try:
            after = await self._store.modify(StoredLease, apply, lease_id=lease_id)
        except NotFound as missing:
            raise _not_found(lease_id) from missing
        if error is not None:
            raise error
        if before is not None:
            owed = {
                resource: {
                    name: amount - before.by_resource[resource].get(name, 0) for name, amount in each.items()
                }
                for resource, each in after.by_resource.items()
            }
            if any(amount for each in owed.values() for amount in each.values()):
                await arun(_settle(self._limiter.context, before, owed), self._db)
        return after

    def _unexpected(self, found: StoredLease, version: int | Any) -> SolotableError | None:
        """Return why a lease is not the one that the caller expects, or None."""
        if not self._is_current(found):
            return _not_found(found.lease_id)
        if version in (None, ANY, found.version):
            return None
        message = f"Lease {found.lease_id!r} has version {found.version}; expected {version}."
        return VersionConflict(message, item=None, mine=None, theirs=found)

    async def _read(self, lease_id: str) -> StoredLease | None:
        return await self._store.get(StoredLease, lease_id=lease_id, consistent=True)

    def _now(self) -> datetime:
        return self._limiter.context.writer.scope.now()

    def _is_current(self, lease: StoredLease) -> bool:
        return lease.expires > self._now()

    def _expiry(self, until: int | None) -> datetime:
        """Return when a lease expires: not before what it holds, which the lease may end."""
        held = _time(until)
        ends = self._now() if held is None else max(self._now(), held)
        return (ends + self._ttl).replace(microsecond=0)

    def _new(self, lease_id: str, request: AcquireRequest, grant: Grant) -> StoredLease:
        until = held_until(grant)
        charged = [
            ChargedBucket(
                entity=each.bucket.entity,
                rules=each.charge.rules.text,
                revision=each.charge.rules.revision,
                shards=each.shards,
                periods=dict(each.charged_periods),
                hold=each.charge.hold,
                resource=None if each.bucket.resource == request.resource else each.bucket.resource,
                skipped=dict(each.skipped),
            )
            for each in grant.taken
        ]
        return StoredLease(
            lease_id=lease_id,
            entity=request.entity,
            resource=request.resource,
            places=charged,
            consumed=dict(grant.amounts[request.resource]),
            also={name: dict(each) for name, each in grant.amounts.items() if name != request.resource},
            asked=request.digest(),
            held_until=_time(until),
            expires=self._expiry(until),
        )


def _not_found(lease_id: str) -> NotFound:
    return NotFound(f"Lease {lease_id!r} does not exist; it may have expired, so acquire another.")


def _repeat(existing: StoredLease, request: AcquireRequest) -> AcquiredLease:
    if existing.asked != request.digest():
        raise DataError("The key was used for another request; use a new key for each.")
    return AcquiredLease(lease=existing, statuses=[], repeated=True)


def _may_be_stored(error: BaseException) -> bool:
    """Return whether a lease may be stored although its write failed: its response was lost."""
    if isinstance(error, ServiceError):
        return error.status >= 500
    return isinstance(error, (OutcomeUnknown, asyncio.CancelledError))


def _tokens(amounts: Mapping[str, int]) -> dict[str, int | float]:
    return {name: in_tokens(amount) for name, amount in amounts.items()}


def _by_resource(lease: StoredLease, amounts: Mapping[str, dict[str, int]]) -> dict[str, Any]:
    """Return what is consumed from each resource as fields of a lease."""
    also = {resource: each for resource, each in amounts.items() if resource != lease.resource}
    return {"consumed": amounts[lease.resource], "also": also}


def _names(lease: StoredLease, resource: str) -> set[str]:
    """Return the limits that a lease has on a resource, of the entity or of its parent."""
    return {
        name
        for charged in lease.places
        if (charged.resource or lease.resource) == resource
        for name in rules_from(charged.rules, 0).meters
    }


def _held(lease: StoredLease, resource: str) -> set[str]:
    """Return the concurrency limits of a lease on a resource: their tokens are free when it ends."""
    return {
        name
        for charged in lease.places
        if (charged.resource or lease.resource) == resource
        for name in rules_from(charged.rules, 0).held
    }


def _time(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else datetime.fromtimestamp(microseconds / MICROSECONDS, UTC)


def _taken(context: LimiterContext, lease: StoredLease) -> Flow[list[TakenTokens]]:
    """Return what a lease took from its buckets, which another process may have charged."""
    taken: list[TakenTokens] = []
    for charged in lease.places:
        resource = charged.resource or lease.resource
        bucket = context.writer.cache.bucket(charged.entity, resource)
        if any(shard not in bucket.shards for shard in charged.shards):
            yield from read_shards(context.writer, bucket, consistent=True)
        shards = dict.fromkeys(surviving_shard(shard, bucket.shards) for shard in charged.shards)
        rules = rules_from(charged.rules, charged.revision)
        amounts = {
            name: amount
            for name, amount in lease.by_resource[resource].items()
            if amount > 0 and name in rules.meters and name not in charged.skipped
        }
        charge = Charge(rules, amounts, hold=charged.hold)
        taken.append(
            TakenTokens(bucket, charge, tuple(shards), periods=charged.periods, skipped=charged.skipped)
        )
    return taken


def _settle(context: LimiterContext, lease: StoredLease, owed: Mapping[str, Mapping[str, int]]) -> Flow[None]:
    """Settle the buckets of a lease."""
    taken = [
        each
        for each in (yield from _taken(context, lease))
        # C1.6: a bucket that does not exist is full; giving back must not create one.
        if each.bucket.shards or any(amount > 0 for amount in owed[each.bucket.resource].values())
    ]
    yield from adjust(context.writer, Grant(tuple(taken), lease.by_resource), owed)


def _extend(context: LimiterContext, lease: StoredLease) -> Flow[int | None]:
    """Extend what a lease holds of concurrency limits, and return when it expires."""
    taken = yield from _taken(context, lease)
    return (yield from extend(context.writer, [Grant(tuple(taken), lease.by_resource)]))
