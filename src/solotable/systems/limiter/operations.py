"""What `Limiter` and `AsyncLimiter` share: their options, their context, and operations as flows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Self, TypedDict

from solotable import Actor
from solotable.cache import CacheStats, TTLCache
from solotable.errors import DataError, SolotableError
from solotable.flow import AsyncEngine, Engine, Flow, Scope, clock_offset, is_amazon

from .admin import registry
from .admin.entities import LimitedEntity, Mode, OnUnavailable, StoredLimits
from .admin.limits import MICROSECONDS, Amount, Limit, Limits, amounts_by_limit, limits_of
from .admin.names import limit_names
from .admin.resolve import LimitsCache
from .admin.schedule import Schedule
from .buckets.acquire import Decision, check, read_statuses, refresh, top_up
from .buckets.bucket import HIGHEST_LEVEL
from .buckets.local_cache import LocalCache
from .buckets.shards import read_shards
from .buckets.targets import LimiterContext, find_targets
from .buckets.writer import BucketClock, BucketWriter
from .errors import LimitStatus, NoLimits, UnreadableBucket
from .lease import AcquireRequest
from .observe.observation import AcquireObserver, check_observer

log = logging.getLogger("solotable.limiter")
#: DynamoDB: a partition takes 1,000 writes per second; a split has to be done before that.
_AMAZON_SHARD_ABOVE = 700
#: For this time a limit that an entity does not have is not logged again.
_WARNING_SECONDS = 60.0


class LimiterOptions(TypedDict, total=False):
    """The options of `Limiter`."""

    limits: Iterable[Limit] | Schedule
    on_unavailable: OnUnavailable
    cache_seconds: float
    remember_rejections: float
    shard_above: int | Literal["auto"] | None
    most_shards: int
    on_soft_limit: Callable[[list[LimitStatus]], Any]
    on_shadow_refusal: Callable[[SolotableError], Any]
    observer: AcquireObserver


class LimiterCore:
    """The parts of both limiters. Methods that begin with `_` are flows."""

    def __init__(  # noqa: PLR0913 - the options of a limiter, each by name
        self,
        scope: Scope,
        engine: Engine | AsyncEngine,
        *,
        limits: Iterable[Limit] | Schedule = (),
        on_unavailable: OnUnavailable = "block",
        cache_seconds: float = 60.0,
        remember_rejections: float = 1.0,
        shard_above: int | Literal["auto"] | None = "auto",
        most_shards: int = 32,
        on_soft_limit: Callable[[list[LimitStatus]], Any] | None = None,
        on_shadow_refusal: Callable[[SolotableError], Any] | None = None,
        observer: AcquireObserver | None = None,
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
        schedule: Schedule | None = None
        given: Limits = ()
        if isinstance(limits, Schedule):
            schedule = limits
        elif limits not in ((), []):
            given = limits_of(limits)
        self._context = LimiterContext(
            writer=BucketWriter(
                scope=scope,
                cache=LocalCache(),
                clock=BucketClock(scope.clock, server_offset=clock_offset(engine)),
                refusal_microseconds=int(remember_rejections * MICROSECONDS),
                shard_above=shard_above,
                highest_level=most_shards.bit_length() - 1,
            ),
            cache=LimitsCache(cache_seconds, scope.clock),
            warned=TTLCache(ttl_seconds=_WARNING_SECONDS, max_size=1000, clock=scope.clock),
            limits=given,
            schedule=schedule,
            on_unavailable=on_unavailable,
            on_soft_limit=on_soft_limit,
            on_shadow_refusal=on_shadow_refusal,
            observer=None if observer is None else check_observer(observer),
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
        statuses = yield from read_statuses(self._context, entity, {resource: {}}, limits, check=False)
        return fewest(statuses)

    def _time_until(
        self,
        entity: str,
        resource: str,
        consume: Mapping[str, Amount],
        *,
        also: Mapping[str, Mapping[str, Amount]] | None = None,
        limits: Iterable[Limit] | None = None,
    ) -> Flow[float]:
        """Return the seconds until a call for so much is admitted, if nothing else is taken.

        Raises NeverSatisfiable if a limit never holds so much, EntityDenied if an operator denies the entity.
        """
        request = AcquireRequest(entity, resource, consume, also=also)
        statuses = yield from read_statuses(self._context, entity, request.by_resource, limits)
        return max((each.retry_after_seconds for each in statuses if each.enforced), default=0.0)

    def _check(
        self,
        entity: str,
        resource: str,
        consume: Mapping[str, Amount],
        *,
        also: Mapping[str, Mapping[str, Amount]] | None = None,
        limits: Iterable[Limit] | None = None,
    ) -> Flow[Decision]:
        """Return whether an acquire would be admitted now, and every limit; nothing is taken."""
        request = AcquireRequest(entity, resource, consume, also=also)
        return check(self._context, entity, request.by_resource, limits)

    def _statuses(self, entity: str, resource: str) -> Flow[list[LimitStatus]]:
        """Return every limit of an entity, and of a parent that is charged too."""
        return read_statuses(self._context, entity, {resource: {}}, check=False)

    def _set_limits(
        self,
        limits: Iterable[Limit] | Schedule | None,
        *,
        entity: str | None = None,
        resource: str | None = None,
        on_unavailable: OnUnavailable | None = None,
        mode: Mode | None = None,
    ) -> Flow[StoredLimits]:
        """Store limits: of an entity for a resource, of an entity, of a resource, or of the system.

        A level replaces the next one whole. Only the system has `on_unavailable`. `mode` is how the limits
        apply: "enforce", "shadow" or "disabled"; None keeps the stored mode.
        """
        stored = yield from registry.set_limits(
            self._scope, limits, entity=entity, resource=resource, on_unavailable=on_unavailable, mode=mode
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

    def _set_mode(
        self, entity: str | None, mode: Mode | None, *, resource: str | None = None
    ) -> Flow[StoredLimits]:
        """Set how limits apply, and keep them; None is "enforce".

        "bypass" admits an entity without limits, "deny" refuses it: on all resources, or on one. "shadow" and
        "disabled" are of the limits of the level; entity None is a resource, or the system.
        """
        stored = yield from registry.set_mode(self._scope, entity, mode, resource=resource)
        self._context.cache.invalidate(entity)
        return stored

    def _reset(
        self, entity: str, *, resource: str | None = None, limits: Iterable[str] | None = None
    ) -> Flow[StoredLimits]:
        """Make limits of an entity full again: on all resources or one, all limits or those that are named.

        Another process notices when it reads the limits again, after at most its `cache_seconds`.
        """
        names = None if limits is None else limit_names(limits)
        levels = yield from registry.limited_resources(self._scope, entity=entity)
        levels += yield from registry.limited_resources(self._scope)
        if names is not None:
            yield from self._check_names(entity, resource, names, levels)
        stored = yield from registry.reset(self._scope, entity, resource=resource, limits=names)
        changed = {each.resource_name for each in levels} if resource is None else {resource}
        for name in sorted(filter(None, changed)):
            yield from self._refresh(entity, name)
        self._context.cache.invalidate(entity)
        return stored

    def _check_names(
        self, entity: str, resource: str | None, names: Iterable[str], levels: Iterable[StoredLimits]
    ) -> Flow[None]:
        """Raise DataError for a limit that an entity cannot have: it is not stored, nor in its bucket."""
        context = self._context
        known = {limit.name for limit in context.limits}
        if context.schedule is not None:
            known |= context.schedule.names
        for level in levels:
            if resource is None or level.resource_name in (None, resource):
                known |= level.names
        if resource is not None:
            # Limits that only calls bring are in the bucket alone.
            bucket = context.writer.cache.bucket(entity, resource)
            yield from read_shards(context.writer, bucket, consistent=True)
            known = known.union(*(state.used for state in bucket.shards.values()))
        unknown = next((name for name in names if name not in known), None)
        if unknown is not None:
            of = f"{entity!r}" if resource is None else f"{entity!r} for {resource!r}"
            listed = f"it has {', '.join(sorted(known))}" if known else "no limits are stored"
            advice = "" if resource is not None else "; name the resource of a limit that only calls bring"
            raise DataError(f"Limit {unknown!r} of {of} does not exist; {listed}{advice}.")

    def _top_up(
        self, entity: str, resource: str, tokens: Mapping[str, Amount], *, key: str | None = None
    ) -> Flow[dict[str, int]]:
        """Add tokens to an entity's limits, up to the capacity, and return what is available then.

        The same `key` again adds nothing, and raises TopUpInProgress while another call adds the tokens. If
        the process dies in between, a call with the same key adds them a minute later.
        """
        context = self._context
        found = yield from find_targets(context, entity, {resource: {}}, check=False)
        meters = {} if not found.buckets else found.buckets[0].charge.rules.meters
        amounts = amounts_by_limit(meters, tokens)
        if not amounts:
            raise DataError("Name at least one limit and the tokens to add.")
        record, has_to_add = yield from registry.record_top_up(
            self._scope, entity, resource, amounts, key=key
        )
        if has_to_add:
            yield from top_up(context, entity, resource, amounts)
            yield from registry.mark_applied(self._scope, record)
        return (yield from self._available(entity, resource))

    def _set_parent(
        self, entity_id: str, parent: str | None, *, cascade: bool | None = None
    ) -> Flow[LimitedEntity]:
        """Give an entity another parent, or none; `cascade` None keeps whether the parent is charged."""
        changed = yield from registry.set_parent(self._scope, entity_id, parent, cascade=cascade)
        self._context.cache.invalidate(entity_id)
        return changed

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


def fewest(statuses: Iterable[LimitStatus]) -> dict[str, int]:
    """Return the available tokens by limit; the fewer of an entity and its parent."""
    found: dict[str, int] = {}
    for status in statuses:
        if status.available is not None:
            name = status.limit.name
            found[name] = min(status.available, found.get(name, status.available))
    return found
