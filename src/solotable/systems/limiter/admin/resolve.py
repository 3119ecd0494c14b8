"""Which limits count: entity and resource, then the entity, then the resource, then the system.

A level replaces the ones after it and never mixes with them. What an acquire has to know comes with one
BatchGetItem of at most five small items, and is kept for a while, also that there is nothing. An entity that
was never made is like one without a parent.

The cache answers for one namespace. It knows nothing of writes by other processes: those are seen when its
time has passed, or at once where a bucket shows a higher revision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.verbs.get import fetch
from solotable.fork_safe import new_lock

from .entities import LimitedEntity, OnUnavailable, StoredLimits
from .limits import Limits
from .names import DEFAULT, entity_name, resource_name

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")
Source = Literal["entity-resource", "entity", "resource", "system"]
#: For so long after a change of our own, what is loaded is read consistently.
_SETTLING_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveLimits:
    """What counts for an entity on a resource.

    `revision` is the highest of all levels, also of those that were deleted or count for less: it goes up
    with every change that could matter, and never down.
    """

    limits: Limits | None = None
    revision: int = 0
    source: Source | None = None
    parent: str | None = None
    cascade: bool = False
    on_unavailable: OnUnavailable | None = None


@dataclass(frozen=True, slots=True)
class CacheStats:
    """How often the cache knew the answer, and how many it holds."""

    hits: int
    misses: int
    entries: int


class LimitsCache:
    """The settings that were looked up lately; safe for threads, never more than `most` entries.

    `get` takes no lock: a dict answers whole or not at all. Levels that all entities share (resource and
    system) are kept apart, so that a new entity costs three small reads and they are no hot keys.
    """

    def __init__(self, seconds: float, clock: Callable[[], float], most: int = 10_000) -> None:
        self.seconds = seconds
        self._clock = clock
        self._most = most
        self._kept: dict[tuple[str, str], tuple[float, EffectiveLimits]] = {}
        #: By entity, the resources that are kept: one entity is forgotten without looking at all of them.
        self._resources: dict[str, set[str]] = {}
        self._shared: dict[str, tuple[float, StoredLimits | None]] = {}
        self._lock = new_lock()
        self._hits = 0
        self._misses = 0
        self._settled_at = float("-inf")
        #: What the system's settings said last, however old that is: now they may be out of reach.
        self.on_unavailable: OnUnavailable | None = None
        #: Goes up with each invalidation: what was asked for before one is not kept after it.
        self._era = 0

    def get(self, entity: str, resource: str) -> EffectiveLimits | None:
        """Return what is known and not too old."""
        found = self._kept.get((entity, resource))
        if found is not None and found[0] > self._clock():
            # No other thread comes between: the interpreter switches at calls and loops only.
            self._hits += 1
            return found[1]
        self._misses += 1
        return None

    def shared(self, resource: str) -> tuple[float, StoredLimits | None] | None:
        """Return a level of all entities and until when it is good, None when it is not known."""
        found = self._shared.get(resource)
        return None if found is None or found[0] <= self._clock() else found

    def keep(
        self,
        entity: str,
        resource: str,
        settings: EffectiveLimits,
        *,
        levels: Mapping[str, StoredLimits | None] | None = None,
        until: float = float("inf"),
        era: int | None = None,
    ) -> None:
        """Keep settings, not longer than `until`, and the levels of all entities that were read for them."""
        end = self._clock() + self.seconds
        with self._lock:
            if era is not None and era != self._era:
                return
            gone = _bounded(self._kept, (entity, resource), (min(end, until), settings), self._most)
            for key in gone:
                self._unlist(key)
            self._resources.setdefault(entity, set()).add(resource)
            for name, stored in (levels or {}).items():
                if name == DEFAULT:
                    self.on_unavailable = None if stored is None else stored.on_unavailable
                _bounded(self._shared, name, (end, stored), self._most)

    def invalidate(self, entity: str | None = None) -> None:
        """Forget everything, or what is known of one entity and the levels that it shares with others."""
        with self._lock:
            self._era += 1
            self._settled_at = self._clock() + _SETTLING_SECONDS
            self._shared.clear()
            if entity is None:
                self._kept.clear()
                self._resources.clear()
                return
            for resource in self._resources.pop(entity, ()):
                del self._kept[entity, resource]

    def _unlist(self, key: tuple[str, str]) -> None:
        entity, resource = key
        listed = self._resources[entity]
        listed.discard(resource)
        if not listed:
            del self._resources[entity]

    @property
    def era(self) -> int:
        """The number of invalidations so far."""
        return self._era

    @property
    def settling(self) -> bool:
        """Whether something was changed from here just now, so that only a consistent read is sure of it."""
        return self._clock() < self._settled_at

    def stats(self) -> CacheStats:
        """Return the figures since the start."""
        return CacheStats(self._hits, self._misses, len(self._kept))


def resolve(
    scope: Scope,
    entity: str,
    resource: str,
    *,
    cache: LimitsCache | None = None,
    consistent: bool = False,
) -> Flow[EffectiveLimits]:
    """Return what counts, by one BatchGetItem of at most five items, and keep it in the cache.

    The cache is filled and asked for shared levels; whether it knows the answer whole is for callers to ask
    first (`cache.get`), without a flow.
    """
    entity_name(entity)
    resource_name(resource)
    era, until = (0, float("inf")) if cache is None else (cache.era, float("inf"))
    shared: dict[str, StoredLimits | None] = {}
    for name in (resource, DEFAULT):
        known = None if cache is None or consistent else cache.shared(name)
        if known is not None:
            until = min(until, known[0])
            shared[name] = known[1]
    unknown = [name for name in (resource, DEFAULT) if name not in shared]
    places = [(entity, resource), (entity, DEFAULT), *((DEFAULT, name) for name in unknown)]
    exact = consistent or (cache is not None and cache.settling)
    found, own, rest = yield from _looked_up(scope, entity, places, consistent=exact)
    fresh = dict(zip(unknown, rest, strict=True))
    shared |= fresh
    settings = _composed(found, (*own, shared[resource], shared[DEFAULT]))
    if cache is not None:
        cache.keep(entity, resource, settings, levels=fresh, until=until, era=era)
    return settings


def effective_limits(scope: Scope, entity: str, resource: str) -> Flow[EffectiveLimits]:
    """Return what counts as it is stored now, past every cache."""
    return (yield from resolve(scope, entity, resource, consistent=True))


_Level = StoredLimits | None


def _looked_up(
    scope: Scope, entity: str, places: list[tuple[str, str]], *, consistent: bool
) -> Flow[tuple[LimitedEntity | None, list[_Level], list[_Level]]]:
    """Return the entity, its own two levels, and the others that were asked for."""
    of, at = LimitedEntity.plan(), StoredLimits.plan()
    keys = [of.key_from(scope.bind(of, {"entity_id": entity}))]
    keys += [at.key_from(scope.bind(at, {"owner": owner, "resource": on})) for owner, on in places]
    first, *others = yield from fetch(scope, at, keys, consistent=consistent)
    levels: list[_Level] = [None if item is None else scope.admit(at, item) for item in others]
    return (None if first is None else scope.admit(of, first)), levels[:2], levels[2:]


_SOURCES: tuple[Source, ...] = ("entity-resource", "entity", "resource", "system")


def _composed(entity: LimitedEntity | None, levels: tuple[_Level, ...]) -> EffectiveLimits:
    there = [(source, each) for source, each in zip(_SOURCES, levels, strict=True) if each is not None]
    chosen = next(((source, each.limits) for source, each in there if each.limits is not None), None)
    system = levels[-1]
    return EffectiveLimits(
        limits=None if chosen is None else chosen[1],
        revision=max((each.revision for _, each in there), default=0),
        source=None if chosen is None else chosen[0],
        parent=None if entity is None else entity.parent_id,
        cascade=entity is not None and entity.cascade,
        on_unavailable=None if system is None else system.on_unavailable,
    )


def _bounded(kept: dict[KeyT, ValueT], key: KeyT, value: ValueT, most: int) -> list[KeyT]:
    """Put an entry last; the first ones make room, and are returned."""
    kept.pop(key, None)
    gone: list[KeyT] = []
    while len(kept) >= most:
        gone.append(next(iter(kept)))
        del kept[gone[-1]]
    kept[key] = value
    return gone
