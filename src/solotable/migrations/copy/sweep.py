"""Sweep: after a repeated copy, reconcile the outputs that only an older copy has written.

Changes that the stream dropped may have been deletions. Their outputs have the number of the older copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from solotable._entities.declare.recognition import tag_of
from solotable._flows.retry import send
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Scan
from solotable._values import Item
from solotable.migrations.apply.applier import Applier
from solotable.migrations.apply.markers import key_of_text, old_owners, part_marker
from solotable.migrations.apply.reconcile import Change
from solotable.migrations.mapping import Output, output_key
from solotable.migrations.workflow.control import ControlRecord

if TYPE_CHECKING:
    from solotable.migrations.migration import Migration

_PAGE = 500


def sweep(migration: Migration, record: ControlRecord, applier: Applier) -> int:
    """Reconcile what older copies wrote; return the number of writes. The first copy has nothing to sweep."""
    if record.generation <= 1:
        return 0
    side = migration.target
    table = migration.mapping.target
    name = side.names[table.name]
    writes = 0
    start = None
    while True:
        page = side.run(send(Scan(table=name, limit=_PAGE, start=start, consistent=True), side.scope.retries))
        changes = [
            change
            for item in decode_items(page.items or ())
            for change in _changes(migration, item, record.generation)
        ]
        for at in range(0, len(changes), 100):
            writes += applier.reconcile_changes(changes[at : at + 100])
        start = page.last_key
        if not start:
            return writes


def _changes(migration: Migration, item: Item, generation: int) -> list[Change]:
    """Return the source items that an older copy made an item from, as changes that touch the item."""
    found = []
    table = migration.mapping.target
    key = {name: item[name] for name in table.key_names}
    for owner in old_owners(item, generation):
        source, _, text = owner.partition("|")
        declared = migration.mapping.sources.get(source)
        if declared is None:
            continue
        tag = tag_of(table, item) or ""
        owned = migration.mapping.part_attributes(source, tag)
        is_part = part_marker(source) in item
        output = Output(table.name, key, {}, tag, "part" if is_part else "put", owned)
        found.append(
            Change(
                source=source,
                key=key_of_text(text, declared.key_names),
                touched={output_key(table.name, key): output},
            )
        )
    return found
