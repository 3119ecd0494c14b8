"""Changes of buckets to additions to usage rows: pure sums.

What was consumed is the difference of the counter `consumed_<limit>` between the two images of a change, and
nothing else: `used_<limit>` also changes with time (S1.10). Its time is the `at` of the new image (C1.10).
The first image of a bucket counts from zero (C1.11); a removal consumes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from solotable.errors import DataError
from solotable.flow import Item
from solotable.flow.feed import Record
from solotable.systems.ledger import add
from solotable.systems.limiter.buckets.bucket import Bucket
from solotable.systems.limiter.table import limiter

from .rows import TOKENS
from .windows import Window, starts_at

CONSUMED = "consumed_"
EVENTS = "events"
_BUCKET = Bucket.plan().tag_value
_EMPTY: Item = {}


class RowKey(NamedTuple):
    """The row of an addition."""

    namespace: str
    entity: str
    resource: str
    window: Window
    start: datetime


#: What is added to rows, by attribute. Zeros stay: so rows do not depend on what was added together.
Additions = dict[RowKey, dict[str, int]]


def is_consumption(record: Record) -> bool:
    """Return whether a change of the table changed what a bucket has consumed."""
    return _is_bucket(record.after) and bool(_differences(record))


def fold(records: Iterable[Record]) -> Additions:
    """Return what records add to the rows of their windows together."""
    total: Additions = {}
    for record in records:
        for row, amounts in additions(record):
            add(total, row, amounts)
    return total


def additions(record: Record) -> Sequence[tuple[RowKey, dict[str, int]]]:
    """Return what one record adds to its hour, its day and its month; nothing if it consumed nothing."""
    amounts = _differences(record) if _is_bucket(record.after) else {}
    if not amounts:
        return ()
    after = record.after or _EMPTY
    try:
        owner = after["namespace"]["S"], after["entity"]["S"], after["resource"]["S"]
        windows = starts_at(int(after["at"]["N"]))
    except (KeyError, ValueError, OverflowError, OSError) as error:
        raise _unreadable(record, error) from error
    return [(RowKey(*owner, window, start), {EVENTS: 1, **amounts}) for window, start in windows]


def _is_bucket(item: Item | None) -> bool:
    return item is not None and item.get(limiter.internal_tag) == _BUCKET


def _differences(record: Record) -> dict[str, int]:
    """Return by how much each counter changed, under the attribute names of rows."""
    before = (record.before if _is_bucket(record.before) else None) or _EMPTY
    found: dict[str, int] = {}
    try:
        for name, value in (record.after or _EMPTY).items():
            if name.startswith(CONSUMED) and before.get(name) != value:
                amount = int(value["N"]) - (int(before[name]["N"]) if name in before else 0)
                if amount:
                    found[TOKENS + name.removeprefix(CONSUMED)] = amount
    except (KeyError, ValueError) as error:
        raise _unreadable(record, error) from error
    return found


def _unreadable(record: Record, error: Exception) -> DataError:
    key = (record.after or _EMPTY).get(limiter.partition.name, {}).get("S")
    return DataError(
        f"The change {record.sequence} of bucket {key!r} cannot be read ({type(error).__name__}: {error}); "
        f"usage is not counted past it: repair the item, and find out which program wrote it."
    )
