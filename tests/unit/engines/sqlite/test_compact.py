"""Compacting: what it gives back, what it leaves alone, and what ends it in the middle."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from solotable._protocol.requests import DeleteItem, PutItem
from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.maintenance.checkup import examine
from solotable.engines.sqlite.maintenance.compact import compact
from solotable.errors import EngineError
from tests.waiting import wait_until

from .clocked import create, described, keys, opened, put
from .test_counts import GSI, TYPES

MANY = 3_000


@pytest.fixture
def loose(tmp_path: Path) -> Path:
    """A file of which nine tenths were deleted."""
    path = tmp_path / "loose.db"
    with opened(path) as engine:
        fill(engine)
    return path


def fill(engine: SqliteEngine) -> None:
    create(engine, types=TYPES, gsi=GSI)
    engine.handle_together(
        [
            PutItem(table="Things", item={"pk": {"S": str(place)}, "g": {"S": "x"}, "text": {"S": "y" * 900}})
            for place in range(MANY)
        ]
    )
    engine.handle_together(
        [DeleteItem(table="Things", key={"pk": {"S": str(place)}}) for place in range(MANY) if place % 10]
    )


LEFT = sorted(str(place) for place in range(0, MANY, 10))


def is_as_it_was(path: Path) -> None:
    assert examine(str(path)).problems == []
    with opened(path) as engine:
        assert keys(engine) == keys(engine, IndexName="all") == LEFT
        assert described(engine)["ItemCount"] == len(LEFT)


def test_the_free_pages_are_given_back(loose: Path) -> None:
    before = loose.stat().st_size
    steps: list[tuple[str, float]] = []
    done = compact(str(loose), lambda what, part: steps.append((what, part)))
    assert loose.stat().st_size < before / 5
    assert (done.bytes_before, done.bytes_after) == (before, loose.stat().st_size)
    assert not done.held_by_readers
    assert list(dict.fromkeys(what for what, _ in steps)) == [
        "count items",
        "copy pages",
        "truncate the file",
    ]
    assert all(0 <= part <= 1 for _, part in steps)
    is_as_it_was(loose)


def test_a_link_from_another_folder_is_followed(loose: Path) -> None:
    folder = loose.parent / "elsewhere"
    folder.mkdir()
    link = folder / "link.db"
    link.symlink_to(loose)
    with opened(loose) as engine:
        put(engine, "in the log")
        log = loose.with_name(f"{loose.name}-wal").stat().st_size
        before = loose.stat().st_size + log
        assert log > 0
        assert compact(str(link)).bytes_before >= before
    assert list(folder.iterdir()) == [link]


def test_an_engine_that_has_the_file_open_goes_on(loose: Path) -> None:
    with opened(loose) as engine:
        put(engine, "before")
        compact(str(loose))
        assert len(keys(engine)) == len(LEFT) + 1
        put(engine, "after")
        engine.call("DeleteItem", {"TableName": "Things", "Key": {"pk": {"S": "before"}}})
        engine.call("DeleteItem", {"TableName": "Things", "Key": {"pk": {"S": "after"}}})
    is_as_it_was(loose)


def test_writers_wait_and_lose_nothing(loose: Path) -> None:
    with opened(loose) as engine:
        stop = threading.Event()
        written: list[str] = []

        def work() -> None:
            while not stop.is_set():
                put(engine, f"new {len(written)}")
                written.append(f"new {len(written)}")

        thread = threading.Thread(target=work)
        thread.start()
        wait_until(lambda: written)
        compact(str(loose))
        stop.set()
        thread.join()
        assert keys(engine) == sorted(LEFT + written)
    assert examine(str(loose)).problems == []


def test_a_reader_keeps_the_old_pages_and_the_file_shrinks_after_it(loose: Path) -> None:
    before = loose.stat().st_size
    with opened(loose) as engine:
        with engine.database.snapshot() as connection:
            asked = f"SELECT count(*) FROM {engine.table('Things').items}"
            assert connection.execute(asked).fetchone() == (len(LEFT),)
            assert compact(str(loose)).held_by_readers
            assert connection.execute(asked).fetchone() == (len(LEFT),)
        put(engine, "x")
        engine.call("DeleteItem", {"TableName": "Things", "Key": {"pk": {"S": "x"}}})
    assert loose.stat().st_size < before / 5
    is_as_it_was(loose)


@pytest.mark.parametrize("moment", ["count items", "copy pages", "truncate the file"])
def test_a_kill_in_the_middle_leaves_the_file_sound(loose: Path, moment: str) -> None:
    program = (
        "import os, signal, sys\n"
        "from solotable.engines.sqlite.maintenance.compact import compact\n"
        "def tell(what, part):\n"
        "    if what == sys.argv[2] and (part or what != 'copy pages'):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "compact(sys.argv[1], tell)\n"
    )
    command = [sys.executable, "-c", program, str(loose), moment]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL  # noqa: S603  # the program above
    assert sorted(each.name for each in loose.parent.glob("*") if "loose.db" not in each.name) == []
    is_as_it_was(loose)
    compact(str(loose))
    is_as_it_was(loose)


def test_there_must_be_a_file(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="does not exist"):
        compact(str(tmp_path / "none.db"))
    assert list(tmp_path.iterdir()) == []


def test_wrong_counts_are_found_by_the_doctor_and_put_right(loose: Path) -> None:
    with opened(loose) as engine:
        engine.database.write(lambda connection: connection.execute("UPDATE counts SET items = items + 1"))
    (problem,) = examine(str(loose)).problems
    assert "run solotable compact to recount" in problem
    compact(str(loose))
    is_as_it_was(loose)
