"""What a shipped backup rejects: clocks that go back, two shippers, forks, crafted and newer files."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from solotable.engines import sqlite
from solotable.errors import DamagedBackup, DataError, EngineError
from solotable.locations import FolderLocation, Location, S3Location
from solotable.shipping import Shipper, ShippingLimits, prune, records, restore_file, verify
from solotable.shipping.archive import Archive, newest_header
from tests.s3_server import new_bucket, s3_client
from tests.unit.engines.sqlite.clocked import DAY, Clock

from .databases import items, new_database, put


@pytest.fixture
def path(tmp_path: Path) -> str:
    found = str(tmp_path / "shop.db")
    new_database(found)
    return found


def restored(location: Location, target: Path) -> list[str]:
    restore_file(location, target)
    with sqlite.open(target) as engine:
        return items(engine)


def test_a_clock_that_goes_back_does_not_hide_the_newest_state(path: str, tmp_path: Path) -> None:
    """A generation that begins after the clock went back is still the newest, and snapshots go on."""
    clock, location = Clock(), FolderLocation(tmp_path / "backup")
    limits = ShippingLimits(held_frames=1, snapshot_seconds=100)
    everything: list[str] = []
    for number in range(3):
        with sqlite.open(path) as engine:
            with Shipper(path, location, clock=clock, limits=limits) as shipper:
                put(engine, number)
                shipper.ship()
                clock.move(-DAY)
                put(engine, 10 + number)
                shipper.ship()
                assert shipper._snapshot is not None, "the old snapshot is of the future"
                shipper._snapshot.join()
                shipper.ship()
            everything = items(engine)
        assert restored(location, tmp_path / f"copy{number}.db") == everything
    times = [Archive(location).snapshot_header(each, 0).micros for each in Archive(location).generations()]
    assert times == sorted(times)
    prune(location, keep_seconds=1, clock=clock)
    assert restored(location, tmp_path / "pruned.db") == everything


@pytest.mark.parametrize("kind", ["folder", "s3"])
def test_a_second_shipper_is_refused_and_the_first_goes_on(
    path: str, tmp_path: Path, s3_endpoint: str, kind: str
) -> None:
    client = s3_client(s3_endpoint)
    location: Location = FolderLocation(tmp_path / "backup")
    if kind == "s3":
        location = S3Location(client, new_bucket(s3_endpoint))
    with sqlite.open(path) as engine, Shipper(path, location) as first:
        put(engine, 1)
        first.ship()
        second = Shipper(path, location)
        put(engine, 2)
        first.ship()
        put(engine, 3)
        with pytest.raises(DataError, match=r"Another shipper stores backups at .+ Stop it, or give each"):
            second.ship()
        second.close()
        first.ship()
        assert restored(location, tmp_path / "copy.db") == items(engine)
    client.close()


def test_a_shipper_notices_that_another_one_has_begun_a_generation(path: str, tmp_path: Path) -> None:
    location = FolderLocation(tmp_path / "backup")
    limits = ShippingLimits(check_seconds=0)
    with sqlite.open(path) as engine, Shipper(path, location, limits=limits) as first:
        with Shipper(path, location) as second:
            second._begin_generation()
        put(engine, 1)
        with pytest.raises(DataError, match="Another shipper"):
            first.ship()


def test_a_segment_whose_reply_was_lost_is_stored_once(path: str, tmp_path: Path) -> None:
    class Forgetful(FolderLocation):
        @contextmanager
        def create(self, name: str, **options: Any) -> Iterator[Any]:
            is_new = "/segments/" in name and not list(self.list(str(Path(name).parent)))
            with super().create(name, **options) as file:
                yield file
            if is_new:
                raise OSError(5, "the reply was lost")

    location = Forgetful(tmp_path / "backup")
    with sqlite.open(path) as engine, Shipper(path, location) as shipper:
        put(engine, 1)
        with pytest.raises(OSError, match="reply was lost"):
            shipper.ship()
        shipper.ship()
        assert restored(location, tmp_path / "copy.db") == items(engine)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_does_not_use_the_shipper_of_its_parent(path: str, tmp_path: Path) -> None:
    location = FolderLocation(tmp_path / "backup")
    with Shipper(path, location) as shipper:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                try:
                    shipper.ship()
                except EngineError as error:
                    code = 0 if "open another one in it" in str(error) else 2
                shipper.close()
                refused, code = code, 3
                # The connection is the parent's: close() leaves it open.
                shipper._reader.execute("SELECT 1")
                code = refused
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        with sqlite.open(path) as engine:
            put(engine, 1)
            shipper.ship()
            assert restored(location, tmp_path / "copy.db") == items(engine)


def forge(file: Path, packed: bytes | None = None, **members: Any) -> None:
    """Change a record so that its own checksum is right."""
    line, _, rest = file.read_bytes().split(b"\n", 2)
    changed = {**json.loads(line), **members}
    if packed is not None:
        rest = packed
        changed["payload"] = hashlib.sha256(packed).hexdigest()
    text = json.dumps(changed, separators=(",", ":")).encode()
    file.write_bytes(text + b"\n" + hashlib.sha256(text).hexdigest().encode() + b"\n" + rest)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"version": 2}, "is of a newer version of solotable; upgrade to read it"),
        ({"version": 0}, "has a header that solotable did not write"),
        ({"pages": -1}, "has a header that solotable did not write"),
        ({"page_size": 0}, "has a header that solotable did not write"),
        ({"micros": "soon"}, "has a header that solotable did not write"),
        ({"salts": [1]}, "has a header that solotable did not write"),
        ({"salts": None}, "has a header that solotable did not write"),
        ({"generation": None}, "has a header that solotable did not write"),
        ({"more": 1}, "has a header that solotable did not write"),
        ({"sequence": 7}, "is number 7 of generation"),
        ({"payload": "0" * 64}, "does not match its checksum"),
        ({"previous": "0" * 64}, "does not follow the segment before it"),
        # A whole, compressed page with the number 0, and a part of one.
        ({"packed": zlib.compress(bytes(4 + 4096))}, "has a page 0"),
        ({"packed": zlib.compress(bytes(100))}, "has a part of a page"),
        ({"packed": b"not zlib"}, "cannot be unpacked"),
        ({"packed": zlib.compress(bytes(4 + 4096))[:-6]}, "is cut, or unpacks to over"),
    ],
)
def test_a_segment_that_solotable_did_not_write_is_rejected_by_name(
    path: str, tmp_path: Path, members: dict[str, Any], message: str
) -> None:
    location = FolderLocation(tmp_path / "backup")
    with sqlite.open(path) as engine, Shipper(path, location) as shipper:
        put(engine, 1)
        shipper.ship()
    (segment,) = (tmp_path / "backup").rglob("segments/*")
    forge(segment, **members)
    with pytest.raises(DamagedBackup, match=message) as refused:
        verify(location)
    assert refused.value.file.endswith("segments/000000000001")


def test_a_segment_does_not_unpack_to_more_than_memory_holds(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = FolderLocation(tmp_path / "backup")
    with sqlite.open(path) as engine, Shipper(path, location) as shipper:
        put(engine, 1)
        shipper.ship()
    (segment,) = (tmp_path / "backup").rglob("segments/*")
    forge(segment, zlib.compress((b"\0\0\0\1" + bytes(4096)) * 1_000))
    monkeypatch.setattr(records, "LARGEST_SEGMENT", 100 * 4_100)
    with pytest.raises(DamagedBackup, match="unpacks to over 410,000 bytes"):
        verify(location)


@pytest.mark.parametrize("at", [4e9, float("inf"), float("nan")])
def test_a_moment_in_the_future_is_rejected(path: str, tmp_path: Path, at: float) -> None:
    location = FolderLocation(tmp_path / "backup")
    with Shipper(path, location):
        pass
    with pytest.raises(DataError, match="is in the future; leave it out"):
        restore_file(location, tmp_path / "copy.db", at=at)
    assert not list(tmp_path.glob("*copy*"))
    # The clock of the machine that ships may be ahead of this one.
    newest = newest_header(Archive(location)).micros / 1e6
    restore_file(location, tmp_path / "copy.db", at=newest, clock=lambda: newest - 60)


def test_a_log_beside_the_target_is_not_taken_for_its_own(path: str, tmp_path: Path) -> None:
    """SQLite would play the log of a deleted database into the restored one."""
    location = FolderLocation(tmp_path / "backup")
    with Shipper(path, location):
        pass
    (tmp_path / "copy.db-wal").write_bytes(b"old")
    with pytest.raises(DataError, match=r"copy\.db-wal exists; restore to another name, or remove it first"):
        restore_file(location, tmp_path / "copy.db")


def test_a_full_disk_is_not_called_a_damaged_backup(path: str, tmp_path: Path) -> None:
    class Full(io.BytesIO):
        def write(self, data: Any, /) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    archive = Archive(FolderLocation(tmp_path / "backup"))
    with Shipper(path, archive.location):
        pass
    with pytest.raises(OSError, match="No space left on device"):
        archive.unpack_snapshot(newest_header(archive), Full())
