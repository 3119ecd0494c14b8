"""`solotable backup` on a real file, from the accident of the guide to the restored tenant."""

from __future__ import annotations

import io
import json
import re
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from tests.conformance.tables import index, table
from tests.unit.engines.sqlite.recovery.past import recovery, scan

from .conftest import Run

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "backup.md"
HOUR = 3_600.0


def item(tenant: str, order: int, total: int = 1) -> dict[str, Any]:
    return {
        "pk": {"S": f"TENANT#{tenant}"},
        "sk": {"S": f"ORDER#{order}"},
        "tenant_id": {"S": tenant},
        "total": {"N": str(total)},
        "g": {"S": str(total % 3)},
    }


def fill(path: str = "shop.db") -> SqliteEngine:
    """Two tenants an hour ago; five minutes ago, one of them was deleted and the other one changed."""
    now = time.time()
    moment = now - HOUR
    engine = sqlite.open(path, durability="relaxed", clock=lambda: moment)
    engine.call("CreateTable", table("shop", "pk:S", "sk:S", types={"g": "S"}, gsi=[index("by-g", "g")]))
    for tenant in ("acme", "zeta"):
        for order in range(5):
            engine.call("PutItem", {"TableName": "shop", "Item": item(tenant, order)})
    engine.call("UpdateContinuousBackups", recovery("shop"))
    for order in range(5, 8):
        engine.call("PutItem", {"TableName": "shop", "Item": item("acme", order)})
    moment = now - 300
    for order in range(8):
        key = {name: item("acme", order)[name] for name in ("pk", "sk")}
        engine.call("DeleteItem", {"TableName": "shop", "Key": key})
    engine.call("PutItem", {"TableName": "shop", "Item": item("acme", 99)})
    engine.call("PutItem", {"TableName": "shop", "Item": item("zeta", 0, total=7)})
    return engine


