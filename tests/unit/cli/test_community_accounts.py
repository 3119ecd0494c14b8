"""`solotable community purge` and `solotable community export`."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from solotable import connect, connect_async
from solotable.cli.community import MODELS
from solotable.systems.community.entities.users import User
from solotable.systems.community.roles import Caller
from solotable.systems.community.services.accounts import Accounts
from solotable.systems.community.table import community

from .conftest import Run

DID = "did:plc:ana"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A community with one user."""
    made = f"sqlite:///{tmp_path}/app.db"
    with connect(made, community) as db:
        db.create(User(did=DID, display_name="Ana"))
    return made


def delete_account(url: str, days: float) -> None:
    """Delete the account some days ago."""
    then = datetime.now(UTC) - timedelta(days=days)

    async def delete() -> None:
        async with connect_async(url, community, clock=then.timestamp) as db:
            await Accounts(db, now=lambda: then).delete(Caller(did=DID))

    asyncio.run(delete())


def test_a_purge_removes_accounts_that_are_due(run: Run, url: str) -> None:
    delete_account(url, days=31)
    assert run("community", "purge", "-d", "app.db", "--dry-run").out.startswith("Would purge 1 account")
    ran = run("community", "purge", "-d", "app.db", "--json")
    assert (ran.json["accounts"], ran.json["removed"]) == (1, {"User": 1})
    assert run("community", "purge", "-d", "app.db").out == "Purged 0 accounts, 0 items.\n"


def test_a_purge_keeps_accounts_in_their_grace(run: Run, url: str) -> None:
    delete_account(url, days=29)
    assert run("community", "purge", "-d", "app.db").out == "Purged 0 accounts, 0 items.\n"


@pytest.mark.parametrize("file_format", ["json", "atproto"])
def test_an_export_writes_the_data_of_one_user(run: Run, url: str, tmp_path: Path, file_format: str) -> None:
    options = ("community", "export", DID, "-d", "app.db", "-o", "ana.json", "--format", file_format)
    assert run(*options).code == 0
    assert DID in json.dumps(json.loads((tmp_path / "ana.json").read_text()))
    assert run(*options).code == 2
    assert run(*options, "--force").code == 0


def test_an_export_names_what_is_missing(run: Run, url: str) -> None:
    ran = run("community", "export", "did:plc:none", "-d", "app.db", "-o", "x.json")
    assert (ran.code, "did:plc:none" in ran.err) == (3, True)
    assert run("community", "purge", "-d", "none.db").code == 3


def test_generic_commands_know_the_entities_of_the_community() -> None:
    """In a new process: here other tests have imported them."""
    command = [sys.executable, "-m", "solotable", "entities", "-m", MODELS, "--json"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - ours
    assert {"User", "Neighbourhood", "Membership", "Site", "Build"} <= {
        each["entity"] for each in json.loads(shown)
    }
