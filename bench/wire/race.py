"""The race over the wire: every server loaded alike, checked, then measured in turns.

A server enters a race only after it has given the right answers. The contenders take turns within
each round, so that a slow moment of the machine hits all of them, and the figure is the median of
the rounds. A round with an error voids the figure of that server and operation. After its turn a
server is left to finish what it still has to do, so that it does not slow down the next one.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from bench.wire import workload
from bench.wire.client import Caller, Refused
from bench.wire.load import Generator, LoadFailed, Sample
from bench.wire.peers import Contender, Missing, Mode, Running
from bench.wire.workload import Operation

ITEMS = 10_000
_BATCH = 25
#: Fewer answers than this in a second are too few for short rounds.
_FEW = 40
_SLOW_SECONDS = 15
_READS = ("GetItem", "Query")


class WrongAnswer(Exception):
    """A server answered something else than DynamoDB would."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long to measure."""

    items: int = ITEMS
    rounds: int = 5
    seconds: int = 2


def race(
    chosen: Sequence[tuple[str, Contender, Mode]], folder: Path, plan: Plan
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Measure each (name, contender, mode); return figures by operation and name, and who is missing.

    A figure is {"rate", "rounds", "p50_ms", "p99_ms", "worst_ms"}, or {"none": reason} where the
    server lacks the operation, or {"void": reason} where it gave errors.
    """
    operations = workload.operations(plan.items)
    generator = Generator(folder / "scripts", operations)
    figures: dict[str, dict[str, Any]] = {operation.title: {} for operation in operations}
    missing: dict[str, str] = {}
    with ExitStack() as stack:
        running: dict[str, Running] = {}
        for name, contender, mode in chosen:
            start = time.perf_counter()
            try:
                server = stack.enter_context(contender.serve(mode, folder / f"{contender.name}-{mode}"))
                with closing(server.connect()) as client:
                    fill(client, plan.items)
                    lacking = check(client, plan.items)
            except (Missing, WrongAnswer, Refused, OSError) as failure:
                missing[name] = f"{type(failure).__name__}: {failure}"
                print(f"  {name:<22}out of the race: {missing[name]}", flush=True)
                continue
            running[name] = server
            for title in lacking:
                figures[title][name] = {"none": "it has no such operation"}
            print(f"  {name:<22}loaded and checked in {time.perf_counter() - start:.1f} s", flush=True)
        # Reads first: they are measured on the very items that were checked.
        for operation in sorted(operations, key=lambda each: each.target not in _READS):
            racing = {name: each for name, each in running.items() if name not in figures[operation.title]}
            print(f"  {operation.title}, {plan.rounds} rounds ", end="", flush=True)
            figures[operation.title] |= measure(operation, racing, generator, plan)
    return figures, missing


def measure(
    operation: Operation, racing: dict[str, Running], generator: Generator, plan: Plan
) -> dict[str, Any]:
    """Return the figure of each server for one operation.

    Each warms up for a second. Those that hardly answer in it are measured once, at length and
    after the others, whose rounds they would take most of the time of.
    """
    samples: dict[str, list[Sample]] = {name: [] for name in racing}
    failed: dict[str, str] = {}

    def play(name: str, seconds: int) -> Sample | None:
        if name in failed:
            return None
        try:
            sample = generator.play(operation, racing[name].port, seconds)
        except LoadFailed as failure:
            failed[name] = str(failure)
            return None
        racing[name].settle()
        samples[name].append(sample)
        return sample

    warm = {name: play(name, 1) for name in racing}
    slow = [name for name, sample in warm.items() if sample and sample.requests < _FEW]
    quick = [name for name in racing if name not in slow]
    for taken in samples.values():
        taken.clear()
    for number in range(plan.rounds):
        turn = number % max(1, len(quick))
        for name in quick[turn:] + quick[:turn]:
            play(name, plan.seconds)
        print(".", end="", flush=True)
    for name in slow:
        play(name, _SLOW_SECONDS)
    print()
    return {
        name: {"void": failed[name]} if name in failed else figure(taken) for name, taken in samples.items()
    }


def figure(samples: Sequence[Sample]) -> dict[str, Any]:
    """Return the median of the rounds, or why there is none."""
    errors = sum(sample.errors for sample in samples)
    if not all(sample.requests for sample in samples):
        return {"void": "a round went by without an answer"}
    if errors:
        return {"void": f"{errors} of {sum(sample.requests for sample in samples)} replies were errors"}
    return {
        "rate": round(statistics.median(sample.rate for sample in samples), 1),
        "rounds": [round(sample.rate, 1) for sample in samples],
        "p50_ms": round(statistics.median(sample.p50_ms for sample in samples), 3),
        "p99_ms": round(statistics.median(sample.p99_ms for sample in samples), 3),
        "worst_ms": round(max(sample.worst_ms for sample in samples), 3),
    }


def fill(client: Caller, items: int) -> None:
    """Make the table and put the items into it."""
    client.call("CreateTable", workload.TABLE)
    while True:
        described = client.call("DescribeTable", {"TableName": workload.TABLE_NAME})["Table"]
        if described["TableStatus"] == "ACTIVE":
            break
        time.sleep(0.05)
    for first in range(0, items, _BATCH):
        puts = [
            {"PutRequest": {"Item": workload.indexed_item(number, items)}}
            for number in range(first, min(first + _BATCH, items))
        ]
        answer = client.call("BatchWriteItem", {"RequestItems": {workload.TABLE_NAME: puts}})
        if answer.get("UnprocessedItems"):
            raise WrongAnswer("BatchWriteItem left items unprocessed")


def check(client: Caller, items: int) -> list[str]:
    """Raise WrongAnswer unless the answers are right; return the operations that it lacks.

    What it writes it puts back, so that every server is measured on the same items.
    """
    partitions = items // workload.PER_PARTITION
    reviewers = workload.reviewers(items)
    for number in (0, items // 2, items - 1):
        expected = workload.indexed_item(number, items)
        _expect(client.call("GetItem", workload.get_body(number)).get("Item"), expected, "GetItem")
    for partition in (0, partitions - 1):
        first = partition * workload.PER_PARTITION
        wanted = range(first, first + workload.PER_PARTITION)
        _expect_page(client, workload.query_body(partition), [*wanted], items)
    for number in (0, reviewers - 1):
        _expect_page(client, workload.index_query_body(number), [*range(number, items, reviewers)], items)
    lacking = []
    for operation in workload.operations(items):
        if operation.target in _READS:
            continue
        body = operation.bodies[0]
        try:
            client.call(operation.target, body)
        except Refused as refusal:
            if refusal.code not in ("UnknownOperationException", "UnknownOperation"):
                raise
            lacking.append(operation.title)
        else:
            _CHECKS[operation.target](client, body, items)
    return lacking


def _check_put(client: Caller, body: dict[str, Any], items: int) -> None:
    _expect_stored(client, body["Item"], "PutItem")
    _put_back(client, body["Item"], items)


def _check_update(client: Caller, body: dict[str, Any], items: int) -> None:
    number = _number(body["Key"])
    changed = workload.indexed_item(number, items) | {"price": body["ExpressionAttributeValues"][":price"]}
    _expect_stored(client, changed, "UpdateItem")
    absent = body | {"Key": {"pk": {"S": "absent"}, "sk": {"S": "absent"}}}
    try:
        client.call("UpdateItem", absent)
    except Refused as refusal:
        if refusal.code != "ConditionalCheckFailedException":
            raise
    else:
        raise WrongAnswer("UpdateItem of an absent item passed attribute_exists")
    _put_back(client, changed, items)


def _check_transaction(client: Caller, body: dict[str, Any], items: int) -> None:
    for entry in body["TransactItems"]:
        _expect_stored(client, entry["Put"]["Item"], "TransactWriteItems")
        _put_back(client, entry["Put"]["Item"], items)


_CHECKS: dict[str, Callable[[Caller, dict[str, Any], int], None]] = {
    "PutItem": _check_put,
    "UpdateItem": _check_update,
    "TransactWriteItems": _check_transaction,
}


def _number(key: dict[str, Any]) -> int:
    partition, place = (key[name]["S"].rpartition("#")[2] for name in ("pk", "sk"))
    return int(partition) * workload.PER_PARTITION + int(place)


def _put_back(client: Caller, changed: dict[str, Any], items: int) -> None:
    original = workload.indexed_item(_number(changed), items)
    client.call("PutItem", {"TableName": workload.TABLE_NAME, "Item": original})


def _expect_stored(client: Caller, item: dict[str, Any], what: str) -> None:
    key = {name: item[name] for name in ("pk", "sk")}
    stored = client.call("GetItem", {"TableName": workload.TABLE_NAME, "Key": key, "ConsistentRead": True})
    _expect(stored.get("Item"), item, what)


def _expect_page(client: Caller, body: dict[str, Any], numbers: list[int], items: int) -> None:
    page = client.call("Query", body)["Items"]
    expected = [workload.indexed_item(number, items) for number in numbers[: workload.PER_PARTITION]]
    _expect(page, expected, f"Query of {body.get('IndexName', 'the table')}")


def _expect(answer: Any, expected: Any, what: str) -> None:
    if plain(answer) != plain(expected):
        raise WrongAnswer(f"{what} gave {str(answer)[:120]} and not {str(expected)[:120]}")


def plain(value: Any) -> Any:
    """Return a wire value in which equal things are equal: numbers as numbers, sets in order."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((tag, inner),) = value.items()
        if tag == "N" and isinstance(inner, str):
            return {"N": Decimal(inner)}
        if tag == "SS":
            return {"SS": sorted(inner)}
    return {name: plain(each) for name, each in value.items()}
