"""Writes that wait for each other are committed together: one transaction, one fsync.

Whoever comes first while nobody commits does it for all who have come by then; the others find their
write done. So the more callers there are, the fewer fsyncs each of them pays for. A write that fails
is undone alone. Nothing is ever committed twice: after a COMMIT that failed, nobody tries again.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from solotable.errors import EngineError

if TYPE_CHECKING:
    from .connection import Database

ResultT = TypeVar("ResultT")
Action = Callable[[sqlite3.Connection], Any]

#: More than this many writes do not share a transaction: each adds to the wait of all.
_LARGEST_GROUP = 128


class Outcome:
    """What came of one write: a result, or the error to raise to its caller."""

    __slots__ = ("done", "error", "result")

    def __init__(self) -> None:
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def settle(self, result: Any) -> None:
        self.result, self.done = result, True

    def fail(self, error: BaseException) -> None:
        self.error, self.done = error, True

    def get(self) -> Any:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.result


class _Job(Outcome):
    __slots__ = ("action",)

    def __init__(self, action: Action) -> None:
        super().__init__()
        self.action = action


class _Undone(Exception):
    """The whole transaction is gone, through the fault of one write or of the file."""


class Commits:
    """The one place where transactions are begun and committed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: deque[_Job] = deque()
        self.lock = threading.RLock()
        #: The thread that has a transaction open for several writes of its own.
        self._owner: int | None = None

    def write(self, action: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        """Run the action in a transaction; return its result once that is committed."""
        if self._owner == threading.get_ident():
            return cast(ResultT, _guarded(self._database, self._database.writer, action))
        job = _Job(action)
        self._waiting.append(job)
        with self.lock:
            while not job.done:
                self._commit(self._next_group())
        return cast(ResultT, job.get())

    def together(self, works: Sequence[Callable[[], Any]]) -> list[Outcome]:
        """Run several works of one caller; what they write is committed together.

        A work may write, read, or refuse; each has an outcome of its own.
        """
        outcomes = [Outcome() for _ in works]
        with self.lock:
            try:
                self._transaction(lambda _: self._run_works(works, outcomes))
            except _Undone:
                for work, outcome in zip(works, outcomes, strict=True):
                    _try(outcome, work)
            except EngineError as error:
                for outcome in outcomes:
                    outcome.fail(error)
        return outcomes

    def _run_works(self, works: Sequence[Callable[[], Any]], outcomes: list[Outcome]) -> None:
        self._owner = threading.get_ident()
        try:
            for work, outcome in zip(works, outcomes, strict=True):
                _try(outcome, work)
        finally:
            self._owner = None

    def _next_group(self) -> list[_Job]:
        waiting = self._waiting
        return [waiting.popleft() for _ in range(min(len(waiting), _LARGEST_GROUP))]

    def _commit(self, jobs: list[_Job]) -> None:
        try:
            if len(jobs) > 1:
                self._commit_group(jobs)
            else:
                self._commit_one(jobs[0])
        finally:
            for job in jobs:
                if not job.done:
                    job.fail(EngineError(f"{self._database.path}: the write was interrupted and not kept."))

    def _commit_group(self, jobs: list[_Job]) -> None:
        def run(writer: sqlite3.Connection) -> None:
            for job in jobs:
                _try(job, partial(_guarded, self._database, writer, job.action))

        try:
            self._transaction(run)
        except _Undone:
            # One of them took the others' transaction with it: each gets one of its own.
            for job in jobs:
                job.done, job.error = False, None
                self._commit_one(job)
        except EngineError as error:
            for job in jobs:
                if job.error is None:
                    job.fail(error)

    def _commit_one(self, job: _Job) -> None:
        results: list[Any] = []
        try:
            self._transaction(lambda writer: results.append(job.action(writer)))
        except Exception as error:  # noqa: BLE001  # carried to the caller, whoever runs this
            job.fail(error)
        else:
            job.settle(results[0])

    def _transaction(self, run: Callable[[sqlite3.Connection], None]) -> None:
        database = self._database
        with database.file_lock:
            writer = database.writer
            try:
                writer.execute("BEGIN IMMEDIATE")
                run(writer)
                writer.execute("COMMIT")
            except sqlite3.Error as fault:
                database.abandon(fault)
                raise database.fault(fault) from fault
            except BaseException:
                database.abandon(None)
                raise


def _guarded(database: Database, writer: sqlite3.Connection, action: Action) -> Any:
    """Run one write of several inside their transaction; undo it alone when it fails."""
    writer.execute("SAVEPOINT one")
    try:
        result = action(writer)
        writer.execute("RELEASE one")
    except BaseException as error:
        if not writer.in_transaction:
            raise _Undone from error
        try:
            writer.execute("ROLLBACK TO one")
            writer.execute("RELEASE one")
        except sqlite3.Error as fault:
            raise _Undone from fault
        if isinstance(error, sqlite3.Error):
            raise database.fault(error) from error
        raise
    return result


def _try(outcome: Outcome, work: Callable[[], Any]) -> None:
    try:
        outcome.settle(work())
    except _Undone:
        raise
    except Exception as error:  # noqa: BLE001  # carried to the caller, whoever runs this
        outcome.fail(error)
