"""Requests of the OpenSearch adapter as JSON: mappings, bulk lines and searches. Pure.

A user's text is the value of a match query and never a query string, so it has no syntax.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from solotable.systems.portal.search.port import Deletion
from solotable.systems.portal.search.records import (
    FACETS,
    LONGEST_SNIPPET,
    MATCH_BEGINS,
    MATCH_ENDS,
    MOST_FACET_VALUES,
    Document,
    Fragment,
    Hit,
    Position,
    SearchQuery,
    fragments,
    printable,
    shorten,
)

#: How much a match in each field counts, as in the FTS5 index.
_FIELDS = ("title^10", "tags.words^4", "summary")
_KEYWORD = {"type": "keyword"}
_TEXT = {"type": "text", "analyzer": "folded"}

#: The index: words without case and accents, and facets as they are.
INDEX: dict[str, Any] = {
    "settings": {
        "analysis": {
            "analyzer": {
                "folded": {"type": "custom", "tokenizer": "standard", "filter": ["lowercase", "asciifolding"]}
            }
        }
    },
    "mappings": {
        "dynamic": "strict",
        "properties": {
            "content_id": _KEYWORD,
            "title": _TEXT,
            "summary": _TEXT,
            "status": _KEYWORD,
            "owner": _KEYWORD,
            "tags": {"type": "keyword", "fields": {"words": _TEXT}},
            "suite": _KEYWORD,
            "concept": _KEYWORD,
            "audience": _KEYWORD,
            "updated": {"type": "long"},
            "version": {"type": "long"},
        },
    },
}


def bulk_lines(change: Document | Deletion) -> Iterator[dict[str, Any]]:
    """Yield the lines of one change. OpenSearch rejects a version that is older than what it has."""
    meta = {"_id": change.content_id, "version": change.version, "version_type": "external_gte"}
    if isinstance(change, Deletion):
        # Later than the last version: a repetition of older writes does not bring the document back.
        yield {"delete": {**meta, "version": change.version + 1}}
        return
    yield {"index": meta}
    document = replace(change, title=printable(change.title), summary=printable(change.summary))
    micros = round(change.updated.timestamp() * 1_000_000)
    yield {name: each for name, each in asdict(document).items() if each is not None} | {"updated": micros}


def search_body(query: SearchQuery, after: Position | None, limit: int) -> dict[str, Any]:
    """Return the body of a search for one hit more than the page has, which says whether another follows."""
    matches = [
        {
            "multi_match": {
                "query": word,
                "fields": list(_FIELDS),
                "type": "phrase_prefix" if number == len(query.words) else "phrase",
            }
        }
        for number, word in enumerate(query.words, 1)
    ]
    order = {"_score": "desc"} if matches else {"updated": "desc"}
    body: dict[str, Any] = {
        "query": {"bool": {"must": matches, "filter": _filters(query)}},
        "sort": [order, {"content_id": "asc"}],
        "size": limit + 1,
        "track_total_hits": True,
        "aggs": {
            name: {
                "terms": {
                    "field": name,
                    "size": MOST_FACET_VALUES,
                    "order": [{"_count": "desc"}, {"_key": "asc"}],
                }
            }
            for name in FACETS
        },
        "highlight": {
            "pre_tags": [MATCH_BEGINS],
            "post_tags": [MATCH_ENDS],
            "fields": {
                "title": {"number_of_fragments": 0},
                "summary": {"number_of_fragments": 1, "fragment_size": LONGEST_SNIPPET},
            },
        },
    }
    return body if after is None else {**body, "search_after": list(after)}


def _filters(query: SearchQuery) -> list[dict[str, Any]]:
    visible: list[dict[str, Any]] = [{"terms": {"status": sorted(query.visible.statuses)}}]
    if query.visible.owner is not None:
        visible.append({"term": {"owner": query.visible.owner}})
    filters: list[dict[str, Any]] = [{"bool": {"should": visible, "minimum_should_match": 1}}]
    names = ("status", "suite", "concept", "audience")
    filters += [{"terms": {name: list(getattr(query, name))}} for name in names if getattr(query, name)]
    filters += [{"term": {"tags": tag}} for tag in query.tags]
    if query.any_tags:
        filters.append({"terms": {"tags": list(query.any_tags)}})
    return filters


def load_hit(found: dict[str, Any]) -> Hit:
    """Return a hit of a reply."""
    source = dict(found["_source"])
    updated = datetime.fromtimestamp(source.pop("updated") / 1_000_000, UTC)
    document = Document(**{**source, "tags": tuple(source.get("tags", ())), "updated": updated})
    marked = found.get("highlight", {})
    plain = (Fragment(shorten(document.summary)),) if document.summary else ()
    return Hit(
        document=document,
        score=found.get("_score") or 0.0,
        title=fragments(marked["title"][0]) if "title" in marked else (Fragment(document.title),),
        summary=fragments(marked["summary"][0]) if "summary" in marked else plain,
    )


def load_facets(aggregations: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return the facets of a reply."""
    return {
        name: {bucket["key"]: bucket["doc_count"] for bucket in aggregations[name]["buckets"]}
        for name in FACETS
    }
