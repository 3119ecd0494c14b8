"""Races between a copy, its changes and its workers; each ends in an assertion about both sides.

The suite plays them on every pair of engines, and the planted bugs must fail in one of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from solotable._protocol.requests import Control, Scan, TransactWriteItems
from solotable._values import dump_item
from solotable.migrations.apply.reconcile import Change
from solotable.migrations.apply.repair import reconcile_changes
from solotable.migrations.worker import Worker
from solotable.migrations.workflow import cursors
from tests.waiting import HANG_SECONDS

from .lab import Lab, items_of


def copy_everything(lab: Lab) -> None:
    """Copy without any change."""
    lab.fill(users=3, surveys=4, profiles=4)
    lab.start()
    lab.run_to("Running")
    lab.check()


def change_between_scan_and_write(lab: Lab) -> None:
    """An item is updated after the copy has read it, and before the copy writes it."""
    lab.fill(users=2)
    lab.start(segments=1)
    lab.new_engine.once(TransactWriteItems, lambda: lab.user(1, "Newer"), table=lab.target_table)
    lab.run_to("Running")
    lab.check()
    assert lab.stored()["App", "S:USER#u1", "S:USER"]["name"] == {"S": "Newer"}


def delete_between_scan_and_write(lab: Lab) -> None:
    """An item is deleted after the copy has read it, and before the copy writes it."""
    lab.fill(users=2, surveys=3)
    lab.start(segments=1)
    lab.new_engine.once(TransactWriteItems, lambda: lab.delete("Users", "u1"), table=lab.target_table)
    lab.run_to("Running")
    lab.check()
    assert ("App", "S:USER#u1", "S:USER") not in lab.stored()


def changes_before_the_first_page(lab: Lab) -> None:
    """Items are written between the start and the first page of the Scan, and deleted after it."""
    lab.fill(users=3)
    lab.start(segments=1)

    def change() -> None:
        lab.delete("Users", "u0")
        lab.user(7)

    lab.old_engine.once(Scan, change)
    lab.run_to("Running")
    lab.check()


def writes_behind_the_scan(lab: Lab) -> None:
    """Items that the Scan has passed are changed and deleted while later pages are read."""
    lab.fill(users=4, surveys=4, profiles=4)
    lab.start(segments=1)
    steps = iter(range(1000))

    def change(request: object) -> None:
        if isinstance(request, Scan):
            number = next(steps)
            lab.user(number % 4, f"At {number}")
            lab.delete("Users", f"u{(number + 2) % 4}")
            lab.survey(number % 4, sections=(number + 1) % 3, title=f"At {number}")
            lab.delete("Accounts", f"p{number % 4}")

    lab.old_engine.after = change
    lab.run_to("CatchingUp", "Running")
    lab.old_engine.after = None
    lab.run_to("Running")
    lab.catch_up()
    lab.check()


def paused_copy_worker(lab: Lab) -> None:
    """A copy worker stops before its write; others finish the copy; a delete is applied; it continues."""
    lab.fill(users=3)
    lab.start(segments=1)

    def others() -> None:
        lab.clock.ahead += 100
        lab.delete("Users", "u1")
        lab.user(2, "Newer")
        lab.run_to("Running")
        lab.catch_up()
        lab.check()

    paused = Worker(lab.migration)
    lab.new_engine.once(TransactWriteItems, others, table=lab.target_table)
    while lab.migration.record().state == "Copying":
        paused.step()
    lab.check()
    assert ("App", "S:USER#u1", "S:USER") not in lab.stored()


def paused_copy_worker_in_a_closed_window(lab: Lab) -> None:
    """A copy worker stops before its write; the leader closes the window and applies a delete."""
    lab.fill(users=3)
    lab.start(segments=2, window_seconds=5)
    leader = Worker(lab.migration)

    def others() -> None:
        lab.delete("Users", "u1")
        lab.clock.ahead += 7
        # It closes the window and applies the delete. The cursor of the paused worker has not expired.
        for _ in range(3):
            leader.step()

    paused = Worker(lab.migration)
    paused.step()
    lab.new_engine.once(TransactWriteItems, others, table=lab.target_table)
    paused.step()
    leader.release()
    lab.run_to("Running")
    lab.check()


def stale_worker_after_the_window(lab: Lab) -> None:
    """A worker that believes the window is open takes a segment while the leader applies a delete."""
    lab.fill(users=3)
    lab.start(segments=1, window_seconds=5)
    Worker(lab.migration).step()
    stale = lab.migration.record()
    assert stale.copying
    lab.clock.ahead += 7
    leader = Worker(lab.migration)
    leader.step()
    seized, go = threading.Event(), threading.Event()

    def wait(request: object) -> None:
        if threading.current_thread() is thread and not seized.is_set() and isinstance(request, Control):
            seized.set()
            assert go.wait(HANG_SECONDS)

    thread = threading.Thread(target=leader.step)
    lab.old_engine.before = wait
    thread.start()
    assert seized.wait(HANG_SECONDS)

    def apply_delete() -> None:
        lab.delete("Users", "u1")
        go.set()
        thread.join(HANG_SECONDS)

    lab.new_engine.once(TransactWriteItems, apply_delete, table=lab.target_table)
    late = Worker(lab.migration)
    for _ in range(4):
        late.step(stale)
    lab.new_engine.before = None
    go.set()
    thread.join(HANG_SECONDS)
    lab.old_engine.before = None
    leader.release()
    lab.run_to("Running")
    lab.check()


def paused_apply_worker(lab: Lab) -> None:
    """An apply worker stops before its write; another one applies newer changes; it continues."""
    lab.fill(users=3)
    lab.start(segments=1)
    lab.run_to("Running")
    lab.user(1, "Older")

    def others() -> None:
        lab.clock.ahead += 100
        lab.user(1, "Newer")
        lab.delete("Users", "u2")
        lab.catch_up()

    paused = Worker(lab.migration)
    lab.new_engine.once(TransactWriteItems, others, table=lab.target_table)
    paused.step()
    assert lab.stored()["App", "S:USER#u1", "S:USER"]["name"] == {"S": "Newer"}
    lab.catch_up()
    lab.check()


def repeated_stream(lab: Lab) -> None:
    """The whole stream is applied once more: nothing changes."""
    lab.fill(users=3, surveys=3, profiles=3)
    lab.start(segments=1)
    side, name = lab.migration.target, lab.migration.name
    start: list[object] = []

    def remember(request: object) -> None:
        found = side.run(cursors.load_cursors(side, name, "APPLY#forward"))
        if found and "positions" in found[0].data and not start:
            start.append(found[0].data["positions"])

    lab.new_engine.after = remember
    lab.run_to("Running")
    lab.new_engine.after = None
    lab.user(1, "Other", email="first@x.example")
    lab.user(1, "Other", email="second@x.example")
    lab.survey(1, sections=3)
    lab.survey(1, sections=1)
    lab.delete("Accounts", "p1")
    lab.delete("Users", "u2")
    lab.catch_up()
    lab.check()
    before = items_of(lab.new_engine, lab.target_table)
    (cursor,) = side.run(cursors.load_cursors(side, name, "APPLY#forward"))
    held = side.run(cursors.seize(side, name, cursor.kind, owner="test", positions=start[0]))
    side.run(cursors.release(side, held))
    lab.new_engine.sent.clear()
    lab.catch_up()
    written = [
        action
        for request in lab.new_engine.sent
        if isinstance(request, TransactWriteItems)
        for action in request.actions
        if action.table == lab.target_table
    ]
    assert written == []
    assert items_of(lab.new_engine, lab.target_table) == before


def shrinking_survey(lab: Lab) -> None:
    """A survey loses sections: their items go, and those of a deleted survey too."""
    lab.fill(surveys=4)
    lab.start()
    lab.run_to("Running")
    lab.survey(3, sections=1)
    lab.delete("Surveys", "s2")
    lab.catch_up()
    lab.check()


def parts_of_one_item(lab: Lab) -> None:
    """Two sources write, change and delete their parts of the same items."""
    lab.fill(profiles=6)
    lab.start()
    lab.run_to("Running")
    lab.delete("Accounts", "p1")
    lab.delete("Settings", "p3")
    lab.delete("Accounts", "p4")
    lab.put("Settings", id="p0", theme="light")
    lab.delete("Accounts", "p5")
    lab.delete("Settings", "p5")
    lab.catch_up()
    lab.check()
    assert ("App", "S:PROFILE#p5", "S:PROFILE") not in lab.stored()


def key_that_moves(lab: Lab) -> None:
    """An address goes from one user to another, and the changes are applied in the wrong order."""
    lab.user(0, email="shared@x.example")
    lab.user(1, email="other@x.example")
    lab.start(segments=1)
    lab.run_to("Running")
    lab.user(0, email="new@x.example")
    lab.user(1, email="shared@x.example")
    # The second change first: streams order the changes of one item only.
    lab.migration.reconcile([("Users", {"id": {"S": "u1"}})])
    lab.catch_up()
    lab.check()
    # The first change once more, from a shard that is read late.
    old = dump_item({"id": "u0", "name": "Ana", "email": "shared@x.example"})
    late = Change(source="Users", key={"id": {"S": "u0"}}, images=[old])
    reconcile_changes(lab.migration, [late])
    lab.check()
    assert lab.stored()["App", "S:EMAIL#shared@x.example", "S:EMAIL"]["user_id"] == {"S": "u1"}


def bad_item(lab: Lab) -> None:
    """A bad item is a dead letter with its key and cause, until it is repaired or deleted."""
    lab.fill(users=2)
    lab.put("Users", id="bad", name="B", email="b@x.example", bad=True)
    lab.put("Users", id="worse", name="B", email="w@x.example", bad=True)
    # The samples of the check would find them.
    lab.start(samples=0)
    lab.run_to("Running")
    letters = lab.migration.dead_letters()
    assert sorted(letter.key["id"]["S"] for letter in letters) == ["bad", "worse"]
    assert all("a bad user" in letter.cause for letter in letters)
    lab.check()
    lab.put("Users", id="bad", name="B", email="b@x.example")
    lab.delete("Users", "worse")
    lab.put("Users", id="u1", name="B", email="b@x.example", bad=True)
    lab.catch_up()
    assert [letter.key["id"]["S"] for letter in lab.migration.dead_letters()] == ["u1"]
    lab.check()
    lab.delete("Users", "u1")
    lab.catch_up()
    assert lab.migration.dead_letters() == []
    lab.check()


def stream_that_lost_changes(lab: Lab) -> None:
    """The stream was disabled for a while: the migration stops, and a new copy removes what went."""
    lab.fill(users=4, surveys=3, profiles=4)
    lab.start(segments=1)
    lab.run_to("Running")
    for enabled in (False, True):
        view = {"StreamViewType": "NEW_AND_OLD_IMAGES"} if enabled else {}
        for table in ("Users", "Accounts"):
            members = {
                "TableName": lab.prefix + table,
                "StreamSpecification": {"StreamEnabled": enabled, **view},
            }
            lab.old_engine.handle(Control(operation="UpdateTable", members=members))
        if not enabled:
            lab.delete("Users", "u1")
            lab.delete("Accounts", "p1")
            lab.user(2, "Newer")
            lab.user(9)
    record = lab.run_to("Error")
    assert record.needs_copy
    lab.migration.start()
    lab.run_to("Running")
    lab.check()


#: The races that need nothing but a lab.
RACES: list[Callable[[Lab], None]] = [
    copy_everything,
    change_between_scan_and_write,
    delete_between_scan_and_write,
    changes_before_the_first_page,
    writes_behind_the_scan,
    paused_copy_worker,
    paused_copy_worker_in_a_closed_window,
    stale_worker_after_the_window,
    paused_apply_worker,
    repeated_stream,
    shrinking_survey,
    parts_of_one_item,
    key_that_moves,
    bad_item,
    stream_that_lost_changes,
]
