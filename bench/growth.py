"""How the cost of a request grows with its table, from 10,000 items to ten million, in relaxed files.

The items are small, so that ten million of them fit on a laptop. Tables of all sizes take turns, so that a
slow moment of the machine hits all of them. A request is measured by the CPU time of the process: time in
which it waits for a disk does not count.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.clock import Work, race
from bench.wire.workload import PER_PARTITION, TABLE_NAME, table
from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine

SMALLEST = 10_000
FACTOR = 10
#: Above a million items, the items of a holder lie within one million.
BLOCK = 1_000_000
INDEX_NAME = "by_holder"
TABLE = table(INDEX_NAME, "holder")
#: The requests of a batch, and the batches that are committed together.
_BATCH = 25
_TOGETHER = 40


def sizes(largest: int) -> list[int]:
    """Return the numbers of items to measure at: ten times more each time, up to the largest.

    >>> sizes(3_000_000)
    [10000, 100000, 1000000, 3000000]
    """
    if largest % BLOCK and largest not in (SMALLEST, SMALLEST * FACTOR):
        raise ValueError(f"items must be 10,000, 100,000 or a multiple of {BLOCK:,}; got {largest:,}.")
    found = [SMALLEST]
    while found[-1] < largest:
        found.append(min(found[-1] * FACTOR, largest))
    return found


def holder(number: int) -> str:
    """Return the index key of an item. A holder has 50 items, which lie far apart in the table.

    That is true of each of the `sizes`, so a table may grow from one to the next.
    """
    start, end = 0, SMALLEST
    while number >= end:
        start, end = end, min(end * FACTOR, end + BLOCK)
    return f"HOLDER#{end}#{number % ((end - start) // PER_PARTITION):07d}"


def key(number: int) -> dict[str, Any]:
    """Return the key of the item with this number."""
    return {
        "pk": {"S": f"ACCOUNT#{number // PER_PARTITION:08d}"},
        "sk": {"S": f"ENTRY#{number % PER_PARTITION:04d}"},
    }


def item(number: int) -> dict[str, Any]:
    """Return the item with this number: five attributes, about 100 bytes."""
    return {
        **key(number),
        "holder": {"S": holder(number)},
        "amount": {"N": str(number % 99_991)},
        "note": {"S": "paid by card, receipt sent"},
    }


def measure(
    folder: Path, largest: int, *, quick: bool = False, progress: Callable[[str], None] = lambda said: None
) -> dict[str, Any]:
    """Return the CPU microseconds of each request, and the size of the file, by the number of items."""
    facts: dict[int, dict[str, float]] = {}
    with ExitStack() as stack:
        engines = {}
        for size in sizes(largest):
            path = folder / f"growth-{size}.db"
            engine = stack.enter_context(sqlite.open(path, durability="relaxed"))
            engine.call("CreateTable", TABLE)
            start = time.process_time()
            load(engine, 0, size)
            rate = round(size / (time.process_time() - start))
            engines[size] = engine
            facts[size] = {"file_megabytes": megabytes(path), "load_items_per_cpu_second": rate}
            progress(f"{size:,} items, loaded at {rate:,} a CPU second")
        taken = compare(engines, quick=quick)
    return {str(size): {"requests": taken[size], **facts[size]} for size in engines}


def compare(engines: Mapping[int, SqliteEngine], *, quick: bool = False) -> dict[int, dict[str, float]]:
    """Return the CPU microseconds of each request by the size of the table; the tables take turns."""
    works = {size: requests(engine, size) for size, engine in engines.items()}
    found: dict[int, dict[str, float]] = {size: {} for size in engines}
    for name in next(iter(works.values())):
        taken = race(
            {str(size): work[name] for size, work in works.items()},
            rounds=5 if quick else 40,
            calls=40 if quick else 100,
            clock=time.process_time,
        )
        for size in engines:
            found[size][name] = taken[str(size)]
    return found


def megabytes(path: Path) -> float:
    """Return the size of a database with the files beside it."""
    return round(sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*")) / 1e6, 1)


def load(engine: SqliteEngine, first: int, last: int) -> None:
    """Put the items with these numbers into the table by BatchWriteItem, many of them in a commit."""
    from solotable._protocol.decode.requests import decode_request

    step = _BATCH * _TOGETHER
    for start in range(first, last, step):
        batches = [
            [{"PutRequest": {"Item": item(n)}} for n in range(batch, min(batch + _BATCH, last))]
            for batch in range(start, min(start + step, last), _BATCH)
        ]
        written = engine.handle_together(
            [decode_request("BatchWriteItem", {"RequestItems": {TABLE_NAME: puts}}) for puts in batches]
        )
        for outcome in written:
            outcome.get()
        if sys.stderr.isatty():
            print(f"\r  loading {start:,} of {last:,} ", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr)


def requests(engine: SqliteEngine, items: int) -> dict[str, Work]:
    """Return the requests by name. The last one puts back the items that the one before deletes."""
    numbers = random.Random(7).sample(range(items), 4096)
    keys = [key(number) for number in numbers]
    call = engine.call

    def query(index: str | None, name: str, value: str) -> dict[str, Any]:
        return {
            "TableName": TABLE_NAME,
            **({"IndexName": index} if index else {}),
            "KeyConditionExpression": f"{name} = :value",
            "ExpressionAttributeValues": {":value": {"S": value}},
            "Limit": PER_PARTITION,
        }

    return {
        "GetItem": lambda n: call("GetItem", {"TableName": TABLE_NAME, "Key": keys[n % 4096]}),
        "Query of 50": lambda n: call("Query", query(None, "pk", keys[n % 4096]["pk"]["S"])),
        "GSI query of 50": lambda n: call("Query", query(INDEX_NAME, "holder", holder(numbers[n % 4096]))),
        "UpdateItem": lambda n: call(
            "UpdateItem",
            {
                "TableName": TABLE_NAME,
                "Key": keys[n % 4096],
                "UpdateExpression": "SET amount = amount + :one",
                "ExpressionAttributeValues": {":one": {"N": "1"}},
            },
        ),
        "DeleteItem": lambda n: call("DeleteItem", {"TableName": TABLE_NAME, "Key": keys[n % 4096]}),
        "PutItem": lambda n: call("PutItem", {"TableName": TABLE_NAME, "Item": item(numbers[n % 4096])}),
    }
