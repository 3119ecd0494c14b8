"""Search queries to FTS5 expressions and SQL. A user's text is only ever a quoted string.

Documents whose title has all words come first, then the others, each group by bm25. So a page of a common
word scores the titles, and not every document that mentions it.
"""

from __future__ import annotations

from dataclasses import dataclass

from solotable.systems.portal.search.records import Position, SearchQuery

from .schema import WEIGHTS

_SCORE = f"bm25(words, {', '.join(map(str, WEIGHTS))})"
#: From this length on, the last word also finds longer words: a user may still be writing it.
_SHORTEST_PREFIX = 2
_FACET_COLUMNS = ("status", "suite", "concept", "audience")


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on `entry` as `e`, and its parameters."""

    sql: str
    parameters: tuple[str | int, ...]


def match_of(words: tuple[str, ...]) -> str:
    """Return the FTS5 expression of words: all of them, the last one as a prefix.

    >>> match_of(("NEAR", 'say"', "guide"))
    '"NEAR" AND "say\"\"\" AND "guide" *'
    """
    terms = ['"' + word.replace('"', '""') + '"' for word in words]
    if len(words[-1]) >= _SHORTEST_PREFIX or not words[-1].isascii():
        terms[-1] += " *"
    return " AND ".join(terms)


def filter_of(query: SearchQuery) -> Filter:
    """Return the filters and the visibility of a query as one condition."""
    given = [(name, getattr(query, name)) for name in _FACET_COLUMNS]
    filters = [(f"{name} IN ({_marks(values)})", values) for name, values in given if values]
    shown = ("status IN (" + _marks(query.visible.statuses) + ")", tuple(sorted(query.visible.statuses)))
    sql, parameters = _facet_sets([*filters, shown])
    if query.visible.owner is not None:
        own, own_parameters = _facet_sets(filters)
        sql = f"({sql} OR (e.owner = ? AND {own}))"
        parameters += (query.visible.owner, *own_parameters)
    for tag in dict.fromkeys(query.tags):
        sql += " AND e.tag_set IN (SELECT tag_set FROM tag WHERE tag = ?)"
        parameters += (tag,)
    return Filter(sql, parameters)


def _facet_sets(conditions: list[tuple[str, tuple[str, ...]]]) -> tuple[str, tuple[str | int, ...]]:
    if not conditions:
        return "TRUE", ()
    sql = " AND ".join(condition for condition, _ in conditions)
    parameters = tuple(value for _, values in conditions for value in values)
    return f"e.facet_set IN (SELECT code FROM facet_set WHERE {sql})", parameters


def _marks(values: object) -> str:
    return ", ".join("?" * len(values))  # type: ignore[arg-type]  # any sized collection


@dataclass(frozen=True, slots=True)
class Statement:
    """An SQL statement and its parameters."""

    sql: str
    parameters: tuple[str | int | float, ...]


def facets_statement(match: str | None, where: Filter) -> Statement:
    """Return the statement that counts visible matches by facet set (0) and by tag set (1)."""
    source, parameters = _source(match)
    # MATERIALIZED: one pass over the matches, counted twice.
    sql = (
        f"WITH found AS MATERIALIZED (SELECT e.facet_set AS f, e.tag_set AS t FROM {source} {where.sql}) "
        "SELECT 0, f, count(*) FROM found GROUP BY f UNION ALL SELECT 1, t, count(*) FROM found GROUP BY t"
    )
    return Statement(sql, (*parameters, *where.parameters))


def newest_statement(where: Filter, after: Position | None, limit: int) -> Statement:
    """Return the statement for a page without a text: newest first."""
    behind = ""
    parameters: tuple[str | int | float, ...] = ()
    if after is not None:
        updated, content_id = after
        behind = "AND (e.updated < ? OR (e.updated = ? AND e.content_id > ?))"
        parameters = (updated, updated, content_id)
    sql = (
        f"SELECT e.id, e.updated, e.content_id FROM entry AS e WHERE {where.sql} {behind} "
        "ORDER BY e.updated DESC, e.content_id LIMIT ?"
    )
    return Statement(sql, (*where.parameters, *parameters, limit))


def ranked_statement(match: str, where: Filter, after: Position | None, limit: int) -> Statement:
    """Return the statement for a page of matches, the best first: id, score and content_id."""
    source, parameters = _source(match)
    behind: tuple[str | int | float, ...] = ()
    condition = ""
    if after is not None:
        score, content_id = after
        condition = "WHERE score > ? OR (score = ? AND content_id > ?)"
        behind = (score, score, content_id)
    sql = (
        f"WITH found AS MATERIALIZED "
        f"(SELECT e.id AS id, {_SCORE} AS score, e.content_id AS content_id FROM {source} {where.sql}) "
        f"SELECT id, score, content_id FROM found {condition} ORDER BY score, content_id LIMIT ?"
    )
    return Statement(sql, (*parameters, *where.parameters, *behind, limit))


def in_title(match: str) -> str:
    """Return the expression of matches whose title has all words."""
    return f"title : ({match})"


def not_in_title(match: str) -> str:
    """Return the expression of the other matches."""
    return f"({match}) NOT ({in_title(match)})"


def _source(match: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the tables of a search; what a caller gives is always a parameter."""
    if match is None:
        return "entry AS e WHERE", ()
    return "words CROSS JOIN entry AS e ON e.id = words.rowid WHERE words MATCH ? AND", (match,)
