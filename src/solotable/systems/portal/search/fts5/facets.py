"""Facets as bit sets in memory, so that counting and filtering are AND and OR.

An int is a set of row ids: bit 7 says whether row 7 is in it. A hundred thousand rows are 12 KB a value.
Every search brings the sets up to date: it reads the rows that changed since, in its own transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field

from solotable.systems.portal.search.records import FACETS, SearchQuery, top_values

_COLUMNS = ("status", "suite", "concept", "audience")
#: A tag has a bit set if at least one of so many documents has it; others are counted by SQL.
_RARE_TAG = 5_000
#: Up to this many matches, rare tags are counted too.
_FEW_MATCHES = 2_000
Bits = dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetSets:
    """The bit sets of one state of the index."""

    change: int = -1
    #: The random state of the file that the sets were read from.
    state: bytes = b""
    rows: int = 0
    bits: Bits = field(default_factory=lambda: {name: {} for name in FACETS})

    def current(self, database: sqlite3.Connection) -> FacetSets:
        """Return the sets of the state that the connection's transaction sees."""
        change, state = database.execute("SELECT change, state FROM position").fetchone()
        if state == self.state:
            return self
        is_ancestor = database.execute(
            "SELECT 1 FROM history WHERE change = ? AND state = ?", (self.change, self.state)
        ).fetchone()
        return self._advanced(database, change, state) if is_ancestor else _load(database, change, state)

    def is_current(self, database: sqlite3.Connection) -> bool:
        """Return whether the connection's transaction sees the state of the sets."""
        (state,) = database.execute("SELECT state FROM position").fetchone()
        return bool(state == self.state)

    def visible(self, database: sqlite3.Connection, query: SearchQuery) -> int:
        """Return the documents that the query's filters and its visibility let through."""
        found = _union(self.bits["status"].get(status, 0) for status in query.visible.statuses)
        if query.visible.owner is not None:
            own = database.execute("SELECT id FROM entry WHERE owner = ?", (query.visible.owner,))
            found |= bits_of(row for (row,) in own)
        for name in _COLUMNS:
            if values := getattr(query, name):
                found &= _union(self.bits[name].get(value, 0) for value in values)
        for tag in query.tags:
            found &= _tagged(database, tag)
        if query.any_tags:
            found &= _union(_tagged(database, tag) for tag in query.any_tags)
        return found

    def count(self, database: sqlite3.Connection, found: int) -> dict[str, dict[str, int]]:
        """Return the most frequent values of each facet in a set, with their counts."""
        counts = {
            name: {value: count for value, bits in sets.items() if (count := (bits & found).bit_count())}
            for name, sets in self.bits.items()
        }
        if found.bit_count() <= _FEW_MATCHES:
            counts["tags"] = _count_tags(database, found)
        return {name: top_values(values) for name, values in counts.items()}

    def _advanced(self, database: sqlite3.Connection, change: int, state: bytes) -> FacetSets:
        gone = bits_of(
            row for (row,) in database.execute("SELECT id FROM removal WHERE changed > ?", (self.change,))
        )
        bits = {name: {value: old & ~gone for value, old in sets.items()} for name, sets in self.bits.items()}
        rows = database.execute(
            "SELECT id, status, suite, concept, audience FROM entry WHERE changed > ?", (self.change,)
        ).fetchall()
        for row, *values in rows:
            for name, value in zip(_COLUMNS, values, strict=True):
                if value is not None:
                    bits[name][value] = bits[name].get(value, 0) | 1 << row
            for (tag,) in database.execute("SELECT tag FROM tag WHERE id = ?", (row,)):
                if tag in bits["tags"] or self.rows < _RARE_TAG:
                    bits["tags"][tag] = bits["tags"].get(tag, 0) | 1 << row
        return FacetSets(change=change, state=state, rows=self.rows + len(rows), bits=bits)


def bits_of(rows: Iterable[int]) -> int:
    """Return a set of row ids.

    >>> bin(bits_of([0, 3]))
    '0b1001'
    """
    listed = list(rows)
    if not listed:
        return 0
    # int() reads binary digits in linear time; setting bits one by one copies the whole set each time.
    digits = bytearray(b"0") * (max(listed) + 1)
    for row in listed:
        digits[row] = 49  # "1"
    digits.reverse()
    return int(digits, 2)


def matches_of(database: sqlite3.Connection, match: str) -> int:
    """Return the rows that match an expression."""
    # One text of all ids: a common word has tens of thousands, and a Python row for each takes longer.
    (listed,) = database.execute(
        "SELECT group_concat(rowid) FROM words WHERE words MATCH ?", (match,)
    ).fetchone()
    return _listed(listed) if listed else 0


def rows_of(found: int) -> list[int]:
    """Return the row ids in a set, in order.

    >>> rows_of(0b1001)
    [0, 3]
    """
    digits = bin(found)[:1:-1]
    rows, at = [], digits.find("1")
    while at >= 0:
        rows.append(at)
        at = digits.find("1", at + 1)
    return rows


def _listed(rows: str) -> int:
    """Return the set of row ids that SQLite joined to a text."""
    # The JSON decoder reads 90,000 numbers in 6 ms; int() on each part takes 16 ms.
    return bits_of(json.loads(f"[{rows}]"))


def _tagged(database: sqlite3.Connection, tag: str) -> int:
    return bits_of(row for (row,) in database.execute("SELECT id FROM tag WHERE tag = ?", (tag,)))


def _union(sets: Iterable[int]) -> int:
    found = 0
    for each in sets:
        found |= each
    return found


def _load(database: sqlite3.Connection, change: int, state: bytes) -> FacetSets:
    (count,) = database.execute("SELECT count(*) FROM entry").fetchone()
    bits: Bits = {}
    for name in _COLUMNS:
        grouped = database.execute(
            f"SELECT {name}, group_concat(id) FROM entry WHERE {name} IS NOT NULL GROUP BY {name}"
        )
        bits[name] = {value: _listed(rows) for value, rows in grouped}
    frequent = database.execute(
        "SELECT tag, group_concat(id) FROM tag GROUP BY tag HAVING count(*) >= ?", (count // _RARE_TAG,)
    )
    bits["tags"] = {tag: _listed(rows) for tag, rows in frequent}
    return FacetSets(change=change, state=state, rows=count, bits=bits)


def _count_tags(database: sqlite3.Connection, found: int) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in rows_of(found):
        for (tag,) in database.execute("SELECT tag FROM tag WHERE id = ?", (row,)):
            counts[tag] = counts.get(tag, 0) + 1
    return counts
