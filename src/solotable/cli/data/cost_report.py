"""Capacity units of requests: estimated from their items, or as the database reported them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._entities.patterns.cost import Units, get_units, put_units
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import GetItem, PutItem, Query, TransactWriteItems
from solotable._values import item_size
from solotable.cli.options.database import Exchange


def report_units(units: Units, read_first: float = 0.0) -> dict[str, Any]:
    """Return units as a report; `read_first` is what a write reads beforehand."""
    shown: dict[str, Any] = {
        "units": units.total,
        "kind": "write" if units.writes else "read",
        "by": {"table": units.table, **units.indexes},
    }
    return shown | {"read_first": read_first} if read_first else shown


def estimate_put(table: Table, sent: Sequence[Exchange], size: int | None) -> dict[str, Any]:
    """Estimate the units of a put of a new item."""
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
    return report_units(written, read)


def sum_written_bytes(sent: Sequence[Exchange]) -> int:
    """Return the size of all items that the requests put, in bytes."""
    total = 0
    for each in sent:
        request = each.request
        actions = request.actions if isinstance(request, TransactWriteItems) else (request,)
        total += sum(item_size(action.item) for action in actions if isinstance(action, PutItem))
    return total


def measure(sent: Sequence[Exchange], where: str, *plans: Plan) -> dict[str, Any]:
    """Sum the reported units, and count the items read, filtered, of other entities, and returned."""
    reads, writes = Units(), Units(writes=True)
    read = filtered = others = 0
    for each in sent:
        units = _reported_units(each)
        if isinstance(each.request, PutItem | TransactWriteItems):
            writes += units
            continue
        reads += units
        if isinstance(each.request, Query):
            read += each.reply.scanned
            filtered += each.reply.scanned - each.reply.count
            others += _count_others(each.reply, plans)
        elif isinstance(each.request, GetItem):
            read += each.reply.item is not None
    found: dict[str, Any] = {"where": where, "requests": len(sent)}
    if writes.total:
        return found | report_units(writes, reads.total)
    counts = {
        "items_read": read,
        "items_filtered": filtered,
        "items_of_others": others,
        "items_returned": read - filtered - others,
    }
    return found | report_units(reads) | counts


def _count_others(reply: Any, plans: Sequence[Plan]) -> int:
    """Count items of other entities; the store drops them after the read is paid for."""
    table = plans[0].table
    if table.tag_required:
        tags = [item.get(table.internal_tag) for item in decode_items(reply.items or ())]
        ours = [plan.tag_value for plan in plans]
        return sum(tag is not None and tag not in ours for tag in tags)
    return sum(not any(plan.recognises(item) for plan in plans) for item in decode_items(reply.items or ()))


def _reported_units(exchange: Exchange) -> Units:
    reported = getattr(exchange.reply, "capacity", None) or []
    total = Units()
    for capacity in reported if isinstance(reported, list) else [reported]:
        places = (capacity.get(f"{kind}SecondaryIndexes", {}) for kind in ("Global", "Local"))
        indexes = {name: units["CapacityUnits"] for place in places for name, units in place.items()}
        # DynamoDB leaves out a table that was not read.
        table = capacity.get("Table", {}).get("CapacityUnits", 0.0)
        total += Units(table=table, indexes=indexes)
    return total
