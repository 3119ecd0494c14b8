"""UpdateItem from a compiled template, in fewer steps; what it does not cover goes to `writes`.

The engine's share of an acquire with two limits is 49 instead of 55 µs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from solotable._protocol.engine import TooLong
from solotable._protocol.replies import WroteItem
from solotable._protocol.requests import PreparedUpdateItem
from solotable._values.limits import LARGEST_ITEM
from solotable.engines.sqlite.items.keys import check_and_encode_key
from solotable.engines.sqlite.items.storage import Writer, decode_row
from solotable.errors import ConditionFailed

from .writes import charge, check_updated_keys, write_item, write_row

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

#: What the reply may have here.
_RETURNS = frozenset({"NONE", "ALL_NEW"})


def update_prepared(engine: SqliteEngine, request: PreparedUpdateItem) -> WroteItem:
    """Check and apply an update by its compiled function, which may leave it to the general path."""
    template, values, thread = request.template, request.values, engine.thread
    apply = template.function(values)
    table = engine.table(request.table)
    if (
        not apply
        or thread.pause is not None
        or request.returns not in _RETURNS
        or request.capacity != "NONE"
        or request.collection != "NONE"
        or not template.names.isdisjoint(table.key_names)
    ):
        return write_item(engine, request)
    key, largest = check_and_encode_key(table, request.key), thread.largest

    def action(writer: Writer) -> WroteItem:
        found = writer.connection.execute(table.select_sql, (key,)).fetchone()
        old = decode_row(table, key, found)
        if old is None:
            return write_row(writer, table, key, None, request, 0)
        if largest is not None and len(old.raw) > largest:
            raise TooLong
        item = old.item
        result = apply(item, values, item)
        if result is False:
            charge(writer, table, old, request, 0)
            raise ConditionFailed(item=item if request.returns_on_failure else None)
        if result is None or old.size + result[1] > LARGEST_ITEM:
            return write_row(writer, table, key, old, request, 0)
        new, gained = result
        check_updated_keys(table, new)
        charge(writer, table, old, request, old.size + gained)
        writer.save(table, key, old, new, old.size + gained)
        return WroteItem(attributes=new) if request.returns == "ALL_NEW" else WroteItem()

    return engine.write(action)
