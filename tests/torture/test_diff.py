"""Comparisons of both sides while clients write: every planted difference is found, and no other one."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest

from solotable._values import Item
from solotable.engines import sqlite
from solotable.flow.requests import DeleteItem, PutItem
from solotable.migrations.diff import Difference, DiffOptions, compare
from solotable.migrations.worker import Worker
from tests.migrations.workflow.lab import Lab, MovableClock
from tests.waiting import jitter

from .size import LIMIT_SECONDS, SEED, amount, report

USERS = amount(200, 40_000)
SURVEYS = amount(50, 10_000)
PLANTED = amount(30, 1_000)
pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


@pytest.fixture
def lab() -> Iterator[Lab]:
    clock = MovableClock()
    engines = sqlite.open(sqlite.MEMORY, clock=clock), sqlite.open(sqlite.MEMORY, clock=clock)
    made = Lab(*engines, clock=clock)
    made.fill(users=USERS, surveys=SURVEYS)
    made.start()
    made.run_to("Running")
    yield made
    for engine in engines:
        engine.close()


def plant(lab: Lab, chance: random.Random) -> dict[str, set[str]]:
    """Change, delete and add items of the target; return their keys by kind."""
    planted: dict[str, set[str]] = {"changed": set(), "missing": set(), "extra": set()}
    # Users with an odd number are left alone by the clients.
    quiet = [
        item
        for item in lab.raw_target()
        if item["PK"]["S"].startswith("USER#") and int(item["PK"]["S"].removeprefix("USER#u")) % 2
    ]
    for at, item in enumerate(chance.sample(quiet, min(PLANTED, len(quiet)))):
        kind = ("changed", "missing", "extra")[at % 3]
        key = {name: item[name] for name in ("PK", "SK")}
        if kind == "changed":
            lab.new.engine.handle(PutItem(table="App", item={**item, "name": {"S": "planted"}}))
        elif kind == "missing":
            lab.new.engine.handle(DeleteItem(table="App", key=key))
        else:
            key["SK"] = {"S": "PLANTED"}
            lab.new.engine.handle(PutItem(table="App", item={**item, **key}))
        planted[kind].add(text_of(key))
    return planted


def text_of(key: Item) -> str:
    return f"{key['PK']['S']}|{key['SK']['S']}"


def test_every_planted_difference_is_found_under_writes_and_no_other(lab: Lab) -> None:
    chance = random.Random(SEED)
    planted = plant(lab, chance)
    stop = threading.Event()
    written = 0

    def write() -> None:
        nonlocal written
        mine = random.Random(SEED + 1)
        while not stop.is_set():
            jitter(mine)
            number = mine.randrange(0, USERS, 2)
            if mine.random() < 0.2:
                lab.delete("Users", f"u{number}")
            else:
                lab.user(number, name=str(mine.random()))
            lab.survey(mine.randrange(SURVEYS), sections=mine.randrange(4), title=str(mine.random()))
            written += 2

    def apply() -> None:
        Worker(lab.migration).run(stop=stop, poll_seconds=0.01)

    threads = [threading.Thread(target=write), threading.Thread(target=apply)]
    for thread in threads:
        thread.start()
    found: dict[str, set[str]] = {"changed": set(), "missing": set(), "extra": set()}

    def collect(difference: Difference) -> bool:
        found[difference.kind].add(text_of(difference.key))
        return False

    try:
        result = compare(lab.migration, DiffOptions(on_difference=collect, rounds=60, settle_seconds=0.5))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert found == planted
    assert result.unsettled == 0
    count = sum(map(len, planted.values()))
    report(
        f"diff of {result.expected} items under {written} writes: {count} of {count} planted differences, "
        f"0 false alarms, {result.settled} keys read again (seed {SEED})"
    )
