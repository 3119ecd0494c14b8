"""A shipped database is restored as it was, whatever is killed, damaged or unreachable."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.errors import DamagedBackup, DataError, SolotableError
from solotable.locations import FolderLocation, S3Location
from solotable.shipping import Shipper, ShippingLimits, prune, restore_file, verify
from solotable.shipping.archive import Archive
from tests.killing import Start
from tests.s3_server import new_bucket, s3_client
from tests.unit.engines.sqlite.clocked import Clock
from tests.waiting import wait_until

from .__main__ import SMALL
from .databases import items, new_database, put

PROGRAM = "tests.unit.shipping"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """The path of a database with an empty table."""
    found = str(tmp_path / "shop.db")
    new_database(found)
    return found


@contextmanager
def restored(location: Any, folder: Path, **options: Any) -> Iterator[SqliteEngine]:
    target = folder / f"restored-{random.getrandbits(64):x}.db"
    restore_file(location, target, **options)
    with sqlite.open(target) as engine:
        yield engine


@pytest.mark.parametrize("seed", range(3))
def test_the_restored_database_is_the_shipped_one(path: str, tmp_path: Path, seed: int) -> None:
    """Small limits cut transactions into parts, restart the log and make snapshots between."""
    dice = random.Random(seed)
    location = FolderLocation(tmp_path / "backup")
    with sqlite.open(path, durability="relaxed") as engine, Shipper(path, location, limits=SMALL) as shipper:
        for _ in range(25):
            for _ in range(dice.randrange(30)):
                put(engine, dice.randrange(200), dice.randrange(3_000))
            if dice.random() < 0.3:
                batch = [{"DeleteRequest": {"Key": {"id": {"S": str(dice.randrange(200))}}}}]
                engine.call("BatchWriteItem", {"RequestItems": {"Shop": batch}})
            shipper.ship()
            if dice.random() < 0.3:
                with restored(location, tmp_path) as copy:
                    assert items(copy) == items(engine)
        assert shipper.progress.segments > 25
        assert len(Archive(location).generations()) == 1
    with restored(location, tmp_path) as copy, sqlite.open(path) as engine:
        assert items(copy) == items(engine)
    verify(location)


def test_a_restored_file_passes_the_checks_of_sqlite(path: str, tmp_path: Path) -> None:
    location = FolderLocation(tmp_path / "backup")
    with sqlite.open(path) as engine, Shipper(path, location) as shipper:
        put(engine, 1)
        shipper.ship()
    restore_file(location, tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600


def test_writers_in_other_processes_lose_nothing_to_kills_of_the_shipper(
    path: str, tmp_path: Path, start: Start
) -> None:
    """Every transaction writes two items with one number, and the shipper is killed again and again."""
    folder = tmp_path / "backup"
    writers = [start("-m", PROGRAM, "write", path, name) for name in "pq"]
    for writer in writers:
        writer.wait_for_lines(1)
    for _ in range(4):
        shipper = start("-m", PROGRAM, "ship", path, str(folder))
        shipper.wait_for_lines(12)
        shipper.kill()
        with restored(FolderLocation(folder), tmp_path) as copy:
            check_pairs(copy)
    last = {name: int(writer.kill()[-1]) for name, writer in zip("pq", writers, strict=True)}
    with Shipper(path, FolderLocation(folder), limits=SMALL) as shipped:
        shipped.ship()
    with restored(FolderLocation(folder), tmp_path) as copy, sqlite.open(path) as engine:
        assert items(copy) == items(engine)
        numbers = check_pairs(copy)
        assert all(numbers[name] >= number for name, number in last.items())


def check_pairs(engine: SqliteEngine) -> dict[str, int]:
    """Check that no transaction is there in part, and return the last number of each writer."""
    found: dict[str, set[int]] = {}
    for item in engine.call("Scan", {"TableName": "Shop"})["Items"]:
        found.setdefault(item["id"]["S"][0], set()).add(int(item["n"]["N"]))
    assert all(len(numbers) == 1 for numbers in found.values()), found
    return {name: numbers.pop() for name, numbers in found.items()}


def test_a_killed_writer_does_not_stop_the_shipper(path: str, tmp_path: Path, start: Start) -> None:
    folder = tmp_path / "backup"
    shipper = start("-m", PROGRAM, "ship", path, str(folder))
    shipper.wait_for_lines(1)
    for _ in range(3):
        writer = start("-m", PROGRAM, "write", path, "p")
        writer.wait_for_lines(60)
        writer.kill()
    with sqlite.open(path) as engine:
        put(engine, 99)

        def is_shipped() -> bool:
            try:
                with restored(FolderLocation(folder), tmp_path) as copy:
                    return items(copy) == items(engine)
            except DamagedBackup:
                return False

        wait_until(is_shipped, seen=lambda: shipper.lines[-3:])
    shipper.kill()


def test_a_shipper_continues_its_chain_after_a_restart(path: str, tmp_path: Path) -> None:
    location = FolderLocation(tmp_path / "backup")
    with sqlite.open(path) as engine:
        with Shipper(path, location) as shipper:
            put(engine, 1)
            shipper.ship()
        put(engine, 2)
        with Shipper(path, location) as shipper:
            shipper.ship()
            assert shipper.progress.sequence >= 2
        assert len(Archive(location).generations()) == 1
        with restored(location, tmp_path) as copy:
            assert items(copy) == items(engine)


def test_a_log_that_started_over_begins_a_generation(path: str, tmp_path: Path) -> None:
    """Without the shipper, the last engine that closes removes the log; pages may have changed."""
    location = FolderLocation(tmp_path / "backup")
    with sqlite.open(path) as engine, Shipper(path, location) as shipper:
        put(engine, 1)
        shipper.ship()
    with sqlite.open(path) as engine:
        put(engine, 2)
    with Shipper(path, location) as shipper:
        shipper.ship()
    assert len(Archive(location).generations()) == 2
    with restored(location, tmp_path) as copy, sqlite.open(path) as engine:
        assert items(copy) == items(engine)


def test_another_program_that_checkpoints_without_the_lock_begins_a_generation(
    path: str, tmp_path: Path
) -> None:
    location = FolderLocation(tmp_path / "backup")
    with sqlite.open(path) as engine, Shipper(path, location) as shipper:
        put(engine, 1)
        shipper.ship()
        shipper._reader.execute("COMMIT")  # as if the connection had been lost
        for number in range(20):
            put(engine, number)
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        put(engine, 2)
        shipper.ship()
        shipper.ship()
        assert len(Archive(location).generations()) == 2
        with restored(location, tmp_path) as copy:
            assert items(copy) == items(engine)


def test_a_moment_is_restored(path: str, tmp_path: Path) -> None:
    clock, location = Clock(), FolderLocation(tmp_path / "backup")
    with sqlite.open(path) as engine, Shipper(path, location, clock=clock) as shipper:
        start = clock()
        for number in range(5):
            clock.move(60)
            put(engine, number)
            shipper.ship()
    clock.move(60)
    for number in range(5):
        with restored(location, tmp_path, at=start + 60 * (number + 1) + 30, clock=clock) as copy:
            assert len(items(copy)) == number + 1
    with pytest.raises(DataError, match=r"begins at 2027-01-15T08:00:00\.000000Z, later than that"):
        restore_file(location, tmp_path / "early.db", at=start - 1)
    assert not (tmp_path / "early.db").exists()


def test_every_flipped_byte_of_a_backup_is_found(path: str, tmp_path: Path) -> None:
    location = FolderLocation(tmp_path / "backup")
    with sqlite.open(path) as engine, Shipper(path, location) as shipper:
        put(engine, 1)
        shipper.ship()
        put(engine, 2)
        shipper.ship()
    dice = random.Random(0)
    files = [each for each in sorted((tmp_path / "backup").rglob("*")) if each.is_file()]
    assert len(files) == 4
    for file in files:
        content = file.read_bytes()
        for at in dice.sample(range(len(content)), min(120, len(content))):
            file.write_bytes(content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :])
            with pytest.raises(DamagedBackup):
                restore_file(location, tmp_path / "wrong.db")
            assert not (tmp_path / "wrong.db").exists()
        for length in (0, len(content) // 2, len(content) - 1):
            file.write_bytes(content[:length])
            with pytest.raises(DamagedBackup):
                restore_file(location, tmp_path / "wrong.db")
        file.write_bytes(content)
    verify(location)


def test_a_missing_or_misplaced_segment_is_named(path: str, tmp_path: Path) -> None:
    location = FolderLocation(tmp_path / "backup")
    with sqlite.open(path) as engine, Shipper(path, location) as shipper:
        for number in range(3):
            put(engine, number)
            shipper.ship()
    segments = sorted((tmp_path / "backup").rglob("segments/*"))
    middle = segments[1].read_bytes()
    segments[1].unlink()
    with pytest.raises(DamagedBackup, match="000000000002 is missing"):
        verify(location)
    shutil.copy(segments[0], segments[1])
    with pytest.raises(DamagedBackup, match="000000000002 is number 1 of generation"):
        verify(location)
    segments[1].write_bytes(middle)
    verify(location)


def test_a_location_that_fails_is_tried_again_and_nothing_is_lost(path: str, tmp_path: Path) -> None:
    class Failing(FolderLocation):
        failures = 0

        def create(self, name: str, **options: Any) -> Any:
            if "/segments/" in name and self.failures:
                self.failures -= 1
                raise OSError(28, "No space left on device")
            return super().create(name, **options)

    location = Failing(tmp_path / "backup")
    with sqlite.open(path) as engine, Shipper(path, location, limits=SMALL) as shipper:
        for number in range(6):
            location.failures = 2
            for step in range(20):
                put(engine, number * 20 + step, 500)
            for _ in range(2):
                with pytest.raises(OSError, match="No space left"):
                    shipper.ship()
            shipper.ship()
        with restored(FolderLocation(tmp_path / "backup"), tmp_path) as copy:
            assert items(copy) == items(engine)
        assert len(Archive(location).generations()) == 1


def test_a_part_of_a_large_transaction_is_not_restored(path: str, tmp_path: Path) -> None:
    """The transaction takes several segments, and the location fails before the last of them."""

    class Failing(FolderLocation):
        segments = 0
        most = 10**6

        def create(self, name: str, **options: Any) -> Any:
            if "/segments/" in name:
                self.segments += 1
                if self.segments > self.most:
                    raise OSError(5, "Input/output error")
            return super().create(name, **options)

    location = Failing(tmp_path / "backup")
    with sqlite.open(path) as engine, Shipper(path, location, limits=SMALL) as shipper:
        puts = [
            {
                "Put": {
                    "TableName": "Shop",
                    "Item": {"id": {"S": f"t{number}"}, "n": {"N": "1"}, "x": {"S": "x" * 3_000}},
                }
            }
            for number in range(90)
        ]
        put(engine, 0)
        shipper.ship()
        before = items(engine)
        engine.call("TransactWriteItems", {"TransactItems": puts})
        location.most = location.segments + 3
        with pytest.raises(OSError, match="Input/output error"):
            shipper.ship()
        with restored(FolderLocation(tmp_path / "backup"), tmp_path) as copy:
            assert items(copy) == before
        location.most = 10**6
        shipper.ship()
        with restored(FolderLocation(tmp_path / "backup"), tmp_path) as copy:
            assert items(copy) == items(engine)


def test_a_commit_just_before_the_transaction_is_renewed_stays_in_the_chain(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = FolderLocation(tmp_path / "backup")
    limits = ShippingLimits(held_frames=1, checkpoint_frames=1)
    with sqlite.open(path) as engine, Shipper(path, location, limits=limits) as shipper:
        renew = shipper._renew

        def commit_first() -> None:
            put(engine, 1_000, 500)
            renew()

        monkeypatch.setattr(shipper, "_renew", commit_first)
        for number in range(5):
            put(engine, number)
            shipper.ship()
        shipper.ship()
        assert len(Archive(location).generations()) == 1
        with restored(location, tmp_path) as copy:
            assert items(copy) == items(engine)


def test_the_log_does_not_grow_for_ever_while_a_location_fails(path: str, tmp_path: Path) -> None:
    location = FolderLocation(tmp_path / "backup")
    limits = ShippingLimits(most_frames=50)
    with sqlite.open(path) as engine, Shipper(path, location, limits=limits) as shipper:
        for number in range(40):
            put(engine, number, 2_000)
        shipper._let_log_continue()
        assert not shipper._reader.in_transaction
        shipper.ship()
        shipper.ship()
        assert len(Archive(location).generations()) == 2
        with restored(location, tmp_path) as copy:
            assert items(copy) == items(engine)


def test_pruning_keeps_every_moment_of_the_period(path: str, tmp_path: Path) -> None:
    clock, location = Clock(), FolderLocation(tmp_path / "backup")
    limits = ShippingLimits(held_frames=1, snapshot_seconds=100)
    with sqlite.open(path) as engine, Shipper(path, location, clock=clock, limits=limits) as shipper:
        start = clock()
        for number in range(20):
            clock.move(30)
            put(engine, number)
            shipper.ship()
            if shipper._snapshot is not None:
                shipper._snapshot.join()
                shipper.ship()
    before = prune(location, keep_seconds=300, clock=clock, dry_run=True)
    assert prune(location, keep_seconds=300, clock=clock) == before
    assert before.segments > 3
    assert prune(location, keep_seconds=300, clock=clock).segments == 0
    clock.move(60)
    for number in range(10, 20):
        with restored(location, tmp_path, at=start + 30 * (number + 1) + 1, clock=clock) as copy:
            assert len(items(copy)) == number + 1
    with pytest.raises(DataError, match="later than that"):
        restore_file(location, tmp_path / "early.db", at=start + 40)


def test_a_shipper_starts_again_after_all_but_a_snapshot_was_pruned(path: str, tmp_path: Path) -> None:
    clock, location = Clock(), FolderLocation(tmp_path / "backup")
    limits = ShippingLimits(held_frames=1, snapshot_seconds=0)
    with sqlite.open(path) as engine:
        for number in range(3):
            with Shipper(path, location, clock=clock, limits=limits) as shipper:
                for step in range(2):
                    put(engine, 10 * number + step)
                    shipper.ship()
                    if shipper._snapshot is not None:
                        shipper._snapshot.join()
            clock.move(100)
            prune(location, keep_seconds=1, clock=clock)
            with restored(location, tmp_path) as copy:
                assert items(copy) == items(engine)
        assert len(Archive(location).generations()) == 1
        for segment in (tmp_path / "backup").rglob("segments/*"):
            segment.unlink()
        with Shipper(path, location, clock=clock) as shipper:
            assert shipper.progress.sequence == 0
        with restored(location, tmp_path) as copy:
            assert items(copy) == items(engine)


def test_old_generations_are_pruned_whole(path: str, tmp_path: Path) -> None:
    clock, location = Clock(), FolderLocation(tmp_path / "backup")
    for number in range(3):
        with sqlite.open(path) as engine, Shipper(path, location, clock=clock) as shipper:
            put(engine, number)
            shipper.ship()
        clock.move(1_000)
    assert len(Archive(location).generations()) == 3
    assert prune(location, keep_seconds=500, clock=clock).generations == 2
    assert len(Archive(location).generations()) == 1
    assert len(list((tmp_path / "backup").iterdir())) == 1
    verify(location)


def test_a_backup_is_shipped_to_s3_and_restored(path: str, tmp_path: Path, s3_endpoint: str) -> None:
    client = s3_client(s3_endpoint, attempts=5)
    location = S3Location(client, new_bucket(s3_endpoint), prefix="nightly")
    with sqlite.open(path) as engine, Shipper(path, location) as shipper:
        for number in range(3):
            put(engine, number)
            shipper.ship()
        with restored(location, tmp_path) as copy:
            assert items(copy) == items(engine)
    prune(location, keep_seconds=1)
    verify(location)
    client.close()


def test_other_files_and_targets_that_exist_are_rejected(path: str, tmp_path: Path) -> None:
    location = FolderLocation(tmp_path / "backup")
    with pytest.raises(DataError, match="does not exist"):
        Shipper(str(tmp_path / "none.db"), location)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE x (y)")
    with pytest.raises(SolotableError, match="database of another program"):
        Shipper(str(other), location)
    with pytest.raises(DataError, match="has no backup"):
        restore_file(location, tmp_path / "copy.db")
    with Shipper(path, location):
        pass
    with pytest.raises(DataError, match="exists; restore to another name"):
        restore_file(location, path)
