"""Failures of engines and processes while a migration runs; the planted bugs must fail in one of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from solotable._protocol.requests import Control, TransactWriteItems
from solotable.errors import ServiceError, TransactionCancelled, TransportError
from solotable.migrations.apply import applier
from solotable.migrations.worker import Worker
from solotable.testing.engines.faults import Faults
from solotable.testing.engines.faulty import FaultyEngine

from .clients import Killed, MortalEngine
from .lab import Lab

#: Items of the sources, and the outputs that they become.
_ITEMS = 8 + 3 + 4 + 2


def killed_at_every_request(lab: Lab) -> None:
    """Each worker is killed a few requests later than the one before: the copy ends, and nothing is lost."""
    lab.fill(users=8, surveys=3, profiles=4)
    lab.start(segments=2, window_seconds=0.01)
    for number in range(1, 400):
        if lab.migration.record().state == "Running":
            break
        life = [number]
        engines = [
            MortalEngine(engine, life, executed=number % 2 == 0)
            for engine in (lab.old_engine, lab.new_engine)
        ]
        worker = Worker(lab.opened(engines[0], engines[1]))
        try:
            while lab.migration.record().state != "Running":
                worker.step()
        except Killed:
            pass
        if number % 3 == 0:
            lab.user(number % 9, f"Name {number}")
            lab.delete("Surveys", f"s{number % 3}")
        lab.clock.ahead += 12
    lab.catch_up()
    lab.check()
    assert lab.migration.status().copy.scanned >= _ITEMS - 3


def redone_work(lab: Lab) -> None:
    """A killed worker's successor repeats at most one transaction: the counts stay exact."""
    lab.fill(users=30)
    lab.start(segments=1)
    for life in range(20, 60, 4):
        engines = [
            MortalEngine(engine, counter, executed=True)
            for counter in [[life]]
            for engine in (lab.old_engine, lab.new_engine)
        ]
        worker = Worker(lab.opened(engines[0], engines[1]))
        try:
            for _ in range(20):
                worker.step()
        except Killed:
            lab.clock.ahead += 12
    lab.run_to("Running")
    lab.check()
    assert lab.migration.status().copy.scanned == 30


def unreliable_engines(lab: Lab) -> None:
    """Requests are throttled, lost before and after they are executed, and rejected for conflicts."""
    lab.fill(users=12, surveys=4, profiles=6)
    lab.start(segments=2, window_seconds=0.5)
    faults = Faults()
    for seed, operation in enumerate(
        ("TransactWriteItems", "UpdateItem", "GetItem", "BatchGetItem", "Query")
    ):
        faults.throttle(operation, probability=0.05, seed=seed)
        faults.timeout(operation, applied=True, probability=0.08, seed=seed + 10)
        faults.timeout(operation, applied=False, probability=0.05, seed=seed + 20)
    faults.internal_error("TransactWriteItems", applied=True, probability=0.08, seed=31)
    faults.transaction_conflict("TransactWriteItems", probability=0.1, seed=32)
    migration = lab.opened(FaultyEngine(lab.old_engine, faults), FaultyEngine(lab.new_engine, faults))
    worker = Worker(migration)
    for number in range(400):
        try:
            worker.step()
        except (ServiceError, TransportError):
            # The record itself could not be read.
            worker = Worker(migration)
        if number % 5 == 0:
            lab.user(number % 12, f"Name {number}", email=f"{number}@x.example")
            lab.delete("Accounts", f"p{number % 6}")
        if number > 60 and lab.migration.record().state == "Running":
            break
    lab.clock.ahead += 12
    lab.run_to("Running")
    lab.catch_up()
    lab.check()
    assert lab.migration.dead_letters() == []


def applied_but_answer_lost(lab: Lab) -> None:
    """The reply of every transaction is lost once after it was executed."""
    lab.fill(users=5, profiles=3)
    lab.start(segments=1)
    faults = Faults()
    faults.timeout("TransactWriteItems", applied=True, times=3)
    faults.internal_error("TransactWriteItems", applied=True, times=3, after=4)
    worker = Worker(lab.opened(lab.old_engine, FaultyEngine(lab.new_engine, faults)))
    while lab.migration.record().state != "Running":
        worker.step()
    worker.release()
    lab.check()
    # The stream begins before the copy, so the first items are applied as changes too.
    assert lab.migration.status().copy.scanned == 5 + 3 + 1


