"""`solotable backfill` and `solotable schema versions` on a real file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from solotable import Entity, Key, Table

from .conftest import Run

MODELS = """
from typing import Any
from solotable import Entity, Index, Key, Table, upgrade

app = Table("App", indexes=[Index("GSI1")])

class Profile(Entity, table=app, schema_version=2):
    key = Key("USER#{user_id}", "PROFILE")
    by_city = Key("CITY#{city}", "USER#{user_id}", index="GSI1")
    user_id: str
    city: str
    cents: int

    @upgrade(to=2, replaces=("price",))
    @staticmethod
    def to_cents(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "cents": int(record["price"]) * 100}

class Plain(Entity, table=app):
    key = Key("PLAIN#{plain_id}", "PLAIN")
    plain_id: str
"""
app = Table("App")


class Profile(Entity, table=app):
    key = Key("USER#{user_id}", "PROFILE")
    user_id: str
    city: str
    price: str


@pytest.fixture
def shop(run: Run, tmp_path: Path) -> Run:
    """Run commands on a file with 12 old items, with the models of the next release."""
    (tmp_path / "evolved.py").write_text(MODELS)
    with app.open("sqlite:///survey.db") as db:
        for number in range(12):
            db.put(Profile(user_id=str(number), city="Rome", price=str(number)))

    def run_(*arguments: str) -> object:
        return run(*arguments, "-m", "evolved.py")

    return run_  # type: ignore[return-value]  # also a Run


def test_items_are_counted_backfilled_and_counted_again(shop: Run) -> None:
    (before,) = shop("schema", "versions", "--json").json
    assert (before["old"], before["by_schema_version"], before["stale_keys"]) == (12, {"1": 12}, 12)
    dry = shop("backfill", "Profile", "--dry-run")
    assert (dry.code, "12 to upgrade" in dry.out) == (0, True)
    done = shop("backfill", "Profile", "--json", "--segments", "2", "--rate", "100000")
    assert done.code == 0
    assert (done.json["tally"]["upgraded"], done.json["done"]) == (12, True)
    table = shop("schema", "versions", "Profile")
    assert table.out.splitlines()[2].split() == ["Profile", "12", "2", "0", "2:", "12", "0", "0", "0"]


def test_it_resumes_at_its_checkpoint_or_restarts(shop: Run) -> None:
    stopped = shop("backfill", "Profile", "--budget", "5")
    assert (stopped.code, "reached its budget" in stopped.err) == (1, True)
    assert "segments=1" in shop("backfill", "Profile", "--segments", "3").err
    assert shop("backfill", "Profile", "--json").json["resumed"] is True
    assert shop("backfill", "Profile", "--json", "--restart").json["resumed"] is False


def test_it_exits_with_1_if_an_item_cannot_be_rewritten(shop: Run) -> None:
    with app.open("sqlite:///survey.db") as db:
        db.put(Profile(user_id="bad", city="Rome", price="dear"))
    done = shop("backfill", "Profile")
    assert done.code == 1
    assert "13 items read, 12 upgraded" in done.out
    assert "Not rewritten: 1 item;" in done.out
    assert "to_cents (upgrade to schema version 2) failed" in done.err


def test_it_explains_usage_errors(shop: Run) -> None:
    assert "No such entity 'Unknown'" in shop("backfill", "Unknown").err
    assert "No such file: nowhere.db" in shop("schema", "versions", "-d", "sqlite:///nowhere.db").err


def test_a_terminal_gets_a_progress_bar(shop: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    shown = shop("backfill", "Profile")
    assert shown.code == 0
    # The job's checkpoint is an item of the table, too.
    assert "13/13" in shown.err
