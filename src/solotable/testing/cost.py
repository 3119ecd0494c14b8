"""Assertions on what a block of a test asks of DynamoDB, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .engines.journal import Journal, Record, total
from .engines.layer import Layer


@contextmanager
def assert_cost(
    recorded: Any, *, rcu: float | None = None, wcu: float | None = None, at_most: bool = False
) -> Iterator[None]:
    """Fail unless the block costs exactly so many read and write units, or at most so many.

    `recorded` is a store over a recording engine (the fixtures' stores are), the engine or its journal.
    """
    __tracebackhide__ = True
    if rcu is None and wcu is None:
        raise TypeError("Say what it is to cost: assert_cost(db, rcu=0.5), assert_cost(db, rcu=0, wcu=2).")
    journal = journal_of(recorded)
    first = len(journal.records)
    yield
    records = journal.records[first:]
    wrong = [
        told
        for expected, spent, unit in (
            (rcu, total(record.rcu for record in records), "RCU"),
            (wcu, total(record.wcu for record in records), "WCU"),
        )
        if (told := _judged(expected, spent, unit, at_most=at_most))
    ]
    if wrong:
        raise AssertionError(f"The block cost {' and '.join(wrong)}.\n{listed(records)}")


@contextmanager
def assert_no_scan(recorded: Any) -> Iterator[None]:
    """Fail if the block scans: a Scan, or a PartiQL SELECT that names no partition key."""
    __tracebackhide__ = True
    journal = journal_of(recorded)
    first = len(journal.records)
    yield
    scans = [record for record in journal.records[first:] if record.is_scan]
    if scans:
        raise AssertionError(f"The block scans: a scan reads and pays for everything.\n{listed(scans)}")


def journal_of(recorded: Any) -> Journal:
    """Return the journal of a store, an engine or a journal; refuse what nobody records."""
    found = recorded
    # A store keeps its engine, an awaited engine the blocking one, a layer the one inside.
    while found is not None and not isinstance(found, Journal):
        journal = getattr(found, "journal", None)
        if isinstance(journal, Journal):
            return journal
        found = found.inner if isinstance(found, Layer) else getattr(found, "_engine", None)
    if found is None:
        raise TypeError(
            f"{recorded!r} is not recorded; take it from the solotable_db fixture, or open it over a "
            "RecordingEngine."
        )
    return found


def listed(records: Sequence[Record]) -> str:
    """Return the requests with their costs, a line for each."""
    return "\n".join(f"  {number}. {record}" for number, record in enumerate(records, 1)) or "  No request."


def _judged(expected: float | None, spent: float, unit: str, *, at_most: bool) -> str:
    if expected is None or spent == expected or (at_most and spent < expected):
        return ""
    return f"{spent:g} {unit}, not {'at most ' if at_most else ''}{expected:g}"
