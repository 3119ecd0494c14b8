"""Group commit: writes that wait for each other share one transaction and one fsync.

A write that finds no commit in progress commits at once. Writes that arrive during a commit wait in a queue,
and the first of them then commits for all. So the slower the disk and the more the callers, the fewer fsyncs
each caller pays for. A write that fails is undone alone: most fail before they change anything, and a write
that may not is a savepoint. No write is acknowledged before COMMIT has returned, and no write is repeated
once COMMIT has begun.
"""

from __future__ import annotations

import contextlib
import copy
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar, cast

from solotable.errors import EngineError

if TYPE_CHECKING:
    from .connection import Database

ResultT = TypeVar("ResultT")
CallT = TypeVar("CallT")
Action = Callable[[sqlite3.Connection], Any]

#: The most writes in one transaction: each adds to the wait of all.
_LARGEST_GROUP = 128
#: A queued write checks again after this time: an interruption may have swallowed its wake-up.
_SLEEP_SECONDS = 1.0


class Outcome:
    """The result of one call, or the error to raise to its caller."""

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
    __slots__ = ("_wakeup", "action", "savepoint")

    def __init__(self, action: Action, *, savepoint: bool) -> None:
        super().__init__()
        self.action = action
        self.savepoint = savepoint
        #: Held until the write is done, or is the next to commit.
        self._wakeup = threading.Lock()
        self._wakeup.acquire()

    def sleep(self) -> None:
        self._wakeup.acquire(timeout=_SLEEP_SECONDS)

    def wake(self) -> None:
        # Two threads may wake it at once.
        with contextlib.suppress(RuntimeError):
            self._wakeup.release()


class _TransactionLost(BaseException):
    """The whole transaction was rolled back before COMMIT, by an error of one write or of the file."""


