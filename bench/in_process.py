"""The engine in process beside raw SQLite: what DynamoDB's behaviour costs on top of the storage.

Raw means: the same items as JSON in a plain SQLite table, the same durability, the same JSON
library, no checks, no expressions, no capacity.
"""

from __future__ import annotations

import random
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

from bench.clock import race
from bench.wire import workload
from solotable._protocol.json_codec import dumps, loads
from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine

TABLE = {
    "TableName": "bench",
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "S"},
    ],
}
_BATCH = 25


class Raw:
    """Items as JSON in a plain SQLite table."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.connection.execute("PRAGMA cache_size = -65536")
        self.connection.execute("CREATE TABLE items (pk TEXT, sk TEXT, item BLOB, PRIMARY KEY (pk, sk))")

    def load(self, items: int) -> None:
        self.connection.execute("BEGIN")
        for number in range(items):
            self.put(workload.item(number))
        self.connection.execute("COMMIT")

    def put(self, item: dict[str, Any]) -> None:
        self.connection.execute(
            "INSERT OR REPLACE INTO items VALUES (?, ?, ?)", (item["pk"]["S"], item["sk"]["S"], dumps(item))
        )

    def get(self, key: dict[str, Any]) -> Any:
        (text,) = self.connection.execute(
            "SELECT item FROM items WHERE pk = ? AND sk = ?", (key["pk"]["S"], key["sk"]["S"])
        ).fetchone()
        return loads(text)

    def query(self, partition: str) -> list[Any]:
        rows = self.connection.execute(
            "SELECT item FROM items WHERE pk = ? ORDER BY sk LIMIT 50", (partition,)
        )
        return [loads(text) for (text,) in rows]


def load_engine(path: Path, items: int) -> SqliteEngine:
    """Return a relaxed engine that holds this many items, showing how far the loading is."""
    engine = sqlite.open(path, durability="relaxed")
    engine.call("CreateTable", TABLE)
    start = time.perf_counter()
    for first in range(0, items, _BATCH):
        puts = [{"PutRequest": {"Item": workload.item(n)}} for n in range(first, min(first + _BATCH, items))]
        engine.call("BatchWriteItem", {"RequestItems": {"bench": puts}})
        if first % 20_000 == 0 and sys.stderr.isatty():
            rate = first / max(time.perf_counter() - start, 1e-9)
            print(f"\r  loading {first:,} of {items:,} ({rate:,.0f}/s) ", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r" + " " * 60 + "\r", end="", file=sys.stderr)
    return engine


def contenders(engine: SqliteEngine, raw: Raw, items: int) -> dict[str, dict[str, Any]]:
    """Return for each operation the calls that are compared."""
    dice = random.Random(7)
    numbers = [dice.randrange(items) for _ in range(4096)]
    keys = [workload.key(number) for number in numbers]
    puts = [workload.item(number) for number in numbers[:512]]
    for place, each in enumerate(puts):
        each["version"] = {"N": str(place)}
    partitions = [key["pk"]["S"] for key in keys]
    call = engine.call

    def put(n: int) -> dict[str, Any]:
        return {**puts[n % 512], "order": {"N": str(n)}}

    def raw_put_then_get(n: int) -> None:
        raw.put(put(n))
        raw.get(keys[n % 512])

    def engine_put_then_get(n: int) -> None:
        call("PutItem", {"TableName": "bench", "Item": put(n)})
        call("GetItem", {"TableName": "bench", "Key": keys[n % 512]})

    return {
        "GetItem": {
            "raw": lambda n: raw.get(keys[n % 4096]),
            "engine": lambda n: call("GetItem", {"TableName": "bench", "Key": keys[n % 4096]}),
        },
        "PutItem": {
            "raw": lambda n: raw.put(put(n)),
            "engine": lambda n: call("PutItem", {"TableName": "bench", "Item": put(n)}),
        },
        workload.PUT_THEN_GET: {
            "raw": raw_put_then_get,
            "engine": engine_put_then_get,
        },
        "Query of 50": {
            "raw": lambda n: raw.query(partitions[n % 4096]),
            "engine": lambda n: call(
                "Query",
                {
                    "TableName": "bench",
                    "KeyConditionExpression": "pk = :pk",
                    "ExpressionAttributeValues": {":pk": {"S": partitions[n % 4096]}},
                    "Limit": 50,
                },
            ),
        },
    }


def measure(folder: Path, items: int, *, quick: bool = False) -> dict[str, dict[str, float]]:
    """Return microseconds per call: {operation: {"raw": ..., "engine": ...}} at this many items."""
    raw = Raw(folder / f"raw-{items}.db")
    raw.load(items)
    with load_engine(folder / f"engine-{items}.db", items) as engine:
        figures = {}
        for name, pair in contenders(engine, raw, items).items():
            calls = 40 if name.startswith("Query") else 400
            figures[name] = race(pair, rounds=5 if quick else 25, calls=calls)
    raw.connection.close()
    return figures
