"""Changes of the counts that a process has committed and not yet added to the file.

A counter in every transaction would cost each write one more page. So a write only remembers its deltas, and
about once a second a write adds all of them to `counts` in its own transaction (a fold). `close` adds the
rest. `read` returns the file's counts plus the pending deltas, so a process sees all its own writes.

`sessions` has a row for each engine that may have deltas to add. A row that is left when no engine has the
file open belongs to a process that died: `recount` then corrects the counts.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import sqlite3
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from solotable._protocol.engine import TooLong
from solotable.engines.sqlite.file.sqlite_errors import StaleDefinition
from solotable.engines.sqlite.tables.catalog import Table
from solotable.errors import EngineError, ServiceError

from . import counts
from .counts import Count, CountDeltas, Counts

if TYPE_CHECKING:
    from solotable.engines.sqlite.file.connection import Database
    from solotable.engines.sqlite.file.group_commit import Outcome
    from solotable.engines.sqlite.items.storage import Writer

CallT = TypeVar("CallT")

#: Errors of a write that was not committed.
_REJECTIONS = ServiceError | StaleDefinition | TooLong

_FOLD_SECONDS = 1.0
#: The most writes whose deltas are remembered one by one before they are added up.
_MOST_NEW = 256
#: How often a reader looks again because a fold was committed between its two looks.
_LOOKS = 5


class _Fold:
    """Deltas that a transaction adds to the file: its own and earlier ones."""

    __slots__ = ("earlier", "everything", "session")

    def __init__(self, session: str, earlier: CountDeltas, own: CountDeltas) -> None:
        self.session = session
        self.earlier = earlier
        self.everything: CountDeltas = {}
        counts.merge(self.everything, earlier)
        counts.merge(self.everything, own)


class _ThreadDeltas(threading.local):
    #: The deltas of the call that this thread runs together with others.
    of_call: CountDeltas | None = None


class PendingCounts:
    """The deltas of one engine's writes that the file's counts do not have yet."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._in_memory = database.in_memory
        self.forget()
        _instances.add(self)

    def forget(self) -> None:
        """Start a session without deltas."""
        self._mutex = threading.Lock()
        self._thread = _ThreadDeltas()
        self.session = secrets.token_hex(8)
        self._new: deque[CountDeltas] = deque()
        self._pending: CountDeltas = {}
        self._folding: _Fold | None = None
        self._folds = 0
        #: The threads whose writes may be committed and are not counted yet.
        self._writing: set[int] = set()
        #: When the next fold is due; never in memory, which no other process reads.
        self._due_at = float("inf" if self._in_memory else "-inf")
        #: Whether it is unknown if a write was committed; a recount corrects the counts then.
        self._doubtful = False

    def write(self, writer: Writer) -> Any:
        """Run a writer in a transaction, and count its changes once that is committed."""
        of_call = self._thread.of_call
        if of_call is not None:
            result = self._database.write(writer, savepoint=False)
            counts.merge(of_call, writer.deltas)
            return result
        if self._in_memory:
            result = self._database.write(writer, savepoint=False)
            if writer.deltas:
                self._remember(writer.deltas)
            return result
        thread = get_ident()
        self._writing.add(thread)
        try:
            if time.monotonic() >= self._due_at:
                return self._write_and_fold(writer)
            result = self._database.write(writer, savepoint=False)
            if writer.deltas:
                self._remember(writer.deltas)
            return result
        except BaseException as error:
            self._doubt(error)
            raise
        finally:
            self._writing.discard(thread)

    def _write_and_fold(self, writer: Writer) -> Any:
        fold: _Fold | None = None

        def run(connection: sqlite3.Connection) -> Any:
            nonlocal fold
            # The write may run again, after a transaction that was rolled back.
            self._end(fold, committed=False)
            fold = None
            result = writer(connection)
            if writer.deltas:
                fold = self._fold(connection, writer.deltas)
            return result

        try:
            result = self._database.write(run)
        except BaseException:
            self._end(fold, committed=False)
            raise
        self._end(fold, committed=True)
        if fold is None and writer.deltas:
            self._remember(writer.deltas)
        return result

    def _doubt(self, error: BaseException) -> None:
        # A rejected write did not change the file. Other errors may come after the commit.
        self._doubtful |= not isinstance(error, _REJECTIONS)

    def run_together(self, call: Callable[[CallT], Any], arguments: Sequence[CallT]) -> list[Outcome]:
        """Call a function with each argument in one transaction, and count what the calls write."""
        thread = get_ident()
        self._writing.add(thread)
        try:
            return self._run_together(call, arguments)
        except BaseException as error:
            self._doubt(error)
            raise
        finally:
            self._writing.discard(thread)

    def _run_together(self, call: Callable[[CallT], Any], arguments: Sequence[CallT]) -> list[Outcome]:
        count = len(arguments)
        deltas: list[CountDeltas] = [{} for _ in arguments]
        fold: _Fold | None = None

        def run(number: int) -> Any:
            if number == count:
                return self._database.write(fold_all)
            # A call that runs again has committed nothing before.
            self._thread.of_call = deltas[number] = {}
            try:
                return call(arguments[number])
            finally:
                self._thread.of_call = None

        def fold_all(connection: sqlite3.Connection) -> None:
            nonlocal fold
            self._end(fold, committed=False)
            fold = None
            own: CountDeltas = {}
            for each in deltas:
                counts.merge(own, each)
            # Not the result of the write, which may fail after this.
            fold = self._fold(connection, own)

        folds = time.monotonic() >= self._due_at
        try:
            outcomes = self._database.run_together(run, range(count + folds))
        except BaseException:
            self._end(fold, committed=False)
            raise
        committed = not folds or outcomes.pop().error is None
        self._end(fold, committed=committed)
        for outcome, own in zip(outcomes, deltas, strict=True):
            if outcome.error is not None:
                self._doubt(outcome.error)
            # A rejected call may have written before it was rejected.
            if own and not (fold and committed) and isinstance(outcome.error, _REJECTIONS | None):
                self._remember(own)
        self._doubtful |= not committed
        return outcomes

    def read(self, table: Table) -> Counts:
        """Return the counts of a table and its indexes, with the pending deltas of this process."""
        found: Counts = {}
        since: dict[int, int] = {}
        mine: CountDeltas = {}
        for _ in range(_LOOKS):
            with self._mutex:
                self._drain()
                folds, folding = self._folds, self._folding
                mine = _of(table, self._pending)
                under_way = {} if folding is None else _of(table, folding.earlier)
            with self._database.snapshot() as connection:
                found = counts.read(connection, table)
                if mine or under_way:
                    since = counts.since(connection, table)
                added = self._folds_in(connection) - folds
            # Fewer than before: a recount removed this session as a dead one.
            if added <= 0:
                return _sum(found, since, mine, under_way)
            if added == 1 and folding is not None:
                return _sum(found, since, mine)
            # Another fold was committed between the two looks.
        return _sum(found, since, mine)

    def flush(self) -> None:
        """Add everything to the file now."""
        if not self._database.in_memory and (self._new or self._pending):
            self._flush(ends=False)

    def close(self) -> None:
        """Add the rest and end the session; if that fails, a recount corrects the counts."""
        if self._database.in_memory or not (self._folds or self._new or self._pending):
            return
        with contextlib.suppress(EngineError):
            self._flush(ends=True)

    def _flush(self, *, ends: bool) -> None:
        fold: _Fold | None = None
        session = self.session

        def run(connection: sqlite3.Connection) -> None:
            nonlocal fold
            self._end(fold, committed=False)
            fold = self._fold(connection, {})
            if ends and self._start_session():
                connection.execute("DELETE FROM sessions WHERE id = ?", (session,))

        try:
            self._database.write(run)
        except BaseException as error:
            self._end(fold, committed=False)
            self._doubt(error)
            raise
        self._end(fold, committed=True)

    def _start_session(self) -> bool:
        """Start a session for later writes; return False if the current one may have more to add."""
        # A thread that begins to write now adds its deltas at once, under the new session.
        self._due_at = float("-inf")
        if self._writing or self._doubtful or self._due_at > 0:
            return False
        self.session, self._folds = secrets.token_hex(8), 0
        return True

    def _remember(self, own: CountDeltas) -> None:
        self._new.append(own)
        if len(self._new) > _MOST_NEW:
            with self._mutex:
                self._drain()

    def _drain(self) -> None:
        while self._new:
            counts.merge(self._pending, self._new.popleft())

    def _fold(self, connection: sqlite3.Connection, own: CountDeltas) -> _Fold | None:
        """Add all deltas, with those of this transaction, to the file; return None if there are none."""
        with self._mutex:
            self._drain()
            if self._folding is not None or not (own or self._pending):
                return None
            fold = self._folding = _Fold(self.session, self._pending, own)
            self._pending = {}
        try:
            counts.add(connection, fold.everything)
            connection.execute(
                "INSERT INTO sessions VALUES (?, 1) ON CONFLICT (id) DO UPDATE SET folds = folds + 1",
                (fold.session,),
            )
        except BaseException:
            self._end(fold, committed=False)
            raise
        return fold

    def _end(self, fold: _Fold | None, *, committed: bool) -> None:
        if fold is None:
            return
        with self._mutex:
            if self._folding is not fold:
                return
            self._folding = None
            if not committed:
                counts.merge(self._pending, fold.earlier)
            elif fold.session == self.session:
                self._folds += 1
                self._due_at = time.monotonic() + _FOLD_SECONDS

    def _folds_in(self, connection: sqlite3.Connection) -> int:
        if not self._folds and self._folding is None:
            return 0
        row = connection.execute("SELECT folds FROM sessions WHERE id = ?", (self.session,)).fetchone()
        return 0 if row is None else int(row[0])


