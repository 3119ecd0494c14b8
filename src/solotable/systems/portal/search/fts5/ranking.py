"""The order of hits: by bm25 for a text, newest first without one; ties by content_id.

Documents whose title has all words come first, then the others. Within each group bm25 decides among the
latest 2,000 matches, then among the 2,000 before them. So the cost of a page does not grow with the number of
matches of a common word.
"""

from __future__ import annotations

import heapq
import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from solotable.systems.portal.search.records import Position

from .facets import rows_of
from .match import WEIGHTS

_SCORE = f"bm25(words, {', '.join(map(str, WEIGHTS))})"
#: The matches among which bm25 decides.
_SCORED_TOGETHER = 2_000
#: With fewer visible documents, sort them; with more, walk the index by time until the page is full.
_FEW_DOCUMENTS = 2_000


@dataclass(frozen=True, slots=True)
class Row:
    """A match: its row, its score (higher is better) and the position behind it."""

    id: int
    score: float
    position: Position


def ranked(
    database: sqlite3.Connection,
    match: str,
    groups: tuple[int, ...],
    after: Position | None,
    limit: int,
) -> list[Row]:
    """Return the best of the visible matches behind a position, group by group."""
    rows: list[Row] = []
    group, top = (0, groups[0].bit_length()) if after is None else (int(after[0]), int(after[1]))
    behind = None if after is None else (float(after[2]), str(after[3]))
    for number, members in enumerate(groups):
        if number < group:
            continue
        left = _below(members, top) if number == group else members
        while left and len(rows) < limit:
            top = left.bit_length()
            latest = _latest(left)
            best = _best(database, match, latest, behind, limit - len(rows))
            rows += [Row(row, -score, (number, top, score, content_id)) for score, content_id, row in best]
            left ^= latest
            behind = None
    return rows


def _below(found: int, top: int) -> int:
    """Return the rows below a row."""
    return found & ((1 << top) - 1)


def _latest(found: int) -> int:
    """Return the rows with the highest ids, which were added last."""
    if found.bit_count() <= _SCORED_TOGETHER:
        return found
    # Halve the range until it has the right number of rows.
    low, high = 0, found.bit_length()
    while low < high:
        middle = (low + high) // 2
        if (found >> middle).bit_count() > _SCORED_TOGETHER:
            low = middle + 1
        else:
            high = middle
    return found >> low << low


def _best(
    database: sqlite3.Connection,
    match: str,
    found: int,
    behind: tuple[float, str] | None,
    limit: int,
) -> list[tuple[float, str, int]]:
    """Return the lowest scores of SQLite's bm25, which is lower for better matches."""
    least = behind[0] if behind is not None else float("-inf")
    candidates = [each for each in _scores(database, match, found) if each[0] >= least]
    # Ids are read only for what can be on the page: the best scores, and those that tie with the last or with
    # the position.
    ahead = [each for each in candidates if each[0] > least]
    cut = max((score for score, _ in heapq.nsmallest(limit, ahead)), default=least)
    chosen = sorted((score, _content_id(database, row), row) for score, row in candidates if score <= cut)
    return [each for each in chosen if behind is None or each[:2] > behind][:limit]


def _scores(database: sqlite3.Connection, match: str, found: int) -> list[tuple[float, int]]:
    """Return score and row of the matches in a set, and score no others."""
    # `+`: as a condition on each match, and not as one search for each row.
    return database.execute(
        f"SELECT {_SCORE}, rowid FROM words "
        "WHERE words MATCH ? AND rowid >= ? AND rowid < ? AND +rowid IN (SELECT value FROM json_each(?))",
        (match, (found & -found).bit_length() - 1, found.bit_length(), json.dumps(rows_of(found))),
    ).fetchall()


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
