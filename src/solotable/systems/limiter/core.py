"""What the blocking and the awaited limiter have in common: their parts, their options, their flows."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Self, TypedDict

from solotable import Actor
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable.errors import DataError

from .admin import settings
from .admin.entities import LimitedEntity, OnUnavailable, StoredLimits
from .admin.limits import MICROSECONDS, Amount, Limit, limits_of
from .admin.resolve import CacheStats, LimitsCache
from .buckets.acquire import LimiterContext, levels, refresh
from .buckets.bucket import HIGHEST_LEVEL
from .buckets.charge import BucketWriter
from .buckets.local_cache import LocalCache
from .errors import NoLimits, UnreadableBucket
from .lease import AcquireRequest

log = logging.getLogger("solotable.limiter")


class LimiterOptions(TypedDict, total=False):
    """What an installation decides; see `Limiter`."""

    limits: Iterable[Limit]
    on_unavailable: OnUnavailable
    cache_seconds: float
    remember_rejections: float
    shard_above: int | None
    most_shards: int


class EntityFields(TypedDict, total=False):
    """What an entity is made of."""

    name: str | None
    parent: str | None
    cascade: bool
    metadata: dict[str, Any] | None


class UsageFilter(TypedDict, total=False):
    """Whose usage, of what and when: `since` counts, `until` does not any more."""

    entity: str | None
    resource: str | None
    window: str
    since: datetime | None
    until: datetime | None


class UsagePageFilter(UsageFilter, total=False):
    """And how much of it at once."""

    limit: int
    cursor: str | None


class LimiterCore:
    """What both limiters have."""

    def __init__(
        self,
        scope: Scope,
        *,
        limits: Iterable[Limit] = (),
        on_unavailable: OnUnavailable = "block",
        cache_seconds: float = 60.0,
        remember_rejections: float = 1.0,
        shard_above: int | None = 700,
        most_shards: int = 32,
    ) -> None:
        if on_unavailable not in ("block", "allow"):
            raise DataError(f'on_unavailable is "block" or "allow"; {on_unavailable!r} was given.')
        if most_shards not in [1 << level for level in range(HIGHEST_LEVEL + 1)]:
            raise DataError(
                f"most_shards is 1, 2, 4 and so on up to {1 << HIGHEST_LEVEL}; {most_shards!r} was given."
            )
        if shard_above is not None and shard_above < 1:
            raise DataError(
                f"shard_above is a number of writes a second, or None; {shard_above!r} was given."
            )
        given = tuple(limits)
        writer = BucketWriter(
            scope=scope,
            cache=LocalCache(),
            remember=int(remember_rejections * MICROSECONDS),
            shard_above=shard_above,
            most_level=most_shards.bit_length() - 1,
        )
        self._context = LimiterContext(
            writer=writer,
            cache=LimitsCache(cache_seconds, scope.clock),
            limits=limits_of(given) if given else (),
            on_unavailable=on_unavailable,
        )
        self._scope = scope

    @property
    def namespace(self) -> str:
        """The namespace that everything here belongs to."""
        return self._scope.tenant or ""

    @property
    def context(self) -> LimiterContext:
        """Its parts, for flows of one's own."""
        return self._context

    def invalidate_config_cache(self) -> None:
        """Forget which limits hold; they are read again at the next call."""
        self._context.cache.invalidate()

    def cache_stats(self) -> CacheStats:
        """Return how often the limits of a call were known, and how often they were read."""
        return self._context.cache.stats()

    def _order(
        self,
        entity: str,
        resource: str,
        consume: Mapping[str, Amount],
        limits: Iterable[Limit] | None,
        on_unavailable: OnUnavailable | None,
    ) -> AcquireRequest:
        if on_unavailable not in (None, "block", "allow"):
            raise DataError(f'on_unavailable is "block" or "allow"; {on_unavailable!r} was given.')
        return AcquireRequest(entity, resource, consume, limits, on_unavailable)

    def _available(self, entity: str, resource: str, limits: Iterable[Limit] | None) -> Flow[dict[str, int]]:
        found: dict[str, int] = {}
        for status in (yield from levels(self._context, entity, resource, {}, limits)):
            if status.available is not None:
                left = found.get(status.limit.name)
                found[status.limit.name] = status.available if left is None else min(left, status.available)
        return found

    def _time_until(
        self, entity: str, resource: str, consume: Mapping[str, Amount], limits: Iterable[Limit] | None
    ) -> Flow[float]:
        statuses = yield from levels(self._context, entity, resource, consume, limits)
        return max((status.retry_after_seconds for status in statuses), default=0.0)

    def _set_limits(
        self,
        limits: Iterable[Limit] | None,
        entity: str | None,
        resource: str | None,
        on_unavailable: OnUnavailable | None,
    ) -> Flow[StoredLimits]:
        stored = yield from settings.set_limits(
            self._scope, limits, entity=entity, resource=resource, on_unavailable=on_unavailable
        )
        yield from self._changed(entity, resource)
        return stored

    def _delete_limits(self, entity: str | None, resource: str | None) -> Flow[StoredLimits | None]:
        stored = yield from settings.delete_limits(self._scope, entity=entity, resource=resource)
        yield from self._changed(entity, resource)
        return stored

    def _changed(self, entity: str | None, resource: str | None) -> Flow[None]:
        """Bring the one bucket that a level is of under its limits; others follow at their next use."""
        self._context.cache.invalidate(entity)
        if entity is not None and resource is not None:
            try:
                yield from refresh(self._context, entity, resource)
            except NoLimits:
                return
            except UnreadableBucket as error:
                # The limits are stored, and hold for the bucket once it can be read.
                log.warning("A bucket could not be brought under its new limits: %s", error)

    def _create_entity(self, entity_id: str, given: Mapping[str, Any]) -> Flow[LimitedEntity]:
        made = yield from settings.create_entity(self._scope, entity_id, **given)
        self._context.cache.invalidate(entity_id)
        return made

    def _delete_entity(self, entity_id: str) -> Flow[LimitedEntity]:
        removed = yield from settings.delete_entity(self._scope, entity_id)
        self._context.cache.invalidate(entity_id)
        return removed

    def _read_system_limits(self) -> Flow[None]:
        yield from settings.get_limits(self._scope)

    def _as(self, actor: Actor, request_id: str | None) -> Self:
        """Return a limiter that shares everything and names who changes what."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._scope = self._scope.acting(actor, request_id)
        return other
