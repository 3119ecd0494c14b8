"""Direction: from which side to which a migration replicates, and by which mapping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from solotable._store import Database
from solotable._values import Item
from solotable.migrations.mapping import Mapping, Output, Outputs, ReversedMapping, Source
from solotable.migrations.workflow.sides import Side

from .markers import strip_markers

if TYPE_CHECKING:
    from collections.abc import Mapping as Dict

    from solotable.migrations.migration import Migration

DirectionName = Literal["forward", "reverse"]


class AnyMapping(Protocol):
    """A mapping, forward or reversed."""

    @property
    def sources(self) -> Dict[str, Source]:
        """The tables to read, by name."""

    def outputs(self, source: str, item: Item, /) -> Outputs:
        """Return the outputs of an item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """One direction of replication; `cursor` is the kind of the cursor of its apply worker."""

    name: DirectionName
    migration: str
    origin: Side
    destination: Side
    mapping: AnyMapping
    #: The mapping of the other direction, which tells whether an item comes from another one.
    other: AnyMapping | None
    store: Database

    @property
    def marks(self) -> bool:
        """Whether outputs have markers; items of the sources never do."""
        return self.name == "forward"

    @property
    def cursor(self) -> str:
        """The kind of the apply worker's cursor."""
        return f"APPLY#{self.name}"

    def outputs(self, source: str, item: Item | None) -> Outputs:
        """Return the outputs of an item of the origin; none without an item."""
        if item is None:
            return Outputs()
        return self.mapping.outputs(source, item if self.marks else strip_markers(item))

    def comparable(self, item: Item) -> Item:
        """Return an item of the destination in the form in which two are compared."""
        return self.mapping.comparable(item) if isinstance(self.mapping, Mapping) else item

    def takes_part(self, table: str, item: Item) -> bool:
        """Return whether an item of a source takes part in the migration: its filter includes it."""
        found = None if self.other is None else self.other.sources.get(table)
        return found is None or found.is_whole or found.includes(item)

    def gather(self, output: Output) -> Item | None:
        """Build an output from several items of the origin."""
        assert isinstance(self.mapping, ReversedMapping)
        return self.mapping.gather(output, self.store)


def forward(migration: Migration) -> Direction:
    """Return the direction from the sources to the target."""
    return Direction(
        name="forward",
        migration=migration.name,
        origin=migration.source,
        destination=migration.target,
        mapping=migration.mapping,
        other=None,
        store=migration.store,
    )


def reverse(migration: Migration) -> Direction:
    """Return the direction from the target to the sources; raises DeclarationError without inverses."""
    return Direction(
        name="reverse",
        migration=migration.name,
        origin=migration.target,
        destination=migration.source,
        mapping=migration.mapping.reversed(),
        other=migration.mapping,
        store=migration.store,
    )
