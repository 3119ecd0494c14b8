"""What is left of a forgotten subject in copies of the data: files, backups, logs and exports."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest

from solotable import Database
from solotable.backup import BackupFile
from solotable.encryption import KeyTable
from solotable.engines import sqlite
from solotable.engines.sqlite.maintenance.compact import compact
from solotable.exports import export_table, import_export, locate, open_export
from solotable.exports.flat_files import write_flat_files
from solotable.shipping import Shipper, restore_file

from .customers import URL, Customer, keys, shop, store

EMAIL, OTHER = "ada.lovelace@example.org", "grace.hopper@example.org"
NEWER = "ada.king@example.org"


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """The shop, with continuous backups and two customers, one of them in two versions."""
    monkeypatch.chdir(tmp_path)
    KeyTable.create(URL)
    with shop.open("sqlite:///shop.db") as opened:
        with BackupFile("shop.db") as file:
            file.enable("Shop")
        acme = opened.tenant("acme")
        acme.put(Customer(customer_id="c2", email=OTHER))
        first = acme.put(Customer(customer_id="c1", email=EMAIL))
        acme.put(first.model_copy(update={"email": NEWER}))
        yield opened
    store.close()
    keys._cache.clear()


def open_copy(url: str) -> list[str | None]:
    """Return the e-mail addresses of all versions of both customers in a copy of the shop."""
    with shop.open(url) as copy:
        acme = copy.tenant("acme")
        versions = [acme.history(Customer, customer_id="c1").get(number) for number in (1, 2)]
        current = [acme.require(Customer, customer_id=each) for each in ("c1", "c2")]
        return [None if each is None else each.email for each in (*versions, *current)]


#: Makes a copy, and returns the function that reads it.
Copy = Callable[[], Callable[[], list[str | None]]]


def copied_file() -> Callable[[], list[str | None]]:
    for suffix in ("", "-wal"):
        shutil.copy(f"shop.db{suffix}", f"copy.db{suffix}")
    return lambda: open_copy("sqlite:///copy.db")


def point_in_time() -> Callable[[], list[str | None]]:
    before = datetime.now(UTC)

    def read() -> list[str | None]:
        with BackupFile("shop.db") as file:
            file.restore("Shop", before, "Shop", into="copy.db")
        return open_copy("sqlite:///copy.db")

    return read


def in_place() -> Callable[[], list[str | None]]:
    before = datetime.now(UTC)
    with shop.open("sqlite:///shop.db") as db:
        db.admin().erase_tenant("acme", scan=True)

    def read() -> list[str | None]:
        with BackupFile("shop.db") as file:
            assert file.apply(file.preview("Shop", before)).written
        return open_copy("sqlite:///shop.db")

    return read


def on_demand() -> Callable[[], list[str | None]]:
    with BackupFile("shop.db") as file:
        made = file.create("Shop", "before")

    def read() -> list[str | None]:
        with BackupFile("shop.db") as file:
            file.restore_backup(made.arn, "old-Shop")
        return open_copy("sqlite:///shop.db?prefix=old-")

    return read


def shipped() -> Callable[[], list[str | None]]:
    with Shipper("shop.db", locate("shipped")) as shipper:
        shipper.ship()

    def read() -> list[str | None]:
        restore_file(locate("shipped"), "copy.db")
        return open_copy("sqlite:///copy.db")

    return read


def exported() -> Callable[[], list[str | None]]:
    with sqlite.open("shop.db") as engine:
        export_table(engine, "Shop", locate("exports"))

    def read() -> list[str | None]:
        export = open_export(locate("exports"))
        assert export.definition is not None
        with sqlite.open("copy.db") as engine:
            engine.call("CreateTable", export.definition)
            import_export(engine, "Shop", export)
        return open_copy("sqlite:///copy.db")

    return read


def exported_after() -> Callable[[], list[str | None]]:
    def read() -> list[str | None]:
        return exported()()

    return read


def compacted() -> Callable[[], list[str | None]]:
    def read() -> list[str | None]:
        compact("shop.db")
        return open_copy("sqlite:///shop.db")

    return read


def streamed() -> Callable[[], list[str | None]]:
    def read() -> list[str | None]:
        with shop.open("sqlite:///shop.db") as db:
            changes = list(db.admin().changes(Customer, since="earliest"))
        emails = {(each.current.customer_id, each.current.version): each.current.email for each in changes}
        return [emails["c1", 1], emails["c1", 2], emails["c1", 2], emails["c2", 1]]

    return read


COPIES: dict[str, Copy] = {
    "the file": copied_file,
    "the file after compact": compacted,
    "point-in-time recovery": point_in_time,
    "a restore in place": in_place,
    "a backup on demand": on_demand,
    "a shipped backup": shipped,
    "an export": exported,
    "an export after forgetting": exported_after,
    "stream records": streamed,
}


@pytest.mark.parametrize("name", COPIES)
def test_no_copy_of_the_data_gives_a_forgotten_subject_back(db: Database, tmp_path: Path, name: str) -> None:
    assert (tmp_path / "shop.db-wal").stat().st_size, "the log has the writes"
    read = COPIES[name]()
    keys.forget("c1", tenant="acme")
    assert read() == [None, None, None, OTHER]
    assert [path for path in tmp_path.rglob("*") if path.is_file() and shows_address(path)] == []


@pytest.mark.parametrize("name", COPIES)
def test_every_copy_is_readable_while_the_key_exists(db: Database, name: str) -> None:
    assert COPIES[name]()() == [EMAIL, NEWER, NEWER, OTHER]


def shows_address(path: Path) -> bool:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return any(each.encode() in content for each in (EMAIL, NEWER, OTHER))


@pytest.mark.parametrize("format_", ["jsonl", "csv"])
def test_files_for_analysis_have_ciphertexts(
    db: Database, tmp_path: Path, format_: Literal["jsonl", "csv"]
) -> None:
    with sqlite.open("shop.db") as engine:
        items = engine.call("Scan", {"TableName": "Shop"})["Items"]
    rows = ((json.dumps(each).encode(), 0) for each in items)
    assert write_flat_files(rows, tmp_path / "files", format_, tag="_type")
    assert any(b"CUSTOMER#c1" in path.read_bytes() for path in (tmp_path / "files").iterdir())
    assert not any(map(shows_address, (tmp_path / "files").iterdir()))
