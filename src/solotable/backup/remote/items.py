"""Compare items of a restored table with its source, over DynamoDB's API and within a budget.

DynamoDB has no record of changes to compare with. So items are read before the restored moment and again
after it: one that is the same both times must be the same in the copy.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from solotable._flows.retry import Flow, Retries, send
from solotable._protocol.engine import Engine
from solotable._protocol.json_codec import dumps
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import BatchGetItem, Request, Scan, TableKeys
from solotable._store.runner import run
from solotable._values import Item
from solotable.errors import DataError

#: More keys than this would not fit into memory beside their items.
MOST_ITEMS = 100_000
_BATCH = 100
_SHOWN = 10
_UNIT_BYTES = 4_096
#: A sample begins in one of so many parts of the table, by chance.
_SEGMENTS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemComparison:
    """Items of a restored table beside those of its source."""

    #: Items that were the same before and after the moment, and so can be compared.
    compared: int = 0
    #: Items that changed between the two reads: the copy may have either version.
    undecided: int = 0
    #: Compared items that the copy lacks or has different; the keys of some of them.
    wrong: int = 0
    keys: tuple[Item, ...] = ()


def estimate_units(description: dict[str, Any], budget: int) -> int:
    """Return about how many read units a comparison takes: each item is read three times."""
    stored = description.get("ItemCount", 0)
    size = description.get("TableSizeBytes", 0) / stored if stored else 0
    # Counts of AWS are hours old, so a table that seems empty may have items.
    items = min(budget, stored) if stored else budget
    return 3 * items * max(1, math.ceil(size / _UNIT_BYTES))


class ItemSample:
    """Items of a table as they were when the sample was taken."""

    def __init__(self, engine: Engine, description: dict[str, Any], budget: int) -> None:
        if not 0 < budget <= MOST_ITEMS:
            raise DataError(f"A comparison takes 1 to {MOST_ITEMS:,} items, got {budget}.")
        self._engine = engine
        self._table: str = description["TableName"]
        self._names = [each["AttributeName"] for each in description["KeySchema"]]
        self._items = {self._identity(item): item for item in self._scan(budget)}

    def compare(self, copy: str) -> ItemComparison:
        """Compare a copy of the table, restored to a moment after the sample and before now."""
        compared = undecided = wrong = 0
        keys: list[Item] = []
        identities = list(self._items)
        for start in range(0, len(identities), _BATCH):
            part = {each: self._items[each] for each in identities[start : start + _BATCH]}
            now, restored = (self._get(name, part) for name in (self._table, copy))
            for identity, item in part.items():
                if now.get(identity) != item:
                    undecided += 1
                    continue
                compared += 1
                if restored.get(identity) != item:
                    wrong += 1
                    keys += [self._key(item)] if wrong <= _SHOWN else []
        return ItemComparison(compared=compared, undecided=undecided, wrong=wrong, keys=tuple(keys))

    def _scan(self, budget: int) -> Iterator[Item]:
        """Yield items of the parts of the table, in an order that chance decides."""
        left = budget
        for segment in random.sample(range(_SEGMENTS), _SEGMENTS):
            start: Item | None = None
            while left > 0:
                request = Scan(
                    table=self._table,
                    segment=segment,
                    segments=_SEGMENTS,
                    limit=min(left, 1_000),
                    start=start,
                    consistent=True,
                )
                page = self._send(request)
                for item in decode_items(page.items or ()):
                    left -= 1
                    yield item
                start = page.last_key
                if start is None:
                    break

    def _get(self, table: str, items: dict[bytes, Item]) -> dict[bytes, Item]:
        found: dict[bytes, Item] = {}
        left: tuple[Item, ...] = tuple(self._key(item) for item in items.values())
        while left:
            keys = TableKeys(table=table, keys=left, consistent=True, wire={"ConsistentRead": True})
            reply = self._send(BatchGetItem(tables=(keys,)))
            for item in decode_items(reply.responses.get(table, ())):
                found[self._identity(item)] = item
            left = tuple(reply.unprocessed.get(table, {}).get("Keys", ()))
        return found

    def _send(self, request: Request[Any]) -> Any:
        def flow() -> Flow[Any]:
            return (yield from send(request, Retries(random=random.random)))

        return run(flow(), self._engine)

    def _key(self, item: Item) -> Item:
        return {name: item[name] for name in self._names}

    def _identity(self, item: Item) -> bytes:
        return dumps(self._key(item))