def _of(table: Table, deltas: CountDeltas) -> CountDeltas:
    return {owner: list(each) for owner, each in deltas.items() if owner[0] == table.id}


def _sum(found: Counts, since: dict[int, int], *more: CountDeltas) -> Counts:
    total = dict(found)
    for deltas in more:
        for (_, generation, index_id), (items, size) in deltas.items():
            count = total.get(index_id)
            # A recount has counted the deltas of earlier generations.
            if count is not None and since.get(index_id, 0) <= generation:
                total[index_id] = Count(count.items + items, count.bytes + size)
    return total


_instances: WeakSet[PendingCounts] = WeakSet()


def _forget_after_fork() -> None:
    # The parent adds the deltas of the parent.
    for each in tuple(_instances):
        each.forget()
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        # multiprocessing drops the finalizers of the parent before it calls this.
        util.register_after_fork(_instances, _close_with_multiprocessing)


def _close_with_multiprocessing(_: object) -> None:
    # Children of multiprocessing end without the handlers of atexit.
    sys.modules["multiprocessing.util"].Finalize(None, _close_at_exit, exitpriority=0)


def _close_at_exit() -> None:
    # Many programs never close a store. Without this, the next program would have to recount.
    for each in tuple(_instances):
        with contextlib.suppress(OSError):
            each.close()


atexit.register(_close_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
