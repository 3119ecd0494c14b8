"""Search for production: an index of OpenSearch, whose checkpoint is a document beside it.

OpenSearch has no transactions. A batch writes documents first and moves the checkpoint afterwards, so a kill
repeats some changes and loses none; versions make the repetition harmless. The checkpoint moves by a
conditional write, so two indexers do not move it back.

`name` is an alias. A rebuild fills a new index and moves the alias to it in one step.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from solotable import new_id
from solotable.systems.portal.search.port import Deletion, IndexBatch, IndexDamaged, SearchUnavailable
from solotable.systems.portal.search.records import (
    FACETS,
    Document,
    FoundPage,
    IndexStatus,
    Position,
    SearchQuery,
    check_limit,
)

from .bodies import INDEX, bulk_lines, load_facets, load_hit, search_body
from .client import Headers, OpenSearchClient, Reply

_BULK = 500
_NOT_FOUND, _CONFLICT = 404, 409


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """The stored checkpoint, and the version of its document; none before the first rebuild."""

    checkpoint: str | None = None
    caught_up_at: float | None = None
    seq_no: int | None = None
    primary_term: int | None = None


class OpenSearchIndex:
    """A SearchIndex in OpenSearch. `headers` signs requests, or adds credentials to them."""

    def __init__(
        self,
        url: str,
        *,
        name: str = "portal-content",
        headers: Headers | None = None,
        timeout_seconds: float = 5.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._client = OpenSearchClient(url, headers=headers, timeout_seconds=timeout_seconds, tls=tls)
        self._name = name
        self._state_path = f"/{name}-state/_doc/state"

    def write(self, batch: IndexBatch) -> bool:
        """Apply changes, then move the checkpoint; False if it is not `previous`."""
        state = self._state()
        if state.checkpoint != batch.previous:
            return False
        self._bulk(self._name, batch.changes, to_alias=True)
        return self._move(state, batch.checkpoint, batch.caught_up_at)

    def replace(self, documents: Iterable[Document], *, previous: str | None, checkpoint: str) -> bool:
        """Fill a new index and move the alias to it; searches see the old one until then."""
        state = self._state()
        if state.checkpoint != previous:
            return False
        index = f"{self._name}-{new_id().lower()}"
        self._client.call("PUT", f"/{index}", INDEX)
        self._bulk(index, documents, to_alias=False)
        self._client.call("POST", f"/{index}/_refresh")
        old = self._indexes()
        removals = [{"remove": {"index": each, "alias": self._name}} for each in old]
        add = {"add": {"index": index, "alias": self._name}}
        self._client.call("POST", "/_aliases", {"actions": [*removals, add]})
        # After the alias: an older checkpoint repeats changes, a newer one would skip some.
        moved = self._move(state, checkpoint, None)
        for each in old:
            self._client.call("DELETE", f"/{each}")
        return moved

    def search(self, query: SearchQuery, *, after: Position | None = None, limit: int = 20) -> FoundPage:
        """Return the best visible matches behind a position; without a text, the newest first."""
        check_limit(limit)
        if query.has_text and not query.words:
            return FoundPage(hits=(), total=0, facets={name: {} for name in FACETS})
        reply = self._client.call("POST", f"/{self._name}/_search", search_body(query, after, limit))
        if reply.status == _NOT_FOUND:
            raise SearchUnavailable("The search index is being built; try again in a moment.")
        found = reply.body["hits"]["hits"]
        return FoundPage(
            hits=tuple(load_hit(each) for each in found[:limit]),
            total=reply.body["hits"]["total"]["value"],
            facets=load_facets(reply.body["aggregations"]),
            next=tuple(found[limit - 1]["sort"]) if len(found) > limit else None,
        )

    def status(self) -> IndexStatus:
        """Return how far the index is; raise IndexDamaged if the index of a checkpoint is missing."""
        state = self._state()
        counted = self._client.call("GET", f"/{self._name}/_count")
        if counted.status == _NOT_FOUND and state.checkpoint is not None:
            raise IndexDamaged(f"OpenSearch has no index {self._name!r}; the indexer rebuilds it.")
        return IndexStatus(
            documents=0 if counted.status == _NOT_FOUND else counted.body["count"],
            checkpoint=state.checkpoint,
            caught_up_at=state.caught_up_at,
        )

    def prepare(self) -> bool:
        """Do nothing: OpenSearch loads by itself, and a write to a missing index is an error."""
        return True

    def reset(self) -> None:
        """Remove the checkpoint and the indexes behind the alias."""
        self._client.call("DELETE", self._state_path, parameters={"refresh": "true"})
        for each in self._indexes():
            self._client.call("DELETE", f"/{each}")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _state(self) -> _State:
        reply = self._client.call("GET", self._state_path)
        if reply.status == _NOT_FOUND:
            return _State()
        return _State(
            checkpoint=reply.body["_source"]["checkpoint"],
            caught_up_at=reply.body["_source"]["caught_up_at"],
            seq_no=reply.body["_seq_no"],
            primary_term=reply.body["_primary_term"],
        )

    def _move(self, state: _State, checkpoint: str, caught_up_at: float | None) -> bool:
        """Store the checkpoint if the stored state is still this one."""
        parameters: dict[str, str | int] = {"op_type": "create"}
        if state.seq_no is not None and state.primary_term is not None:
            parameters = {"if_seq_no": state.seq_no, "if_primary_term": state.primary_term}
        body = {
            "checkpoint": checkpoint,
            "caught_up_at": state.caught_up_at if caught_up_at is None else caught_up_at,
        }
        return self._client.call("PUT", self._state_path, body, parameters=parameters).status != _CONFLICT

    def _bulk(self, index: str, changes: Iterable[Document | Deletion], *, to_alias: bool) -> None:
        # An alias that is missing must not become an index of that name.
        parameters: dict[str, str | int] = {"require_alias": "true"} if to_alias else {}
        for group in _groups(changes):
            lines = [line for change in group for line in bulk_lines(change)]
            reply = self._client.bulk(f"/{index}/_bulk", lines, parameters=parameters)
            _check_bulk(reply, index)

    def _indexes(self) -> list[str]:
        reply = self._client.call("GET", f"/_alias/{self._name}")
        return [] if reply.status == _NOT_FOUND else sorted(reply.body)


def _groups(changes: Iterable[Document | Deletion]) -> Iterator[list[Document | Deletion]]:
    source = iter(changes)
    while group := list(islice(source, _BULK)):
        yield group


def _check_bulk(reply: Reply, index: str) -> None:
    if reply.status == _NOT_FOUND:
        raise IndexDamaged(f"OpenSearch has no index {index!r}; the indexer rebuilds it.")
    results: list[dict[str, Any]] = [next(iter(each.values())) for each in reply.body["items"]]
    for each in results:
        kind = each.get("error", {}).get("type")
        # A conflict is a newer version in the index; a deletion of what is not there is done.
        if each["status"] < 300 or each["status"] == _CONFLICT or (each["status"] == _NOT_FOUND and not kind):
            continue
        if kind == "index_not_found_exception":
            raise IndexDamaged(f"OpenSearch has no index {index!r}; the indexer rebuilds it.")
        raise SearchUnavailable(f"OpenSearch rejected a document with {each['status']} ({kind}).")
