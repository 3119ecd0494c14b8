"""What search does after its file, or an item of another program, is not what it expects."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from solotable import Table
from solotable._protocol.requests import DeleteItem, PutItem
from solotable.errors import DeclarationError
from solotable.flow import Item
from solotable.systems.portal.events.analytics import Analytics
from solotable.systems.portal.events.counting import aggregate
from solotable.systems.portal.events.recording import EventLog
from solotable.systems.portal.search.fts5 import Fts5Index, facets
from solotable.systems.portal.search.indexer import Indexer
from solotable.systems.portal.search.port import IndexBatch, SearchUnavailable
from solotable.systems.portal.search.records import SearchQuery
from solotable.systems.portal.tables import content_registry, events

from .studio import Studio
from .test_search import ALL, VIEWER, document, found, index_of


def remove_files(path: Path) -> None:
    for each in path.parent.glob(path.name + "*"):
        each.unlink()


def write_raw(portal: Studio, table: Table, kind: str, **attributes: Any) -> Item:
    """Write an item of a kind again with other attributes, as another program may; return it."""
    item = next(each for each in portal.raw(table) if each["_type"] == {"S": kind})
    changed: Item = {**item, **attributes}
    portal.engine.handle(PutItem(table=portal.prefix + table.name, item=changed))
    return changed


def test_s3_25_a_rebuilt_file_shows_no_draft_to_viewers_of_the_old_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "portal.search"
    index = index_of(*(document(n, f"Zebra {n}") for n in range(3)), path=path)
    assert len(found(index, "zebra", VIEWER)) == 3
    remove_files(path)
    drafts = [document(n, f"Zebra {n}", status="Draft") for n in (4, 5, 6)]
    assert index.replace([*drafts, document(7, "Zebra 7")], previous=None, checkpoint="1")
    assert found(index, "zebra", VIEWER) == ["c0007"]
    assert found(index, "", VIEWER) == ["c0007"]
    assert caplog.messages == []  # the check of hits had nothing to reject
    index.close()


def test_s3_25_a_copy_of_an_older_file_shows_no_draft_to_viewers_of_the_newer_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, copy = tmp_path / "portal.search", tmp_path / "copy"
    index = index_of(document(1), path=path)
    index.close()
    shutil.copy(path, copy)
    assert index.write(IndexBatch(changes=[document(2, "Zebra")], previous="1", checkpoint="2"))
    assert found(index, "zebra", VIEWER) == ["c0002"]
    index.close()
    copy.replace(path)
    secret = document(3, "Zebra", status="Draft")
    assert index.write(IndexBatch(changes=[secret], previous="1", checkpoint="2"))
    assert found(index, "zebra", VIEWER) == []
    assert found(index, "zebra", ALL) == ["c0003"]
    assert caplog.messages == []
    index.close()


@pytest.mark.parametrize("text", ["", "pricing"])
def test_s3_25_a_hit_is_checked_against_its_stored_status(text: str) -> None:
    index = index_of(document(1), document(2, status="Draft"), document(3, status="Draft", owner="vic"))
    assert found(index, text, VIEWER) == ["c0001", "c0003"]
    right = index._facets  # what a defect would leave there
    everything = right.bits["status"]["Approved"] | right.bits["status"]["Draft"]
    wrong = {**right.bits, "status": {"Approved": everything}}
    index._facets = replace(right, bits=wrong)
    assert found(index, text, VIEWER) == ["c0001", "c0003"]


def test_s3_25_files_remember_a_thousand_changes_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "portal.search"
    index = index_of(document(1), path=path)
    late = Fts5Index(path)
    assert found(late) == ["c0001"]
    for number in range(1, 1_010):
        changed = document(1, version=number, status="Draft" if number % 2 else "Approved")
        assert index.write(IndexBatch(changes=[changed], previous=str(number), checkpoint=str(number + 1)))
    assert found(late, visible=VIEWER) == []
    with sqlite3.connect(path) as database:
        for table in ("history", "removal"):
            (count,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert count == 1_000
    database.close()
    index.close()
    late.close()


def damage(path: Path, kind: str) -> None:
    data = path.read_bytes()
    if kind == "truncated":
        os.truncate(path, len(data) // 2)
    elif kind == "pages":
        path.write_bytes(data[:4096] + os.urandom(len(data) - 8192) + data[-4096:])
    elif kind == "beginning":
        path.write_bytes(os.urandom(50) + data[50:])
    elif kind == "header":
        path.write_bytes(os.urandom(4096) + data[4096:])
    elif kind == "zeros":
        path.write_bytes(bytes(len(data)))
    else:
        path.write_bytes(b"")


@pytest.mark.parametrize("kind", ["truncated", "pages", "beginning", "header", "zeros", "empty"])
def test_s3_25_a_damaged_file_is_unavailable_and_then_rebuilt(
    portal: Studio, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "portal.search"
    for number in range(6):
        portal.draft(title=f"Zebra {number}", summary="word " * 300)
    index = Fts5Index(path)
    Indexer(portal.blocking, index).run_once()
    index.close()
    damage(path, kind)
    index = Fts5Index(path)
    with pytest.raises(SearchUnavailable):
        index.search(SearchQuery(visible=ALL, text="word"))
    assert Indexer(portal.blocking, index).run_once().rebuilt
    assert len(found(index, "zebra")) == 6
    index.check()
    index.close()


def test_s3_25_what_replaced_an_index_is_kept_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "portal.search"
    index_of(document(1), path=path).close()
    path.write_bytes(b"notes of a user")
    index = Fts5Index(path)
    index.reset()
    index.close()
    assert (tmp_path / "portal.search.damaged").read_bytes() == b"notes of a user"


def test_s3_25_a_database_that_replaced_an_index_is_never_removed(tmp_path: Path) -> None:
    path = tmp_path / "portal.search"
    index = index_of(document(1), path=path)
    index.close()
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE notes (text)")
    database.close()
    before = path.read_bytes()
    with pytest.raises(DeclarationError, match="not a search index"):
        index.reset()
    with pytest.raises(DeclarationError, match="not a search index"):
        Fts5Index(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": {"S": "x" * 300}},
        {"tags": {"L": [{"N": "1"}]}},
        {"revision": {"S": "x"}},
        {"revision": {"N": "1" + "0" * 30}},
        {"status": {"S": "Secret"}},
        {"last_updated": {"S": "yesterday"}},
    ],
)
def test_s3_25_an_invalid_item_leaves_the_index_and_stops_nothing(
    portal: Studio, wrong: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    bad = portal.approved(title="Zebra bad")
    index = Fts5Index()
    indexer = Indexer(portal.blocking, index)
    indexer.run_once()
    assert len(found(index, "zebra")) == 1
    write_raw(portal, content_registry, "Content", **wrong)
    portal.approved(title="Zebra good")
    indexer.run_once()
    assert [hit.document.title for hit in index.search(SearchQuery(visible=ALL)).hits] == ["Zebra good"]
    assert [each for each in caplog.messages if bad.content_id in each]
    rebuilt = Fts5Index()
    assert Indexer(portal.blocking, rebuilt).run_once().rebuilt
    assert len(found(rebuilt)) == 1

    key = {"content_id": {"S": bad.content_id}}
    portal.engine.handle(DeleteItem(table=portal.prefix + content_registry.name, key=key))
    portal.approved(title="Zebra after")
    indexer.run_once()
    assert len(found(index, "zebra")) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"event_name": {"N": "7"}},
        {"user_id": {"S": "a#b"}},
        {"content_id": {"N": "7"}},
        {"metadata": {"L": []}, "event_name": {"S": "search"}},
    ],
)
def test_s3_23_an_invalid_event_is_not_counted_and_stops_nothing(
    portal: Studio, wrong: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    log = EventLog(portal.db)
    portal.run(log.record("content_view", user_id="vic", content_id="c1"))
    assert aggregate(portal.blocking).records == 1
    assert events.sort is not None
    write_raw(portal, events, "ActivityEvent", **{events.sort.name: {"S": "2026-01-01#other"}, **wrong})
    portal.run(log.record("content_view", user_id="vic", content_id="c1"))
    assert aggregate(portal.blocking).records == 1
    assert "is not counted" in caplog.text
    assert aggregate(portal.blocking).records == 0
    assert portal.run(Analytics(portal.db).overview(1)).current.events == 2


def test_s3_25_the_indexer_loads_the_facets_and_no_search_does(
    portal: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "portal.search"
    portal.approved(title="Zebra")
    Indexer(portal.blocking, Fts5Index(path)).run_once()
    index = Fts5Index(path)
    Indexer(portal.blocking, index).run_once()
    monkeypatch.setattr(facets, "_load", None)
    assert len(found(index, "zebra")) == 1
    index.close()


def test_s3_25_searches_at_the_same_time_load_the_facets_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "portal.search"
    index_of(*(document(n) for n in range(50)), path=path).close()
    index = Fts5Index(path)
    loaded: list[int] = []
    started = threading.Barrier(4)
    load = facets._load

    def counted(database: sqlite3.Connection, change: int, state: bytes) -> facets.FacetSets:
        loaded.append(change)
        return load(database, change, state)

    def search() -> int:
        started.wait()
        return index.search(SearchQuery(visible=ALL, text="pricing")).total

    monkeypatch.setattr(facets, "_load", counted)
    with ThreadPoolExecutor(4) as threads:
        assert [each.result() for each in [threads.submit(search) for _ in range(4)]] == [50] * 4
    assert len(loaded) == 1
    index.close()
