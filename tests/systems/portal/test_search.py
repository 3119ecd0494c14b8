"""The FTS5 index: what it finds, in which order, what it counts, and what becomes of a damaged file."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solotable.errors import DeclarationError
from solotable.systems.errors import InvalidInput
from solotable.systems.portal.search.fts5 import Fts5Index, connections, ranking
from solotable.systems.portal.search.fts5.schema import SCHEMA_VERSION
from solotable.systems.portal.search.port import Deletion, IndexBatch, IndexDamaged, SearchUnavailable
from solotable.systems.portal.search.records import (
    LARGEST_PAGE,
    LONGEST_TEXT,
    Document,
    Position,
    SearchQuery,
    Visibility,
)

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
ALL = Visibility(statuses=frozenset({"Draft", "Approved", "Deprecated", "Expired"}))
VIEWER = Visibility(statuses=frozenset({"Approved"}), owner="vic")


def document(number: int, title: str = "Pricing", summary: str = "", **fields: object) -> Document:
    values = {
        "content_id": f"c{number:04d}",
        "title": title,
        "summary": summary,
        "status": "Approved",
        "owner": "ann",
        "updated": NOON - timedelta(minutes=number),
        "version": 1,
        **fields,
    }
    return Document(**values)  # type: ignore[arg-type]  # fields of a test


def index_of(*documents: Document, path: Path | None = None) -> Fts5Index:
    index = Fts5Index(path)
    assert index.replace(documents, previous=None, checkpoint="1")
    return index


def found(
    index: Fts5Index, text: str = "", visible: Visibility = ALL, **filters: tuple[str, ...]
) -> list[str]:
    page = index.search(SearchQuery(visible=visible, text=text, **filters), limit=LARGEST_PAGE)
    assert page.next is None
    assert page.total == len(page.hits)
    return [hit.document.content_id for hit in page.hits]


def pages(index: Fts5Index, query: SearchQuery, limit: int) -> list[list[str]]:
    listed: list[list[str]] = []
    after: Position | None = None
    while True:
        page = index.search(query, after=after, limit=limit)
        listed.append([hit.document.content_id for hit in page.hits])
        after = page.next
        if after is None:
            return listed


def test_s3_11_a_text_finds_titles_tags_and_summaries_and_titles_come_first() -> None:
    index = index_of(
        document(1, "Onboarding", "How to talk about pricing with a customer who asks about pricing"),
        document(2, "Onboarding", tags=("pricing",)),
        document(3, "Pricing 101", "Numbers"),
        document(4, "Refunds", "Nothing here"),
    )
    assert found(index, "pricing") == ["c0003", "c0002", "c0001"]
    assert found(index, "talk PRICING") == ["c0001"]
    assert found(index, "pricing refunds") == []
    assert found(index) == ["c0001", "c0002", "c0003", "c0004"]  # without a text: newest first


def test_s3_11_case_accents_and_beginnings_of_the_last_word_match() -> None:
    index = index_of(document(1, "Café Überblick"), document(2, "ΣΊΣΥΦΟΣ"), document(3, "漢字 入門"))
    assert found(index, "cafe uberblick") == ["c0001"]
    assert found(index, "CAFÉ") == ["c0001"]
    assert found(index, "café über") == ["c0001"]
    assert found(index, "ca überblick") == []  # only the last word is still being written
    assert found(index, "σίσυφος") == ["c0002"]
    assert found(index, "漢") == ["c0003"]


@pytest.mark.parametrize(
    "text",
    [
        *('"', "''", "AND", "OR", "NOT", "NEAR", "NEAR(a b)", "(", ")", "*", "^", "a*", "title:pricing"),
        *(
            "{title}:pricing",
            "-pricing x",
            'pricing" OR "x',
            "pricing; DROP TABLE entry",
            "a+b",
            "\x00",
            "\\",
        ),
        *("pricing\x00x", "%", "_", "?1", ":name", "pri*ing", "\ud800", "\x02pricing\x03 x"),
    ],
)
def test_s3_11_a_users_text_is_never_syntax(text: str) -> None:
    index = index_of(document(1, "Pricing"), document(2, "Refunds"))
    assert found(index, text) == []
    assert found(index, "pricing") == ["c0001"]


@settings(max_examples=150, deadline=None)
@given(
    text=st.text(max_size=20),
    words=st.lists(st.sampled_from(["AND", '"', "NEAR(", "a", "*", ")"]), max_size=5),
)
def test_s3_11_any_text_is_answered(text: str, words: Sequence[str]) -> None:
    _INDEX.search(SearchQuery(visible=ALL, text=" ".join([text, *words])[:LONGEST_TEXT]))


_INDEX = index_of(document(1, "a b c"), document(2, "and near or not"))


def test_s3_11_words_that_are_operators_can_be_found() -> None:
    assert found(_INDEX, "near AND or") == ["c0002"]


def test_s3_11_hits_mark_what_matches_and_leave_escaping_to_the_caller() -> None:
    index = index_of(document(1, "Pricing <b>", "All \x02about\x03 pricing " + "and more " * 60))
    [hit] = index.search(SearchQuery(visible=ALL, text="pricing")).hits
    assert [(each.text, each.is_match) for each in hit.title] == [("Pricing", True), (" <b>", False)]
    summary = "".join(each.text for each in hit.summary)
    assert "\x02" not in summary
    assert summary.endswith("\N{HORIZONTAL ELLIPSIS}")
    assert [each.text for each in hit.summary if each.is_match] == ["pricing"]
    assert hit.score > 0


def test_c3_6_pages_are_full_until_the_last_and_visit_every_match_once() -> None:
    index = index_of(
        *(document(n, "Pricing", status="Approved" if n % 9 == 0 else "Draft") for n in range(200))
    )
    for text in ("pricing", ""):
        listed = pages(index, SearchQuery(visible=VIEWER, text=text), 7)
        assert [len(each) for each in listed] == [7, 7, 7, 2]
        visited = [each for page in listed for each in page]
        assert visited == sorted(visited)  # equal scores: in the order of the ids; and newest first
        assert len(set(visited)) == 23


def test_c3_6_a_page_that_is_exactly_full_is_the_last() -> None:
    index = index_of(*(document(n) for n in range(6)))
    assert pages(index, SearchQuery(visible=ALL, text="pricing"), 3) == [
        ["c0000", "c0001", "c0002"],
        ["c0003", "c0004", "c0005"],
    ]
    assert pages(index, SearchQuery(visible=ALL, text="nothing"), 3) == [[]]


def test_c3_6_pages_cross_from_titles_to_other_matches() -> None:
    both = [document(n, "Pricing", "x " * n) for n in range(5)]
    other = [document(n, "Other", "about pricing " + "x " * n) for n in range(5, 12)]
    index = index_of(*both, *other)
    listed = pages(index, SearchQuery(visible=ALL, text="pricing"), 4)
    assert [len(each) for each in listed] == [4, 4, 4]
    visited = [each for page in listed for each in page]
    assert set(visited[:5]) == {each.content_id for each in both}
    assert len(set(visited)) == 12


@pytest.mark.parametrize("together", [1, 4, 5, 12])
def test_c3_6_matches_that_are_not_scored_together_are_visited_once(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "_SCORED_TOGETHER", together)
    words = ["pricing", "pricing guide", "guide"]
    index = index_of(*(document(n, words[n % 3], "pricing " + "x " * (n % 5)) for n in range(30)))
    query = SearchQuery(visible=ALL, text="pricing")
    for limit in (1, 3, 7, 30):
        visited = [each for page in pages(index, query, limit) for each in page]
        assert len(visited) == len(set(visited)) == 30
        assert {int(each[1:]) % 3 for each in visited[:20]} == {0, 1}  # titles first


def test_s3_25_a_viewer_neither_finds_nor_counts_drafts_of_others() -> None:
    index = index_of(
        document(1, status="Draft", owner="ann", suite="Secret", tags=("hidden",)),
        document(2, status="Draft", owner="vic", suite="Mine"),
        document(3, status="Approved", suite="Public"),
        document(4, status="Expired", suite="Old"),
    )
    for text in ("", "pricing"):
        page = index.search(SearchQuery(visible=VIEWER, text=text))
        assert {hit.document.content_id for hit in page.hits} == {"c0002", "c0003"}
        assert page.total == 2
        assert page.facets["suite"] == {"Mine": 1, "Public": 1}
        assert page.facets["status"] == {"Approved": 1, "Draft": 1}
        assert page.facets["tags"] == {}
    assert found(index, visible=VIEWER, suite=("Secret",)) == []
    assert found(index, visible=VIEWER, tags=("hidden",)) == []
    assert found(index, visible=VIEWER, status=("Draft",)) == ["c0002"]
    nothing = Visibility(statuses=frozenset())
    assert found(index, visible=nothing) == []


_values = st.sampled_from(["", "A", "B", "A#B", "ä"])
_documents = st.lists(
    st.builds(
        lambda number, status, owner, suite, concept, tags, title: document(
            number, title, status=status, owner=owner, suite=suite or None, concept=concept or None, tags=tags
        ),
        st.integers(0, 30),
        st.sampled_from(["Draft", "Approved", "Expired"]),
        st.sampled_from(["vic", "ann"]),
        _values,
        _values,
        st.lists(st.sampled_from(["t1", "t2", "t 3"]), unique=True).map(tuple),
        st.sampled_from(["red fox", "red", "blue fox", "Ünique"]),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(
    before=_documents,
    changes=_documents,
    gone=st.sets(st.integers(0, 30), max_size=5),
    text=st.sampled_from(["", "red", "fox red", "uni", "none"]),
    suite=st.sampled_from([(), ("A",), ("A#B", "B")]),
    tags=st.sampled_from([(), ("t1",), ("t1", "t 3")]),
)
def test_s3_25_searches_and_facets_are_what_a_plain_loop_finds(
    before: list[Document],
    changes: list[Document],
    gone: set[int],
    text: str,
    suite: tuple[str, ...],
    tags: tuple[str, ...],
) -> None:
    index = index_of(*before)
    index.search(
        SearchQuery(visible=VIEWER)
    )  # the sets of the first state, which changes must bring up to date
    deletions = [Deletion(content_id=f"c{number:04d}", version=9) for number in gone]
    assert index.write(IndexBatch(changes=[*changes, *deletions], previous="1", checkpoint="2"))
    index.check()
    stored = {each.content_id: each for each in [*before, *changes]}
    for each in deletions:
        stored.pop(each.content_id, None)
    matching = [
        each
        for each in stored.values()
        if (each.status == "Approved" or each.owner == "vic")
        and (not suite or each.suite in suite)
        and set(tags) <= set(each.tags)
        and all(word in each.title.lower().replace("ü", "u") for word in text.split())
    ]
    page = index.search(SearchQuery(visible=VIEWER, text=text, suite=suite, tags=tags), limit=LARGEST_PAGE)
    assert {hit.document.content_id for hit in page.hits} == {each.content_id for each in matching}
    assert page.total == len(matching)
    assert page.facets["suite"] == Counter(each.suite for each in matching if each.suite)
    assert page.facets["concept"] == Counter(each.concept for each in matching if each.concept)
    assert page.facets["status"] == Counter(each.status for each in matching)
    assert page.facets["tags"] == Counter(tag for each in matching for tag in each.tags)
    index.close()


def test_s3_25_values_of_a_filter_are_alternatives_and_all_tags_are_needed() -> None:
    index = index_of(
        document(1, suite="A", tags=("x", "y")),
        document(2, suite="B", tags=("x",)),
        document(3, suite="C", audience="Sales"),
    )
    assert found(index, suite=("A", "B")) == ["c0001", "c0002"]
    assert found(index, suite=("A", "B"), tags=("x", "y")) == ["c0001"]
    assert found(index, any_tags=("y", "z")) == ["c0001"]
    assert found(index, audience=("Sales",)) == ["c0003"]
    assert found(index, suite=("X' OR 1=1 --",)) == []


def test_s3_25_an_older_version_changes_nothing() -> None:
    index = index_of(document(1, "New title", version=5))
    old: list[Document | Deletion] = [
        document(1, "Old title", version=4),
        Deletion(content_id="c0001", version=3),
    ]
    assert index.write(IndexBatch(changes=old, previous="1", checkpoint="2"))
    assert found(index, "new") == ["c0001"]
    assert found(index, "old") == []


def test_s3_25_a_batch_that_does_not_follow_the_checkpoint_is_rejected(tmp_path: Path) -> None:
    index = index_of(document(1), path=tmp_path / "portal.search")
    other = Fts5Index(tmp_path / "portal.search")
    assert other.write(IndexBatch(changes=[document(2)], previous="1", checkpoint="2", caught_up_at=7.0))
    assert not index.write(IndexBatch(changes=[document(3)], previous="1", checkpoint="2b"))
    assert not index.replace([document(4)], previous="1", checkpoint="2c")
    assert found(index) == ["c0001", "c0002"]
    status = index.status()
    assert (status.documents, status.checkpoint, status.caught_up_at) == (2, "2", 7.0)
    index.close()
    other.close()


def test_s3_25_a_failed_batch_leaves_documents_and_checkpoint_as_they_were() -> None:
    index = index_of(document(1))
    broken = replace(document(2), updated=None)  # type: ignore[arg-type]  # not a document
    with pytest.raises(AttributeError):
        index.write(IndexBatch(changes=[document(3), broken], previous="1", checkpoint="2"))
    assert found(index) == ["c0001"]
    assert index.status().checkpoint == "1"


def test_s3_25_an_index_that_is_not_built_is_unavailable_and_not_empty() -> None:
    with pytest.raises(SearchUnavailable, match="being built"):
        Fts5Index().search(SearchQuery(visible=ALL))


def test_s3_25_a_damaged_file_is_reported_and_reset(tmp_path: Path) -> None:
    path = tmp_path / "portal.search"
    index_of(*(document(n, summary="word " * 300) for n in range(50)), path=path).close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    index = Fts5Index(path)
    with pytest.raises(IndexDamaged):
        index.check()
    with pytest.raises(IndexDamaged):
        index.search(SearchQuery(visible=ALL))
    index.reset()
    assert index.status().checkpoint is None
    assert index.replace([document(1)], previous=None, checkpoint="1")
    assert found(index) == ["c0001"]
    index.close()


def test_s3_25_a_file_of_another_version_is_created_again(tmp_path: Path) -> None:
    path = tmp_path / "portal.search"
    index_of(document(1), path=path).close()
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    database.close()
    index = Fts5Index(path)
    assert index.status().checkpoint is None
    index.close()


@pytest.mark.parametrize("data", [b"not a database", b"x" * 500, "sqlite"])
def test_s3_25_a_file_of_another_program_is_never_removed(tmp_path: Path, data: bytes | str) -> None:
    path = tmp_path / "notes.db"
    if isinstance(data, str):
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE notes (text)")
        database.close()
    else:
        path.write_bytes(data)
    before = path.read_bytes()
    with pytest.raises(DeclarationError, match="not a search index"):
        Fts5Index(path)
    assert path.read_bytes() == before


def test_s3_25_a_process_notices_that_another_replaced_the_file(tmp_path: Path) -> None:
    path = tmp_path / "portal.search"
    first = index_of(document(1), path=path)
    second = Fts5Index(path)
    assert found(second, "pricing") == ["c0001"]
    first.reset()
    assert first.replace([document(2, "Refunds", suite="New")], previous=None, checkpoint="9")
    assert found(second) == ["c0002"]
    assert found(second, "pricing") == []
    assert second.search(SearchQuery(visible=ALL)).facets["suite"] == {"New": 1}
    first.close()
    second.close()


def test_s3_25_sqlite_without_fts5_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "has_fts5", lambda: False)
    with pytest.raises(DeclarationError, match=r"has no FTS5.*OpenSearchIndex"):
        Fts5Index()


@pytest.mark.parametrize(
    "fields",
    [{"text": "x" * (LONGEST_TEXT + 1)}, {"text": "a " * 17}, {"tags": tuple(map(str, range(51)))}],
)
def test_s3_11_a_query_has_limits(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        SearchQuery(visible=ALL, **fields)  # type: ignore[arg-type]  # fields of a test


@pytest.mark.parametrize("limit", [0, -1, LARGEST_PAGE + 1])
def test_s3_11_a_page_has_limits(limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        _INDEX.search(SearchQuery(visible=ALL), limit=limit)
