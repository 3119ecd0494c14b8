"""Heat of the engine: units by partition and minute, in bounded memory, across threads, forks and leaps."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solotable._protocol.heat import HeatInterval, HeatLog, decode_heat, encode_heat
from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.heat import recorder
from solotable.engines.sqlite.heat.busy_keys import BusyKeys
from solotable.engines.sqlite.heat.heat_file import HeatFile
from solotable.errors import ConditionFailed, TransactionCancelled
from tests.conformance.tables import index
from tests.waiting import wait_until

START = 1_800_000_000


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = float(START)

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(clock: Clock) -> Iterator[SqliteEngine]:
    with sqlite.open(":memory:", clock=clock) as made:
        create(made)
        yield made


def create(engine: SqliteEngine) -> None:
    names = ("pk", "sk", "g")
    engine.call(
        "CreateTable",
        {
            "TableName": "Shop",
            "AttributeDefinitions": [{"AttributeName": each, "AttributeType": "S"} for each in names],
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "GlobalSecondaryIndexes": [index("all", "g"), index("keys", "g", projection="KEYS_ONLY")],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )


def put(engine: SqliteEngine, pk: str, sk: str = "a", **members: Any) -> dict[str, Any]:
    item = {"pk": {"S": pk}, "sk": {"S": sk}}
    item |= {name: {"S": value} for name, value in members.pop("item", {}).items()}
    payload = {"TableName": "Shop", "Item": item, "ReturnConsumedCapacity": "INDEXES", **members}
    reply: dict[str, Any] = engine.call("PutItem", payload)["ConsumedCapacity"]
    return reply


def get(engine: SqliteEngine, pk: str, sk: str = "a", **members: Any) -> None:
    engine.call("GetItem", {"TableName": "Shop", "Key": {"pk": {"S": pk}, "sk": {"S": sk}}, **members})


def heat(engine: SqliteEngine) -> HeatLog:
    read = engine.capabilities.heat
    assert read is not None
    found = read(0.0)
    assert found is not None
    return found


def traffic(log: HeatLog, index: str | None = None) -> dict[str, tuple[float, float]]:
    """Read and write units by partition, over all intervals."""
    sums: dict[str, tuple[float, float]] = {}
    for interval in log.intervals:
        for each in interval.partitions if interval.index == index else ():
            label = "scans" if each.key is None else ", ".join(v["S"] for v in each.key.values())
            reads, writes = sums.get(label, (0.0, 0.0))
            sums[label] = (reads + each.reads.units, writes + each.writes.units)
    return sums


def test_units_are_those_of_consumed_capacity(engine: SqliteEngine) -> None:
    consumed: dict[str, float] = {"table": 0.0, "all": 0.0, "keys": 0.0}
    sizes = {"none": {}, "small": {"g": "x"}, "large": {"g": "x", "v": "y" * 3000}, "moved": {"g": "z"}}
    for item in (*sizes.values(), *reversed(sizes.values()), sizes["none"]):
        capacity = put(engine, "p", item=item)
        consumed["table"] += capacity["Table"]["CapacityUnits"]
        for name, units in capacity.get("GlobalSecondaryIndexes", {}).items():
            consumed[name] += units["CapacityUnits"]
    log = heat(engine)
    assert traffic(log) == {"p": (0.0, consumed["table"])}
    for name in ("all", "keys"):
        assert sum(writes for _, writes in traffic(log, name).values()) == consumed[name], name
    assert decode_heat(encode_heat(log)) == log


def test_every_operation_is_counted(engine: SqliteEngine) -> None:
    key = {"pk": {"S": "p"}, "sk": {"S": "a"}}
    put(engine, "p", item={"g": "x"})
    get(engine, "p", ConsistentRead=True)
    get(engine, "missing")
    query = {"TableName": "Shop", "ExpressionAttributeValues": {":p": {"S": "x"}}}
    engine.call("Query", query | {"IndexName": "all", "KeyConditionExpression": "g = :p"})
    engine.call("Scan", {"TableName": "Shop"})
    engine.call("BatchGetItem", {"RequestItems": {"Shop": {"Keys": [key]}}})
    engine.call("TransactGetItems", {"TransactItems": [{"Get": {"TableName": "Shop", "Key": key}}]})
    engine.call("ExecuteStatement", {"Statement": "SELECT * FROM Shop WHERE pk = 'p'"})
    found = traffic(heat(engine))
    assert found == {"p": (1 + 0.5 + 2 + 0.5, 1.0), "missing": (0.5, 0.0), "scans": (0.5, 0.0)}
    assert traffic(heat(engine), "all") == {"x": (0.5, 1.0)}
    engine.call("DeleteItem", {"TableName": "Shop", "Key": key})
    engine.call("BatchWriteItem", {"RequestItems": {"Shop": [{"PutRequest": {"Item": key}}]}})
    update = {"UpdateExpression": "SET v = :v", "ExpressionAttributeValues": {":v": {"S": "1"}}}
    engine.call("UpdateItem", {"TableName": "Shop", "Key": key, **update})
    engine.call("TransactWriteItems", {"TransactItems": [{"Put": {"TableName": "Shop", "Item": key}}]})
    assert traffic(heat(engine))["p"][1] == 1 + 1 + 1 + 1 + 2


def test_a_rejected_write_consumes_units(engine: SqliteEngine) -> None:
    put(engine, "p")
    absent = {"ConditionExpression": "attribute_not_exists(pk)"}
    with pytest.raises(ConditionFailed):
        put(engine, "p", **absent)
    item = {"pk": {"S": "p"}, "sk": {"S": "a"}}
    with pytest.raises(TransactionCancelled):
        engine.call(
            "TransactWriteItems", {"TransactItems": [{"Put": {"TableName": "Shop", "Item": item, **absent}}]}
        )
    assert traffic(heat(engine)) == {"p": (0.0, 1.0 + 1.0 + 2.0)}


def test_the_peak_is_the_busiest_second_of_a_minute(engine: SqliteEngine, clock: Clock) -> None:
    for second, writes in ((0, 3), (1, 5), (30, 1), (61, 2)):
        clock.now = START + second
        for _ in range(writes):
            put(engine, "p")
            heat(engine)  # a reader in the middle of a second does not split its peak
    first, second_minute = (each.partitions[0].writes for each in heat(engine).intervals)
    assert (first.units, first.peak) == (9.0, 5.0)
    assert (second_minute.units, second_minute.peak) == (2.0, 2.0)


def test_units_over_the_limit_are_counted_by_the_second(engine: SqliteEngine, clock: Clock) -> None:
    for second in range(2):
        clock.now = START + second
        for _ in range(3):
            put(engine, "p", item={"v": "x" * 399_000})
    found = heat(engine).intervals[0].partitions[0].writes
    units = 6 * 390.0
    assert (found.units, found.peak, found.over) == (units, units / 2, 2 * (units / 2 - 1000))


def test_a_clock_that_leaps_loses_nothing(engine: SqliteEngine, clock: Clock) -> None:
    for leap in (0, 86_400 * 365, -3600, 7200, -7200, 30):
        clock.now += leap
        put(engine, "p")
    assert traffic(heat(engine)) == {"p": (0.0, 6.0)}
    for _ in range(200):
        clock.now += 60
        put(engine, "p")
    assert len({each.start for each in heat(engine).intervals}) <= 60


def test_reads_beyond_the_exact_ones_are_estimated(engine: SqliteEngine) -> None:
    put(engine, "p")
    put(engine, "q")
    count = 20_000
    for number in range(count):
        get(engine, "p" if number % 4 else "q")
    found = traffic(heat(engine))
    assert found["p"][0] == pytest.approx(0.5 * count * 0.75, rel=0.15)
    assert found["q"][0] == pytest.approx(0.5 * count * 0.25, rel=0.25)


def test_threads_lose_no_unit(engine: SqliteEngine) -> None:
    def work(name: str) -> None:
        for number in range(100):
            put(engine, name, str(number))

    threads = [threading.Thread(target=work, args=(f"p{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert traffic(heat(engine)) == {f"p{number}": (0.0, 100.0) for number in range(8)}


def test_memory_is_bounded_and_busy_keys_are_found(engine: SqliteEngine, clock: Clock) -> None:
    table = engine.table("Shop")
    made = engine.heat
    assert made is not None
    for number in range(30_000):
        if number % 500 == 0:
            clock.now += 1
        made.add_writes([(table, None, f"rare-{number}", 1.0, True)])
        if number % 10 == 0:
            made.add_writes([(table, None, f"hot-{number % 3}", 1.0, True)])
    log = heat(engine)
    for interval in log.intervals:
        assert len(interval.partitions) <= 100
        names = [each.key and each.key["pk"]["S"] for each in interval.partitions[:3]]
        assert {str(name)[:4] for name in names} == {"hot-"}, interval
    assert sum(each.write_units for each in log.intervals) == 33_000


def test_a_key_that_returns_often_is_not_dropped_again_and_again() -> None:
    busy = BusyKeys(10)
    for number in range(10):
        busy.key(f"heavy-{number}").add_writes(100.0, 1000.0)
    for turn in range(20):
        busy.key("often").add_writes(40.0, 1000.0)
        for number in range(30):
            busy.key(f"rare-{turn}-{number}").add_writes(1.0, 1000.0)
    assert "often" in busy.found
    often = busy.found["often"]
    assert often.writes <= 800 <= often.writes + often.credit


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_starts_with_no_heat(tmp_path: Path, clock: Clock) -> None:
    with sqlite.open(tmp_path / "shop.db", clock=clock) as engine:
        create(engine)
        put(engine, "parent")
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                put(engine, "child")
                code = 0 if traffic(heat(engine)) == {"child": (0.0, 1.0)} else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert traffic(heat(engine)) == {"parent": (0.0, 1.0)}


def test_finished_minutes_are_in_a_file_for_the_next_process(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "shop.db"
    with sqlite.open(path, clock=clock) as engine:
        create(engine)
        put(engine, "p")
        assert not HeatFile(str(path)).exists()
        clock.now += 60
        put(engine, "p")
        wait_until(HeatFile(str(path)).exists)
        put(engine, "p")
        assert traffic(heat(engine)) == {"p": (0.0, 3.0)}
    with sqlite.open(path, clock=clock) as engine:
        log = heat(engine)
        assert traffic(log) == {"p": (0.0, 3.0)}
        assert [each.start for each in log.intervals] == [START, START + 60]
        put(engine, "q")
    with sqlite.open(path, clock=clock, read_only=True) as engine:
        get(engine, "p")
    assert (tmp_path / "shop.db-heat").stat().st_mode & 0o077 == 0
    clock.now += 25 * 3600
    with sqlite.open(path, clock=clock) as engine:
        # Older than a day: sums of hours.
        assert {each.seconds for each in heat(engine).intervals} == {3600}
        assert traffic(heat(engine)) == {"p": (0.0, 3.0), "q": (0.0, 1.0)}


def test_a_damaged_heat_file_fails_no_request(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "shop.db"
    Path(f"{path}-heat").write_bytes(b"not a database" * 100)
    with sqlite.open(path, clock=clock) as engine:
        create(engine)
        for _ in range(3):
            clock.now += 60
            put(engine, "p")
        assert traffic(heat(engine)) == {"p": (0.0, 3.0)}


def test_old_intervals_leave_the_file(tmp_path: Path) -> None:
    file = HeatFile(str(tmp_path / "shop.db"))
    interval = HeatInterval(start=START, table="Shop", write_units=1.0)
    assert file.add([interval], now=START)
    assert [each.seconds for each in file.read(0, now=START).intervals] == [60]
    assert file.add([], now=START + 8 * 86_400)
    assert file.read(0, now=START).intervals == ()


def test_heat_can_be_off() -> None:
    with sqlite.open(":memory:", heat=False) as engine:
        create(engine)
        put(engine, "p")
        assert engine.heat is None
        assert engine.capabilities.heat is None


def test_skips_have_the_mean_that_the_sample_needs() -> None:
    for sample in (8, 16):
        skip = recorder._skips(sample)
        skips = [skip() for _ in range(33 * (2 * sample - 1))]
        assert sum(skips) / len(skips) == sample - 1
