"""S2.17: all data is exported as JSON once a day, by several workers, after crashes, and with retention."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solotable import Database, connect
from solotable.errors import DataError
from solotable.exports import DailyExport, FolderLocation, export_daily, list_days, list_exports, open_export
from solotable.locations import S3Location
from solotable.observe import Observation
from tests.killing import Start
from tests.s3_server import new_bucket, s3_client
from tests.unit.engines.sqlite.clocked import DAY, Clock
from tests.waiting import HANG_SECONDS, wait_until

from .daily_tables import Line, Note, app, log


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def db(tmp_path: Path, clock: Clock) -> Iterator[Database]:
    """A file with an item in each of two tables."""
    with connect(f"sqlite:///{tmp_path / 'app.db'}", app, log, clock=clock) as opened:
        opened.put(Note(note_id="1"))
        opened.put(Line(line_id="1"))
        yield opened


def notes(folder: Path, day: str) -> set[str]:
    """Return the notes of a day's export."""
    export = open_export(FolderLocation(folder / day / "App"))
    return {item["note_id"]["S"] for _, item in export.items() if "note_id" in item}


def files(folder: Path) -> set[Path]:
    return {each for each in folder.rglob("*") if each.is_file()}


def test_s2_17_every_table_is_exported_once_a_day(db: Database, clock: Clock, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    location = FolderLocation(folder)
    first = export_daily(db, location)
    assert first.complete
    assert {name: done.is_snapshot for name, done in first.exported.items()} == {"App": True, "Log": True}
    before = files(folder)
    db.put(Note(note_id="2"))
    clock.move(3_600)
    again = export_daily(db, location)
    assert (again.exported, again.present) == ({}, ("App", "Log"))
    assert files(folder) == before
    clock.move(DAY)
    assert len(export_daily(db, location).exported) == 2
    assert list_days(location) == ["2027-01-15", "2027-01-16"]
    assert notes(folder, "2027-01-15") == {"1"}
    assert notes(folder, "2027-01-16") == {"1", "2"}


def test_s2_17_a_new_table_is_exported_on_the_day_it_appears(db: Database, tmp_path: Path) -> None:
    location = FolderLocation(tmp_path / "exports")
    assert set(export_daily(db, location, tables=[app]).exported) == {"App"}
    later = export_daily(db, location)
    assert (set(later.exported), later.present) == ({"Log"}, ("App",))


def test_s2_17_workers_that_start_at_once_make_one_export(db: Database, clock: Clock, tmp_path: Path) -> None:
    """Each worker tries until the day is complete."""
    location = FolderLocation(tmp_path / "exports")
    ready = threading.Barrier(4)
    exported: list[str] = []

    def work() -> None:
        with connect(f"sqlite:///{tmp_path / 'app.db'}", app, log, clock=clock) as own:
            ready.wait(HANG_SECONDS)
            while not (done := export_daily(own, location)).complete:
                pass
            exported.extend(done.exported)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(HANG_SECONDS)
    assert sorted(exported) == ["App", "Log"]
    for name in ("App", "Log"):
        assert len(list_exports(location.below(f"2027-01-15/{name}"))) == 1


def test_s2_17_a_killed_export_is_made_again(tmp_path: Path, start: Start) -> None:
    """The worker is killed in the second table; the next one exports only that."""
    path, folder = tmp_path / "app.db", tmp_path / "exports"
    with connect(f"sqlite:///{path}", app, log) as db:
        db.put(Note(note_id="1"))
        worker = start("-m", "tests.unit.exports", str(path), str(folder))
        worker.wait_for_lines(1)
        worker.release()
        worker.wait_for_lines(2)
        (day,) = list_days(FolderLocation(folder))
        assert worker.kill() == ["App", "Log"]
        # As a worker that is killed before the manifest leaves it.
        (summary,) = folder.glob("*/Log/AWSDynamoDB/*/manifest-summary.json")
        summary.unlink()

        def export() -> DailyExport | None:
            found = export_daily(db, FolderLocation(folder))
            return found if found.complete else None

        done = wait_until(export)
        assert done is not None
        assert (set(done.exported), done.present) == ({"Log"}, ("App",))
        assert len(list(folder.glob(f"{day}/Log/AWSDynamoDB/*"))) == 2
        assert open_export(FolderLocation(folder / day / "Log")).summary.item_count == 0


def test_s2_17_one_of_two_exports_of_a_day_stays(db: Database, clock: Clock, tmp_path: Path) -> None:
    """The lease of the first worker ends while it exports, and a second one exports too."""
    location = FolderLocation(tmp_path / "exports")
    others: list[Any] = []

    def outlive(name: str, *_: object) -> None:
        if others:
            return
        others.append(name)
        clock.move(3_600)
        with connect(f"sqlite:///{tmp_path / 'app.db'}", app, log, clock=clock) as second:
            others.append(export_daily(second, location, tables=[app]))
        # The first worker ends later, also by the clock.
        clock.move(1)

    # The progress of a small table is reported once, after its export.
    first = export_daily(db, location, tables=[log, app], progress=outlive)
    assert others[1].exported.keys() == {"App"}
    assert first.exported.keys() == {"Log"}
    assert len(list_exports(location.below("2027-01-15/App"))) == 1
    assert notes(tmp_path / "exports", "2027-01-15") == {"1"}


def test_s2_17_the_lease_is_renewed_while_an_export_takes_long(tmp_path: Path) -> None:
    renewals = 0

    def count(seen: Observation) -> None:
        nonlocal renewals
        renewals += seen.operation == "UpdateItem"

    def wait(*_: object) -> None:
        wait_until(lambda: renewals >= 4)

    with connect(f"sqlite:///{tmp_path / 'app.db'}", app, observer=count) as db:
        export_daily(db, FolderLocation(tmp_path / "exports"), lease_seconds=0.03, progress=wait)


def test_s2_17_the_newest_days_are_kept(db: Database, clock: Clock, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    location = FolderLocation(folder)
    (folder / "2027-01-01").mkdir(parents=True)
    (folder / "2027-01-01" / "mine.txt").write_text("not an export")
    deleted: list[str] = []
    for number in range(5):
        deleted += export_daily(db, location, keep=3).deleted
        assert len(list_days(location)) == min(number + 1, 3)
        clock.move(DAY)
    assert deleted == ["2027-01-15", "2027-01-16"]
    assert list_days(location) == ["2027-01-17", "2027-01-18", "2027-01-19"]
    assert sorted(each.name for each in folder.iterdir()) == ["2027-01-01", *list_days(location)]
    # A clock that is years ahead costs one day, not all.
    clock.move(2_000 * DAY)
    assert export_daily(db, location, keep=3).deleted == ("2027-01-17",)


def test_s2_17_what_killed_exports_left_is_deleted_a_day_later(
    db: Database, clock: Clock, tmp_path: Path
) -> None:
    folder = tmp_path / "exports"
    location = FolderLocation(folder)
    export_daily(db, location)
    (summary,) = folder.glob("*/Log/AWSDynamoDB/*/manifest-summary.json")
    summary.unlink()
    export_daily(db, location, keep=9)
    assert len(list(folder.glob("2027-01-15/Log/AWSDynamoDB/*"))) == 2
    clock.move(2 * DAY)
    export_daily(db, location, keep=9)
    assert len(list(folder.glob("2027-01-15/Log/AWSDynamoDB/*"))) == 1
    assert list_days(location) == ["2027-01-15", "2027-01-17"]


def test_s2_17_all_data_goes_to_object_storage(db: Database, clock: Clock, s3_endpoint: str) -> None:
    client = s3_client(s3_endpoint)
    location = S3Location(client, new_bucket(s3_endpoint), prefix="daily")
    for _ in range(3):
        assert len(export_daily(db, location, keep=2).exported) == 2
        assert export_daily(db, location, keep=2).exported == {}
        clock.move(DAY)
    assert list_days(location) == ["2027-01-16", "2027-01-17"]
    export = open_export(location.below("2027-01-17/App"))
    assert [item["note_id"] for _, item in export.items() if "note_id" in item] == [{"S": "1"}]
    assert not [name for name in location.find("") if name.startswith("2027-01-15")]
    client.close()


def test_s2_17_wrong_arguments_are_rejected(db: Database, tmp_path: Path) -> None:
    location = FolderLocation(tmp_path / "exports")
    with pytest.raises(DataError, match="keep must be at least 1 day, got 0"):
        export_daily(db, location, keep=0)
    with pytest.raises(DataError, match="needs a table, got none"):
        export_daily(db, location, tables=[])
    assert not (tmp_path / "exports").exists()
