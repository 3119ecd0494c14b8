"""Resolve limits: of entity and resource, else the entity, else the resource, else the system.

A level replaces the ones after it and never mixes with them. One BatchGetItem of at most five small items
reads all that an acquire needs, and the result is cached, also that nothing is set. An entity that was never
created is like one without a parent.

The cache is of one namespace. It sees changes by other processes when its entries expire, or at once when a
bucket has a higher revision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from solotable.cache import CacheStats, TTLCache
from solotable.flow import Flow, Scope, decode_entity, get_items, key_of
from solotable.systems.limiter.table import limiter

from .entities import ENTITY_MODES, LimitedEntity, Mode, OnUnavailable, StoredLimits
from .limits import MICROSECONDS, Limits
from .names import DEFAULT, entity_name, resource_name
from .schedule import Schedule

Source = Literal["entity-resource", "entity", "resource", "system"]
_SOURCES: tuple[Source, ...] = ("entity-resource", "entity", "resource", "system")
#: For this time after a change by this process, limits are read consistently.
_CONSISTENT_SECONDS = 5.0
_Level = StoredLimits | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveLimits:
    """The limits of an entity for a resource, and the level that they come from.

    `revision` is the highest of all levels, also of deleted ones and of those that do not apply: it rises
    with every change that could matter, and never falls. `since` is when the mode, or the level's limits,
    were set. `resets` are pairs of a limit's name, or `*`, and a time in microseconds.

    With a `schedule`, `effective_limits` gives the limits of now, the window that they are of, and until when
    it applies; `limits` of a cached look-up are those outside of all windows.
    """

    limits: Limits | None = None
    revision: int = 0
    source: Source | None = None
    parent: str | None = None
    cascade: bool = False
    on_unavailable: OnUnavailable | None = None
    mode: Mode = "enforce"
    since: datetime | None = None
    resets: tuple[tuple[str, int], ...] = ()
    schedule: Schedule | None = None
    window: str | None = None
    until: datetime | None = None
    #: What callers derive from the limits, once.
    memo: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


class LimitsCache:
    """Effective limits that were resolved lately.

    Levels that all entities share (resource and system) are cached separately: a new entity costs three
    small reads, and the shared items are not hot keys.
    """

    def __init__(self, seconds: float, clock: Callable[[], float], max_size: int = 10_000) -> None:
        self._clock = clock
        self._effective: TTLCache[tuple[str, str], EffectiveLimits] = TTLCache(
            ttl_seconds=seconds, max_size=max_size, group_of=lambda key: key[0], clock=clock
        )
        self._shared: TTLCache[str, _Level] = TTLCache(ttl_seconds=seconds, max_size=max_size, clock=clock)
        self._consistent_until = float("-inf")
        #: The last known choice of the system level, however old: the table may be out of reach now.
        self.on_unavailable: OnUnavailable | None = None

    def get(self, entity: str, resource: str) -> EffectiveLimits | None:
        """Return cached limits, or None."""
        return self._effective.get((entity, resource))

    def is_current(self, entity: str, resource: str, effective: EffectiveLimits) -> bool:
        """Return whether these very limits are still cached."""
        return self._effective.is_current((entity, resource), effective)

    def shared(self, resource: str) -> tuple[float, _Level] | None:
        """Return a level of all entities and when it expires, None if it is not cached."""
        expires = self._shared.expires(resource)
        return None if expires is None else (expires, self._shared.get(resource))

    def put(
        self,
        entity: str,
        resource: str,
        effective: EffectiveLimits,
        *,
        levels: Mapping[str, _Level] | None = None,
        expires: float = float("inf"),
        generation: tuple[int, int] | None = None,
    ) -> None:
        """Cache limits, not longer than `expires`, and the levels of all entities that were read for them."""
        own, shared = generation or self.generation
        self._effective.put((entity, resource), effective, expires=expires, generation=own)
        for name, level in (levels or {}).items():
            if name == DEFAULT and shared == self._shared.generation:
                self.on_unavailable = None if level is None else level.on_unavailable
            self._shared.put(name, level, generation=shared)

    def invalidate(self, entity: str | None = None) -> None:
        """Forget everything, or one entity and the levels that it shares with others."""
        self._consistent_until = self._clock() + _CONSISTENT_SECONDS
        self._shared.clear()
        if entity is None:
            self._effective.clear()
        else:
            self._effective.forget_group(entity)

    @property
    def generation(self) -> tuple[int, int]:
        """Changes with each invalidation: what was read before one is not cached after it."""
        return self._effective.generation, self._shared.generation

    @property
    def needs_consistent_reads(self) -> bool:
        """Whether this process changed limits a moment ago."""
        return self._clock() < self._consistent_until

    def stats(self) -> CacheStats:
        """Return the counts since the start."""
        return self._effective.stats()


def resolve(
    scope: Scope,
    entity: str,
    resource: str,
    *,
    cache: LimitsCache | None = None,
    consistent: bool = False,
) -> Flow[EffectiveLimits]:
    """Read which limits apply with one BatchGetItem of at most five items, and cache them.

    Only shared levels are taken from the cache: callers look for the whole answer first (`cache.get`).
    """
    entity_name(entity)
    resource_name(resource)
    generation, expires = None if cache is None else cache.generation, float("inf")
    shared: dict[str, _Level] = {}
    for name in (resource, DEFAULT):
        cached = None if cache is None or consistent else cache.shared(name)
        if cached is not None:
            expires = min(expires, cached[0])
            shared[name] = cached[1]
    unknown = [name for name in (resource, DEFAULT) if name not in shared]
    levels = [(entity, resource), (entity, DEFAULT), *((DEFAULT, name) for name in unknown)]
    keys = [key_of(scope, LimitedEntity, entity_id=entity)]
    keys += [key_of(scope, StoredLimits, owner=owner, resource=name) for owner, name in levels]
    exact = consistent or (cache is not None and cache.needs_consistent_reads)
    first, *others = yield from get_items(scope, limiter, keys, consistent=exact)
    found = None if first is None else decode_entity(scope, LimitedEntity, first)
    own = [None if item is None else decode_entity(scope, StoredLimits, item) for item in others]
    read = dict(zip(unknown, own[2:], strict=True))
    shared |= read
    effective = _compose(found, (*own[:2], shared[resource], shared[DEFAULT]))
    if cache is not None:
        cache.put(entity, resource, effective, levels=read, expires=expires, generation=generation)
    return effective


def effective_limits(scope: Scope, entity: str, resource: str) -> Flow[EffectiveLimits]:
    """Return which limits apply, and of which level, without the cache."""
    found = yield from resolve(scope, entity, resource, consistent=True)
    if found.schedule is None:
        return found
    current = found.schedule.at(int(scope.clock() * MICROSECONDS))
    until = None if current.until is None else datetime.fromtimestamp(current.until / MICROSECONDS, UTC)
    return replace(found, limits=current.limits, window=current.window, until=until)


def _compose(entity: LimitedEntity | None, levels: tuple[_Level, ...]) -> EffectiveLimits:
    stored = [(source, each) for source, each in zip(_SOURCES, levels, strict=True) if each is not None]
    chosen = next(((source, each) for source, each in stored if _applies(each)), None)
    own = [each for source, each in stored if source in ("entity-resource", "entity")]
    override = next((each for each in own if each.mode in ENTITY_MODES), None)
    system = levels[-1]
    mode, since = None, None
    if override is not None:
        mode, since = override.mode, override.mode_since
    elif chosen is not None:
        mode, since = chosen[1].mode, datetime.fromtimestamp(chosen[1].revision / MICROSECONDS, UTC)
    return EffectiveLimits(
        limits=None if chosen is None else chosen[1].limits,
        revision=max((each.revision for _, each in stored), default=0),
        source=None if chosen is None else chosen[0],
        parent=None if entity is None else entity.parent_id,
        cascade=entity is not None and entity.cascade,
        on_unavailable=None if system is None else system.on_unavailable,
        mode=mode or "enforce",
        since=since,
        resets=tuple(pair for each in own for pair in (each.resets or {}).items()),
        schedule=None if chosen is None else chosen[1].schedule,
    )


def _applies(level: StoredLimits) -> bool:
    """Return whether a level precedes the next ones: it has limits, or none are to apply."""
    return level.limits is not None or (level.state is not None and level.mode == "disabled")
