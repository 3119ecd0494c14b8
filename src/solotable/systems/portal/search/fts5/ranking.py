"""The order of hits: by bm25 for a text, newest first without one; ties by content_id.

Documents whose title has all words come first, then the others, each group by bm25. So a page of a common
word scores the titles, and not every document that mentions it.
"""

from __future__ import annotations

import heapq
import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from solotable.systems.portal.search.records import Position

from .facets import rows_of
from .match import WEIGHTS, in_title, not_in_title

_SCORE = f"bm25(words, {', '.join(map(str, WEIGHTS))})"
#: With fewer visible documents, sort them; with more, walk the index by time until the page is full.
_FEW_DOCUMENTS = 2_000


@dataclass(frozen=True, slots=True)
class Row:
    """A match: its row, its score (higher is better) and the position behind it."""

    id: int
    score: float
    position: Position


def ranked(
    database: sqlite3.Connection, match: str, found: int, after: Position | None, limit: int
) -> list[Row]:
    """Return the best of the visible matches `found` behind a position."""
    rows: list[Row] = []
    for group, expression in enumerate((in_title(match), not_in_title(match))):
        if after is not None and group < int(after[0]):
            continue
        behind = (float(after[1]), str(after[2])) if after is not None and group == after[0] else None
        best = _best(database, expression, found, behind, limit - len(rows))
        rows += [Row(row, -score, (group, score, content_id)) for score, content_id, row in best]
        if len(rows) == limit:
            break
    return rows


def _best(
    database: sqlite3.Connection,
    expression: str,
    found: int,
    behind: tuple[float, str] | None,
    limit: int,
) -> list[tuple[float, str, int]]:
    """Return the lowest scores of SQLite's bm25, which is lower for better matches."""
    least = behind[0] if behind is not None else float("-inf")
    candidates = [each for each in _scores(database, expression, found) if each[0] >= least]
    # Ids are read only for what can be on the page: the best scores, and those that tie with the last or with
    # the position.
    ahead = [each for each in candidates if each[0] > least]
    cut = max((score for score, _ in heapq.nsmallest(limit, ahead)), default=least)
    chosen = sorted((score, _content_id(database, row), row) for score, row in candidates if score <= cut)
    return [each for each in chosen if behind is None or each[:2] > behind][:limit]


def _scores(database: sqlite3.Connection, expression: str, found: int) -> Iterator[tuple[float, int]]:
    """Yield score and row of the matches in a set."""
    sql = f"SELECT {_SCORE}, rowid FROM words WHERE words MATCH ?"
    if found.bit_count() <= _FEW_DOCUMENTS:
        # Score only these. `+`: as a condition on each match, and not as one search for each row.
        rows = json.dumps(rows_of(found))
        yield from database.execute(
            f"{sql} AND +rowid IN (SELECT value FROM json_each(?))", (expression, rows)
        )
        return
    is_found = _test(found)
    yield from (each for each in database.execute(sql, (expression,)) if is_found(each[1]))


def newest(database: sqlite3.Connection, visible: int, after: Position | None, limit: int) -> list[Row]:
    """Return the newest visible documents behind a position."""
    if visible.bit_count() <= _FEW_DOCUMENTS:
        found = [
            database.execute("SELECT -updated, content_id, id FROM entry WHERE id = ?", (row,)).fetchone()
            for row in rows_of(visible)
        ]
        behind = None if after is None else (int(after[0]), str(after[1]))
        chosen = heapq.nsmallest(limit, (each for each in found if behind is None or each[:2] > behind))
    else:
        is_visible = _test(visible)
        updated, content_id = (int(after[0]), str(after[1])) if after is not None else (-(1 << 62), "")
        walk = database.execute(
            "SELECT -updated, content_id, id FROM entry "
            "WHERE updated <= ?1 AND (updated < ?1 OR content_id > ?2) ORDER BY updated DESC, content_id",
            (-updated, content_id),
        )
        chosen = []
        for each in walk:
            if is_visible(each[2]):
                chosen.append(each)
                if len(chosen) == limit:
                    break
    return [Row(row, 0.0, (updated, content_id)) for updated, content_id, row in chosen]


def _test(visible: int) -> Callable[[int], int]:
    """Return a function that says whether a row is in a set, without a copy of the set."""
    data = visible.to_bytes((visible.bit_length() + 7) // 8 + 1, "little")
    last = len(data) * 8 - 1
    return lambda row: row <= last and data[row >> 3] >> (row & 7) & 1


def _content_id(database: sqlite3.Connection, row: int) -> str:
    (content_id,) = database.execute("SELECT content_id FROM entry WHERE id = ?", (row,)).fetchone()
    return str(content_id)
