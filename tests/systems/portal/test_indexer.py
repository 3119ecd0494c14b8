"""The indexer: the index follows the content, survives kills and gaps, and is rebuilt from the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from solotable import Database
from solotable.errors import CursorRejected
from solotable.flow import scope_of
from solotable.systems.portal.search.fts5 import Fts5Index
from solotable.systems.portal.search.indexer import Indexer, IndexResult
from solotable.systems.portal.search.port import IndexBatch
from solotable.systems.portal.search.records import SearchQuery, Visibility
from solotable.systems.portal.search.service import Search, SearchPage
from solotable.systems.portal.services.drafts import ContentPatch

from .studio import ADA, ANN, EVA, Studio

VIEWER = Visibility(statuses=frozenset({"Approved"}), owner="vic")
EVERY = Visibility(statuses=frozenset({"Draft", "Approved", "Deprecated", "Expired"}))


def search(portal: Studio, index: Fts5Index, visible: Visibility = EVERY, **fields: Any) -> SearchPage:
    cursor, limit = fields.pop("cursor", None), fields.pop("limit", 20)
    query = SearchQuery(visible=visible, **fields)
    return portal.run(Search(portal.db, index).page(query, cursor=cursor, limit=limit))


def titles(page: SearchPage) -> list[str]:
    return [hit.document.title for hit in page.hits]


class KilledIndex(Fts5Index):
    """An index whose process ends at its n-th write, before the commit."""

    lives = 1

    def write(self, batch: IndexBatch) -> bool:
        if self.lives == 0:
            raise KeyboardInterrupt
        self.lives -= 1
        return super().write(batch)


def test_s3_25_the_index_follows_every_change_of_content(portal: Studio) -> None:
    made = portal.draft(title="Pricing 101", summary="All about prices", tags=["new"], product_suite="A#B")
    index = Fts5Index()
    indexer = Indexer(portal.blocking, index)
    assert indexer.run_once().rebuilt
    page = search(portal, index, text="prices")
    assert titles(page) == ["Pricing 101"]
    assert page.facets["suite"] == {"A#B": 1}

    portal.run(portal.contents.update(ANN, made.content_id, ContentPatch(title="Costs 101", summary="")))
    portal.run(portal.lifecycle.approve(EVA, made.content_id))
    indexer.run_once()
    assert titles(search(portal, index, text="prices")) == []
    found = search(portal, index, VIEWER, text="costs")
    assert [hit.document.status for hit in found.hits] == ["Approved"]

    portal.run(portal.contents.delete(ADA, made.content_id))
    indexer.run_once()
    assert search(portal, index).total == 0
    index.check()


def test_s3_11_search_reads_nothing_from_the_table(portal: Studio) -> None:
    portal.draft()
    index = Fts5Index()
    Indexer(portal.blocking, index).run_once()
    portal.sent()
    assert search(portal, index, text="pricing").total == 1
    assert portal.sent() == []


def test_s3_25_a_restart_continues_at_the_stored_checkpoint(portal: Studio, tmp_path: Path) -> None:
    path = tmp_path / "portal.search"
    portal.draft(title="First")
    index = Fts5Index(path)
    Indexer(portal.blocking, index).run_once()
    index.close()
    portal.draft(title="Second")
    index = Fts5Index(path)
    assert Indexer(portal.blocking, index).run_once() == IndexResult(changes=1)
    assert Indexer(portal.blocking, index).run_once() == IndexResult(changes=0)
    assert sorted(titles(search(portal, index))) == ["First", "Second"]
    index.close()


def test_s3_25_a_killed_indexer_loses_and_repeats_nothing(portal: Studio, tmp_path: Path) -> None:
    path = tmp_path / "portal.search"
    killed = KilledIndex(path)
    indexer = Indexer(portal.blocking, killed)
    indexer.run_once()
    for number in range(5):
        portal.draft(title=f"Title {number}")
    with pytest.raises(KeyboardInterrupt):
        indexer.run_once()
    killed.close()
    index = Fts5Index(path)
    assert Indexer(portal.blocking, index).run_once() == IndexResult(changes=5)
    assert search(portal, index).total == 5
    index.check()
    index.close()


def test_s3_25_two_indexers_of_one_file_apply_each_change_once(portal: Studio, tmp_path: Path) -> None:
    path = tmp_path / "portal.search"
    indexes = [Fts5Index(path), Fts5Index(path)]
    indexers = [Indexer(Database(portal.engine, portal.blocking.scope), index) for index in indexes]
    applied = 0
    for number in range(6):
        portal.draft(title=f"Title {number}")
        # The one that is late finds the checkpoint moved, and continues from there.
        applied += sum(indexer.run_once().changes for indexer in (indexers if number % 2 else indexers[::-1]))
    applied += sum(indexer.run_once().changes for indexer in indexers)
    assert applied >= 5  # the rebuild has the first
    for index in indexes:
        assert search(portal, index).total == 6
        index.check()
        index.close()


def test_s3_25_a_damaged_index_is_rebuilt_from_the_table(portal: Studio, tmp_path: Path) -> None:
    path = tmp_path / "portal.search"
    for number in range(30):
        portal.draft(title=f"Title {number}", summary="word " * 200)
    index = Fts5Index(path)
    Indexer(portal.blocking, index).run_once()
    index.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    index = Fts5Index(path)
    assert Indexer(portal.blocking, index).run_once().rebuilt
    assert search(portal, index, text="word").total == 30
    index.check()
    index.close()


def test_s3_25_a_missing_file_is_rebuilt_while_the_process_runs(portal: Studio, tmp_path: Path) -> None:
    path = tmp_path / "portal.search"
    portal.draft(title="First")
    index = Fts5Index(path)
    indexer = Indexer(portal.blocking, index)
    indexer.run_once()
    for each in tmp_path.iterdir():
        each.unlink()
    assert indexer.run_once().rebuilt  # although no content changed
    assert search(portal, index).total == 1
    for each in tmp_path.iterdir():
        each.unlink()
    portal.draft(title="Second")
    indexer.run_once()
    indexer.run_once()
    assert search(portal, index).total == 2
    index.close()


def test_s3_25_a_stream_that_lost_changes_leads_to_a_rebuild(portal: Studio) -> None:
    if not hasattr(portal.engine, "sweep"):
        pytest.skip("the stream of a server cannot be moved on by a clock")
    made = [portal.draft(title=f"Title {number}") for number in range(3)]
    index = Fts5Index()
    indexer = Indexer(portal.blocking, index)
    indexer.run_once()
    portal.run(portal.contents.delete(ADA, made[0].content_id))
    portal.draft(title="Late")
    portal.pass_time(days=2)
    portal.draft(title="Today")
    assert Indexer(portal.blocking, index).run_once().rebuilt
    assert sorted(titles(search(portal, index))) == ["Late", "Title 1", "Title 2", "Today"]


def test_c3_1_a_search_cursor_is_bound_to_its_query_and_caller(portal: Studio) -> None:
    for number in range(5):
        portal.approved(title=f"Pricing {number}")
    index = Fts5Index()
    Indexer(portal.blocking, index).run_once()
    first = search(portal, index, VIEWER, text="pricing", limit=2)
    assert first.cursor is not None
    for other in (
        {"visible": VIEWER, "text": "other"},
        {"visible": VIEWER, "text": "pricing", "suite": ("A",)},
        {"visible": EVERY, "text": "pricing"},
        {"visible": Visibility(statuses=VIEWER.statuses, owner="ann"), "text": "pricing"},
    ):
        with pytest.raises(CursorRejected):
            search(portal, index, cursor=first.cursor, **other)  # type: ignore[arg-type]  # fields of a test
    with pytest.raises(CursorRejected):
        search(portal, index, VIEWER, text="pricing", cursor=first.cursor[:-2] + "AA")
    second = search(portal, index, VIEWER, text="pricing", limit=2, cursor=first.cursor)
    third = search(portal, index, VIEWER, text="pricing", limit=2, cursor=second.cursor)
    assert third.cursor is None
    visited = [*titles(first), *titles(second), *titles(third)]
    assert sorted(visited) == [f"Pricing {number}" for number in range(5)]


def test_s3_25_the_index_says_up_to_when_it_has_all_changes(portal: Studio) -> None:
    index = Fts5Index()
    indexer = Indexer(portal.blocking, index)
    portal.draft()
    indexer.run_once()
    portal.pass_time(minutes=5)
    assert index.status().caught_up_at is not None
    indexer.run_once()
    assert index.status().caught_up_at == pytest.approx(scope_of(portal.db).clock())


def test_s3_25_a_rebuild_reads_each_status_once_and_scans_nothing(portal: Studio) -> None:
    portal.draft()
    portal.approved()
    portal.sent()
    Indexer(portal.blocking, Fts5Index()).rebuild()
    assert set(portal.sent()) == {"Query"}
