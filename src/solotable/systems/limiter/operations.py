"""What `Limiter` and `AsyncLimiter` share: their options, their context, and operations as flows."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self, TypedDict

from solotable import Actor
from solotable.cache import CacheStats
from solotable.errors import DataError
from solotable.flow import AsyncEngine, Engine, Flow, Scope, is_amazon

from .admin import registry
from .admin.entities import LimitedEntity, OnUnavailable, StoredLimits
from .admin.limits import MICROSECONDS, Amount, Limit, limits_of
from .admin.resolve import LimitsCache
from .buckets.acquire import LimiterContext, read_statuses, refresh
from .buckets.bucket import HIGHEST_LEVEL
from .buckets.local_cache import LocalCache
from .buckets.writer import BucketWriter
from .errors import LimitStatus, NoLimits, UnreadableBucket

log = logging.getLogger("solotable.limiter")
#: DynamoDB: a partition takes 1,000 writes per second; a split has to be done before that.
_AMAZON_SHARD_ABOVE = 700


class LimiterOptions(TypedDict, total=False):
    """The options of `Limiter`."""

    limits: Iterable[Limit]
    on_unavailable: OnUnavailable
    cache_seconds: float
    remember_rejections: float
    shard_above: int | Literal["auto"] | None
    most_shards: int


class LimiterCore:
    """The parts of both limiters. Methods that begin with `_` are flows."""

    def __init__(  # noqa: PLR0913 - the options of a limiter, each by name
        self,
        scope: Scope,
        engine: Engine | AsyncEngine,
        *,
        limits: Iterable[Limit] = (),
        on_unavailable: OnUnavailable = "block",
        cache_seconds: float = 60.0,
        remember_rejections: float = 1.0,
        shard_above: int | Literal["auto"] | None = "auto",
        most_shards: int = 32,
    ) -> None:
        if on_unavailable not in ("block", "allow"):
            raise DataError(f'on_unavailable is "block" or "allow"; got {on_unavailable!r}.')
        if most_shards not in [1 << level for level in range(HIGHEST_LEVEL + 1)]:
            raise DataError(
                f"most_shards is a power of two from 1 to {1 << HIGHEST_LEVEL}; got {most_shards!r}."
            )
        if shard_above == "auto":
            shard_above = _AMAZON_SHARD_ABOVE if is_amazon(engine) else None
        elif shard_above is not None and (type(shard_above) is not int or shard_above < 1):
            raise DataError(
                f'shard_above is a number of writes per second, "auto" or None; got {shard_above!r}.'
            )
        given = tuple(limits)
        self._context = LimiterContext(
            writer=BucketWriter(
                scope=scope,
                cache=LocalCache(),
                refusal_microseconds=int(remember_rejections * MICROSECONDS),
                shard_above=shard_above,
                highest_level=most_shards.bit_length() - 1,
            ),
            cache=LimitsCache(cache_seconds, scope.clock),
            limits=limits_of(given) if given else (),
            on_unavailable=on_unavailable,
        )
        self._scope = scope

    @property
    def namespace(self) -> str:
        """The namespace of this limiter."""
        return self._scope.tenant or ""

    @property
    def context(self) -> LimiterContext:
        """Its parts, for your own flows."""
        return self._context

    def acting(self, actor: Actor, *, request_id: str | None = None) -> Self:
        """Return this limiter with an actor, whom the audit trail names for its changes."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._scope = self._scope.acting(actor, request_id)
        return other

    def invalidate_config_cache(self) -> None:
        """Forget which limits apply; the next call reads them again."""
        self._context.cache.invalidate()

    def cache_stats(self) -> CacheStats:
        """Return how often the limits of a call were cached, and how often they were read."""
        return self._context.cache.stats()

    def _available(
        self, entity: str, resource: str, *, limits: Iterable[Limit] | None = None
    ) -> Flow[dict[str, int]]:
        """Return the available tokens by limit; the fewer with a parent that is charged too."""
        found: dict[str, int] = {}
        for status in (yield from read_statuses(self._context, entity, resource, {}, limits)):
            if status.available is not None:
                name = status.limit.name
                found[name] = min(status.available, found.get(name, status.available))
        return found

    def _time_until(
        self,
        entity: str,
        resource: str,
        consume: Mapping[str, Amount],
        *,
        limits: Iterable[Limit] | None = None,
    ) -> Flow[float]:
        """Return the seconds until so much is available, if nothing else is taken.

        Raises NeverSatisfiable if a limit never holds so much.
        """
        statuses = yield from read_statuses(self._context, entity, resource, consume, limits)
        return max((status.retry_after_seconds for status in statuses), default=0.0)

    def _statuses(self, entity: str, resource: str) -> Flow[list[LimitStatus]]:
        """Return every limit of an entity, and of a parent that is charged too."""
        return read_statuses(self._context, entity, resource, {})

    def _set_limits(
        self,
        limits: Iterable[Limit] | None,
        *,
        entity: str | None = None,
        resource: str | None = None,
        on_unavailable: OnUnavailable | None = None,
    ) -> Flow[StoredLimits]:
        """Store limits: of an entity for a resource, of an entity, of a resource, or of the system.

        A level replaces the next one whole. Only the system has `on_unavailable`.
        """
        stored = yield from registry.set_limits(
            self._scope, limits, entity=entity, resource=resource, on_unavailable=on_unavailable
        )
        yield from self._refresh(entity, resource)
        return stored

    def _delete_limits(
        self, *, entity: str | None = None, resource: str | None = None
    ) -> Flow[StoredLimits | None]:
        """Delete the limits of a level, and return them; the next level applies then."""
        stored = yield from registry.delete_limits(self._scope, entity=entity, resource=resource)
        yield from self._refresh(entity, resource)
        return stored

    def _refresh(self, entity: str | None, resource: str | None) -> Flow[None]:
        """Convert the bucket of a changed level; buckets that share a level follow at their next use."""
        self._context.cache.invalidate(entity)
        if entity is not None and resource is not None:
            try:
                yield from refresh(self._context, entity, resource)
            except NoLimits:
                return
            except UnreadableBucket as error:
                # The limits are stored and apply as soon as the bucket is readable.
                log.warning("A bucket could not be converted to its new limits: %s", error)

    def _create_entity(
        self,
        entity_id: str,
        *,
        name: str | None = None,
        parent: str | None = None,
        cascade: bool = False,
        metadata: dict[str, Any] | None = None,
    ) -> Flow[LimitedEntity]:
        """Create an entity; only one with a parent, a name or metadata needs to be created."""
        created = yield from registry.create_entity(
            self._scope, entity_id, name=name, parent=parent, cascade=cascade, metadata=metadata
        )
        self._context.cache.invalidate(entity_id)
        return created

    def _delete_entity(self, entity_id: str) -> Flow[LimitedEntity]:
        """Delete an entity and its limits, and return it; raise ConditionFailed if it has children."""
        deleted = yield from registry.delete_entity(self._scope, entity_id)
        self._context.cache.invalidate(entity_id)
        return deleted
