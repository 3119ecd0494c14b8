"""Create, stop, cancel and complete a migration; its budget and its progress."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from solotable._protocol.requests import Control, PutItem, TransactWriteItems
from solotable._values import dump_item
from solotable.errors import (
    DataError,
    MappingRejected,
    MigrationConflict,
    MigrationError,
    MigrationNotReady,
    TableNotFound,
)
from solotable.migrations.migration import Migration
from solotable.migrations.worker import Worker
from solotable.testing.engines.faults import Faults
from solotable.testing.engines.faulty import FaultyEngine

from .clients import Killed, MortalEngine
from .lab import OLD, Lab, app, items_of


def _control_items(lab: Lab) -> list[object]:
    engines = (lab.old_engine, lab.new_engine)
    return [item for engine in engines for item in items_of(engine, lab.prefix + "control")]


def test_cancel_leaves_the_sources_and_no_item_of_the_migration(lab: Lab) -> None:
    lab.fill(users=3, surveys=3, profiles=3)
    before = lab.sources()
    lab.start()
    lab.run_to("Running")
    lab.user(1, "Newer")
    lab.user(1)
    lab.catch_up()
    planned = lab.migration.cancel(dry_run=True)
    assert planned.items == len(lab.raw_target())
    assert lab.migration.cancel().items == planned.items
    assert lab.sources() == before
    assert lab.raw_target() == []
    assert _control_items(lab) == []
    described = lab.old_engine.handle(
        Control(operation="DescribeTable", members={"TableName": lab.prefix + "Users"})
    )
    assert not described["Table"].get("StreamSpecification", {}).get("StreamEnabled")
    assert lab.migration.find_record() is None
    assert Worker(lab.migration).run() is None


def test_a_cancelled_migration_can_be_created_again(here: Lab) -> None:
    here.fill(users=2)
    here.start()
    here.run_to("Running")
    here.migration.cancel()
    here.user(5)
    here.start()
    here.run_to("Running")
    here.check()


def test_a_worker_that_was_paused_during_a_cancel_writes_nothing(here: Lab) -> None:
    here.fill(users=3)
    here.start(segments=1)
    here.new_engine.once(TransactWriteItems, here.migration.cancel, table=here.target_table)
    worker = Worker(here.migration)
    for _ in range(2):
        worker.step()
    assert here.raw_target() == []


def test_cancel_is_refused_after_a_switch(here: Lab) -> None:
    here.fill(users=2)
    here.start()
    here.verified()
    here.migration.switch_reads(10)
    with pytest.raises(MigrationNotReady):
        here.migration.cancel()
    here.migration.switch_reads(0)
    here.migration.switch_writes()
    with pytest.raises(MigrationNotReady):
        here.migration.cancel()


def test_complete_needs_a_comparison_after_the_switch_and_no_dead_letters(here: Lab) -> None:
    here.fill(users=3)
    here.start()
    here.verified()
    with pytest.raises(MigrationNotReady, match="needs WritesSwitched"):
        here.migration.complete()
    here.migration.switch_writes()
    flips = here.migration.record().flips
    with pytest.raises(MigrationNotReady, match="older than the last switch"):
        here.migration.complete()
    here.migration.record_diff(compared=3, differences=1, flips=flips)
    with pytest.raises(MigrationNotReady, match="1 differences"):
        here.migration.complete()
    here.migration.record_diff(compared=3, differences=0, flips=flips)
    assert here.migration.complete(dry_run=True).reasons == []
    done = here.migration.complete(keep_data=True)
    assert done.items == 6
    assert here.marked() == 0
    assert here.migration.record().state == "Completed"
    assert len(here.sources()["Users"]) == 3
    assert {item["SK"]["S"] for item in items_of(here.new_engine, "control")} == {"CONTROL"}
    assert items_of(here.old_engine, "control") == []


def test_complete_deletes_or_parks_the_sources(here: Lab) -> None:
    here.fill(users=3)
    here.start()
    here.verified()
    here.migration.switch_writes()
    here.migration.record_diff(compared=3, differences=0, flips=here.migration.record().flips)
    here.migration.complete(park_days=30)
    with pytest.raises(MigrationNotReady, match="parked"):
        here.migration.complete()
    assert len(here.sources()["Users"]) == 3
    here.clock.ahead += 31 * 86_400
    assert here.migration.complete().deleted == [each.name for each in OLD]
    with pytest.raises(TableNotFound):
        here.sources()


def _repeat_until_done(lab: Lab, command: str, **options: object) -> int:
    """Kill a command at each of its requests, and repeat it until it ends."""
    for number in range(1, 400):
        life = [number]
        old, new = (
            MortalEngine(engine, life, executed=number % 2 == 0)
            for engine in (lab.old_engine, lab.new_engine)
        )
        if lab.migration.find_record() is None:
            return number
        with suppress(Killed):
            getattr(lab.opened(old, new), command)(**options)
            return number
    raise AssertionError(f"{command} never ends")


def test_a_killed_cancel_is_repeated_until_nothing_is_left(here: Lab) -> None:
    here.fill(users=3, profiles=2)
    here.start(segments=1)
    here.run_to("Running")
    assert _repeat_until_done(here, "cancel") > 10
    assert (here.raw_target(), _control_items(here)) == ([], [])


def test_a_killed_complete_is_repeated_until_the_sources_are_deleted(here: Lab) -> None:
    here.fill(users=3)
    here.start(segments=1)
    here.verified()
    here.migration.switch_writes()
    here.migration.record_diff(compared=3, differences=0, flips=here.migration.record().flips)
    assert _repeat_until_done(here, "complete") > 10
    assert here.marked() == 0
    with pytest.raises(TableNotFound):
        here.sources()
    assert here.migration.record().parked_until is None


def test_two_migrations_cannot_share_a_table(lab: Lab) -> None:
    lab.start()
    for dry_run in (True, False):
        with pytest.raises(MigrationConflict, match="takes part in the migration 'lab'"):
            lab.opened(name="other").create(allow_non_empty=True, dry_run=dry_run)
    with pytest.raises(MigrationConflict, match="exists"):
        lab.migration.create()
    assert lab.opened(name="other").find_record() is None


def test_a_target_with_items_is_refused_and_its_items_are_never_overwritten(lab: Lab) -> None:
    lab.fill(users=3)
    foreign = dump_item({"PK": "USER#u1", "SK": "USER", "_type": "User", "name": "Foreign"})
    lab.new_engine.handle(PutItem(table=lab.target_table, item=foreign))
    with pytest.raises(MigrationError, match="not empty"):
        lab.migration.create()
    lab.start(allow_non_empty=True)
    lab.run_to("Running")
    (letter,) = lab.migration.dead_letters()
    assert letter.key == {"id": {"S": "u1"}}
    assert "no migration wrote" in letter.cause
    assert lab.stored()["App", "S:USER#u1", "S:USER"]["name"] == {"S": "Foreign"}
    lab.user(1, "Newer")
    lab.catch_up()
    assert lab.stored()["App", "S:USER#u1", "S:USER"]["name"] == {"S": "Foreign"}
    lab.migration.cancel()
    assert lab.raw_target() == [foreign]


def test_two_source_items_with_one_output_are_refused_or_a_dead_letter(here: Lab) -> None:
    here.user(0, email="same@x.example")
    here.user(1, email="same@x.example")
    with pytest.raises(MappingRejected) as refused:
        here.migration.create()
    assert "u0" in str(refused.value.problems)
    assert "u1" in str(refused.value.problems)
    here.start(samples=0)
    here.run_to("Running")
    (letter,) = here.migration.dead_letters()
    other = {"u0": "u1", "u1": "u0"}[letter.key["id"]["S"]]
    assert other in letter.cause
    assert here.stored()["App", "S:EMAIL#same@x.example", "S:EMAIL"]["user_id"] == {"S": other}
    # The other one gives the address away: the dead letter can be reconciled.
    here.user(int(other[1:]), email="new@x.example")
    here.catch_up()
    assert here.migration.reconcile([(letter.source, letter.key)]) > 0
    assert here.migration.dead_letters() == []
    here.check()


def test_an_item_that_is_too_large_with_its_marker_is_a_dead_letter(here: Lab) -> None:
    here.fill(users=2)
    here.put("Users", id="big", name="x" * 409_515, email="b@x.example")
    here.start(samples=0)
    here.run_to("Running")
    (letter,) = here.migration.dead_letters()
    assert letter.key == {"id": {"S": "big"}}
    assert "Item size has exceeded" in letter.cause
    assert ("App", "S:USER#u1", "S:USER") in here.stored()


def test_a_stopped_migration_resumes_where_it_was(here: Lab) -> None:
    here.fill(users=3)
    here.start()
    worker = Worker(here.migration)
    worker.step()
    here.migration.stop()
    assert worker.step() == "waiting"
    assert here.migration.record().state == "Stopped"
    assert here.migration.start().state == "Copying"
    here.run_to("Running")
    here.migration.stop()
    here.user(1, "Newer")
    assert Worker(here.migration).step() == "waiting"
    assert here.migration.start().state == "Running"
    here.catch_up()
    here.check()


def test_an_older_epoch_changes_nothing(here: Lab) -> None:
    here.start()
    late = here.migration.record()
    here.migration.stop()
    with pytest.raises(MigrationConflict):
        here.migration.transition(late, "Error", resume="Copying")
    with pytest.raises(MigrationConflict):
        here.migration.transition(replace(late, state="Copying"), copying=True)
    assert here.migration.record().state == "Stopped"


def test_a_changed_mapping_needs_a_new_copy(here: Lab) -> None:
    here.fill(users=2)
    here.start()
    here.run_to("Running")
    here.migration.stop()
    record = here.migration.record()
    here.migration.transition(record, fingerprint="another")
    with pytest.raises(MigrationNotReady, match="another mapping"):
        here.migration.start()
    here.delete("Users", "u1")
    here.migration.start(copy_again=True)
    here.run_to("Running")
    here.check()


def test_the_budget_holds_and_can_be_changed_while_it_runs(here: Lab) -> None:
    here.fill(users=150)
    here.start(segments=2, rate=200.0)
    began = here.clock()
    here.migration.work(workers=1, until=_half_copied(here), poll_seconds=0.001)
    spent = here.clock() - began
    units = 2 * 2 * here.migration.status().copy.scanned
    assert units / spent <= 200 * 1.1
    here.migration.set_rate(None)
    before = here.clock.ahead
    here.run_to("Running")
    assert here.clock.ahead - before < 1
    here.check()


def _half_copied(lab: Lab):  # type: ignore[no-untyped-def] # a predicate of the record
    def is_half(_record: object) -> bool:
        return lab.migration.status().copy.scanned >= 70

    return is_half


def test_a_throttled_worker_slows_down_and_says_so(here: Lab) -> None:
    here.fill(users=60)
    here.start(segments=1)
    faults = Faults()
    faults.throttle("TransactWriteItems", times=30)
    migration = here.opened(here.old_engine, FaultyEngine(here.new_engine, faults))
    worker = Worker(migration)
    notes = set()
    for _ in range(60):
        worker.step()
        notes.add(here.migration.record().throttled is not None)
        if here.migration.record().state == "Running":
            break
    assert notes == {True, False}
    here.run_to("Running")
    here.check()


def test_progress_is_exact_and_never_goes_back(here: Lab) -> None:
    here.fill(users=40, surveys=5)
    here.start(segments=3)
    worker = Worker(here.migration)
    seen = []
    while here.migration.record().state != "Running":
        worker.step()
        copy = here.migration.status().copy
        seen.append((copy.scanned, copy.percent))
    assert seen == sorted(seen)
    assert seen[-1] == (45, 100.0)
    status = here.migration.status()
    assert (status.copy.total, status.copy.total_is_exact) == (45, True)
    assert status.copy.by_source["Users"] == 40
    assert status.lag_seconds is not None


def test_wrong_arguments_are_refused(here: Lab) -> None:
    with pytest.raises(DataError, match="segments"):
        here.migration.create(segments=0)
    with pytest.raises(DataError, match="rate"):
        here.migration.create(rate=-1)
    with pytest.raises(DataError, match="name"):
        Migration("a#b", here.migration.mapping, sources=here.old, target=here.new)
    with pytest.raises(MigrationError, match="does not exist"):
        here.migration.record()
    here.start()
    with pytest.raises(DataError, match="0 to 100"):
        here.migration.mirror(101)
    with pytest.raises(MigrationNotReady, match="needs Verified"):
        here.migration.switch_reads(50)
    assert app.name == "App"
