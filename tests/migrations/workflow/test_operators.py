"""Two operators at once: every pair of commands leaves a migration that goes on, or that is gone."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from solotable._protocol.requests import DeleteItem, Request, TransactWriteItems
from solotable._values import dump_item
from solotable.engines import sqlite
from solotable.errors import MigrationError
from solotable.migrations.diff import DiffOptions, diff, repair
from solotable.migrations.migration import Migration
from solotable.migrations.worker import Worker

from .clients import Client
from .lab import Lab, MovableClock, items_of

Command = Callable[[Migration], object]
OPTIONS = DiffOptions(settle_seconds=0)
COMMANDS: dict[str, Command] = {
    "create": lambda migration: migration.create(allow_non_empty=True),
    "start": lambda migration: migration.start(),
    "copy again": lambda migration: migration.start(copy_again=True),
    "stop": lambda migration: migration.stop(),
    "rate": lambda migration: migration.set_rate(10_000),
    "mirror": lambda migration: migration.mirror(10),
    "reads": lambda migration: migration.switch_reads(50),
    "diff": lambda migration: diff(migration, OPTIONS),
    "repair": lambda migration: repair(migration, OPTIONS),
    "switch": lambda migration: migration.switch_writes(),
    "reverse": lambda migration: migration.reverse(),
    "cancel": lambda migration: migration.cancel(),
    "complete": lambda migration: migration.complete(keep_data=True),
    "work": lambda migration: Worker(migration).step(),
}
STATES = ("new", "Created", "Copying", "Running", "Stopped", "Verified", "WritesSwitched")
_LONG = os.environ.get("TORTURE") == "long"
#: Requests of the first command before which the second one runs.
_POINTS = range(1, 200, 7) if _LONG else (4,)
#: The pairs that a run of the suite plays; TORTURE=long plays all of them.
_PAIRS = 10_000 if _LONG else 8


def _bring(lab: Lab, state: str) -> None:
    """Bring a new lab to a state; one user has a difference, which a repair finds."""
    lab.fill(users=3, surveys=1)
    if state == "new":
        return
    lab.migration.create()
    if state == "Created":
        return
    lab.migration.start()
    if state == "Copying":
        Worker(lab.migration).step()
        return
    lab.verified()
    if state == "WritesSwitched":
        lab.migration.switch_writes()
        lab.catch_up()
        lab.migration.record_diff(compared=1, differences=0, flips=1)
    elif state != "Verified":
        # A difference that a repair finds, and a change that no worker has applied.
        lab.new_engine.handle(DeleteItem(table="App", key=dump_item({"PK": "USER#u1", "SK": "USER"})))
        lab.put("Users", id="bad", name="B", email="b@x.example", bad=True)
        lab.migration.record_diff(compared=1, differences=1, flips=0)
    if state == "Stopped":
        lab.migration.stop()


def _both(lab: Lab, first: str, second: str, at: int) -> int:
    """Run a command, and another one before its request number `at`; return the number of requests."""
    count = 0

    def before(_request: Request[Any]) -> None:
        nonlocal count
        count += 1
        if count == at:
            with suppress(MigrationError):
                COMMANDS[second](lab.opened())

    lab.old_engine.before = lab.new_engine.before = before
    try:
        with suppress(MigrationError):
            COMMANDS[first](lab.opened())
    finally:
        lab.old_engine.before = lab.new_engine.before = None
    return count


def _check(lab: Lab) -> None:
    """Assert that clients can write, and that the migration goes on to its end, or is gone."""
    migration = lab.migration
    record = migration.find_record()
    if record is None or record.state == "Cancelled":
        if record is not None:
            migration.cancel()
        assert lab.raw_target() == []
        left = [item for engine in (lab.old_engine, lab.new_engine) for item in _control(lab, engine)]
        # A create that lost may have claimed its tables.
        assert [item for item in left if item["SK"] != {"S": "CLAIM"}] == []
        return
    lab.delete("Users", "bad")
    lab.clock.ahead += 60
    client = Client(lab)
    if record.state in ("Created", "Stopped", "Error"):
        migration.start()
    if record.state != "Completed":
        lab.run_to("Running", "Verified", "ReadsSwitched", "WritesSwitched")
        lab.catch_up()
        repair(migration, OPTIONS)
        assert client.write("c1", "After")
        lab.catch_up()
        client.check()
        if migration.record().writes == "source":
            lab.check()
        assert diff(migration, OPTIONS).is_equal
        record = migration.record()
        if record.writes == "source":
            migration.switch_writes()
            client = Client(lab)
            assert client.write("c2", "After")
            lab.catch_up()
            client.check()
        assert diff(migration, OPTIONS).is_equal
        migration.complete(keep_data=True)
    assert lab.marked() == 0
    assert [item["SK"]["S"] for item in _control(lab, lab.new_engine)] == ["CONTROL"]
    assert _control(lab, lab.old_engine) == []


def _control(lab: Lab, engine: Any) -> list[Any]:
    return items_of(engine, "control") if "control" in _tables(engine) else []


def _tables(engine: Any) -> list[str]:
    return list(engine.inner.call("ListTables", {})["TableNames"])


def _pairs() -> Iterator[tuple[str, str, str]]:
    pairs = [(state, one, other) for state in STATES for one in COMMANDS for other in COMMANDS]
    yield from random.Random(20).sample(pairs, min(_PAIRS, len(pairs)))


def play(state: str, first: str, second: str, at: int) -> int:
    """Play two commands in a new lab, and check it; return the number of requests of the first one."""
    clock = MovableClock()
    with sqlite.open(sqlite.MEMORY, clock=clock) as old, sqlite.open(sqlite.MEMORY, clock=clock) as new:
        lab = Lab(old, new, clock=clock)
        _bring(lab, state)
        count = _both(lab, first, second, at)
        _check(lab)
    return count


@pytest.mark.parametrize(("state", "first", "second"), list(_pairs()))
def test_two_commands_at_once_leave_a_migration_that_goes_on(state: str, first: str, second: str) -> None:
    for at in _POINTS:
        if play(state, first, second, at) < at:
            return


@pytest.mark.parametrize(("state", "first", "at"), [("Running", "repair", 17), ("Created", "start", 2)])
def test_a_cancel_beside_another_command_leaves_nothing(state: str, first: str, at: int) -> None:
    """The command is about to create or take a cursor when another operator cancels."""
    assert play(state, first, "cancel", at) >= at


def test_a_dead_letter_after_a_cancel_is_not_stored(here: Lab) -> None:
    _bring(here, "Running")

    def cancel(request: Request[Any]) -> None:
        if isinstance(request, TransactWriteItems):
            here.new_engine.before = None
            here.opened().cancel()

    here.new_engine.before = cancel
    Worker(here.migration).step()
    assert here.migration.find_record() is None
    _check(here)
