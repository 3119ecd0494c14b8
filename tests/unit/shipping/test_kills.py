"""kill -9 before every operation on a file: of ship, snapshot, prune and restore. Nothing is lost or left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from solotable.engines import sqlite
from solotable.errors import DataError
from solotable.locations import FolderLocation
from solotable.shipping import Shipper, ShippingLimits, prune, restore_file
from solotable.shipping.archive import Archive
from tests.killing import kill_at_each_step
from tests.unit.engines.sqlite.clocked import Clock

from .databases import items, new_database, put

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

#: Every call renews its transaction, runs a checkpoint and begins a snapshot.
BUSY = ShippingLimits(segment_pages=4, held_frames=1, checkpoint_frames=1, snapshot_seconds=0)


class Image:
    """A folder as a crash leaves it, with the database, its log and its backup; `reset` restores it."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.path = str(work / "shop.db")
        self.location = FolderLocation(work / "backup")
        self._kept = work.with_name(f"{work.name}-kept")

    def keep(self) -> None:
        """Remember the folder; the index of the log is not kept, as after a crash."""
        shutil.copytree(self.work, self._kept, ignore=shutil.ignore_patterns("*-shm"))

    def reset(self) -> None:
        shutil.rmtree(self.work)
        shutil.copytree(self._kept, self.work)

    def restored(self) -> list[str]:
        """Return the items of the restored backup."""
        target = self.work / "copy.db"
        restore_file(self.location, target)
        try:
            with sqlite.open(target, durability="relaxed") as engine:
                return items(engine)
        finally:
            for each in self.work.glob("copy.db*"):
                each.unlink()

    def files(self) -> set[str]:
        return {
            str(each.relative_to(self.work)) for each in (self.work / "backup").rglob("*") if each.is_file()
        }

    def unknown_files(self) -> set[str]:
        """Return the files of the backup that no restore can use."""
        archive = Archive(self.location)
        known = set()
        for generation in archive.generations():
            for number in archive.snapshots(generation):
                name = f"backup/{generation}/snapshots/{number:012d}"
                known |= {f"{name}.json", f"{name}.db.gz"}
            known |= {f"backup/{generation}/segments/{each:012d}" for each in archive.segments(generation)}
        return self.files() - known


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: a killed process loses nothing that was not synced."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder below it has a random name
    with TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        found = Path(folder, "work")
        found.mkdir()
        yield found


@pytest.fixture
def image(work: Path) -> Image:
    """A shipped database with two commits after the last segment."""
    image = Image(work)
    new_database(image.path)
    with sqlite.open(image.path) as engine:
        with Shipper(image.path, image.location) as shipper:
            put(engine, 1)
            shipper.ship()
        for number in (2, 3):
            put(engine, number, 9_000)
        image.keep()
    return image


def test_a_ship_that_is_killed_at_any_step_loses_nothing_and_continues(image: Image) -> None:
    """Ship, checkpoint and snapshot; what is left by kills is deleted by the next prune."""
    image.reset()
    with sqlite.open(image.path) as engine:
        everything = items(engine)
    image.reset()
    before = image.restored()
    assert len(before) < len(everything)

    def ship() -> None:
        with Shipper(image.path, image.location, limits=BUSY) as shipper:
            for _ in range(3):
                shipper.ship()
                if shipper._snapshot is not None:
                    shipper._snapshot.join()

    def check() -> None:
        assert image.restored() in (before, everything)
        ship()
        prune(image.location, keep_seconds=1e6, leftover_seconds=0)
        assert image.unknown_files() == set()
        assert image.restored() == everything
        image.reset()

    assert kill_at_each_step(image.work, ship, check, every=8) > 20


def test_the_first_ship_that_is_killed_at_any_step_is_repeated(image: Image) -> None:
    with sqlite.open(image.path) as engine:
        everything = items(engine)
    image.reset()
    shutil.rmtree(image.work / "backup")
    shutil.rmtree(image._kept / "backup")

    def ship() -> None:
        with Shipper(image.path, image.location) as shipper:
            shipper.ship()

    def check() -> None:
        ship()
        assert image.restored() == everything
        prune(image.location, keep_seconds=1e6, leftover_seconds=0)
        assert image.unknown_files() == set()
        image.reset()

    assert kill_at_each_step(image.work, ship, check, every=5) > 5


def test_a_prune_that_is_killed_at_any_step_keeps_the_period_and_is_repeated(work: Path) -> None:
    """Two generations, each with two snapshots; half of the moments are in the period."""
    image, clock = Image(work), Clock()
    new_database(image.path)
    states: list[tuple[float, list[str]]] = []
    limits = ShippingLimits(held_frames=1, snapshot_seconds=100)
    for _ in range(2):
        with (
            sqlite.open(image.path) as engine,
            Shipper(image.path, image.location, clock=clock, limits=limits) as shipper,
        ):
            for _ in range(4):
                clock.move(60)
                put(engine, len(states), 100)
                shipper.ship()
                if shipper._snapshot is not None:
                    shipper._snapshot.join()
                    shipper.ship()
                states.append((clock(), items(engine)))
    image.keep()
    keep_seconds = clock() - states[6][0]

    def run_prune() -> None:
        prune(image.location, keep_seconds=keep_seconds, clock=clock, leftover_seconds=0)

    run_prune()
    expected = image.files()
    image.reset()
    assert len(expected) < len(image.files())

    def check() -> None:
        for at, state in states[6:]:
            restore_file(image.location, work / "then.db", at=at)
            with sqlite.open(work / "then.db") as engine:
                assert items(engine) == state
            for each in work.glob("then.db*"):
                each.unlink()
        run_prune()
        assert image.files() == expected
        image.reset()

    assert kill_at_each_step(work, run_prune, check, every=4) > 5


def test_a_restore_that_is_killed_at_any_step_leaves_no_part_of_a_file(image: Image) -> None:
    image.reset()
    target = image.work / "new.db"
    expected = image.restored()

    def restore() -> None:
        restore_file(image.location, target)

    def check() -> None:
        # The target is complete, or it does not exist.
        with suppress(DataError):
            restore()
        with sqlite.open(target) as engine:
            assert items(engine) == expected
        names = {each.name for each in image.work.iterdir()}
        assert names == {"backup", "new.db", "new.db-lock", "shop.db", "shop.db-lock", "shop.db-wal"}
        image.reset()

    assert kill_at_each_step(image.work, restore, check, every=2) > 3
