"""The limiter, blocking. Every method names a flow and runs it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Self, Unpack

from solotable import Actor, Database, Page
from solotable._store.runner import run
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
from .lease import Lease
from .table import limiter
from .usage.report import UsagePage, UsageSummary, usage, usage_summary


class Limiter(LimiterCore):
    """Token buckets on a table: `with limiter.acquire("user-1", "gpt-4", {"rpm": 1}) as lease`.

    `limits` hold where none are stored. `cache_seconds` is how long stored limits are believed, and
    `remember_rejections` how long a refusal is. A bucket that is written more than `shard_above` times a
    second is spread over up to `most_shards` items; None never does.
    """

    def __init__(self, db: Database, namespace: str = "default", **options: Unpack[LimiterOptions]) -> None:
        super().__init__(db.scope.of_tenant(namespace), **options)
        self._engine = db.engine

    @classmethod
    def open(cls, url: str, namespace: str = "default", **options: Unpack[LimiterOptions]) -> Self:
        """Open a URL for the limiter's table alone."""
        return cls(limiter.open(url), namespace, **options)

    def close(self) -> None:
        """Close the engine behind it."""
        self._engine.close()

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
    ) -> Lease:
        """Return a lease: entered, it takes tokens from every limit that is named, or from none.

        `limits` hold instead of the stored ones. Raises RateLimitExceeded, or NeverSatisfiable where
        waiting would not help.
        """
        return Lease(
            self._engine, self._context, self._order(entity, resource, consume, limits, on_unavailable)
        )

    def available(
        self, entity: str, resource: str, *, limits: Iterable[Limit] | None = None
    ) -> dict[str, int]:
        """Return how many tokens there are, with a parent that is charged too the fewer; nothing is taken."""
        return run(self._available(entity, resource, limits), self._engine)

    def time_until(
        self,
        entity: str,
        resource: str,
        consume: Mapping[str, Amount],
        *,
        limits: Iterable[Limit] | None = None,
    ) -> float:
        """Return in how many seconds there are enough, if nobody takes any; NeverSatisfiable if never."""
        return run(self._time_until(entity, resource, consume, limits), self._engine)

    def statuses(self, entity: str, resource: str) -> list[LimitStatus]:
        """Return every limit of an entity, and of a parent that is charged too."""
        return run(levels(self._context, entity, resource, {}), self._engine)

    def ping(self, timeout: float = 1.0) -> bool:
        """Whether the table answers in time; never raises."""
        answered = threading.Event()

        def ping() -> None:
            with contextlib.suppress(SolotableError, OSError):
                run(self._read_system_limits(), self._engine)
                answered.set()

        threading.Thread(target=ping, daemon=True).start()
        return answered.wait(timeout)

    def create_entity(self, entity_id: str, **given: Unpack[EntityFields]) -> LimitedEntity:
        """Make an entity; only one with a parent, cascading, or with a name needs to be made."""
        return run(self._create_entity(entity_id, given), self._engine)

    def get_entity(self, entity_id: str) -> LimitedEntity | None:
        """Return an entity, or None."""
        return run(settings.get_entity(self._scope, entity_id), self._engine)

    def delete_entity(self, entity_id: str) -> LimitedEntity:
        """Remove an entity and its limits, and return it; refused while it has children."""
        return run(self._delete_entity(entity_id), self._engine)

    def children(self, entity_id: str, *, limit: int = 50, cursor: str | None = None) -> Page[LimitedEntity]:
        """Return a page of an entity's children."""
        return run(settings.children(self._scope, entity_id, limit=limit, cursor=cursor), self._engine)

    def entities(self, *, limit: int = 50, cursor: str | None = None) -> Page[LimitedEntity]:
        """Return a page of all entities."""
        return run(settings.entities(self._scope, limit=limit, cursor=cursor), self._engine)

    def set_limits(
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
        return run(self._set_limits(limits, entity, resource, on_unavailable), self._engine)

    def get_limits(self, *, entity: str | None = None, resource: str | None = None) -> StoredLimits | None:
        """Return what is stored at one level; nothing is inherited here."""
        return run(settings.get_limits(self._scope, entity=entity, resource=resource), self._engine)

    def delete_limits(self, *, entity: str | None = None, resource: str | None = None) -> StoredLimits | None:
        """Remove the limits of a level, and return them; the next level holds then."""
        return run(self._delete_limits(entity, resource), self._engine)

    def stored_limits(self, *, limit: int = 50, cursor: str | None = None) -> Page[StoredLimits]:
        """Return a page of every level that is set."""
        return run(settings.stored_limits(self._scope, limit=limit, cursor=cursor), self._engine)

    def limited_resources(self, *, entity: str | None = None) -> Sequence[StoredLimits]:
        """Return the levels that are set for an entity, or for all, by resource."""
        return run(settings.limited_resources(self._scope, entity=entity), self._engine)

    def effective_limits(self, entity: str, resource: str) -> EffectiveLimits:
        """Return which limits hold, and by which level; past every cache."""
        return run(effective_limits(self._scope, entity, resource), self._engine)

    def usage(self, **asked: Unpack[UsagePageFilter]) -> UsagePage:
        """Return a page of usage by hour, day or month, oldest first."""
        return run(usage(self._scope, **asked), self._engine)

    def usage_summary(self, **asked: Unpack[UsageFilter]) -> UsageSummary:
        """Return totals, means and peaks by limit."""
        return run(usage_summary(self._scope, **asked), self._engine)

    def audit(
        self, *, entity: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[AuditRecord]:
        """Return a page of who changed which entity and which limits, newest first."""
        return run(trail.audit(self._scope, entity=entity, limit=limit, cursor=cursor), self._engine)
