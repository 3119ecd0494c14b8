"""`solotable collect-blobs` deletes what no item refers to, on a real file and folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from .conftest import Run

MODELS = """
from typing import Annotated
from solotable import Blob, Entity, Key, Offloaded, Table
from solotable.blobs import FolderStorage

docs = Table("Docs")

class Doc(Entity, table=docs):
    key = Key("DOC#{doc_id}", "DOC")
    doc_id: str
    body: Annotated[Blob, Offloaded(FolderStorage("blobs"), inline_bytes=10)]
"""
ARGUMENTS = ("collect-blobs", "-m", "models.py", "-d", "docs.db")


@pytest.fixture
def files(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database with one document, whose former content is an orphan."""
    monkeypatch.delenv("SOLOTABLE_TENANT", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.py").write_text(MODELS)
    module: dict[str, object] = {"__name__": "written_models"}
    exec(compile(MODELS, "models.py", "exec", dont_inherit=True), module)  # noqa: S102 - our own models
    doc = module["Doc"]
    assert isinstance(doc, type)
    with module["docs"].open("sqlite:///docs.db") as db:  # type: ignore[attr-defined] # a Table
        for letter in "ab":
            db.put(doc(doc_id="1", body=letter * 100))
    for path in (tmp_path / "blobs").rglob("*"):
        if path.is_file():
            os.utime(path, (1_000_000_000, 1_000_000_000))
    return tmp_path / "blobs"


def count(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*"))


def test_a_dry_run_counts(run: Run, files: Path) -> None:
    ran = run(*ARGUMENTS, "--dry-run")
    assert ran.code == 0
    assert "Docs: 2 objects, 2 of them old; 1 item read." in ran.out
    assert "Unreferenced: 1 (100 bytes)." in ran.out
    assert count(files) == 2


def test_an_orphan_is_deleted(run: Run, files: Path) -> None:
    ran = run(*ARGUMENTS, "--json")
    assert (ran.code, json.loads(ran.out)[0]["deleted"]) == (0, 1)
    assert count(files) == 1
    assert "Deleted: 0." in run(*ARGUMENTS).out


def test_another_database_deletes_nothing(run: Run, files: Path) -> None:
    for path in files.parent.glob("docs.db*"):
        path.unlink()
    ran = run(*ARGUMENTS)
    assert ran.code != 0
    assert count(files) == 2


def test_models_without_an_offloaded_field_are_rejected(run: Run, tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(
        "from solotable import Entity, Key, Table\n"
        "docs = Table('Docs')\n"
        "class Doc(Entity, table=docs):\n"
        "    key = Key('DOC#{doc_id}', 'DOC')\n"
        "    doc_id: str\n"
    )
    ran = run("collect-blobs", "-m", str(tmp_path / "plain.py"), "-d", "docs.db")
    assert ran.code == 2
    assert "No entity has an Offloaded field" in ran.err
