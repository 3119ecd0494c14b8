"""`solotable compact` on a real file."""

from __future__ import annotations

from pathlib import Path

from tests.unit.engines.sqlite.clocked import opened
from tests.unit.engines.sqlite.test_compact import fill

from .conftest import Run


def test_it_prints_the_size_before_and_after(run: Run) -> None:
    with opened("shop.db") as engine:
        fill(engine)
    before = Path("shop.db").stat().st_size
    done = run("compact", "shop.db", "--json")
    assert done.code == 0
    assert done.json["bytes_before"] == before
    assert done.json["bytes_after"] == Path("shop.db").stat().st_size < before / 5
    again = run("compact", "shop.db")
    assert again.code == 0
    assert again.out.startswith("shop.db: ")
    assert "bytes before" in again.out


def test_a_missing_file_is_not_created(run: Run) -> None:
    assert run("compact", "none.db").code == 3
    assert not Path("none.db").exists()
