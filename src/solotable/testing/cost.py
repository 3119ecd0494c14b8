"""Assertions on the requests of a block of a test, and on their cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from solotable._store.asynchronous.stores import AsyncVerbs
from solotable._store.observation import ObservedAsyncEngine, ObservedEngine
from solotable._store.sync.stores import Verbs

from .engines.journal import Journal, Record, total
from .engines.wrapper import EngineWrapper


@contextmanager
def assert_cost(
    store: Any, *, rcu: float | None = None, wcu: float | None = None, at_most: bool = False
) -> Iterator[None]:
    """Fail unless the block costs exactly this many read and write units, or at most.

    `store` is any store; then the calls of this thread or task count. With a recording engine (such as the
    fixtures' stores have), or its journal, the requests of other threads count too.
    """
    __tracebackhide__ = True
    if rcu is None and wcu is None:
        raise TypeError("assert_cost() needs rcu= or wcu=, for example assert_cost(db, rcu=0.5).")
    journal = _journal_of(store)
    if journal is None and isinstance(store, Verbs | AsyncVerbs):
        with store.consumed() as consumed:
            yield
        spent, shown = (consumed.rcu, consumed.wcu), f"  {consumed.requests} requests."
    else:
        records = (journal or find_journal(store)).records
        first = len(records)
        yield
        sent = records[first:]
        spent = (total(record.rcu for record in sent), total(record.wcu for record in sent))
        shown = format_records(sent)
    wrong = [
        difference
        for expected, units, unit in zip((rcu, wcu), spent, ("RCU", "WCU"), strict=True)
        if (difference := _difference(expected, units, unit, at_most=at_most))
    ]
    if wrong:
        raise AssertionError(f"The block cost {' and '.join(wrong)}.\n{shown}")


@contextmanager
def assert_no_scan(recorded: Any) -> Iterator[None]:
    """Fail if the block scans: a Scan, or a PartiQL SELECT that names no partition key."""
    __tracebackhide__ = True
    journal = find_journal(recorded)
    first = len(journal.records)
    yield
    scans = [record for record in journal.records[first:] if record.is_scan]
    if scans:
        raise AssertionError(
            f"The block scans; a scan reads, and costs, the whole table or index.\n{format_records(scans)}"
        )


def find_journal(recorded: Any) -> Journal:
    """Return the journal of a store or engine; raise TypeError if it has none."""
    found = _journal_of(recorded)
    if found is None:
        raise TypeError(
            f"{recorded!r} has no journal; use the solotable_db fixture, or a store over a RecordingEngine."
        )
    return found


def _journal_of(recorded: Any) -> Journal | None:
    found = recorded
    # Unwrap: a store has an engine, an async engine a blocking one, a wrapper an inner one.
    while found is not None and not isinstance(found, Journal):
        journal = getattr(found, "journal", None)
        if isinstance(journal, Journal):
            return journal
        wraps = isinstance(found, EngineWrapper | ObservedEngine | ObservedAsyncEngine)
        found = found.inner if wraps else getattr(found, "_engine", None)
    return found


def format_records(records: Sequence[Record]) -> str:
    """Return the requests with their costs, one per line."""
    return "\n".join(f"  {number}. {record}" for number, record in enumerate(records, 1)) or "  No request."


def _difference(expected: float | None, spent: float, unit: str, *, at_most: bool) -> str:
    if expected is None or spent == expected or (at_most and spent < expected):
        return ""
    return f"{spent:g} {unit}, not {'at most ' if at_most else ''}{expected:g}"
