"""`python -m bench.heat`: what counting heat adds to a get, a query and a put, in memory and under full load.

Three engines take turns in short batches: one with heat, and two without, whose difference is the noise of
the machine. The fastest fiftieth of the batches counts. The exact part of each second is left out by a clock
that stands still, and measured by itself. Times are of the processor, but caches are shared: run it on a
machine that does nothing else, or count instructions with `bench.heat_instructions`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from solotable._expressions.ast import KeyTerm
from solotable._protocol.requests import GetItem, PutItem, Query, Request
from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine

_BATCH: Final = 50
_LIMIT_PERCENT: Final = 3.0
_TABLE: Final = {
    "TableName": "Shop",
    "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
    "AttributeDefinitions": [{"AttributeName": each, "AttributeType": "S"} for each in ("PK", "SK", "G")],
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "GSI1",
            "KeySchema": [{"AttributeName": "G", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}


def _engine(*, heat: bool) -> SqliteEngine:
    engine = sqlite.open(":memory:", heat=heat, clock=lambda: 1.8e9)
    engine.call("CreateTable", _TABLE)
    return engine


def _item(number: int, text: str, **more: str) -> dict[str, Any]:
    members = {"PK": f"C#{number % 10}", "SK": f"O#{number}", "text": text * 200, **more}
    return {name: {"S": value} for name, value in members.items()}


def _workloads() -> dict[str, list[Sequence[Request[Any]]]]:
    numbers = range(_BATCH)
    keys = [{name: _item(each, "")[name] for name in ("PK", "SK")} for each in numbers]
    partitions = [KeyTerm("PK", "=", (key["PK"],)) for key in keys]
    return {
        "get": [[GetItem(table="Shop", key=key) for key in keys]],
        "query of 5": [[Query(table="Shop", key=(term,), limit=5) for term in partitions]],
        "put": [[PutItem(table="Shop", item=_item(each, text)) for each in numbers] for text in "ab"],
        "put with an index": [
            [PutItem(table="Shop", item=_item(each, text, G=f"S#{each % 3}")) for each in numbers]
            for text in "ab"
        ],
    }


def _time(engine: SqliteEngine, requests: Sequence[Request[Any]]) -> float:
    handle = engine.handle
    begin = time.process_time()
    for request in requests:
        handle(request)
    return (time.process_time() - begin) / len(requests) * 1e6


def measure(
    workload: list[Sequence[Request[Any]]], seconds: float, *, exact: bool
) -> tuple[float, float, float]:
    """Return the microseconds of a request: without heat, again without, and with heat."""
    with _engine(heat=False) as first, _engine(heat=False) as second, _engine(heat=True) as counting:
        engines = (first, second, counting)
        for number in range(_BATCH):
            for engine in engines:
                engine.handle(PutItem(table="Shop", item=_item(number, "x")))
        heat = counting.heat
        assert heat is not None
        times: tuple[list[float], ...] = ([], [], [])
        end = time.monotonic() + seconds
        turn = 0
        while time.monotonic() < end:
            turn += 1
            for place in range(3):
                which = (turn + place) % 3
                # The regime is set for each batch, so that a batch never has both.
                heat._exact_reads = heat._exact_writes = 1 << 30 if exact else 0
                for requests in workload:
                    times[which].append(_time(engines[which], requests))
    return _fast(times[0]), _fast(times[1]), _fast(times[2])


def _fast(times: list[float]) -> float:
    return sorted(times)[len(times) // 50]


def main() -> None:
    """Measure every workload and print the overhead."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    worst = 0.0
    for name, workload in _workloads().items():
        first, second, on = measure(workload, seconds, exact=False)
        exact_first, exact_second, exact_on = measure(workload, seconds / 2, exact=True)
        off, exact_off = (first + second) / 2, (exact_first + exact_second) / 2
        worst = max(worst, overhead := (on / off - 1) * 100)
        print(
            f"{name:<18} {off:6.2f} µs without, {on:6.2f} with heat: {overhead:+.1f} % under full load "
            f"(noise {abs(first / second - 1) * 100:.1f} %); {exact_on - exact_off:+.2f} µs for each of the "
            f"first 1,024 of a second"
        )
    print(f"{'within' if worst < _LIMIT_PERCENT else 'OVER'} the limit of {_LIMIT_PERCENT:.0f} %")


if __name__ == "__main__":
    main()
