"""The sides of a comparison: what the serving side should have become, and what the other side has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from solotable._entities.declare.recognition import is_internal, tag_of
from solotable._entities.declare.table import HISTORY_TAG, Table
from solotable._flows.retry import send
from solotable._flows.scope import decode_item
from solotable._flows.traits.unique import TAG as LOCK_TAG
from solotable._protocol.replies import iterate_items
from solotable._protocol.requests import GetItem, Scan
from solotable._values import Item, canonical_item
from solotable.engines.sqlite import SqliteEngine
from solotable.migrations.apply.markers import (
    GENERATION,
    MARKER,
    is_marked,
    key_of_text,
    owner_of,
    strip_markers,
)
from solotable.migrations.mapping import Mapping, Output, OutputKey, Outputs, ReversedMapping
from solotable.migrations.migration import Migration
from solotable.migrations.workflow.sides import Side

from .digests import bytes_of_key, digest, sum_of_attributes

#: A source item: its table in the mapping, and its key.
Origin = tuple[str, Item]


@dataclass(frozen=True, slots=True)
class ItemPage:
    """Items of one table, to be iterated once, and where the next page begins; None at the end."""

    items: Iterable[Item]
    following: Item | None


def read_page(side: Side, table: str, start: Item | None) -> ItemPage:
    """Read a page of a table consistently."""
    request = Scan(table=side.names[table], start=start, consistent=True)
    reply = side.run(send(request, side.scope.retries))
    items: Iterable[Item] = iterate_items(reply.items or ())
    if not isinstance(side.engine, SqliteEngine):
        # The embedded engine returns canonical values; others return sets in any order.
        items = map(canonical_item, items)
    return ItemPage(items, reply.last_key)


def read_item(side: Side, table: str, key: Item) -> Item | None:
    """Read an item consistently."""
    reply = side.run(send(GetItem(table=side.names[table], key=key, consistent=True), side.scope.retries))
    return None if reply.item is None else canonical_item(decode_item(reply.item))


class ExpectedSide:
    """The serving side: its items, and what the mapping makes of them."""

    def __init__(self, migration: Migration, *, forward: bool) -> None:
        self.side = migration.source if forward else migration.target
        self.rules: Mapping | ReversedMapping = migration.mapping if forward else migration.mapping.reversed()
        self.tables = list(self.rules.sources)
        self._mapping = migration.mapping
        self._db = migration.store
        self._forward = forward
        self._as_is = forward and migration.mapping.compares_bytes

    def outputs(self, table: str, item: Item) -> Outputs:
        """Return the outputs of an item; an item of several entities is built from the first of them."""
        if self._forward:
            return self.rules.outputs(table, item)
        found = self.rules.outputs(table, strip_markers(item))
        outputs: dict[OutputKey, Output] = {}
        for key, output in found.items.items():
            if output.kind != "gather":
                outputs[key] = output
                continue
            assert isinstance(self.rules, ReversedMapping)
            if self.rules.is_head(output):
                built = self.rules.gather(output, self._db)
                if built is not None:
                    outputs[key] = Output(output.table, output.key, built, output.entity)
        return Outputs(outputs, found.dead)

    def digest_of(self, output: Output) -> int:
        """Return the digest of an output, or the sum of those of a part."""
        if output.kind == "part":
            return sum_of_attributes(output.item, output.owned)
        if self._as_is:
            return digest(output.item)
        return digest(self.plain(output.table, output.item))

    def plain(self, table: str, item: Item) -> Item:
        """Return what is expected in the form that is compared."""
        if isinstance(self.rules, ReversedMapping):
            return self.rules.normal(table, item)
        return self.rules.comparable(item)


class ActualSide:
    """The other side: its items as they are."""

    def __init__(self, migration: Migration, *, forward: bool) -> None:
        self.side = migration.target if forward else migration.source
        self._forward = forward
        self._mapping = migration.mapping
        self._table: Table = migration.mapping.target
        self.tables = [self._table.name] if forward else list(migration.mapping.sources)
        self._back = None if forward else migration.mapping.reversed()
        #: The tags of internal items that rules yield.
        self._derived = {LOCK_TAG} | {
            HISTORY_TAG + entity.plan().tag
            for inverse in migration.mapping.inverses.values()
            if inverse.snapshots
            for entity in inverse.entities
        }
        self._parts = migration.mapping.parts if forward else {}
        self._as_is = forward and not self._parts and migration.mapping.compares_bytes
        self._owned = {
            tag: frozenset().union(*(each.owned for each in parts)) for tag, parts in self._parts.items()
        }

    def key_names(self, table: str) -> tuple[str, ...]:
        """Return the key attributes of a table."""
        return self._table.key_names if self._forward else self._mapping.sources[table].key_names

    def includes(self, table: str, item: Item) -> bool:
        """Return whether an item takes part in the comparison."""
        if self._forward:
            return not self._is_of_store(item)
        source = self._mapping.sources[table]
        return source.is_whole or source.includes(item)

    def _is_of_store(self, item: Item) -> bool:
        """Return whether the store wrote an internal item for a client, such as an entry of its purge queue.

        Locks, and snapshots that have a way back, follow from entities and are compared.
        """
        value = item.get(self._table.internal_tag)
        tag = None if value is None else value.get("S")
        if tag is None or tag[:1] != "_" or tag in self._derived or is_marked(item):
            return False
        return is_internal(self._table, item)

    def plain(self, table: str, item: Item) -> Item:
        """Return an item in the form that is compared."""
        if self._back is not None:
            return self._back.normal(table, item)
        return self._mapping.comparable(self._bare(item))

    def _bare(self, item: Item) -> Item:
        return strip_markers(item) if is_marked(item) else item

    def digest_of(self, table: str, item: Item) -> int:
        """Return the digest of an item, or the sum of those of its parts."""
        if self._back is not None:
            return digest(self._back.normal(table, item))
        if self._as_is:
            if MARKER in item:
                item = item.copy()
                del item[MARKER]
                item.pop(GENERATION, None)
            return digest(item)
        bare = self._bare(item)
        if self._parts:
            tag = tag_of(self._table, bare) or ""
            if tag in self._parts and self._is_shared_right(tag, bare):
                return sum_of_attributes(bare, self._owned[tag])
        return digest(self._mapping.comparable(bare))

    def _is_shared_right(self, tag: str, item: Item) -> bool:
        """Return whether the attributes that follow from the key are right."""
        fields = self._parts[tag][0]
        arguments = fields.plan.arguments_of({name: item[name] for name in self._table.key_names})
        rest = {name: value for name, value in item.items() if name not in self._owned[tag]}
        return arguments is not None and fields.shared(arguments) == rest

    def owner_of(self, item: Item) -> Origin | None:
        """Return the source item that the marker of an item names; None without a marker."""
        owner = owner_of(item) if self._forward else None
        source, _, text = (owner or "").partition("|")
        found = self._mapping.sources.get(source)
        return None if found is None else (source, key_of_text(text, found.key_names))

    def tag_of(self, table: str, item: Item) -> str:
        """Return the name of an item's entity in a report."""
        return (tag_of(self._table, item) or "no entity") if self._forward else table


def rows_of(
    expected: ExpectedSide, table: str, items: Iterable[Item]
) -> Iterator[tuple[bytes, Output, Item]]:
    """Yield the key, the output and the source item of each output of these items."""
    for item in items:
        for key, output in expected.outputs(table, item).items.items():
            yield bytes_of_key(key), output, item


def origin_of(expected: ExpectedSide, table: str, item: Item) -> Origin:
    """Return where an item of the serving side is."""
    return table, expected.rules.sources[table].key_of(item)


def merged(outputs: list[Output]) -> Any:
    """Return the item of several parts, or of one output; None without outputs."""
    if not outputs:
        return None
    found: Item = {}
    for output in outputs:
        found |= output.item
    return found
