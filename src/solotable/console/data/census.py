"""Count the items of each entity from a bounded sample; exact for a small table."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from solotable._flows.consumption import units_of
from solotable._flows.sync.entries import find_space
from solotable._protocol.engine import Engine
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Scan
from solotable._values import Item, item_size

from .catalog import UNCLAIMED, Catalog, Facet, LiveTable

#: A table with so many items is counted whole, unless its requests cost money.
EXACT_ITEMS = 5_000
#: The most items of a sample, from so many places of the table.
SAMPLE_ITEMS = 1_000
_SEGMENTS = 8
#: Each round has a request for each place; a request reads at most 1 MB.
_ROUNDS = 3
_MOST_TENANTS = 50
_MOST_PARTITIONS = 100
_MOST_SPACES = 100
FRESH_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetCount:
    """The items and bytes of one entity."""

    facet: Facet
    items: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCount:
    """What a sample shows; `exact` if it has every item of the table."""

    counts: tuple[FacetCount, ...]
    exact: bool
    sampled: int
    rcu: float
    #: Seconds since the epoch.
    time: float
    tenants: tuple[str, ...]
    #: Partition keys in the sample, as wire values, with the number of their sampled items.
    partitions: tuple[tuple[dict[str, str], int], ...]
    #: The spaces of synced items in the sample: tenant and name.
    spaces: tuple[tuple[str | None, str], ...] = ()

    def of(self, facet: Facet) -> FacetCount | None:
        """Return the count of an entity."""
        return next((each for each in self.counts if each.facet.name == facet.name), None)

    @property
    def bytes(self) -> int:
        """The bytes of all entities."""
        return sum(each.bytes for each in self.counts)


@dataclass
class Census:
    """Takes and remembers samples; a table at Amazon is only sampled after its user agreed."""

    engine: Engine
    catalog: Catalog
    clock: Callable[[], float] = time.time
    #: The tables that may be scanned; None for all, which cost nothing.
    allowed: set[str] | None = None
    _kept: dict[str, TableCount] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def may_scan(self, table: LiveTable) -> bool:
        """Return whether scanning the table is free, or its user agreed."""
        return self.allowed is None or table.name in self.allowed

    def allow(self, name: str) -> None:
        """Remember that the user agreed to scan a table."""
        if self.allowed is not None:
            self.allowed.add(name)

    def forget(self, name: str) -> None:
        """Take the next count from a new sample."""
        self._kept.pop(name, None)

    def count(self, table: LiveTable) -> TableCount | None:
        """Return the counts of a table, up to a minute old; None if it may not be scanned."""
        if not self.may_scan(table):
            return None
        with self._lock:
            kept = self._kept.get(table.name)
            if kept is None or self.clock() - kept.time > FRESH_SECONDS:
                kept = self._kept[table.name] = self._take(table)
        return kept

    def _take(self, table: LiveTable) -> TableCount:
        items, rcu, exact = self._sample(table)
        if table.declared is None and table.name not in self.catalog.inferred:
            self.catalog.sampled(table, items)
            table = self.catalog.table(table.name)
        scale = 1.0 if exact or not items else max(1.0, table.item_count / len(items))
        numbers: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        tenants: dict[str, None] = {}
        partitions: Counter[tuple[str, str]] = Counter()
        known: dict[str, Facet] = {}
        for item in items:
            facet = table.facet_of(item)
            known[facet.name] = facet
            numbers[facet.name] += 1
            sizes[facet.name] += item_size(item)
            partitions[next(iter(item[table.partition.name].items()))] += 1
            if facet.plan is not None and facet.plan.tenant is not None:
                tenant = facet.plan.tenant_of(item)
                if tenant is not None and len(tenants) < _MOST_TENANTS:
                    tenants[tenant] = None
        order = [*table.facets, *(each for each in known.values() if each not in table.facets)]
        counts = [
            FacetCount(
                facet=facet, items=round(numbers[facet.name] * scale), bytes=round(sizes[facet.name] * scale)
            )
            for facet in order
            if facet in table.facets or numbers[facet.name]
        ]
        return TableCount(
            counts=tuple(sorted(counts, key=lambda each: each.facet is UNCLAIMED)),
            exact=exact,
            sampled=len(items),
            rcu=rcu,
            time=self.clock(),
            tenants=tuple(sorted(tenants)),
            partitions=tuple(
                ({kind: value}, number) for (kind, value), number in partitions.most_common(_MOST_PARTITIONS)
            ),
            spaces=_spaces(table, items),
        )

    def _sample(self, table: LiveTable) -> tuple[list[Item], float, bool]:
        """Read items from several places of the table; a place that ends leaves its share to the others."""
        items: list[Item] = []
        rcu = 0.0
        small = EXACT_ITEMS if self.allowed is None else SAMPLE_ITEMS
        segments, most = (1, small) if table.item_count <= small else (_SEGMENTS, SAMPLE_ITEMS)
        open_segments: list[tuple[int, Item | None]] = [(segment, None) for segment in range(segments)]
        for _ in range(_ROUNDS if segments > 1 else _ROUNDS * _SEGMENTS):
            left = most - len(items)
            if not open_segments or left < len(open_segments):
                break
            share = left // len(open_segments)
            following: list[tuple[int, Item | None]] = []
            for segment, start in open_segments:
                scan = Scan(
                    table=table.name,
                    segment=segment if segments > 1 else None,
                    segments=segments if segments > 1 else None,
                    limit=share,
                    start=start,
                    capacity="INDEXES",
                )
                reply = self.engine.handle(scan)
                items += decode_items(reply.items or ())
                rcu += units_of(scan, reply).rcu
                if reply.last_key is not None:
                    following.append((segment, reply.last_key))
            open_segments = following
        return items, rcu, not open_segments


def _spaces(table: LiveTable, items: list[Item]) -> tuple[tuple[str | None, str], ...]:
    declared = table.declared
    if declared is None or not table.synced:
        return ()
    spaces = (find_space(declared, item) for item in items)
    found = dict.fromkeys((space.tenant, space.name) for space in spaces if space is not None)
    return tuple(found)[:_MOST_SPACES]