def late_request(lab: Lab) -> None:
    """A transaction whose reply was lost is executed again later, after newer ones: it changes nothing."""
    lab.fill(users=2)
    lab.start(segments=1)
    lab.run_to("Running")
    lab.user(1, "Older")
    sent: list[TransactWriteItems] = []

    def remember(request: object) -> None:
        if isinstance(request, TransactWriteItems):
            sent.append(request)

    lab.new_engine.before = remember
    lab.catch_up()
    lab.new_engine.before = None
    lab.user(1, "Newer")
    lab.catch_up()
    for request in sent:
        with pytest.raises(TransactionCancelled):
            lab.new_engine.inner.handle(request)
    assert lab.stored()["App", "S:USER#u1", "S:USER"]["name"] == {"S": "Newer"}
    lab.check()


def busy_table(lab: Lab) -> None:
    """One table has more changes than a batch takes, and every worker is killed after a few batches."""
    lab.fill(users=3, surveys=3, profiles=3)
    lab.start(segments=1)
    lab.run_to("Running")
    for number in range(4):
        for each in range(3):
            lab.user(each, f"Name {number}", email=f"{number}.{each}@x.example")
            lab.survey(each, sections=number, title=f"At {number}")
        lab.put("Settings", id=f"p{number}", theme=f"At {number}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(applier, "BATCH", 5)
        for life in range(4, 60, 2):
            counter = [life]
            engines = [
                MortalEngine(engine, counter, executed=True) for engine in (lab.old_engine, lab.new_engine)
            ]
            worker = Worker(lab.opened(engines[0], engines[1]))
            try:
                for _ in range(5):
                    worker.step()
            except Killed:
                lab.clock.ahead += 12
    lab.clock.ahead += 12
    lab.catch_up()
    lab.check()


def clocks_that_differ(lab: Lab) -> None:
    """A worker whose clock is an hour ahead takes every cursor at once: the two do not harm each other."""
    lab.fill(users=10, surveys=3)
    lab.start(segments=2)
    one, other = Worker(lab.migration), Worker(lab.migration)
    for number in range(200):
        one.step()
        lab.clock.ahead += 3600
        other.step()
        lab.clock.ahead -= 3600
        lab.user(number % 10, f"Name {number}")
        if lab.migration.record().state == "Running" and number > 20:
            break
    lab.run_to("Running")
    lab.clock.ahead += 3700
    lab.catch_up()
    lab.check()


def dropped_source(lab: Lab) -> None:
    """A source table is deleted while it is copied: the migration stops and names it."""
    lab.fill(users=3, surveys=3)
    lab.start(segments=1)
    lab.run_to("Running")
    lab.old_engine.handle(Control(operation="DeleteTable", members={"TableName": lab.prefix + "Surveys"}))
    lab.user(1, "Newer")
    worker = Worker(lab.migration)
    for _ in range(5):
        worker.step()
    record = lab.migration.record()
    assert record.state == "Error"
    assert "Surveys" in str(record.error)
    assert len(lab.stored()) >= 9


def dropped_source_between_windows(lab: Lab) -> None:
    """A source table is deleted before the leader applies the changes of a window: the copy stops too."""
    lab.fill(users=3, surveys=3)
    lab.start(segments=1)
    worker = Worker(lab.migration)
    worker.step()
    assert lab.migration.record().copying
    lab.user(1, "Newer")
    lab.old_engine.handle(Control(operation="DeleteTable", members={"TableName": lab.prefix + "Surveys"}))
    lab.clock.ahead += 120
    for _ in range(5):
        worker.step()
    record = lab.migration.record()
    assert (record.state, "Surveys" in str(record.error)) == ("Error", True)


FAILURES: list[Callable[[Lab], None]] = [
    killed_at_every_request,
    redone_work,
    unreliable_engines,
    applied_but_answer_lost,
    late_request,
    busy_table,
    clocks_that_differ,
    dropped_source,
    dropped_source_between_windows,
]
