"""A file of layout 1: read as it is, and brought up to date when it is opened to be written."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.counts import recount
from solotable.engines.sqlite.maintenance import index_backfill
from solotable.engines.sqlite.maintenance.checkup import examine
from solotable.engines.sqlite.tables import layout as ddl
from solotable.errors import Corrupt, ReadOnly
from tests.waiting import HANG_SECONDS

from . import layout_1
from .clocked import START, Clock, create, described, keys, opened, put
from .test_counts import GSI, TYPES, counted, kept
from .test_ttl_sweeper import SETTING, at, status

ITEMS = 40


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file of layout 1 with indexes, a time to live, and an item that has expired."""
    path = tmp_path / "old.db"
    with opened(clock=Clock()) as engine:
        create(engine, types=TYPES, gsi=GSI)
        engine.call("UpdateTimeToLive", SETTING)
        for place in range(ITEMS):
            put(
                engine,
                str(place),
                g={"S": "x" * (1 + place % 3)},
                h={"N": str(place)},
                expires=at(START + place - 1),
            )
        layout_1.write(engine, path)
    return path


def layout(path: Path) -> int:
    connection = sqlite3.connect(path)
    found = ddl.layout_of(connection)
    connection.close()
    return found


def is_upgraded(path: Path) -> None:
    """Compare everything that layout 2 adds with the items."""
    assert layout(path) == ddl.VERSION
    with opened(path, Clock()) as engine:
        recount.wait(engine, HANG_SECONDS)
        index_backfill.wait(engine, HANG_SECONDS)
        assert kept(engine) == counted(engine)
        assert described(engine)["ItemCount"] == ITEMS
        assert status(engine) == "ENABLED"
    assert examine(str(path)).problems == []
    with opened(path, Clock()) as engine:
        assert engine.sweep() == 1
        assert len(keys(engine, IndexName="all")) == ITEMS - 1
    assert examine(str(path)).problems == []


def test_a_file_of_layout_1_is_upgraded_when_it_is_opened(old: Path) -> None:
    assert layout(old) == 1
    opened(old, Clock()).close()
    is_upgraded(old)


def test_a_file_of_layout_1_is_read_as_it_is(old: Path) -> None:
    before = old.read_bytes()
    with sqlite.open(old, read_only=True) as engine:
        got = described(engine)
        assert got["ItemCount"] == ITEMS
        assert [one["ItemCount"] for one in got["GlobalSecondaryIndexes"]] == [ITEMS] * 3
        assert status(engine) == "ENABLED"
        assert len(keys(engine, IndexName="keys")) == len(keys(engine)) == ITEMS
        with pytest.raises(ReadOnly):
            put(engine, "new")
    assert layout(old) == 1
    assert old.read_bytes() == before
    assert [each for each in examine(str(old)).advice if "older layout" in each]


def test_a_damaged_item_does_not_keep_a_file_from_being_upgraded(old: Path) -> None:
    connection = sqlite3.connect(old)
    connection.execute("UPDATE t1_3 SET item = x'00', size = 'x' WHERE id = 7")
    connection.commit()
    connection.close()
    with opened(old, Clock()) as engine:
        assert described(engine)["ItemCount"] == ITEMS
        with pytest.raises(Corrupt):
            keys(engine)
        put(engine, "new")
    assert layout(old) == ddl.VERSION


def test_the_doctor_finds_a_file_of_layout_1_sound(old: Path) -> None:
    found = examine(str(old))
    assert (found.layout, found.problems, found.tables) == (1, [], {"Things": ITEMS})


@pytest.mark.parametrize(
    "moment", ["CREATE TABLE counts", "CREATE TABLE e", "PRAGMA user_version =", "COMMIT"]
)
def test_a_kill_in_the_middle_leaves_the_file_as_it_was(old: Path, moment: str) -> None:
    program = (
        "import os, signal, sqlite3, sys\n"
        "from solotable.engines.sqlite import SqliteEngine\n"
        "class Killing(sqlite3.Connection):\n"
        "    def execute(self, sql, *parameters):\n"
        "        if sql.startswith(sys.argv[2]):\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return super().execute(sql, *parameters)\n"
        "SqliteEngine(sys.argv[1], connect=lambda *a, **o: sqlite3.connect(*a, factory=Killing, **o))\n"
    )
    command = [sys.executable, "-c", program, str(old), moment]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL  # noqa: S603  # the program above
    assert layout(old) == 1
    opened(old, Clock()).close()
    is_upgraded(old)


def test_of_two_processes_that_open_it_at_once_one_upgrades(old: Path) -> None:
    program = (
        "import sys\n"
        "from solotable.engines import sqlite\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "sqlite.open(sys.argv[1]).close()\n"
    )
    both = [
        subprocess.Popen(  # noqa: S603  # the program above
            [sys.executable, "-c", program, str(old)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for child in both:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in both:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in both:
        child.communicate(timeout=HANG_SECONDS)
        assert child.returncode == 0
    is_upgraded(old)


def test_an_engine_that_reads_goes_on_while_another_upgrades(old: Path) -> None:
    with SqliteEngine(str(old), read_only=True) as reader:
        assert described(reader)["ItemCount"] == ITEMS
        opened(old, Clock()).close()
        assert described(reader)["ItemCount"] == ITEMS
        assert len(keys(reader)) == ITEMS
