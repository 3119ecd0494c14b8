"""Folding: changes of buckets to what is added to rows of usage. Pure, and a plain sum.

What was consumed is the difference of the counter `consumed_<limit>` in the two images of a change, and of
nothing else: `used_<limit>` also moves with the time that has passed (S1.10). It is dated by the `at` of the
new image (C1.10). A bucket's first image counts from zero (C1.11); a removal consumes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from solotable._flows.feed.streams import Record
from solotable._values import Item
from solotable.errors import DataError
from solotable.systems.limiter.buckets.bucket import Bucket
from solotable.systems.limiter.table import limiter

from .rows import TOKENS
from .windows import Window, starts_at

CONSUMED = "consumed_"
EVENTS = "events"
_BUCKET = Bucket.plan().tag_value
_NONE: Item = {}


class RowKey(NamedTuple):
    """Which row it is."""

    namespace: str
    entity: str
    resource: str
    window: Window
    start: datetime


#: What is added to rows, by attribute. A zero stays: so rows do not depend on what was folded together.
Additions = dict[RowKey, dict[str, int]]


def is_consumption(record: Record) -> bool:
    """Whether a change of the table moved what a bucket has consumed."""
    return _is_bucket(record.after) and bool(_moved(record))


def fold(records: Iterable[Record]) -> Additions:
    """Return what records add to the rows of their windows, all together."""
    total: Additions = {}
    for record in records:
        for slot, amounts in additions(record):
            into = total.setdefault(slot, {})
            for name, amount in amounts.items():
                into[name] = into.get(name, 0) + amount
    return total


def additions(record: Record) -> Sequence[tuple[RowKey, dict[str, int]]]:
    """Return what one record adds to its hour, its day and its month; nothing where it consumed nothing."""
    if not _is_bucket(record.after):
        return ()
    amounts = _moved(record)
    if not amounts:
        return ()
    after = record.after or _NONE
    try:
        who = after["namespace"]["S"], after["entity"]["S"], after["resource"]["S"]
        windows = starts_at(int(after["at"]["N"]))
    except (KeyError, ValueError, OverflowError, OSError) as error:
        raise _unreadable(record, error) from error
    return [(RowKey(*who, window, start), {EVENTS: 1, **amounts}) for window, start in windows]


def _is_bucket(item: Item | None) -> bool:
    return item is not None and item.get(limiter.tag) == _BUCKET


def _moved(record: Record) -> dict[str, int]:
    """Return by how much each counter that moved did so, under the names that rows have."""
    before = record.before if _is_bucket(record.before) else None
    was, now = before or _NONE, record.after or _NONE
    found: dict[str, int] = {}
    try:
        for name, value in now.items():
            if name.startswith(CONSUMED) and was.get(name) != value:
                amount = int(value["N"]) - (int(was[name]["N"]) if name in was else 0)
                if amount:
                    found[TOKENS + name.removeprefix(CONSUMED)] = amount
    except (KeyError, ValueError) as error:
        raise _unreadable(record, error) from error
    return found


def _unreadable(record: Record, error: Exception) -> DataError:
    key = (record.after or _NONE).get(limiter.partition.name, {}).get("S")
    return DataError(
        f"The change {record.sequence} of bucket {key!r} cannot be read ({type(error).__name__}: {error}); "
        f"usage is not counted past it: repair the item, and see who wrote it."
    )
