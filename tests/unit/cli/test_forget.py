"""`solotable forget`: the keys of subjects are destroyed, listed and replayed."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from solotable.backup import BackupFile
from solotable.encryption import KeyTable

from .conftest import Run
from .customers import keys, staff, store

EMAIL = "ada@example.org"


@pytest.fixture
def shop(run: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run `solotable` over a file with two customers, whose keys are in another."""
    monkeypatch.setenv("SOLOTABLE_MODELS", f"{Path(__file__).with_name('customers.py')}:shop")
    KeyTable.create("sqlite:///keys.db")
    for customer in ("c1", "c2"):
        put = run("put", "Customer", f"customer_id={customer}", f"email={EMAIL}", "--json")
        assert (put.code, put.json["email"]) == (0, "<encrypted>")
    yield run
    store.close()
    keys._cache.clear()
    staff._cache.clear()


def email(run: Run, customer: str) -> object:
    return run("get", "Customer", f"customer_id={customer}", "--show-encrypted", "--json").json["email"]


def test_a_subject_is_forgotten_with_a_receipt(shop: Run) -> None:
    planned = shop("forget", "c1", "c9", "--dry-run")
    assert planned.out == "c1: key\nc9: no key\n"
    assert email(shop, "c1") == EMAIL
    done = shop("forget", "c1", "--yes", "--json")
    assert (done.code, done.err) == (0, "")
    receipt = json.loads(done.out)
    assert receipt | {"forgotten_at": ""} == {
        "kind": "customer",
        "tenant": "acme",
        "subject": "c1",
        "forgotten_at": "",
        "had_key": True,
        "warnings": [],
    }
    assert (email(shop, "c1"), email(shop, "c2")) == (None, EMAIL)
    assert [json.loads(line) for line in shop("forget", "--list").out.splitlines()] == [receipt]
    assert shop("forget", "--list", "--tenant", "zeta").out == ""
    assert shop("forget", "c1", "--dry-run", "--json").json[0]["state"] == "forgotten"
    again = shop("forget", "c1", "--yes")
    assert again.out.startswith("Forgot customer c1 of tenant acme at 2")
    assert shop("forget", "c9", "--yes").out.endswith("(it had no key).\n")


def test_it_asks_before_it_forgets(shop: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert shop("forget", "c1").code == 1
    monkeypatch.setattr("sys.stdin", io.StringIO())
    asked = shop("forget", "c1")
    assert asked.code == 2
    assert "Forget 1 customer of tenant acme for good?" in asked.err
    assert "pass --yes" in asked.err
    assert email(shop, "c1") == EMAIL


def test_a_tenant_is_forgotten_whole(shop: Run) -> None:
    assert sorted(shop("forget", "--all-of-tenant", "--dry-run").out.splitlines()) == ["c1: key", "c2: key"]
    done = shop("forget", "--all-of-tenant", "--yes", "--json")
    assert {json.loads(line)["subject"] for line in done.out.splitlines()} == {"c1", "c2"}
    assert (email(shop, "c1"), email(shop, "c2")) == (None, None)


def test_receipts_are_replayed(shop: Run) -> None:
    receipts = shop("forget", "c1", "--yes", "--json").out
    Path("receipts.jsonl").write_text(receipts)
    replayed = shop("forget", "--replay", "receipts.jsonl", "--yes", "--json")
    assert (replayed.code, replayed.out) == (0, receipts)
    Path("receipts.jsonl").write_text(receipts + "{}\n")
    wrong = shop("forget", "--replay", "receipts.jsonl", "--yes")
    assert wrong.code == 2
    assert "--replay: line 2: not a receipt" in wrong.err


def test_a_key_that_may_come_back_is_exit_code_1(shop: Run) -> None:
    with BackupFile("keys.db") as file:
        file.enable("SubjectKeys")
    done = shop("forget", "c1", "--yes")
    assert done.code == 1
    assert "SubjectKeys has point-in-time recovery, which keeps a key for 35 days" in done.err


WRONG = {
    "nothing": ((), "Pass one of: SUBJECTs"),
    "two ways": (("c1", "--list"), "Pass one of: SUBJECTs"),
    "another kind": (("c1", "--kind", "robot"), "Pass --kind to choose one of: customer"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_rejected(shop: Run, name: str) -> None:
    arguments, message = WRONG[name]
    ran = shop("forget", *arguments)
    assert ran.code == 2
    assert message in ran.err


def test_tenant_and_kind_must_fit_the_models(shop: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    models = str(Path(__file__).with_name("customers.py"))
    assert "choose one of: customer, employee" in shop("forget", "e1", "-m", models).err
    assert "leave out --tenant" in shop("forget", "e1", "-m", models, "--kind", "employee").err
    monkeypatch.delenv("SOLOTABLE_TENANT")
    assert "pass --tenant" in shop("forget", "c1").err
    assert shop("forget", "e1", "-m", models, "--kind", "employee", "--yes").code == 0
    surveys = str(Path(__file__).with_name("surveys.py"))
    assert "nothing to forget" in shop("forget", "c1", "-m", surveys).err
