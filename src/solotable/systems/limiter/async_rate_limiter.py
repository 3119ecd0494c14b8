"""The limiter, awaited. Every method names a flow and runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Self, Unpack

from solotable import Actor, AsyncDatabase, Page
from solotable._store.runner import arun
from solotable.errors import SolotableError

from .admin import audit as trail
from .admin import settings
from .admin.audit import AuditRecord
from .admin.entities import LimitedEntity, OnUnavailable, StoredLimits
from .admin.limits import Amount, Limit
from .admin.resolve import EffectiveLimits, effective_limits
from .buckets.acquire import levels
from .core import EntityFields, LimiterCore, LimiterOptions, UsageFilter, UsagePageFilter
from .errors import LimitStatus
from .lease import AsyncLease
from .table import limiter
from .usage.report import UsagePage, UsageSummary, usage, usage_summary


class AsyncLimiter(LimiterCore):
    """Token buckets on a table: `async with limiter.acquire("user-1", "gpt-4", {"rpm": 1}) as lease`.

    `limits` hold where none are stored. `cache_seconds` is how long stored limits are believed, and
    `remember_rejections` how long a refusal is. A bucket that is written more than `shard_above` times a
    second is spread over up to `most_shards` items; None never does.
    """

    def __init__(
        self, db: AsyncDatabase, namespace: str = "default", **options: Unpack[LimiterOptions]
    ) -> None:
        super().__init__(db.scope.of_tenant(namespace), **options)
        self._engine = db.engine

    @classmethod
    def open(cls, url: str, namespace: str = "default", **options: Unpack[LimiterOptions]) -> Self:
        """Open a URL for the limiter's table alone."""
        return cls(limiter.open_async(url), namespace, **options)

    async def close(self) -> None:
        """Close the engine behind it."""
        await self._engine.close()

    def acting(self, actor: Actor, *, request_id: str | None = None) -> Self:
        """Return this limiter for what somebody changes; their name goes into the audit trail."""
        return self._as(actor, request_id)

    def acquire(
        self,
        entity: str,
        resource: str,
        consume: Mapping[str, Amount],
        *,
        limits: Iterable[Limit] | None = None,
        on_unavailable: OnUnavailable | None = None,
    ) -> AsyncLease:
        """Return a lease: entered, it takes tokens from every limit that is named, or from none.

        `limits` hold instead of the stored ones. Raises RateLimitExceeded, or NeverSatisfiable where
        waiting would not help.
        """
        return AsyncLease(
            self._engine, self._context, self._order(entity, resource, consume, limits, on_unavailable)
        )

    async def available(
        self, entity: str, resource: str, *, limits: Iterable[Limit] | None = None
    ) -> dict[str, int]:
        """Return how many tokens there are, with a parent that is charged too the fewer; nothing is taken."""
        return await arun(self._available(entity, resource, limits), self._engine)

    async def time_until(
        self,
        entity: str,
        resource: str,
        consume: Mapping[str, Amount],
        *,
        limits: Iterable[Limit] | None = None,
    ) -> float:
        """Return in how many seconds there are enough, if nobody takes any; NeverSatisfiable if never."""
        return await arun(self._time_until(entity, resource, consume, limits), self._engine)

    async def statuses(self, entity: str, resource: str) -> list[LimitStatus]:
        """Return every limit of an entity, and of a parent that is charged too."""
        return await arun(levels(self._context, entity, resource, {}), self._engine)

    async def ping(self, timeout: float = 1.0) -> bool:  # noqa: ASYNC109 - the question is about time
        """Whether the table answers in time; never raises."""
        try:
            await asyncio.wait_for(arun(self._read_system_limits(), self._engine), timeout)
        except (SolotableError, TimeoutError, OSError):
            return False
        return True

    async def create_entity(self, entity_id: str, **given: Unpack[EntityFields]) -> LimitedEntity:
        """Make an entity; only one with a parent, cascading, or with a name needs to be made."""
        return await arun(self._create_entity(entity_id, given), self._engine)

    async def get_entity(self, entity_id: str) -> LimitedEntity | None:
        """Return an entity, or None."""
        return await arun(settings.get_entity(self._scope, entity_id), self._engine)

    async def delete_entity(self, entity_id: str) -> LimitedEntity:
        """Remove an entity and its limits, and return it; refused while it has children."""
        return await arun(self._delete_entity(entity_id), self._engine)

    async def children(
        self, entity_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> Page[LimitedEntity]:
        """Return a page of an entity's children."""
        return await arun(settings.children(self._scope, entity_id, limit=limit, cursor=cursor), self._engine)

    async def entities(self, *, limit: int = 50, cursor: str | None = None) -> Page[LimitedEntity]:
        """Return a page of all entities."""
        return await arun(settings.entities(self._scope, limit=limit, cursor=cursor), self._engine)

    async def set_limits(
        self,
        limits: Iterable[Limit] | None,
        *,
        entity: str | None = None,
        resource: str | None = None,
        on_unavailable: OnUnavailable | None = None,
    ) -> StoredLimits:
        """Store limits: of an entity for a resource, of an entity, of a resource, or of the system.

        A level replaces the next one whole. `on_unavailable` is the system's alone.
        """
        return await arun(self._set_limits(limits, entity, resource, on_unavailable), self._engine)

    async def get_limits(
        self, *, entity: str | None = None, resource: str | None = None
    ) -> StoredLimits | None:
        """Return what is stored at one level; nothing is inherited here."""
        return await arun(settings.get_limits(self._scope, entity=entity, resource=resource), self._engine)

    async def delete_limits(
        self, *, entity: str | None = None, resource: str | None = None
    ) -> StoredLimits | None:
        """Remove the limits of a level, and return them; the next level holds then."""
        return await arun(self._delete_limits(entity, resource), self._engine)

    async def stored_limits(self, *, limit: int = 50, cursor: str | None = None) -> Page[StoredLimits]:
        """Return a page of every level that is set."""
        return await arun(settings.stored_limits(self._scope, limit=limit, cursor=cursor), self._engine)

    async def limited_resources(self, *, entity: str | None = None) -> Sequence[StoredLimits]:
        """Return the levels that are set for an entity, or for all, by resource."""
        return await arun(settings.limited_resources(self._scope, entity=entity), self._engine)

    async def effective_limits(self, entity: str, resource: str) -> EffectiveLimits:
        """Return which limits hold, and by which level; past every cache."""
        return await arun(effective_limits(self._scope, entity, resource), self._engine)

    async def usage(self, **asked: Unpack[UsagePageFilter]) -> UsagePage:
        """Return a page of usage by hour, day or month, oldest first."""
        return await arun(usage(self._scope, **asked), self._engine)

    async def usage_summary(self, **asked: Unpack[UsageFilter]) -> UsageSummary:
        """Return totals, means and peaks by limit."""
        return await arun(usage_summary(self._scope, **asked), self._engine)

    async def audit(
        self, *, entity: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[AuditRecord]:
        """Return a page of who changed which entity and which limits, newest first."""
        return await arun(trail.audit(self._scope, entity=entity, limit=limit, cursor=cursor), self._engine)
