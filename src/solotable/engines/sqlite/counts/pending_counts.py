"""CountDeltas of the counts: a process remembers its own, and adds them to the file about once a second.

A counter in every transaction would cost each write one more page, so a write only remembers its deltas.
The first write after a second adds them to `counts` in its own transaction (a fold), and `close` adds the
rest. `read` returns the file's counts plus the remembered deltas, so a process sees all its own writes.

`sessions` has a row for each engine that may have deltas to add. A row that is left when no engine has
the file open belongs to a process that died: `recount` then corrects the counts.
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
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from solotable._protocol.engine import TooLong
from solotable.engines.sqlite.file.connection import StaleDefinition
from solotable.engines.sqlite.tables.catalog import Table
from solotable.errors import EngineError, ServiceError

from . import counts
from .counts import Count, CountDeltas, Counts

if TYPE_CHECKING:
    from solotable.engines.sqlite.file.connection import Database
    from solotable.engines.sqlite.file.group_commit import Outcome

ResultT = TypeVar("ResultT")

#: Errors of a write that was not committed.
_REJECTIONS = ServiceError | StaleDefinition | TooLong

_FOLD_SECONDS = 1.0
#: So many writes are remembered one by one before they are added up.
_MOST_NEW = 256
#: How often a reader looks again because a fold came in between.
_LOOKS = 5


class _Fold:
    """CountDeltas that are being added to the file: those of the write that does it, and earlier ones."""

    __slots__ = ("earlier", "everything", "session")

    def __init__(self, session: str, earlier: CountDeltas, own: CountDeltas) -> None:
        self.session = session
        self.earlier = earlier
        self.everything: CountDeltas = {}
        counts.merge(self.everything, earlier)
        counts.merge(self.everything, own)


class _ThreadDeltas(threading.local):
    #: The deltas of the work that this thread does together with others.
    held: CountDeltas | None = None


class PendingCounts:
    """The deltas of one engine's writes that the file's counts do not have yet."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.forget()
        _instances.add(self)

    def forget(self) -> None:
        """Start a session with nothing remembered."""
        self._mutex = threading.Lock()
        self._local = _ThreadDeltas()
        self.session = secrets.token_hex(8)
        self._new: deque[CountDeltas] = deque()
        self._pending: CountDeltas = {}
        self._folding: _Fold | None = None
        self._folds = 0
        #: The threads whose writes may be committed and are not counted yet.
        self._writing: set[int] = set()
        #: When the next fold is due; never in memory, where there is no other process to see it.
        self._due_at = float("inf" if self._database.in_memory else "-inf")
        #: Whether the outcome of a write is unknown; a recount corrects the counts then.
        self._doubtful = False

    def write(self, action: Callable[[sqlite3.Connection], tuple[ResultT, CountDeltas]]) -> ResultT:
        """Run the action in a transaction, and count what it says it has changed once that is committed."""
        if self._local.held is not None:
            result, own = self._database.write(action)
            counts.merge(self._local.held, own)
            return result
        thread = threading.get_ident()
        self._writing.add(thread)
        try:
            if time.monotonic() >= self._due_at:
                return self._write_and_fold(action)
            result, own = self._database.write(action)
            if own:
                self._remember(own)
            return result
        except BaseException as error:
            self._doubt(error)
            raise
        finally:
            self._writing.discard(thread)

    def _write_and_fold(self, action: Callable[[sqlite3.Connection], tuple[ResultT, CountDeltas]]) -> ResultT:
        fold: _Fold | None = None

        def run(connection: sqlite3.Connection) -> tuple[ResultT, CountDeltas]:
            nonlocal fold
            # The write may be tried again, after a transaction that was undone.
            self._end(fold, committed=False)
            fold = None
            result, own = action(connection)
            if own:
                fold = self._fold(connection, own)
            return result, own

        try:
            result, own = self._database.write(run)
        except BaseException:
            self._end(fold, committed=False)
            raise
        self._end(fold, committed=True)
        if fold is None and own:
            self._remember(own)
        return result

    def _doubt(self, error: BaseException) -> None:
        # A rejected write, one by an old definition and one that is too long for its place wrote nothing.
        # Other errors may come after the commit.
        self._doubtful |= not isinstance(error, _REJECTIONS)

    def run_together(self, works: Sequence[Callable[[], Any]]) -> list[Outcome]:
        """Run several works of one caller in one transaction, and count what they write."""
        thread = threading.get_ident()
        self._writing.add(thread)
        try:
            return self._together(works)
        except BaseException as error:
            self._doubt(error)
            raise
        finally:
            self._writing.discard(thread)

    def _together(self, works: Sequence[Callable[[], Any]]) -> list[Outcome]:
        held: list[CountDeltas] = [{} for _ in works]
        fold: _Fold | None = None

        def counted(place: int, work: Callable[[], Any]) -> Any:
            # A work that is tried again has written nothing before.
            self._local.held = held[place] = {}
            try:
                return work()
            finally:
                self._local.held = None

        def last() -> None:
            nonlocal fold
            self._end(fold, committed=False)
            own: CountDeltas = {}
            for each in held:
                counts.merge(own, each)
            fold = self._database.write(partial(self._fold, own=own))

        runs: list[Callable[[], Any]] = [partial(counted, place, work) for place, work in enumerate(works)]
        if time.monotonic() >= self._due_at:
            runs.append(last)
        try:
            outcomes = self._database.run_together(runs)
        except BaseException:
            self._end(fold, committed=False)
            raise
        committed = len(runs) == len(works) or outcomes.pop().error is None
        self._end(fold, committed=committed)
        for outcome, own in zip(outcomes, held, strict=True):
            if outcome.error is not None:
                self._doubt(outcome.error)
            # A rejected work may have written before it was rejected.
            if own and fold is None and isinstance(outcome.error, _REJECTIONS | None):
                self._remember(own)
        self._doubtful |= not committed
        return outcomes

    def read(self, table: Table) -> Counts:
        """Return the counts of a table and its indexes, with what this process has not added yet."""
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
            # Fewer than before: a recount took this session for a dead one.
            if added <= 0:
                return _sum(found, since, mine, under_way)
            if added == 1 and folding is not None:
                return _sum(found, since, mine)
            # Another fold was committed in between.
        return _sum(found, since, mine)

    def flush(self) -> None:
        """Add everything to the file now."""
        if not self._database.in_memory and (self._new or self._pending):
            self._flush(ends=False)

    def close(self) -> None:
        """Add what is left and end the session; what fails is put right by a recount."""
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
        """Start a session for writes to come; False if the last one may have more to add."""
        # Threads may go on to write. One that begins now adds its deltas at once, under the new session.
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
        """Add all deltas to the file, those of this transaction with them; None if there are none."""
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
            # A recount has seen what is of an earlier generation.
            if count is not None and since.get(index_id, 0) <= generation:
                total[index_id] = Count(count.items + items, count.bytes + size)
    return total


_instances: WeakSet[PendingCounts] = WeakSet()


def _forget_after_fork() -> None:
    # What the parent has not added yet, the parent adds.
    for each in tuple(_instances):
        each.forget()
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        # It drops the finalizers of the parent before it runs this.
        util.register_after_fork(_instances, _close_with_multiprocessing)


def _close_with_multiprocessing(_: object) -> None:
    # Its children end without the handlers of atexit.
    sys.modules["multiprocessing.util"].Finalize(None, _close_at_exit, exitpriority=0)


def _close_at_exit() -> None:
    # Many programs never close a store; without this the next one would have to recount.
    for each in tuple(_instances):
        with contextlib.suppress(OSError):
            each.close()


atexit.register(_close_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