@pytest.fixture
def shop(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill shop.db; `run` has changed to an empty folder. No question is answered."""
    fill().close()
    monkeypatch.setattr("sys.stdin", io.StringIO())


def items(name: str = "shop", path: str = "shop.db") -> dict[tuple[str, str], dict[str, Any]]:
    with SqliteEngine(path) as engine:
        return scan(engine, name)


def keys_of(tenant: str, found: dict[tuple[str, str], Any]) -> list[str]:
    return sorted(sort for partition, sort in found if partition == f"TENANT#{tenant}")


ORDERS = [f"ORDER#{order}" for order in range(8)]


def test_s2_20_the_commands_of_the_guide_bring_a_deleted_tenant_back(run: Run, shop: None) -> None:
    blocks = re.findall(r"^```console\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    enable, rescue, drill = (re.findall(r"^\$ solotable (.*)$", block, re.MULTILINE) for block in blocks)
    assert len(rescue) == 3
    printed = [run(*shlex.split(command)) for command in (*enable, *rescue, *drill)]
    assert [ran.code for ran in printed] == [0] * 5, printed
    assert "restorable from" in printed[1].out
    assert "8 to put back, 0 to change, 1 to remove" in printed[2].out
    assert "8 items written, 1 removed" in printed[3].out
    assert printed[4].out.count("passed") == 3
    found = items()
    assert keys_of("acme", found) == ORDERS
    # The other tenant keeps what it has written since.
    assert found["TENANT#zeta", "ORDER#0"]["total"] == {"N": "7"}
    lines = Path("drills.jsonl").read_text().splitlines()
    assert [json.loads(line)["passed"] for line in lines] == [True] * 3


def test_a_dry_run_and_a_refusal_change_nothing(run: Run, shop: None) -> None:
    before = items()
    place = ("backup", "restore", "shop.db", "--at", "10 minutes ago", "--tenant", "acme", "--in-place")
    dry = run(*place, "--dry-run", "--json")
    assert (dry.code, dry.json["added"], dry.json["written"]) == (0, 8, 0)
    unanswered = run(*place)
    assert unanswered.code == 2
    assert "pass --yes" in unanswered.err
    assert items() == before


def test_a_restore_makes_a_table_beside_or_in_another_file(run: Run, shop: None) -> None:
    at = ("--at", "10 minutes ago")
    beside = run("backup", "restore", "shop.db", *at, "--to", "past", "--json")
    assert (beside.code, beside.json["items"]) == (0, 13)
    away = run("backup", "restore", "shop.db", "-t", "shop", *at, "--to", "past", "--into", "copy.db")
    assert away.code == 0
    assert items("past") == items("past", "copy.db")
    assert keys_of("acme", items("past")) == ORDERS
    again = run("backup", "restore", "shop.db", "-t", "shop", *at, "--to", "past")
    assert again.code == 1
    assert "exists already" in again.err


def test_one_item_has_a_history_and_comes_back(run: Run, shop: None) -> None:
    key = '{"pk": "TENANT#acme", "sk": "ORDER#3"}'
    found = run("backup", "history", "shop.db", key, "--json").json
    assert [version["item"] is None for version in found] == [False, True]
    done = run("backup", "restore", "shop.db", "--at", "10m", "--key", key, "--in-place", "-y", "--json")
    assert (done.json["written"], done.json["deleted"]) == (1, 0)
    assert keys_of("acme", items()) == ["ORDER#3", "ORDER#99"]


def test_a_sequence_number_is_a_moment(run: Run, shop: None) -> None:
    first = run("backup", "status", "shop.db", "--json").json[0]["first_sequence"]
    done = run("backup", "restore", "shop.db", "--at", f"#{first}", "--to", "past")
    assert done.code == 0
    assert keys_of("acme", items("past")) == ORDERS[:5]


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        ("yesterday", "A moment is a time"),
        ("2 days ago", "can be restored to times from"),
        ("2100-01-01", "can be restored to times from"),
        ("#99999", "can be restored to sequence"),
    ],
)
def test_a_moment_that_cannot_be_restored_is_refused(run: Run, shop: None, moment: str, said: str) -> None:
    refused = run("backup", "preview", "shop.db", "--at", moment)
    assert refused.code == 1
    assert said in refused.err


def test_backups_on_demand_are_made_listed_restored_and_deleted(run: Run, shop: None) -> None:
    made = run("backup", "create", "shop.db", "daily", "--json").json
    assert (made["status"], made["items"]) == ("AVAILABLE", 6)
    assert [each["name"] for each in run("backup", "list", "shop.db", "--json").json] == ["daily"]
    assert run("backup", "restore", "shop.db", "--backup", made["arn"], "--to", "again").code == 0
    assert items("again") == items()
    assert run("backup", "delete", "shop.db", made["arn"], "--dry-run").code == 0
    assert run("backup", "delete", "shop.db", made["arn"]).code == 2
    assert run("backup", "delete", "shop.db", made["arn"], "--yes").code == 0
    assert run("backup", "list", "shop.db", "--json").json == []


def test_continuous_backups_are_limited_and_disabled(run: Run, shop: None) -> None:
    limited = run("backup", "enable", "shop.db", "--days", "7", "--max-bytes", "100000", "--json").json
    assert (limited["days"], limited["max_bytes"]) == (7, 100_000)
    assert limited["log_bytes"] > 1_000
    assert run("backup", "enable", "shop.db", "--days", "9", "--json").json["max_bytes"] == 100_000
    assert run("backup", "enable", "shop.db", "--max-bytes", "0", "--json").json["max_bytes"] is None
    assert run("backup", "disable", "shop.db").code == 2
    assert run("backup", "disable", "shop.db", "--yes", "--json").json["enabled"] is False
    assert "disabled" in run("backup", "preview", "shop.db", "--at", "1 minute ago").err


def test_a_drill_measures_what_a_lost_disk_costs(run: Run, shop: None) -> None:
    assert run("backup", "ship", "shop.db", "kept", "--once").code == 0
    with SqliteEngine("shop.db") as engine:
        for number in range(2):
            item = {"pk": {"S": "TENANT#acme"}, "sk": {"S": f"LATE#{number}"}}
            engine.call("PutItem", {"TableName": "shop", "Item": item})
        behind = run("backup", "drill", "shop.db", "--shipped", "kept", "--json").json[0]["loss"]
        assert behind["changes"] == 2
        assert behind["seconds"] > 0
    run("backup", "ship", "shop.db", "kept", "--once")
    caught_up = run("backup", "drill", "shop.db", "--shipped", "kept", "--history", "drills.jsonl")
    assert "a lost disk costs 0 changes (0.0 s); recovered in " in caught_up.out
    assert json.loads(Path("drills.jsonl").read_text())["loss"]["changes"] == 0
    assert run("backup", "drill", "shop.db", "--shipped", "empty").code == 1


def test_a_drill_finds_a_damaged_record(run: Run, shop: None) -> None:
    import sqlite3

    file = sqlite3.connect("shop.db")
    file.execute("UPDATE changes SET old = x'7b7d' WHERE sequence = (SELECT max(sequence) FROM changes)")
    file.commit()
    file.close()
    failed = run("backup", "drill", "shop.db", "--seed", "1")
    assert failed.code == 1
    assert "checksum" in failed.err


def test_a_missing_file_or_table_is_not_found(run: Run, shop: None) -> None:
    assert run("backup", "status", "none.db").code == 3
    assert not Path("none.db").exists()
    assert run("backup", "enable", "shop.db", "-t", "none").code == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("--at", "now"),
        ("--to", "past"),
        ("--at", "now", "--to", "past", "--in-place"),
        ("--at", "now", "--backup", "arn", "--to", "past"),
        ("--at", "now", "--to", "past", "--tenant", "a", "--key", "{}"),
        ("--at", "now", "--to", "past", "--key", "text"),
    ],
)
def test_options_that_contradict_are_refused(run: Run, shop: None, arguments: tuple[str, ...]) -> None:
    assert run("backup", "restore", "shop.db", *arguments).code == 2