class GroupCommit:
    """The transactions of one database: only this class begins and commits them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        #: Writes in memory do not queue: they have no fsync to share.
        self._queues = not database.in_memory
        self._queue: deque[_QueuedWrite] = deque()
        self.lock = threading.RLock()
        #: Whether a thread commits that wakes the next queued write when it is done. Only then may one sleep.
        self._busy = False
        #: Whether COMMIT has begun for writes that have no outcome yet.
        self._in_doubt = False
        #: How many other writes share the open transaction with the one that runs.
        self._group_members = 0
        #: The thread that has a transaction open for several calls of one caller.
        self._owner: int | None = None

    @property
    def waiting(self) -> int:
        """How many writes wait for others, in the queue or in the same transaction."""
        return len(self._queue) + self._group_members

    def write(self, action: Callable[[sqlite3.Connection], ResultT], *, savepoint: bool = True) -> ResultT:
        """Run the action in a transaction; return its result once that is committed.

        Without a savepoint, an action that fails after a change runs again, in its own transaction. It must
        not change the schema.
        """
        if self._owner is not None and self._owner == get_ident():
            return cast(ResultT, _run_in_group(self._database, action, savepoint))
        if self._queues and (self._busy or self._queue):
            return cast(ResultT, self._write_in_turn(_QueuedWrite(action, savepoint=savepoint)))
        return self.write_alone(action)

    def write_alone(self, action: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        """Run the action in a transaction that no other write shares."""
        with self.lock:
            self._busy = True
            try:
                return self._transaction(action)
            finally:
                self._busy = False
                if self._queue:
                    self._wake_next()

    def run_together(self, call: Callable[[CallT], Any], arguments: Sequence[CallT]) -> list[Outcome]:
        """Call a function with each argument in one transaction, and return an outcome for each.

        A call may write, read, or raise.
        """
        outcomes = [Outcome() for _ in arguments]

        def run_all(_: sqlite3.Connection) -> None:
            self._owner = get_ident()
            try:
                for argument, outcome in zip(arguments, outcomes, strict=True):
                    _run(outcome, call, argument)
            finally:
                self._owner = None

        try:
            self.write_alone(run_all)
        except _TransactionLost:
            outcomes = [Outcome() for _ in arguments]
            for argument, outcome in zip(arguments, outcomes, strict=True):
                _run(outcome, call, argument)
        except EngineError as error:
            for outcome in outcomes:
                # Also a call that raised: what it read was never committed.
                outcome.fail(_copy_error(error))
        return outcomes

    def _write_in_turn(self, write: _QueuedWrite) -> Any:
        try:
            self._queue.append(write)
            while not write.done:
                if self._busy:
                    write.sleep()
                else:
                    self._lead(write)
        except BaseException:
            self._withdraw(write)
            raise
        return write.get()

    def _lead(self, own: _QueuedWrite) -> None:
        """Commit the queued writes, unless another thread has committed this one."""
        group: list[_QueuedWrite] = []
        try:
            with self.lock:
                self._busy = True
                try:
                    if not own.done:
                        self._commit_next(own, group)
                finally:
                    self._busy = False
                    self._wake_next()
        finally:
            # After the next leader: the callers of this group run while that one waits for the disk.
            for write in group:
                write.wake()

    def _wake_next(self) -> None:
        # Another thread may take the last one out of the queue.
        with contextlib.suppress(IndexError):
            self._queue[0].wake()

    def _withdraw(self, write: _QueuedWrite) -> None:
        """Take back the write of an interrupted caller, unless a commit of it has begun."""
        with contextlib.suppress(ValueError):
            self._queue.remove(write)
        # It may have been the next to commit.
        self._wake_next()

    def _commit_next(self, own: _QueuedWrite, group: list[_QueuedWrite]) -> None:
        """Commit the writes in the queue, as `group`; each has an outcome then, or is queued again."""
        self._in_doubt = False
        try:
            while self._queue and len(group) < _LARGEST_GROUP:
                group.append(self._queue.popleft())
            if len(group) > 1:
                self._group_members = len(group) - 1
                self._commit_group(group)
            else:
                # The queue is empty if an interruption hit a leader that had just taken this write out.
                self._commit_one(group[0] if group else own)
        finally:
            self._group_members = 0
            left = [write for write in group if not write.done and write is not own]
            if left:
                self._requeue_or_fail(left)

    def _requeue_or_fail(self, writes: list[_QueuedWrite]) -> None:
        """Leave the writes of other callers, after an interruption, to the next leader."""
        if not self._in_doubt:
            # None of them was committed.
            self._queue.extendleft(reversed(writes))
            return
        for write in writes:
            write.fail(
                EngineError(
                    f"{self._database.path}: interrupted; it is not known whether the write was committed."
                )
            )

    def _commit_group(self, group: list[_QueuedWrite]) -> None:
        outcomes = [Outcome() for _ in group]
        database = self._database

        def run_all(_: sqlite3.Connection) -> None:
            for write, outcome in zip(group, outcomes, strict=True):
                _run(outcome, _run_in_group, database, write.action, write.savepoint)

        try:
            self._transaction(run_all)
        except _TransactionLost:
            # One write rolled back the transaction of all: each gets its own.
            for write in group:
                self._commit_one(write)
        except EngineError as error:
            for write in group:
                # Also a write that was rejected: what it read was never committed.
                write.fail(_copy_error(error))
        else:
            for write, outcome in zip(group, outcomes, strict=True):
                write.result, write.error, write.done = outcome.result, outcome.error, True

    def _commit_one(self, write: _QueuedWrite) -> None:
        _run(write, self._transaction, write.action)

    def _transaction(self, run: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        self._in_doubt = False
        if not self._queues:
            return self._commit(run)
        file_lock = self._database.file_lock
        try:
            with file_lock:
                return self._commit(run)
        except BaseException:
            # An interruption may have come just before the lock was released.
            file_lock.release()
            raise

    def _commit(self, run: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        database = self._database
        try:
            writer = database.begin()
            result = run(writer)
            self._in_doubt = True
            writer.execute("COMMIT")
            database.readers_are_stale = True
        except sqlite3.Error as fault:
            error = database.engine_error(fault, committing=self._in_doubt)
            database.roll_back(fault)
            raise error from fault
        except _TransactionLost as lost:
            database.roll_back(lost.__cause__)
            raise
        except BaseException:
            database.roll_back(None)
            raise
        return result


def _run_in_group(database: Database, action: Action, savepoint: bool) -> Any:
    """Run one write of several in the open transaction; one that fails has changed nothing in it."""
    if savepoint:
        return _run_in_savepoint(database, action)
    writer = database.writer
    changes = writer.total_changes
    try:
        return action(writer)
    except Exception as error:
        # An interruption rolls back the whole transaction.
        if not writer.in_transaction or writer.total_changes != changes:
            raise _TransactionLost from error
        if isinstance(error, sqlite3.Error):
            raise database.engine_error(error) from error
        raise


def _run_in_savepoint(database: Database, action: Action) -> Any:
    """Run one write of several in the open transaction; roll it back alone when it fails."""
    writer = database.writer
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


def _run(outcome: Outcome, call: Callable[..., Any], *arguments: Any) -> None:
    """Call a function and store its result, or the error for its caller."""
    try:
        outcome.settle(call(*arguments))
    except Exception as error:  # noqa: BLE001 - raised to the caller by `Outcome.get`
        outcome.fail(error)


def _copy_error(error: EngineError) -> EngineError:
    """Return the same error for one more caller: threads that raise one object mix up their traces."""
    copied = copy.copy(error)
    copied.__cause__ = error.__cause__
    return copied
