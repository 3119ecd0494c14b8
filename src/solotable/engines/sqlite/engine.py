"""The embedded engine: DynamoDB's behaviour on one SQLite file.

It passes each request to its operation. The caller passes the clock. The engine repeats a request only if
another process has changed the definition of its table.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from solotable._partiql import Schema as KeyNames
from solotable._protocol.decode.table_names import plain_name
from solotable._protocol.engine import Capabilities, Pause, ReplyT
from solotable._protocol.error_texts import LATEST, YEARS, ErrorTexts
from solotable._protocol.requests import Request
from solotable.errors import ConditionFailed, DeclarationError, ServiceError
from solotable.locations import Buckets

from .counts import recount
from .counts.pending_counts import PendingCounts
from .file.connection import LOCK_SECONDS, Connect, Database, Durability, connect
from .file.forks import block_forks
from .file.group_commit import Outcome
from .file.presence import PresenceLock
from .file.sqlite_errors import StaleDefinition
from .heat.heat import Heat
from .heat.recorder import HeatRecord
from .items.storage import Writer
from .maintenance import index_backfill
from .maintenance.table_snapshot import table_snapshot
from .maintenance.ttl_sweeper import sweep
from .operations import OPERATIONS
from .recovery import targets
from .tables.catalog import Catalog, Table
from .transfers import jobs

ResultT = TypeVar("ResultT")

#: How often a request is repeated while other processes keep changing the definition of its table.
_RETRIES = 20


class _ThreadSettings(threading.local):
    """How this thread's request is to be answered."""

    pause: Pause | None = None
    largest: int | None = None


