"""Sweeps beside restores and beside sweeps of other processes; no window begins inside a transaction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.maintenance import change_pruning
from solotable.engines.sqlite.recovery import backups, history, targets
from solotable.engines.sqlite.recovery.in_place import Preview, apply_preview, make_preview
from solotable.engines.sqlite.recovery.restore import _definition, _source, restore_table
from solotable.engines.sqlite.recovery.scopes import Scope
from solotable.engines.sqlite.recovery.undo import UndoIndex
from solotable.engines.sqlite.tables import windows
from solotable.errors import RecoveryError
from tests.conformance.tables import table
from tests.unit.engines.sqlite.clocked import DAY, Clock, opened

from .past import recovery
from .things import first, rows, window_of, write


def test_a_sweep_that_is_behind_does_not_move_the_window_back(path: Path, clock: Clock) -> None:
    with opened(path, clock) as slow, opened(path, clock) as fast:
        fast.call("CreateTable", table("Other", "pk:S"))
        fast.call("UpdateContinuousBackups", recovery("Other"))
        for number in range(6):
            write(fast, "same", n={"N": str(number)})
            write(fast, "same", "Other", n={"N": str(number)})
            clock.move(DAY / 4)
        # The slow sweep has read the window and the clock; the other one then prunes more.
        window = window_of(slow)
        clock.move(DAY / 2)
        fast.sweep()
        start = first(fast)
        assert start > window.start
        clock.move(-DAY / 2)
        change_pruning._prune_window(slow, window, {"RecoveryPeriodInDays": 1})
        assert first(fast) == start


def test_a_sweep_that_is_behind_does_not_open_a_closed_window(path: Path, clock: Clock) -> None:
    with opened(path, clock) as slow, opened(path, clock) as fast:
        write(fast, "one")
        with slow.database.read() as connection:
            (window,) = windows.list_windows(connection)
        fast.call("UpdateContinuousBackups", recovery("Things", on=False))
        clock.move(2 * DAY)
        change_pruning._prune_window(slow, window, {"RecoveryPeriodInDays": 1})
        with slow.database.read() as connection:
            assert [each.last is not None for each in windows.list_windows(connection)] in ([], [True])


@pytest.mark.parametrize("streamed", [False, True])
def test_a_sweep_keeps_the_changes_of_a_restore_that_began_after_it(
    path: Path, clock: Clock, streamed: bool
) -> None:
    with opened(path, clock) as engine:
        if streamed:
            view = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
            engine.call("UpdateTable", {"TableName": "Things", "StreamSpecification": view})
        position = write(engine, "same", n={"N": "1"})
        write(engine, "same", n={"N": "2"})
        write(engine, "same", n={"N": "3"})
        window = window_of(engine)

        def begin(connection: Any) -> None:
            source, at = _source(engine, connection, "Things", position, Scope())
            targets.add_target(
                connection, source, "Restored", _definition(engine, source, "Restored", at, Scope())
            )

        engine.database.write(begin)
        engine.catalog.forget()
        clock.move(3 * DAY)
        change_pruning._prune_window(engine, window, {"RecoveryPeriodInDays": 1})
        change_pruning.prune(engine)
        targets.fill(engine, "Restored")
        assert rows(engine, "Restored") == {"same": {"pk": {"S": "same"}, "n": {"N": "1"}}}


def test_a_sweep_keeps_the_stream_records_that_a_backup_needs(tmp_path: Path, clock: Clock) -> None:
    """A backup that a crash interrupted for days, of a table with a stream and without a window."""
    with opened(tmp_path / "things.db", clock) as engine:
        view = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        engine.call("CreateTable", table("Things", "pk:S", StreamSpecification=view))
        write(engine, "same", n={"N": "1"})

        def begin(connection: Any) -> str:
            source = engine.table("Things")
            return backups.create(
                connection, source, "live", engine.now_micros(), engine.pending_counts.read(source)[0]
            ).name

        arn = engine.database.write(begin)
        engine.catalog.forget()
        write(engine, "same", n={"N": "2"})
        clock.move(3 * DAY)
        write(engine, "other")
        engine.sweep()
        targets.fill(engine, arn)
        engine.call("RestoreTableFromBackup", {"BackupArn": arn, "TargetTableName": "Restored"})
        assert rows(engine, "Restored") == {"same": {"pk": {"S": "same"}, "n": {"N": "1"}}}


@pytest.mark.parametrize("step", ["preview", "apply"])
def test_a_restore_in_place_notices_that_its_state_was_pruned(
    path: Path, clock: Clock, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path, clock) as engine, opened(path, clock) as other:
        position = write(engine, "same", n={"N": "1"})
        write(engine, "same", n={"N": "2"})
        preview = make_preview(engine, "Things", position, Scope())
        read_all = UndoIndex.read_all

        def prune_first(self: Any, engine: SqliteEngine) -> None:
            clock.move(3 * DAY)
            other.sweep()
            read_all(self, engine)

        monkeypatch.setattr(UndoIndex, "read_all", prune_first)
        with pytest.raises(RecoveryError, match="does not reach back"):
            run(step, engine, preview)


def run(step: str, engine: SqliteEngine, preview: Preview) -> None:
    if step == "preview":
        make_preview(engine, "Things", preview.sequence, Scope())
    else:
        apply_preview(engine, preview)


def test_a_byte_limit_never_begins_the_window_inside_a_transaction(path: Path, clock: Clock) -> None:
    with opened(path, clock) as engine:
        engine.call("CreateTable", table("Other", "pk:S"))
        engine.call("UpdateContinuousBackups", recovery("Other"))

        def both(number: int) -> None:
            puts = [
                {"Put": {"TableName": name, "Item": {"pk": {"S": key}, "n": {"N": str(number)}}}}
                for name in ("Things", "Other")
                for key in "abcd"
            ]
            engine.call("TransactWriteItems", {"TransactItems": puts})

        for number in range(3):
            both(number)
        size = change_pruning.log_bytes(engine, window_of(engine))
        for limit in range(size, 0, -40):
            setting = {"RecoveryPeriodInDays": 35, "MaxBytes": limit}
            change_pruning._prune_window(engine, window_of(engine), setting)
            start = first(engine)
            restore_table(engine, "Things", start, "Restored", scope=Scope())
            found = {item["n"]["N"] for item in rows(engine, "Restored").values()}
            assert len(found) <= 1, (limit, start, rows(engine, "Restored"))
            for name in ("Things", "Other"):
                restore_table(engine, name, start, f"Restored{name}", scope=Scope())
            things, others = rows(engine, "RestoredThings"), rows(engine, "RestoredOther")
            assert things == others, (limit, start)
            for name in ("Restored", "RestoredThings", "RestoredOther"):
                engine.call("DeleteTable", {"TableName": name})


def test_a_drill_does_not_verify_with_changes_that_were_pruned(path: Path, clock: Clock) -> None:
    with opened(path, clock) as engine:
        position = write(engine, "same", n={"N": "1"})
        write(engine, "same", n={"N": "2"})
        clock.move(3 * DAY)
        engine.sweep()
        with pytest.raises(RecoveryError, match="does not reach back"):
            history.Replay(engine, "Things", position)
