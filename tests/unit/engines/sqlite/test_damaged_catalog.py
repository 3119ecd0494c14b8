"""A damaged catalog is reported as damage: its tables do not seem to be missing."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from solotable.engines.sqlite import SqliteEngine
from solotable.errors import Corrupt, EngineError, TableNotFound

from .clocked import create, opened, put


def write_file(path: Path) -> bytes:
    with opened(path) as engine:
        create(engine)
        put(engine, "1")
    return path.read_bytes()


def test_a_table_whose_name_is_damaged_is_not_missing(tmp_path: Path) -> None:
    """Each byte of each name in the file: in the catalog, in its index and in the definition."""
    whole = write_file(tmp_path / "whole.db")
    answers = Counter(
        answer(tmp_path, whole, at)
        for place in re.finditer(b"Things", whole)
        for at in range(place.start(), place.end())
    )
    # The index alone finds a table whose name is damaged in its row.
    assert answers.keys() == {"damaged", "found"}
    assert answers["damaged"] >= 2 * len("Things")


def answer(folder: Path, whole: bytes, at: int) -> str:
    """Flip a bit of the file, and say what becomes of its table."""
    damaged = bytearray(whole)
    damaged[at] ^= 0x80 if at % 2 else 0x01
    path = folder / "damaged.db"
    path.write_bytes(damaged)
    try:
        with SqliteEngine(str(path)) as engine:
            try:
                description = engine.call("DescribeTable", {"TableName": "Things"})["Table"]
            except TableNotFound:
                create(engine)
                return "lost"
            return "found" if description["TableName"] == "Things" else "wrong"
    except EngineError:
        return "damaged"


def test_a_table_is_not_created_in_place_of_one_that_the_catalog_lost(tmp_path: Path) -> None:
    path = tmp_path / "things.db"
    write_file(path)
    with opened(path) as engine:
        engine.database.write(lambda connection: connection.execute("DELETE FROM catalog"))
    with opened(path) as engine, pytest.raises(Corrupt, match="lacks a table whose items are in the file"):
        create(engine)
