"""The race over the wire: every server loaded alike, checked, then measured in turns.

A server enters the race of an operation only after it has answered it correctly. The contenders
take turns within each round, so that a slow moment of the machine hits all of them, and the figure
is the median of the rounds. A round with an error voids the figure of that server and operation.
After its turn a server is left to finish what it still has to do, so that it does not slow down the
next one.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
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
#: Fewer answers than this in a second are too few for short rounds.
_FEW = 40
_SLOW_SECONDS = 15


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
    server lacks the operation, {"wrong": reason} where it does not answer as DynamoDB does, or
    {"void": reason} where it gave errors under load.
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
                    unfit = check(client, plan.items)
            except (Missing, WrongAnswer, Refused, OSError) as failure:
                missing[name] = f"{type(failure).__name__}: {failure}"
                print(f"  {name:<22}out of the race: {missing[name]}", flush=True)
                continue
            running[name] = server
            for title, reason in unfit.items():
                figures[title][name] = reason
            print(f"  {name:<22}loaded and checked in {time.perf_counter() - start:.1f} s", flush=True)
        # Reads first: they are measured on the very items that were checked.
        for operation in sorted(operations, key=lambda each: each.writes):
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
    for first in range(0, items, workload.BATCH):
        puts = [
            {"PutRequest": {"Item": workload.indexed_item(number, items)}}
            for number in range(first, min(first + workload.BATCH, items))
        ]
        answer = client.call("BatchWriteItem", {"RequestItems": {workload.TABLE_NAME: puts}})
        if answer.get("UnprocessedItems"):
            raise WrongAnswer("BatchWriteItem left items unprocessed")


def check(client: Caller, items: int) -> dict[str, dict[str, str]]:
    """Return the operations that this server lacks or answers wrongly, with the reason.

    What it writes it puts back, so that every server is measured on the same items.
    """
    unfit = {}
    for operation in workload.operations(items):
        try:
            _CHECKS[operation.title](client, operation, items)
        except Refused as refusal:
            if refusal.code in ("UnknownOperationException", "UnknownOperation"):
                unfit[operation.title] = {"none": "it has no such operation"}
            else:
                unfit[operation.title] = {"wrong": str(refusal)}
        except (WrongAnswer, LookupError) as failure:
            unfit[operation.title] = {"wrong": f"{type(failure).__name__}: {failure}"}
    return unfit


def _check_put(client: Caller, operation: Operation, items: int) -> None:
    body = operation.bodies[0]
    with _restored(client, [body["Item"]], items):
        client.call("PutItem", body)
        _expect_stored(client, body["Item"], "PutItem")


def _check_get(client: Caller, operation: Operation, items: int) -> None:
    for body in operation.bodies[:3]:
        expected = workload.indexed_item(_number(body["Key"]), items)
        _expect(client.call("GetItem", body).get("Item"), expected, "GetItem")


def _check_query(client: Caller, operation: Operation, items: int) -> None:
    for partition in (0, items // workload.PER_PARTITION - 1):
        first = partition * workload.PER_PARTITION
        _expect_page(
            client, operation.bodies[partition], [*range(first, first + workload.PER_PARTITION)], items
        )


def _check_index_query(client: Caller, operation: Operation, items: int) -> None:
    reviewers = workload.reviewers(items)
    for number in (0, reviewers - 1):
        _expect_page(client, operation.bodies[number], [*range(number, items, reviewers)], items)


def _check_update(client: Caller, operation: Operation, items: int) -> None:
    body = operation.bodies[0]
    price = body["ExpressionAttributeValues"][":price"]
    with _restored(client, [body["Key"]], items):
        client.call("UpdateItem", body)
        changed = workload.indexed_item(_number(body["Key"]), items) | {"price": price}
        _expect_stored(client, changed, "UpdateItem")
    absent = body | {"Key": {"pk": {"S": "absent"}, "sk": {"S": "absent"}}}
    try:
        client.call("UpdateItem", absent)
    except Refused as refusal:
        if refusal.code != "ConditionalCheckFailedException":
            raise
    else:
        client.call("DeleteItem", {"TableName": workload.TABLE_NAME, "Key": absent["Key"]})
        raise WrongAnswer("UpdateItem of an absent item passed attribute_exists")


def _check_transaction(client: Caller, operation: Operation, items: int) -> None:
    body = operation.bodies[0]
    put = [entry["Put"]["Item"] for entry in body["TransactItems"]]
    with _restored(client, put, items):
        client.call("TransactWriteItems", body)
        for item in put:
            _expect_stored(client, item, "TransactWriteItems")


def _check_batch_get(client: Caller, operation: Operation, items: int) -> None:
    body = operation.bodies[0]
    answer = client.call("BatchGetItem", body)
    if answer.get("UnprocessedKeys"):
        raise WrongAnswer("BatchGetItem left keys unprocessed")
    asked = body["RequestItems"][workload.TABLE_NAME]["Keys"]
    _expect_items(answer["Responses"][workload.TABLE_NAME], [_number(key) for key in asked], items)


def _check_batch_write(client: Caller, operation: Operation, items: int) -> None:
    body = operation.bodies[0]
    put = [entry["PutRequest"]["Item"] for entry in body["RequestItems"][workload.TABLE_NAME]]
    with _restored(client, put, items):
        answer = client.call("BatchWriteItem", body)
        if answer.get("UnprocessedItems"):
            raise WrongAnswer("BatchWriteItem left items unprocessed")
        for item in put:
            _expect_stored(client, item, "BatchWriteItem")


def _check_scan(client: Caller, operation: Operation, items: int) -> None:
    """Scan the whole table by pages: each is full until the last, and every item comes once."""
    body = operation.bodies[0]
    found: list[dict[str, Any]] = []
    start: dict[str, Any] = {}
    while True:
        page = client.call("Scan", body | start)
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            break
        if len(page["Items"]) != workload.SCAN_PAGE or len(found) > items:
            raise WrongAnswer(f"Scan gave a page of {len(page['Items'])}, {len(found)} items in all")
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    _expect_items(found, [*range(items)], items)


def _check_put_then_get(client: Caller, operation: Operation, items: int) -> None:
    put, get = operation.bodies[:2]
    with _restored(client, [put["Item"]], items):
        client.call("PutItem", put)
        _expect(client.call("GetItem", get).get("Item"), put["Item"], "GetItem after PutItem")


_CHECKS: dict[str, Callable[[Caller, Operation, int], None]] = {
    "PutItem": _check_put,
    "GetItem": _check_get,
    "Query of 50": _check_query,
    "GSI query of 50": _check_index_query,
    "conditional UpdateItem": _check_update,
    "TransactWriteItems of 2": _check_transaction,
    "BatchGetItem of 25": _check_batch_get,
    "BatchWriteItem of 25": _check_batch_write,
    "Scan of 500": _check_scan,
    workload.PUT_THEN_GET: _check_put_then_get,
}


def _number(key: dict[str, Any]) -> int:
    partition, place = (key[name]["S"].rpartition("#")[2] for name in ("pk", "sk"))
    return int(partition) * workload.PER_PARTITION + int(place)


@contextmanager
def _restored(client: Caller, keys: Sequence[dict[str, Any]], items: int) -> Iterator[None]:
    """Put back the items with these keys after the block, whatever the server made of them."""
    try:
        yield
    finally:
        for key in keys:
            original = workload.indexed_item(_number(key), items)
            client.call("PutItem", {"TableName": workload.TABLE_NAME, "Item": original})


def _expect_stored(client: Caller, item: dict[str, Any], what: str) -> None:
    key = {name: item[name] for name in ("pk", "sk")}
    stored = client.call("GetItem", {"TableName": workload.TABLE_NAME, "Key": key, "ConsistentRead": True})
    _expect(stored.get("Item"), item, what)


def _expect_page(client: Caller, body: dict[str, Any], numbers: list[int], items: int) -> None:
    page = client.call("Query", body)["Items"]
    expected = [workload.indexed_item(number, items) for number in numbers[: workload.PER_PARTITION]]
    _expect(page, expected, f"Query of {body.get('IndexName', 'the table')}")


def _expect_items(found: list[dict[str, Any]], numbers: list[int], items: int) -> None:
    """Raise WrongAnswer unless these are the items with these numbers, in any order."""
    by_number = {_number(item): item for item in found}
    if len(found) != len(numbers) or by_number.keys() != set(numbers):
        raise WrongAnswer(f"{len(found)} items with {len(by_number)} keys, {len(numbers)} expected")
    for number in numbers:
        _expect(by_number[number], workload.indexed_item(number, items), f"item {number}")


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
