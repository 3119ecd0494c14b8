"""Writes that wait for each other are committed together: one transaction, one fsync.

Whoever comes while nobody commits does it for all who have come by then; the others sleep until their
write is done, or until it is their turn to commit for the rest. So the slower the disk and the more
the callers, the fewer fsyncs each of them pays for. A write that fails is undone alone. Nothing is
acknowledged before COMMIT has returned, and nothing is ever committed twice: once COMMIT was begun,
nobody tries again.
"""

from __future__ import annotations

import contextlib
import copy
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
#: Who has slept for this long looks for himself: an interruption may have swallowed his wake-up.
_SLEEP_SECONDS = 1.0


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


class _QueuedWrite(Outcome):
    __slots__ = ("action", "turn")

    def __init__(self, action: Action) -> None:
        super().__init__()
        self.action = action
        #: Held until there is something to look at: the outcome, or the turn to commit.
        self.turn = threading.Lock()
        self.turn.acquire()

    def wake(self) -> None:
        try:  # noqa: SIM105 - every write passes here, and this costs nothing unless it fails
            self.turn.release()
        except RuntimeError:
            # Two may do so at once.
            pass


class _TransactionLost(BaseException):
    """The whole transaction is gone, through the fault of one write or of the file, before COMMIT."""


class GroupCommit:
    """The one place where transactions are begun and committed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: deque[_QueuedWrite] = deque()
        self.lock = threading.RLock()
        #: Whether somebody commits and will wake the next; only then is it safe to sleep.
        self._busy = False
        #: Whether COMMIT was begun for writes that have no outcome yet.
        self._in_doubt = False
        #: How many writes are in the transaction that is open beside the one that runs.
        self._beside = 0
        #: The thread that has a transaction open for several writes of its own.
        self._owner: int | None = None

    @property
    def waiting(self) -> int:
        """How many writes wait for others, in the queue or in the same transaction."""
        return len(self._waiting) + self._beside

    def write(self, action: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        """Run the action in a transaction; return its result once that is committed."""
        if self._owner == threading.get_ident():
            return cast(ResultT, _run_in_savepoint(self._database, self._database.writer, action))
        if self._database.in_memory:
            # Nothing is fsynced, so nothing is gained by waiting for others.
            with self.lock:
                return self._transaction(action)
        job = _QueuedWrite(action)
        try:
            self._waiting.append(job)
            while not job.done:
                if self._busy:
                    job.turn.acquire(timeout=_SLEEP_SECONDS)
                else:
                    self._commit_as_leader(job)
        except BaseException:
            self._withdraw(job)
            raise
        return cast(ResultT, job.get())

    def run_together(self, works: Sequence[Callable[[], Any]]) -> list[Outcome]:
        """Run several works of one caller; what they write is committed together.

        A work may write, read, or refuse; each has an outcome of its own.
        """
        outcomes = [Outcome() for _ in works]
        try:
            with self.lock:
                self._transaction(lambda _: self._run_works(works, outcomes))
        except _TransactionLost:
            outcomes = [Outcome() for _ in works]
            for work, outcome in zip(works, outcomes, strict=True):
                _try(outcome, work)
        except EngineError as error:
            for outcome in outcomes:
                # Also those that refused: what they met was never committed.
                outcome.fail(_copy_error(error))
        return outcomes

    def _run_works(self, works: Sequence[Callable[[], Any]], outcomes: list[Outcome]) -> None:
        self._owner = threading.get_ident()
        try:
            for work, outcome in zip(works, outcomes, strict=True):
                _try(outcome, work)
        finally:
            self._owner = None

    def _commit_as_leader(self, own: _QueuedWrite) -> None:
        with self.lock:
            self._busy = True
            try:
                # Who waited for the lock may find his write done by whoever had it.
                if not own.done:
                    self._commit_next(own)
            finally:
                self._busy = False
                self._wake_next()

    def _wake_next(self) -> None:
        if self._waiting:
            # Somebody else may have taken it meanwhile.
            with contextlib.suppress(IndexError):
                self._waiting[0].wake()

    def _withdraw(self, job: _QueuedWrite) -> None:
        """Take back the write of a caller who was interrupted, unless it is being done."""
        with contextlib.suppress(ValueError):
            self._waiting.remove(job)
        # It may have been this caller's turn.
        self._wake_next()

    def _commit_next(self, own: _QueuedWrite) -> None:
        """Commit the writes that wait; every one has an outcome then, or waits again."""
        jobs: list[_QueuedWrite] = []
        self._in_doubt = False
        try:
            while self._waiting and len(jobs) < _LARGEST_GROUP:
                jobs.append(self._waiting.popleft())
            if len(jobs) > 1:
                self._beside = len(jobs) - 1
                self._commit_group(jobs)
            else:
                # Nobody waits: an interruption hit the leader who had just taken this one out.
                jobs = jobs or [own]
                self._commit_one(jobs[0])
        finally:
            self._beside = 0
            left = [job for job in jobs if not job.done and job is not own]
            if left:
                self._requeue_or_fail(left)
            for job in jobs:
                job.wake()

    def _requeue_or_fail(self, jobs: list[_QueuedWrite]) -> None:
        """Leave the writes of others, after an interruption, to whoever is next."""
        if not self._in_doubt:
            # Nothing of them was committed.
            self._waiting.extendleft(reversed(jobs))
            return
        for job in jobs:
            job.fail(
                EngineError(f"{self._database.path}: interrupted; whether the write was kept is not known.")
            )

    def _commit_group(self, jobs: list[_QueuedWrite]) -> None:
        drafts = [Outcome() for _ in jobs]

        def run(writer: sqlite3.Connection) -> None:
            for job, draft in zip(jobs, drafts, strict=True):
                _try(draft, partial(_run_in_savepoint, self._database, writer, job.action))

        try:
            self._transaction(run)
        except _TransactionLost:
            # One of them took the others' transaction with it: each gets one of its own.
            for job in jobs:
                self._commit_one(job)
        except EngineError as error:
            for job in jobs:
                # Also those that were refused: what they met was never committed.
                job.fail(_copy_error(error))
        else:
            for job, draft in zip(jobs, drafts, strict=True):
                job.result, job.error, job.done = draft.result, draft.error, True

    def _commit_one(self, job: _QueuedWrite) -> None:
        try:
            result = self._transaction(job.action)
        except Exception as error:  # noqa: BLE001  # carried to the caller, whoever runs this
            job.fail(error)
        else:
            job.settle(result)

    def _transaction(self, run: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        self._in_doubt = False
        lock = self._database.file_lock
        try:
            with lock:
                return self._locked_transaction(run)
        except BaseException:
            # An interruption may have come just before the lock was given back.
            lock.release()
            raise

    def _locked_transaction(self, run: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        database = self._database
        database.check_usable()
        try:
            writer = database.prepare_writer()
            writer.execute("BEGIN IMMEDIATE")
            database.note_log()
            result = run(writer)
            self._in_doubt = True
            writer.execute("COMMIT")
        except sqlite3.Error as fault:
            error = database.engine_error(fault, committing=self._in_doubt)
            database.roll_back(fault)
            raise error from fault
        except _TransactionLost as undone:
            database.roll_back(undone.__cause__)
            raise
        except BaseException:
            database.roll_back(None)
            raise
        return result


def _run_in_savepoint(database: Database, writer: sqlite3.Connection, action: Action) -> Any:
    """Run one write of several inside their transaction; undo it alone when it fails."""
    try:
        writer.execute("SAVEPOINT one")
    except sqlite3.Error as fault:
        raise _TransactionLost from fault
    try:
        result = action(writer)
        writer.execute("RELEASE one")
    except BaseException as error:
        if not writer.in_transaction:
            raise _TransactionLost from error
        try:
            writer.execute("ROLLBACK TO one")
            writer.execute("RELEASE one")
        except sqlite3.Error as fault:
            raise _TransactionLost from fault
        if isinstance(error, sqlite3.Error):
            raise database.engine_error(error) from error
        raise
    return result


def _try(outcome: Outcome, work: Callable[[], Any]) -> None:
    try:
        outcome.settle(work())
    except Exception as error:  # noqa: BLE001  # carried to the caller, whoever runs this
        outcome.fail(error)


def _copy_error(error: EngineError) -> EngineError:
    """Return the same error for one more caller: threads that raise one object mix up their traces."""
    twin = copy.copy(error)
    twin.__cause__ = error.__cause__
    return twin
