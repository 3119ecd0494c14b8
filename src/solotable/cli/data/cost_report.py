"""What requests cost: counted from what they would write, or from what the database reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from solotable._entities.declare.table import Table
from solotable._entities.patterns.cost import Units, get_units, put_units
from solotable._protocol.requests import GetItem, PutItem, Query, TransactWriteItems
from solotable._values import item_size
from solotable.cli.options.database import Exchange


def shown_units(units: Units, read_first: float = 0.0) -> dict[str, Any]:
    """Return units as reports have them; `read_first` is what a write reads before."""
    shown: dict[str, Any] = {
        "units": units.total,
        "kind": "write" if units.writes else "read",
        "by": {"table": units.table, **units.indexes},
    }
    return shown | {"read_first": read_first} if read_first else shown


def estimated_put(table: Table, sent: Sequence[Exchange], size: int | None) -> dict[str, Any]:
    """Count what the requests of a put would cost for an item that is not there yet."""
    written, read = Units(writes=True), 0.0
    for each in sent:
        match each.request:
            case PutItem(item=item):
                written += put_units(table, item, size=size)
            case TransactWriteItems(actions=actions):
                for action in actions:
                    item = action.item if isinstance(action, PutItem) else {}
                    written += put_units(table, item, transactional=True)
            case GetItem(consistent=consistent):
                read += get_units(1, consistent=consistent).total
            case _:
                pass
    return shown_units(written, read)


def written_size(sent: Sequence[Exchange]) -> int:
    """Return the bytes of all items that the requests put."""
    total = 0
    for each in sent:
        request = each.request
        actions = request.actions if isinstance(request, TransactWriteItems) else (request,)
        total += sum(item_size(action.item) for action in actions if isinstance(action, PutItem))
    return total


def measured(sent: Sequence[Exchange], where: str) -> dict[str, Any]:
    """Add up what the database reported, and how many of the items read were returned."""
    reads, writes = Units(), Units(writes=True)
    read = returned = 0
    for each in sent:
        units = _reported(each)
        if isinstance(each.request, PutItem | TransactWriteItems):
            writes += units
            continue
        reads += units
        if isinstance(each.request, Query):
            read, returned = read + each.reply.scanned, returned + each.reply.count
        elif isinstance(each.request, GetItem):
            there = 0 if each.reply.item is None else 1
            read, returned = read + there, returned + there
    found: dict[str, Any] = {"where": where, "requests": len(sent)}
    if writes.total:
        return found | shown_units(writes, reads.total)
    waste = 0.0 if not read else 1 - returned / read
    counts = {"items_read": read, "items_returned": returned, "filter_waste": round(waste, 4)}
    return found | shown_units(reads) | counts


def _reported(exchange: Exchange) -> Units:
    told = getattr(exchange.reply, "capacity", None) or []
    total = Units()
    for capacity in told if isinstance(told, list) else [told]:
        places = (capacity.get(f"{kind}SecondaryIndexes", {}) for kind in ("Global", "Local"))
        indexes = {name: units["CapacityUnits"] for place in places for name, units in place.items()}
        # A table is left out of a report in which it was not read.
        table = capacity.get("Table", {}).get("CapacityUnits", 0.0)
        total += Units(table=table, indexes=indexes)
    return total
