"""Leases that outlive a call: kept in the table, so that any process can adjust or end one, as over HTTP.

A lease is one small item: from which shards of which buckets how much was taken. It is charged when it is
acquired, so one that nobody ever ends has simply consumed what it asked for; its item goes after an hour.

What is consumed is given as a total and not as a difference, so that the same change sent twice is made
once. The lease is changed first, under its version, and then the buckets: of several at once one settles
each difference. Whoever dies between the two has settled nothing, and nobody settles it a second time.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict

from solotable import FROM_SCOPE, TTL, AsyncDatabase, Json, Key, Version
from solotable._flows.retry import Flow
from solotable._flows.transactions.write import ANY, ExpectedVersion
from solotable._store.runner import arun
from solotable.errors import AlreadyExists, DataError, NotFound, OutcomeUnknown, ServiceError, VersionConflict
from solotable.ids import new_id
from solotable.systems.limiter.admin.entities import FlatEntity, OnUnavailable
from solotable.systems.limiter.admin.limits import Amount, Limit, in_tokens, wanted
from solotable.systems.limiter.async_rate_limiter import AsyncLimiter
from solotable.systems.limiter.buckets.acquire import Grant, LimiterContext, adjust
from solotable.systems.limiter.buckets.charge import Charge
from solotable.systems.limiter.buckets.shards import TakenTokens, look
from solotable.systems.limiter.buckets.token_bucket import rules_from
from solotable.systems.limiter.errors import LeaseExpired, LimitStatus
from solotable.systems.limiter.table import limiter as table

_ATTEMPTS = 8


class Place(BaseModel):
    """A bucket that a lease has taken from: which shards, and the limits that it was reckoned with."""

    model_config = ConfigDict(frozen=True)

    entity: str
    rules: str
    revision: int
    shards: tuple[int, ...]


class StoredLease(FlatEntity, table=table):
    """What a call has taken, until it is ended or forgotten."""

    key = Key("{namespace}#LEASE#{lease_id}", "LEASE")

    namespace: str = FROM_SCOPE
    lease_id: str
    entity: str
    resource: str
    #: The entity's own bucket, then its parent's.
    places: Annotated[list[Place], Json()]
    #: By limit, in thousandths of a token.
    consumed: Annotated[dict[str, int], Json()]
    #: The digest of what was asked for, to tell a repetition from another request with the same key.
    asked: str
    ended: datetime | None = None
    version: Annotated[int, Version()] = 0
    expires: Annotated[datetime, TTL()]

    @property
    def tokens(self) -> dict[str, int | float]:
        """What is consumed, in tokens."""
        return {name: in_tokens(amount) for name, amount in self.consumed.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class AcquiredLease:
    """The answer to an acquire: the lease, None where no limits could be asked, and every limit."""

    lease: StoredLease | None
    statuses: list[LimitStatus]
    #: Whether it was there already, by its key.
    repeated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRequest:
    """What a lease is asked for."""

    entity: str
    resource: str
    consume: Mapping[str, Amount]
    limits: Sequence[Limit] | None = None
    on_unavailable: OnUnavailable | None = None

    def digest(self) -> str:
        """Return the same text for the same wish."""
        limits = None if self.limits is None else sorted(map(str, self.limits))
        amounts = sorted((name, str(amount)) for name, amount in self.consume.items())
        told = json.dumps([self.entity, self.resource, amounts, limits])
        return hashlib.sha256(told.encode()).hexdigest()[:32]


class HttpLeases:
    """The leases of a namespace that are kept in the table."""

    def __init__(self, db: AsyncDatabase, limiter: AsyncLimiter, *, seconds: float = 3600.0) -> None:
        self._engine = db.engine
        self._store = db.tenant(limiter.namespace)
        self._limiter = limiter
        self._kept = timedelta(seconds=seconds)

    async def acquire(self, wish: LeaseRequest, *, key: str | None = None) -> AcquiredLease:
        """Take tokens and keep the lease, or raise RateLimitExceeded.

        The same `key` again gives the lease that is there, and takes nothing.
        """
        lease_id = new_id() if key is None else f"key-{hashlib.sha256(key.encode()).hexdigest()[:40]}"
        there = None if key is None else await self._read(lease_id)
        if there is not None and self._is_current(there):
            return _again(there, wish)
        lease = self._limiter.acquire(
            wish.entity, wish.resource, wish.consume, limits=wish.limits, on_unavailable=wish.on_unavailable
        )
        kept: StoredLease | None = None
        unsure: BaseException | None = None
        try:
            # Whatever fails in the block gives the tokens back.
            async with lease:
                if lease.grant is None:
                    return AcquiredLease(lease=None, statuses=[])
                made = self._made(lease_id, wish, lease.grant)
                if there is not None:
                    made = made.model_copy(update={"version": there.version})
                try:
                    kept = await self._store.put(made) if there else await self._store.create(made)
                except BaseException as error:
                    if not _may_be_kept(error):
                        raise
                    # Given back now and by the lease, it would be given back twice.
                    unsure = error
        except (AlreadyExists, VersionConflict):
            # Another request with the same key was quicker.
            return _again(await self.get(lease_id), wish)
        if unsure is not None:
            raise unsure
        return AcquiredLease(lease=kept, statuses=lease.statuses)

    async def get(self, lease_id: str) -> StoredLease:
        """Return a lease, ended or not, or raise NotFound."""
        found = await self._read(lease_id)
        if found is None or not self._is_current(found):
            raise NotFound(f"There is no lease {lease_id!r}; it may have been forgotten, so acquire another.")
        return found

    async def adjust(
        self, lease_id: str, consumed: Mapping[str, Amount], *, version: ExpectedVersion = None
    ) -> StoredLease:
        """Say what a call has consumed in all, by limit; never refused, if need be into debt."""
        for _ in range(_ATTEMPTS):
            found = await self._expected(lease_id, version)
            if found.ended is not None:
                raise LeaseExpired
            limits = rules_from(found.places[0].rules, 0).limits
            given = dict.fromkeys(consumed, 0) | wanted(limits, consumed)
            after = {**found.consumed, **given}
            if after == found.consumed:
                return found
            changed = await self._changed(found, {"consumed": after}, version)
            if changed is not None:
                await self._settled(found, after)
                return changed
        raise _busy(lease_id)

    async def end(self, lease_id: str, *, keep: bool, version: ExpectedVersion = None) -> StoredLease:
        """End a lease and give everything back, or `keep` what is consumed; the first end counts."""
        for _ in range(_ATTEMPTS):
            found = await self._expected(lease_id, version)
            if found.ended is not None:
                return found
            after = found.consumed if keep else dict.fromkeys(found.consumed, 0)
            now = self._limiter.context.writer.scope.now()
            changed = await self._changed(found, {"consumed": after, "ended": now}, version)
            if changed is not None:
                await self._settled(found, after)
                return changed
        raise _busy(lease_id)

    async def _read(self, lease_id: str) -> StoredLease | None:
        return await self._store.get(StoredLease, lease_id=lease_id, consistent=True)

    async def _expected(self, lease_id: str, version: ExpectedVersion) -> StoredLease:
        found = await self.get(lease_id)
        if version not in (None, ANY, found.version):
            raise _conflict(f"Lease {lease_id!r} has version {found.version}; {version} was expected.", found)
        return found

    async def _changed(
        self, found: StoredLease, changes: Mapping[str, object], version: ExpectedVersion
    ) -> StoredLease | None:
        """Return the lease after a change; None where somebody else was quicker and it may be tried again."""
        try:
            return await self._store.update(
                StoredLease, lease_id=found.lease_id, set=changes, version=found.version
            )
        except VersionConflict:
            if version in (None, ANY):
                return None
            raise

    async def _settled(self, before: StoredLease, after: Mapping[str, int]) -> None:
        owed = {name: amount - before.consumed.get(name, 0) for name, amount in after.items()}
        owed = {name: amount for name, amount in owed.items() if amount}
        if owed:
            await arun(_settling(self._limiter.context, before, owed), self._engine)

    def _is_current(self, lease: StoredLease) -> bool:
        return lease.expires > self._limiter.context.writer.scope.now()

    def _made(self, lease_id: str, wish: LeaseRequest, grant: Grant) -> StoredLease:
        places = [
            Place(
                entity=each.known.entity,
                rules=each.ask.rules.text,
                revision=each.ask.rules.revision,
                shards=each.shards,
            )
            for each in grant.taken
        ]
        return StoredLease(
            lease_id=lease_id,
            entity=wish.entity,
            resource=wish.resource,
            places=places,
            consumed=dict(grant.amounts),
            asked=wish.digest(),
            expires=(self._limiter.context.writer.scope.now() + self._kept).replace(microsecond=0),
        )


def _again(there: StoredLease, wish: LeaseRequest) -> AcquiredLease:
    if there.asked != wish.digest():
        raise DataError("The key was used for another request; use a new one for each.")
    return AcquiredLease(lease=there, statuses=[], repeated=True)


def _may_be_kept(error: BaseException) -> bool:
    """Whether a lease may be in the table although writing it failed: the answer was lost or not awaited."""
    if isinstance(error, ServiceError):
        return error.status >= 500
    return isinstance(error, (OutcomeUnknown, asyncio.CancelledError))


def _conflict(message: str, theirs: StoredLease | None = None) -> VersionConflict:
    return VersionConflict(message, item=None, mine=None, theirs=theirs)


def _busy(lease_id: str) -> VersionConflict:
    return _conflict(f"Lease {lease_id!r} is being changed by many at once; try again.")


def _settling(context: LimiterContext, lease: StoredLease, owed: Mapping[str, int]) -> Flow[None]:
    """Settle a lease's buckets, which another process may have charged."""
    taken: list[TakenTokens] = []
    for place in lease.places:
        known = context.writer.cache.of(place.entity, lease.resource)
        if any(shard not in known.shards for shard in place.shards):
            yield from look(context.writer, known, consistent=True)
        if not known.shards and all(amount < 0 for amount in owed.values()):
            # C1.6: a bucket that is gone is full; nothing is given back to it.
            continue
        shards = dict.fromkeys(_standing(shard, known.shards) for shard in place.shards)
        taken.append(TakenTokens(known, Charge(rules_from(place.rules, place.revision), {}), tuple(shards)))
    yield from adjust(context.writer, Grant(tuple(taken), {}), owed)


def _standing(shard: int, there: Iterable[int]) -> int:
    """Return a shard, or the one that it was joined with: that has all but its highest bit."""
    while shard and shard not in there:
        shard &= (1 << (shard.bit_length() - 1)) - 1
    return shard
