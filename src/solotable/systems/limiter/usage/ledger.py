"""The rows of usage as a ledger: the update that adds consumption (see `systems.ledger`)."""

from __future__ import annotations

from collections.abc import Mapping

from solotable.flow import Scope, encode_entity
from solotable.flow.requests import UpdateItem
from solotable.systems.ledger import Ledger
from solotable.systems.limiter.buckets.writes.flat_update import FlatUpdate
from solotable.systems.limiter.table import limiter

from .deltas import EVENTS, RowKey, additions, is_consumption
from .rows import UsageRow
from .windows import expiry


def _addition(scope: Scope, row: RowKey, amounts: Mapping[str, int]) -> UpdateItem:
    item = encode_entity(scope, UsageRow(**row._asdict(), expires=expiry(row.window, row.start)))
    del item[EVENTS]
    key = {name: item.pop(name) for name in limiter.key_names}
    update = FlatUpdate()
    for name, value in item.items():
        update.set_if_missing(name, int(value["N"]) if "N" in value else value["S"])
    for name, amount in amounts.items():
        update.add(name, amount)
    return UpdateItem(table=scope.table(limiter), key=key, update=update.build())


USAGE = Ledger(
    table=limiter,
    name="usage",
    additions=additions,
    is_counted=is_consumption,
    update=_addition,
)
