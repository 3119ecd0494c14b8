"""Where a router reads the routing record of a migration, and what guards the writes of its sides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from solotable._protocol.requests import ConditionCheck, GetItem, WriteAction
from solotable._values import Item
from solotable.flow import decode_item
from solotable.migrations.migration import Migration
from solotable.migrations.workflow.control import CONTROL, decode_record
from solotable.migrations.workflow.sides import control_key

from .routing import Routing, SideName


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingSource:
    """The routing record of one migration, and the fences of its sides."""

    request: GetItem
    #: The request that reads one fence item of each side.
    fences: Mapping[SideName, GetItem]
    #: What a write adds during a switch: the check of a fence item, and a journal entry.
    guard: Callable[[SideName, Sequence[WriteAction]], Sequence[WriteAction]]
    #: What a write adds at other times, if its router checks every write.
    check: Callable[[SideName], ConditionCheck]

    @classmethod
    def of(cls, migration: Migration) -> RoutingSource:
        """Return the source of a migration."""
        target = migration.target
        sides: tuple[SideName, SideName] = ("source", "target")
        return cls(
            request=GetItem(table=target.control, key=control_key(migration.name, CONTROL), consistent=True),
            fences={side: _first(migration.fences_of(side)) for side in sides},
            guard=migration.guard,
            check=migration.fence_check,
        )

    def decode(self, item: Any) -> Routing:
        """Return the routing of a stored record; without one, the source serves everything."""
        return Routing() if item is None else decode_routing(decode_item(item))


def _first(fences: Sequence[tuple[str, Item]]) -> GetItem:
    table, key = fences[0]
    return GetItem(table=table, key=key, consistent=True)


def decode_routing(item: Item) -> Routing:
    """Return the routing of a control record, or raise MigrationError: a router never guesses a side."""
    record = decode_record(item)
    return Routing(**{name: getattr(record, name) for name in _MEMBERS})


_MEMBERS = tuple(Routing.__dataclass_fields__)
