"""`solotable migrate` on two files: every command, its JSON, its refusals and its exit codes."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from solotable._values import dump_item
from solotable.flow.requests import PutItem
from solotable.migrations.migration import Migration
from solotable.migrations.router import Router, StoreSide
from tests.killing import Start
from tests.migrations.router.customer import open_migration
from tests.migrations.router.shop import OldShop, Order, User
from tests.migrations.router.switching import create_shop
from tests.waiting import jitter, wait_until

from .conftest import Ran, Run

MAPPING = "tests.migrations.router.shop:mapping"


@pytest.fixture
def migrate(run: Run, tmp_path: Path) -> Callable[..., Ran]:
    """Run a command of the migration `shop` between two files, with five users and three orders."""
    migration = open_migration("old.db", "new.db")
    create_shop(migration, users=5, orders=3)
    migration.source.engine.close()
    migration.target.engine.close()

    def run_(command: str, *options: str) -> Ran:
        return run("migrate", command, "shop", "-m", MAPPING, "--source", "old.db", "-d", "new.db", *options)

    return run_


def on_files(act: Callable[[Migration], Any]) -> Any:
    """Do something with the migration of the files."""
    migration = open_migration("old.db", "new.db")
    try:
        return act(migration)
    finally:
        migration.source.engine.close()
        migration.target.engine.close()


def is_done(migrate: Callable[..., Ran], *command: str) -> bool:
    """Run a command that is repeated until it exits with 0, not too often."""
    jitter(Random(0), 0.3)
    return migrate(*command).code == 0


def test_a_migration_is_created_once_and_a_dry_run_creates_nothing(migrate: Any) -> None:
    tried = migrate("create", "--dry-run")
    assert (tried.code, tried.out) == (0, "Migration shop can be created.\n")
    assert migrate("status").code == 1
    assert migrate("create", "--json", "--rate", "100").json == {
        "name": "shop",
        "created": True,
        "problems": [],
    }
    for again in (migrate("create"), migrate("create", "--dry-run")):
        assert again.code == 4
        assert "exists" in again.err


def test_a_mapping_that_fails_its_check_is_rejected_with_every_problem(migrate: Any, run: Run) -> None:
    Path("bad.py").write_text(
        "from solotable.migrations.mapping import Mapping, Source\n"
        "from tests.migrations.router.shop import Order, User, shop\n"
        'mapping = Mapping(shop, Source("Users", key="id"), Source("Orders", key=("user", "no")))\n'
        '@mapping.rule("Users")\n'
        'def user(item):\n    yield User(user_id="the same", name=item["name"])\n'
        '@mapping.rule("Orders")\n'
        'def order(item):\n    yield Order(user_id=item["user"], number=item["missing"])\n'
    )
    ran = run("migrate", "create", "shop", "-m", "bad.py", "--source", "old.db", "-d", "new.db")
    assert ran.code == 1
    assert "problem" in ran.out
    assert len(ran.out.splitlines()) > 2
    as_json = run("migrate", "create", "shop", "-m", "bad.py", "--source", "old.db", "-d", "new.db", "--json")
    assert as_json.code == 1
    assert as_json.json["created"] is False
    assert as_json.json["problems"]


def test_start_copies_and_status_shows_exact_counts(migrate: Any) -> None:
    migrate("create")
    assert migrate("start", "--until-running").out == "Migration shop is Running.\n"
    status = migrate("status", "--json").json
    assert (status["record"]["state"], status["copy"]["scanned"], status["copy"]["total"]) == (
        "Running",
        8,
        8,
    )
    assert status["dead_letters"] == 0
    shown = migrate("status")
    assert "shop: Running" in shown.out
    assert "8 of 8 items copied" in shown.out
    assert "writes go to the source; reads from the target: 0 %" in shown.out
    record = migrate("show", "--json").json
    assert record["record"]["writes"] == "source"
    assert [each["source"] for each in record["sources"]] == ["Users", "Orders"]
    assert "Users" in migrate("show").out


def test_the_rate_changes_while_workers_run_elsewhere(migrate: Any) -> None:
    migrate("create")
    assert migrate("start", "--no-work", "--rate", "250").out == "Migration shop is Copying.\n"
    assert migrate("status", "--json").json["record"]["rate"] == 250
    migrate("start", "--no-work", "--rate", "0")
    assert migrate("status", "--json").json["record"]["rate"] is None


def test_stop_and_start_resume(migrate: Any) -> None:
    migrate("create")
    migrate("start", "--no-work")
    assert migrate("stop").out == "Migration shop is Stopped.\n"
    assert migrate("stop").code == 4
    assert migrate("start", "--until-running").out == "Migration shop is Running.\n"


def test_diff_exits_with_1_if_the_sides_differ_and_repair_makes_them_equal(migrate: Any) -> None:
    migrate("create")
    migrate("start", "--until-running")
    assert migrate("diff").code == 0
    on_files(lambda migration: migration.store.update(Order, user_id="0", number="0", set={"total": 99}))
    found = migrate("diff", "--json")
    assert found.code == 1
    assert found.json["differences"] == {"changed": 1}
    assert migrate("repair", "--dry-run").code == 1
    assert migrate("diff").code == 1
    assert migrate("repair").code == 0
    assert migrate("diff", "--json").json["equal"]


def test_diff_names_a_dead_letter_which_makes_it_exit_with_1(migrate: Any) -> None:
    migrate("create")
    on_files(
        lambda migration: migration.source.engine.handle(
            PutItem(table="Orders", item=dump_item({"user": "0", "no": "x", "total": "many"}))
        )
    )
    migrate("start", "--until-running")
    found = migrate("diff")
    assert (found.code, "1 dead letter, such as Orders" in found.out) == (1, True), found.out


def test_reads_are_switched_by_share_and_a_dry_run_changes_nothing(migrate: Any) -> None:
    migrate("create")
    migrate("start", "--until-running")
    assert migrate("switch-reads", "--percent", "10").code == 4
    migrate("diff")
    assert "from 0 to 10 %" in migrate("switch-reads", "--percent", "10", "--dry-run").out
    assert migrate("status", "--json").json["record"]["reads_percent"] == 0
    assert migrate("switch-reads", "--percent", "10").code == 0
    assert migrate("switch-reads", "--percent", "50", "--entity", "User", "--json").json["percent"] == 50
    assert "10 %, User 50 %" in migrate("status").out
    assert migrate("mirror", "--percent", "5").code == 0
    assert migrate("status", "--json").json["record"]["mirror_percent"] == 5
    assert migrate("switch-reads", "--percent", "101").code == 2
    for options in [("--yes",), ()]:
        # A refused command asks for no confirmation.
        cancelled = migrate("cancel", *options)
        assert cancelled.code == 4
        assert "is ReadsSwitched" in cancelled.err


def test_cancel_deletes_what_was_written_after_a_confirmation(
    migrate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    migrate("create")
    migrate("start", "--until-running")
    assert migrate("cancel").code == 2
    assert "8 items of the target would be deleted" in migrate("cancel", "--dry-run").out
    assert migrate("cancel", "--yes").out == "8 items of the target deleted.\n"
    assert migrate("create").code == 0


def test_writes_switch_and_return_and_a_finished_migration_keeps_its_data(
    migrate: Any, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    migrate("create")
    migrate("start", "--until-running")
    assert "is Running" in migrate("switch-writes").err
    assert "run `solotable migrate diff shop` first" in migrate("switch-writes").err
    migrate("diff")
    refused = migrate("switch-writes", "--max-lag", "0.000001", "--dry-run")
    assert refused.code == 1
    assert "Refused: the lag is" in refused.out
    assert "no worker applies changes: run `solotable migrate start shop`" in refused.out
    start("-m", "tests.migrations.router.worker", str(tmp_path / "old.db"), str(tmp_path / "new.db"))
    wait_until(lambda: is_done(migrate, "switch-writes", "--dry-run"))
    assert migrate("switch-writes", "--json").json["to"] == "target"
    assert "writes go to the target" in migrate("status").out
    on_files(lambda migration: migration.store.put(Order(user_id="0", number="new", total=1)))
    wait_until(lambda: is_done(migrate, "reverse", "--dry-run"))
    assert "The source takes writes." in migrate("reverse").out
    found = on_files(
        lambda migration: Router(migration, old=OldShop, new=StoreSide).get(
            Order, user_id="0", number="new", consistent=True
        )
    )
    assert found == Order(user_id="0", number="new", total=1)
    wait_until(lambda: is_done(migrate, "switch-writes", "--dry-run"))
    migrate("switch-writes")
    early = migrate("complete", "--keep-data", "--dry-run")
    assert early.code == 1
    assert "older than the last switch" in early.out
    # It is refused before it asks for a confirmation.
    assert "older than the last switch" in migrate("complete").err
    wait_until(lambda: is_done(migrate, "diff"))
    assert migrate("complete").code == 2
    assert migrate("complete", "--park", "soon").code == 2
    assert migrate("complete", "--keep-data").out == "Migration shop is completed. The source tables stay.\n"
    ended = migrate("status")
    assert ended.out == "shop: Completed\n  the target serves all reads and writes\n"
    # The progress never goes back.
    copy = migrate("status", "--json").json["copy"]
    assert (copy["scanned"], copy["percent"], copy["is_done"]) == (copy["total"], 100.0, True)
    assert migrate("status", "--json").json["record"]["state"] == "Completed"
    assert on_files(lambda migration: migration.store.get(User, user_id="1")) is not None


def test_a_wrong_mapping_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    Path("new.db").touch()
    ran = run("migrate", "status", "shop", "-m", "tests.migrations.router.shop:shop", "-d", "new.db")
    assert ran.code == 2
    assert "is not a Mapping" in ran.err
    ran = run("migrate", "status", "shop", "-m", "tests.store.models", "-d", "new.db")
    assert ran.code == 2
    assert "declares no Mapping" in ran.err
