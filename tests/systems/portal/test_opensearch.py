"""The OpenSearch adapter against a server that checks its requests; no OpenSearch was run."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta

import pytest

from solotable import Database
from solotable.errors import DeclarationError
from solotable.systems.portal.search.indexer import Indexer, IndexResult
from solotable.systems.portal.search.opensearch import OpenSearchIndex
from solotable.systems.portal.search.port import Deletion, IndexBatch, IndexDamaged, SearchUnavailable
from solotable.systems.portal.search.records import Document, Position, SearchQuery, Visibility
from solotable.systems.portal.services.drafts import ContentPatch

from .opensearch_server import Cluster, serve_opensearch
from .studio import ADA, ANN, Studio

ALL = Visibility(statuses=frozenset({"Draft", "Approved", "Deprecated", "Expired"}))
VIEWER = Visibility(statuses=frozenset({"Approved"}), owner="vic")
NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


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


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with serve_opensearch() as found:
        yield found


@pytest.fixture
def connect(cluster: Cluster) -> Iterator[Callable[[], OpenSearchIndex]]:
    """Connects to the cluster, as another process would."""
    with ExitStack() as opened:

        def connected() -> OpenSearchIndex:
            return opened.enter_context(closing(OpenSearchIndex(cluster.url)))

        yield connected


@pytest.fixture
def index(connect: Callable[[], OpenSearchIndex]) -> OpenSearchIndex:
    return connect()


def fill(index: OpenSearchIndex, *documents: Document) -> None:
    assert index.replace(documents, previous=None, checkpoint="1")


def ids(
    index: OpenSearchIndex, text: str = "", visible: Visibility = ALL, **filters: tuple[str, ...]
) -> list[str]:
    page = index.search(SearchQuery(visible=visible, text=text, **filters), limit=100)
    return [hit.document.content_id for hit in page.hits]


def test_s3_25_opensearch_finds_and_counts_what_is_visible(index: OpenSearchIndex) -> None:
    fill(
        index,
        document(1, "Café pricing", "A summary", suite="A#B", tags=("x", "y")),
        document(2, "Other", "about pricing", suite="C", tags=("x",)),
        document(3, status="Draft", suite="Secret"),
        document(4, status="Draft", owner="vic", suite="Mine", audience="Sales"),
    )
    page = index.search(SearchQuery(visible=VIEWER, text="pricing"))
    assert {hit.document.content_id for hit in page.hits} == {"c0001", "c0002", "c0004"}
    assert page.hits[-1].document.content_id == "c0002"  # titles count more
    assert page.total == 3
    assert page.facets["suite"] == {"A#B": 1, "C": 1, "Mine": 1}
    assert page.facets["tags"] == {"x": 2, "y": 1}
    assert ids(index, "cafe pric") == ["c0001"]
    assert ids(index, visible=VIEWER, suite=("Secret",)) == []
    assert ids(index, tags=("x", "y")) == ["c0001"]
    assert ids(index, any_tags=("y", "z")) == ["c0001"]
    assert ids(index) == ["c0001", "c0002", "c0003", "c0004"]
    assert ids(index, "!!!") == []


def test_s3_25_opensearch_returns_the_same_documents_and_marks(index: OpenSearchIndex) -> None:
    given = document(1, "Pricing <b>", "All \x02about\x03 pricing", suite="S", tags=("t",), audience="Sales")
    fill(index, given)
    [hit] = index.search(SearchQuery(visible=ALL, text="pricing")).hits
    assert hit.document.updated == given.updated
    assert (hit.document.suite, hit.document.tags, hit.document.audience) == ("S", ("t",), "Sales")
    assert [(each.text, each.is_match) for each in hit.title] == [("Pricing", True), (" <b>", False)]
    assert all("\x02" not in each.text for each in hit.summary)


def test_c3_6_pages_of_opensearch_are_full_until_the_last(index: OpenSearchIndex) -> None:
    fill(index, *(document(n, status="Approved" if n % 3 else "Draft") for n in range(15)))
    for text in ("pricing", ""):
        listed: list[list[str]] = []
        after: Position | None = None
        while True:
            page = index.search(SearchQuery(visible=VIEWER, text=text), after=after, limit=5)
            listed.append([hit.document.content_id for hit in page.hits])
            after = page.next
            if after is None:
                break
        assert [len(each) for each in listed] == [5, 5]
        assert len({each for page_ids in listed for each in page_ids}) == 10


def test_s3_25_opensearch_follows_the_content_and_resumes(
    portal: Studio, index: OpenSearchIndex, connect: Callable[[], OpenSearchIndex]
) -> None:
    made = portal.draft(title="Pricing 101")
    indexer = Indexer(portal.blocking, index)
    assert indexer.run_once().rebuilt
    assert ids(index, "pricing") == [made.content_id]
    portal.run(portal.contents.update(ANN, made.content_id, ContentPatch(title="Costs")))
    indexer.run_once()
    assert ids(index, "pricing") == []
    assert ids(index, "costs") == [made.content_id]
    portal.draft(title="Second")
    assert Indexer(portal.blocking, connect()).run_once() == IndexResult(changes=1)
    portal.run(portal.contents.delete(ADA, made.content_id))
    other = Indexer(Database(portal.engine, portal.blocking.scope), connect())
    other.run_once()
    indexer.run_once()  # late: its checkpoint is not the stored one
    indexer.run_once()
    assert index.status().documents == 1
    assert ids(index, "second") != []


def test_s3_25_a_repeated_batch_of_opensearch_changes_nothing(index: OpenSearchIndex) -> None:
    fill(index, document(1, version=1))
    batch = IndexBatch(
        changes=[document(1, "Newer", version=3), Deletion(content_id="c0002", version=2)],
        previous="1",
        checkpoint="2",
    )
    assert index.write(batch)
    # As after a kill between the documents and the checkpoint: older changes come again.
    again = [document(1, "Older", version=2), document(2, "Deleted", version=2)]
    assert index.write(IndexBatch(changes=again, previous="2", checkpoint="3", caught_up_at=5.0))
    assert ids(index, "newer") == ["c0001"]
    assert ids(index) == ["c0001"]
    assert index.status().caught_up_at == 5.0


def test_s3_25_a_checkpoint_of_opensearch_moves_by_a_condition(
    index: OpenSearchIndex, connect: Callable[[], OpenSearchIndex]
) -> None:
    fill(index, document(1))
    other = connect()
    assert other.write(IndexBatch(changes=[], previous="1", checkpoint="2"))
    assert not index.write(IndexBatch(changes=[document(9)], previous="1", checkpoint="x"))
    assert not index.replace([], previous="1", checkpoint="x")
    assert index.status().checkpoint == "2"
    assert ids(index) == ["c0001"]


def test_s3_25_a_rebuild_of_opensearch_moves_the_alias_and_removes_the_old_index(
    index: OpenSearchIndex, cluster: Cluster
) -> None:
    fill(index, document(1))
    [first] = cluster.aliases["portal-content"]
    assert index.replace([document(2)], previous="1", checkpoint="2")
    [second] = cluster.aliases["portal-content"]
    assert first != second
    assert first not in cluster.indexes
    assert ids(index) == ["c0002"]


def test_s3_25_a_missing_index_of_opensearch_is_rebuilt(
    portal: Studio, index: OpenSearchIndex, cluster: Cluster
) -> None:
    portal.draft(title="First")
    Indexer(portal.blocking, index).run_once()
    for name in list(cluster.aliases.pop("portal-content")):
        del cluster.indexes[name]
    with pytest.raises(IndexDamaged):
        index.status()
    with pytest.raises(SearchUnavailable, match="being built"):
        ids(index)
    with pytest.raises(IndexDamaged):
        index.write(IndexBatch(changes=[document(1)], previous=index._state().checkpoint, checkpoint="x"))
    assert Indexer(portal.blocking, index).run_once().rebuilt
    assert len(ids(index)) == 1


def test_s3_25_an_unreachable_opensearch_is_an_error_of_search_only(
    index: OpenSearchIndex, cluster: Cluster
) -> None:
    fill(index, document(1))
    cluster.fails_with = 503
    with pytest.raises(SearchUnavailable, match=r"503 \(cluster_block_exception\)"):
        ids(index)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(SearchUnavailable, match="cannot be reached"):
        ids(OpenSearchIndex(f"http://127.0.0.1:{port}"))


def test_s3_25_a_closed_connection_is_opened_again(index: OpenSearchIndex, cluster: Cluster) -> None:
    cluster.closes_after_reply = True  # without a Connection: close header, as after an idle time
    fill(index, document(1))
    for _ in range(3):
        assert ids(index) == ["c0001"]


def test_s3_25_credentials_are_headers_and_not_in_the_url() -> None:
    with pytest.raises(DeclarationError, match="headers="):
        OpenSearchIndex("https://admin:secret@search.example.org")
