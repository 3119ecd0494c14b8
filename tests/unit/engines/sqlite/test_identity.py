"""Which file an engine reads and writes, whatever happens to names around it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.errors import EngineError, FileReplaced, ReadOnly

from .forking import TABLE


def create(path: Path | str) -> SqliteEngine:
    engine = sqlite.open(path)
    engine.call("CreateTable", TABLE)
    return engine


def put(engine: SqliteEngine, key: str) -> None:
    engine.call("PutItem", {"TableName": "Things", "Item": {"pk": {"S": key}}})


def keys(engine: SqliteEngine) -> set[str]:
    return {item["pk"]["S"] for item in engine.call("Scan", {"TableName": "Things"})["Items"]}


#: More writes than a millisecond has room for: so soon a missing file is noticed.
_MANY = 10_000


def put_until_refused(engine: SqliteEngine) -> None:
    for number in range(_MANY):
        put(engine, f"lost{number}")


def test_a_relative_path_stays_where_it_was_after_chdir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        with create(folder / "shop.db") as engine:
            put(engine, folder.name)
    monkeypatch.chdir(here)
    with sqlite.open("shop.db") as engine:
        monkeypatch.chdir(there)
        # More reads at once than there are idle connections: each opens another one.
        with engine.database.snapshot(), engine.database.snapshot():
            assert keys(engine) == {"here"}
        put(engine, "more")
        assert keys(engine) == {"here", "more"}
    assert sorted(path.name for path in there.iterdir()) == ["shop.db", "shop.db-lock"]


def test_a_symbolic_link_leads_to_one_file_with_one_lock(tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "alias.db"
    link.symlink_to(tmp_path / "shop.db")
    with create(link) as first, sqlite.open(tmp_path / "shop.db") as second:
        put(first, "a")
        put(second, "b")
        assert keys(first) == keys(second) == {"a", "b"}
        # The link is only looked at when the file is opened.
        link.unlink()
        link.symlink_to(tmp_path / "other.db")
        put(first, "c")
        assert keys(second) == {"a", "b", "c"}
    assert [path.name for path in (tmp_path / "links").iterdir()] == ["alias.db"]


def test_a_file_with_two_names_is_rejected(tmp_path: Path) -> None:
    with create(tmp_path / "shop.db"):
        pass
    (tmp_path / "copy.db").hardlink_to(tmp_path / "shop.db")
    for read_only in (False, True):
        with pytest.raises(EngineError, match="2 names"):
            sqlite.open(tmp_path / "copy.db", read_only=read_only)
    (tmp_path / "copy.db").unlink()
    with sqlite.open(tmp_path / "shop.db") as engine:
        assert keys(engine) == set()


def test_a_removed_database_acknowledges_nothing(tmp_path: Path) -> None:
    with create(tmp_path / "shop.db") as engine:
        put(engine, "a")
        for path in tmp_path.glob("shop.db*"):
            path.unlink()
        with pytest.raises(FileReplaced, match="removed or replaced"):
            put_until_refused(engine)
        assert list(tmp_path.glob("shop.db")) == []
        # A new file under the same name is another database.
        with create(tmp_path / "shop.db") as other:
            put(other, "c")
            with pytest.raises(FileReplaced):
                put_until_refused(engine)
            assert keys(other) == {"c"}


def test_a_replaced_database_is_not_written_to(tmp_path: Path) -> None:
    with create(tmp_path / "other.db") as other:
        put(other, "other")
    with create(tmp_path / "shop.db") as engine:
        put(engine, "a")
        shutil.copy(tmp_path / "other.db", tmp_path / "new.db")
        (tmp_path / "new.db").replace(tmp_path / "shop.db")
        with pytest.raises(FileReplaced):
            put_until_refused(engine)
        with pytest.raises(FileReplaced), engine.database.snapshot(), engine.database.snapshot():
            # A connection that is opened now would read the other file.
            pytest.fail("read from another file")


@pytest.mark.parametrize("part", ["-wal", "-shm"])
@pytest.mark.parametrize("written", [True, False])
def test_a_removed_log_is_noticed(tmp_path: Path, part: str, written: bool) -> None:
    with create(tmp_path / "shop.db"):
        pass
    with sqlite.open(tmp_path / "shop.db") as engine:
        if written:
            put(engine, "a")
        (tmp_path / f"shop.db{part}").unlink()
        with pytest.raises(FileReplaced, match="-wal or -shm"):
            put_until_refused(engine)


def test_a_removed_lock_file_is_made_again(tmp_path: Path) -> None:
    with create(tmp_path / "shop.db") as engine:
        (tmp_path / "shop.db-lock").unlink()
        for number in range(_MANY):
            put(engine, f"a{number}")
            if (tmp_path / "shop.db-lock").exists():
                return
    pytest.fail("the lock file is still missing")


_UNPRIVILEGED = 65534

#: Every module is imported before the privileges are gone: Python itself may lie where only root reads.
_WITHOUT_PRIVILEGES = """
import os, sys
from pathlib import Path
import tests.unit.engines.sqlite.test_identity as scenarios
with scenarios.create(":memory:") as warm:
    scenarios.put(warm, "x"); scenarios.keys(warm)
if os.getuid() == 0:
    os.setuid(65534)
getattr(scenarios, sys.argv[1])(Path(sys.argv[2]))
"""


def without_privileges(scenario: str, folder: Path) -> None:
    """Run a scenario of this module as a user who may not write to the folder."""
    for each in (folder, *folder.iterdir()):
        each.chmod(0o555 if each.is_dir() else 0o444)
    try:
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", _WITHOUT_PRIVILEGES, scenario, str(folder)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    finally:
        folder.chmod(0o755)


def read_in_place(folder: Path) -> None:
    with sqlite.open(folder / "shop.db", read_only=True) as engine:
        with engine.database.snapshot(), engine.database.snapshot():
            assert keys(engine) == {"a"}
        with pytest.raises(ReadOnly):
            put(engine, "b")
    assert sorted(path.name for path in folder.iterdir()) == ["shop.db", "shop.db-lock"]


def write_in_place(folder: Path) -> None:
    for name in ("shop.db", "new.db"):
        with pytest.raises(EngineError, match=r"cannot be (opened for writing|created): Permission denied"):
            sqlite.open(folder / name)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions work otherwise on Windows")
@pytest.mark.parametrize("scenario", ["read_in_place", "write_in_place"])
def test_a_folder_that_is_not_writable(scenario: str) -> None:
    # pytest's own folders are closed to other users.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with create(folder / "shop.db") as engine:
            put(engine, "a")
        without_privileges(scenario, folder)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions work otherwise on Windows")
def test_a_folder_that_cannot_be_looked_into(tmp_path: Path) -> None:
    with create(tmp_path / "shop.db"):
        pass
    without_privileges("open_unseen", tmp_path)


def open_unseen(folder: Path) -> None:
    for read_only in (False, True):
        with pytest.raises(EngineError, match="Permission denied"):
            sqlite.open(folder / "shop.db", read_only=read_only)


def test_a_file_read_as_immutable_is_given_up_once_it_is_written(tmp_path: Path) -> None:
    with create(tmp_path / "shop.db") as engine:
        put(engine, "a")
    reader = sqlite.open(tmp_path / "shop.db", read_only=True)
    file = reader.database._file
    assert file is not None
    reader.database._close_readers()
    assert file.switch_to_immutable()
    assert keys(reader) == {"a"}
    with sqlite.open(tmp_path / "shop.db") as engine:
        put(engine, "b")
        with pytest.raises(FileReplaced, match="another process writes it"):
            [keys(reader) for _ in range(_MANY)]
    reader.close()
