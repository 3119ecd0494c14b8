"""64 callers use each verb on the same items: every count is exact at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from solotable.engines.sqlite.maintenance.checkup import examine
from tests.killing import Start
from tests.serving import served

from .crowd import Board, call_all, check, forum
from .size import LIMIT_SECONDS, amount, report

CALLERS = 64
PROCESSES = 4
SHARE = amount(1, 50)

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """A file with an empty forum, which is sound at the end."""
    path = tmp_path / "forum.db"
    with forum.open(f"sqlite:///{path}") as db:
        db.create(Board(board="b"))
    yield path
    assert examine(str(path)).problems == []


def test_threads_on_a_file(file: Path) -> None:
    with forum.open(f"sqlite:///{file}") as db:
        deleted = call_all(db, 0, CALLERS, SHARE)
        check(db, CALLERS, SHARE, deleted)
    report(f"crowd: {CALLERS} threads, {CALLERS * SHARE} rounds, {deleted} notes deleted, exact")


def test_threads_on_a_server(file: Path) -> None:
    with served(str(file)) as server, forum.open(server.url) as db:
        deleted = call_all(db, 0, CALLERS, SHARE)
        check(db, CALLERS, SHARE, deleted)
    report(f"crowd: {CALLERS} threads over HTTP, {CALLERS * SHARE} rounds, {deleted} notes deleted, exact")


@pytest.mark.parametrize("place", ["file", "server"])
def test_processes(place: str, file: Path, start: Start) -> None:
    with served(str(file)) as server:
        url = server.url if place == "server" else f"sqlite:///{file}"
        each = CALLERS // PROCESSES
        programs = [
            start("-m", "tests.torture.crowd", url, str(first), str(first + each), str(SHARE))
            for first in range(0, CALLERS, each)
        ]
        told = [program.end() for program in programs]
        assert all(len(lines) == 1 for lines in told), told
        deleted = sum(int(lines[0].removeprefix("deleted ")) for lines in told)
        with forum.open(url) as db:
            check(db, CALLERS, SHARE, deleted)
    report(f"crowd: {PROCESSES} processes on a {place}, {CALLERS * SHARE} rounds, {deleted} deleted, exact")