class SqliteEngine:
    """Answers DynamoDB requests from one SQLite file; safe for use by many threads.

    `clock` returns seconds since the epoch; `connect` opens connections as `sqlite3.connect` does.
    `error_texts` is the year of AWS's error texts. `buckets` holds exports and what imports read.
    `maintenance=False` leaves backfills, copies and repairs to another engine on the file.
    """

    def __init__(  # noqa: PLR0913  # as many as `open` has
        self,
        path: str,
        *,
        durability: Durability = "full",
        read_only: bool = False,
        lock_timeout_seconds: float = LOCK_SECONDS,
        clock: Callable[[], float] = time.time,
        connect: Connect = connect,
        error_texts: ErrorTexts = LATEST,
        buckets: Buckets | None = None,
        heat: bool = True,
        maintenance: bool = True,
    ) -> None:
        if error_texts not in YEARS:
            raise DeclarationError(f"error_texts is {' or '.join(YEARS)}, got {error_texts!r}.")
        self._error_texts = error_texts
        self.buckets = buckets
        self.database = Database(
            path,
            durability=durability,
            read_only=read_only,
            lock_timeout_seconds=lock_timeout_seconds,
            connect=connect,
        )
        self.catalog = Catalog()
        self.pending_counts = PendingCounts(self.database)
        self.presence = PresenceLock(self.database, takes_part=maintenance)
        self._clock = clock
        self.heat = (
            Heat(clock, None if self.database.in_memory else self.database.path, read_only=read_only)
            if heat
            else None
        )
        self._call: Callable[..., dict[str, Any]] | None = None
        self.thread = _ThreadSettings()
        try:
            if maintenance and not read_only:
                jobs.fail_interrupted(self)
                recount.repair(self)
                index_backfill.resume_all(self)
                targets.resume_all(self)
        except BaseException:
            # The caller does not get the engine, so it cannot close it.
            recount.stop(self)
            self.presence.close()
            self.database.close()
            raise

    def call(self, operation: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Answer a request in wire form, as `client.get_item(...)` would send it."""
        if self._call is None:
            # Imported here: a store sends records, and needs neither the parser nor the constraints.
            with block_forks():
                from solotable._protocol.wire import call
            self._call = call
        return self._call(self, operation, payload, texts=self._error_texts)

    @property
    def capabilities(self) -> Capabilities:
        """What the engine declares about itself: in memory, a write does not wait for a disk."""
        return Capabilities(
            instant=self.database.in_memory,
            short_reads=True,
            handle_together=self.handle_together,
            error_texts=self._error_texts,
            table_snapshot=partial(table_snapshot, self),
            heat=None if self.heat is None else self.heat.read,
        )

    def handle(self, request: Request[ReplyT], /) -> ReplyT:
        """Answer one request, or raise the ServiceError that DynamoDB would."""
        operation: Callable[[SqliteEngine, Request[ReplyT]], ReplyT] = OPERATIONS[type(request)]
        retries = 0
        while True:
            try:
                return operation(self, request)
            except StaleDefinition:
                if retries == _RETRIES:
                    raise
                self.catalog.forget()
            except ConditionFailed:
                raise
            except ServiceError:
                # Another process may have changed the definition that the request was checked against.
                if retries == _RETRIES or not self._definitions_changed():
                    raise
            retries += 1

    def handle_small(self, request: Request[ReplyT], largest: int, /) -> ReplyT:
        """Answer one write, or raise TooLong if it has to read an item of more bytes than `largest`."""
        thread = self.thread
        thread.largest = largest
        try:
            return self.handle(request)
        finally:
            thread.largest = None

    def handle_in_slices(self, request: Request[ReplyT], pause: Pause, /) -> ReplyT:
        """Answer one request; call `pause` before every step of a long one.

        A write reads the stored item before it takes the lock that all writes share.
        """
        thread = self.thread
        thread.pause = pause
        try:
            return self.handle(request)
        finally:
            thread.pause = None

    @property
    def sliced(self) -> bool:
        """Whether this thread's request is answered in slices."""
        return self.thread.pause is not None

    def pause(self, size: int) -> None:
        """Let other threads run before a step that reads so many bytes, if the request is sliced."""
        pause = self.thread.pause
        if pause is not None:
            pause(size)

    def handle_together(
        self, requests: Sequence[Request[Any]], *, largest: int | None = None
    ) -> list[Outcome]:
        """Answer several requests; all that they write is committed together.

        The outcome of a request that has to read an item of more bytes than `largest` is TooLong.
        """
        self.thread.largest = largest
        try:
            if len(requests) == 1:
                # A single request needs no group, and fewer steps.
                return [self._handle_alone(requests[0])]
            return self.pending_counts.run_together(self.handle, requests)
        finally:
            self.thread.largest = None

    def _handle_alone(self, request: Request[Any]) -> Outcome:
        self.database.check_writable()
        outcome = Outcome()
        try:
            outcome.settle(self.handle(request))
        except Exception as error:  # noqa: BLE001  # `get` raises it to the caller
            outcome.fail(error)
        return outcome

    def _definitions_changed(self) -> bool:
        with self.database.read() as connection:
            return self.catalog.forget_changed(connection)

    def now_micros(self) -> int:
        """Return the clock's time in microseconds since the epoch."""
        return int(self._clock() * 1_000_000)

    def table(self, name: str) -> Table:
        """Return the definition of a table, given by name or ARN, or raise TableNotFound."""
        cached = self.catalog.tables.get(name)
        if cached is not None:
            return cached
        with self.database.read() as connection:
            return self.catalog.ready_table(connection, plain_name(name))

    def schema(self, table_name: str, index: str | None = None) -> KeyNames:
        """Return the names of the key attributes of a table or of one of its indexes."""
        table = self.table(table_name)
        schema = table.schema if index is None else table.index(index).schema
        return KeyNames(
            partition=tuple(part.name for part in schema.partition),
            sort=tuple(part.name for part in schema.sort),
        )

    def write(self, action: Callable[[Writer], ResultT], *, by_service: bool = False) -> ResultT:
        """Run the action in one transaction; return its result once that is committed."""
        heat = self.heat
        if heat is not None and not by_service:
            if not heat.skip_writes:
                return self._write_metered(action, heat)
            heat.skip_writes -= 1
        writer = Writer(action, self._clock, by_service=by_service)
        result: ResultT = self.pending_counts.write(writer)
        return result

    def _write_metered(self, action: Callable[[Writer], ResultT], heat: Heat) -> ResultT:
        charges: list[HeatRecord] = []
        try:
            result: ResultT = self.pending_counts.write(Writer(action, self._clock, charges=charges))
        finally:
            # DynamoDB: a write that its condition rejects consumes units too.
            heat.add_writes(charges)
        return result

    def sweep(self) -> int:
        """Remove expired items and old stream records; return the number of items."""
        return sweep(self)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        jobs.stop(self)
        recount.stop(self)
        if self.heat is not None:
            self.heat.close()
        self.pending_counts.close()
        self.database.close()
        self.presence.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
