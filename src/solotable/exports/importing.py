"""Import the items of an export into a table, without overwriting what is there unless asked.

An item that the table already has, byte for byte, counts as unchanged. So an import that was killed is
repeated, and continues where it was.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import islice
from typing import Any, Literal, TypeVar

from solotable._export_files.reader import Export, ExportedChange, Place
from solotable._expressions.ast import Attr, Compare, Condition, Const, Exists, Not, Or
from solotable._flows.retry import Flow, Retries
from solotable._protocol.decode.requests import decode_request
from solotable._protocol.engine import Engine
from solotable._protocol.json_codec import dumps
from solotable._protocol.requests import DeleteItem, PutItem
from solotable._store.runner import run
from solotable._values import AttributeValue, Item
from solotable.errors import (
    ConditionFailed,
    DamagedExport,
    DataError,
    ServiceError,
    TransportError,
)

#: What happens to an item whose key another item has: report it, keep the stored one, or replace it.
OnConflict = Literal["error", "skip", "replace", "newer"]
ResultT = TypeVar("ResultT")
_TOGETHER = 100
_THREADS = 8
_SAMPLES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportProblem:
    """An item that was not imported: its line, and the reason."""

    file: str
    line: int
    reason: str


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """What an import did. `problems` has the first of the items that were not imported."""

    read: int = 0
    written: int = 0
    deleted: int = 0
    #: Items that the table already had.
    unchanged: int = 0
    #: Items that the table has a newer or another version of, as `on_conflict` says.
    skipped: int = 0
    failed: int = 0
    problems: list[ImportProblem] = field(default_factory=list)

    def fail(self, place: Place, reason: str) -> None:
        """Count an item that was not imported."""
        self.failed += 1
        if len(self.problems) < _SAMPLES:
            self.problems.append(ImportProblem(file=place.file, line=place.line, reason=reason))


def import_export(
    engine: Engine,
    table: str,
    export: Export,
    *,
    on_conflict: OnConflict = "error",
    newer_by: str | None = None,
    allow_duplicates: bool = False,
    progress: Callable[[ImportReport], None] | None = None,
) -> ImportReport:
    """Import a full export, or apply an incremental one, to a table that exists.

    `on_conflict` says what happens if the table has another item under a key: "error" reports it, "skip"
    keeps it, "replace" overwrites it, "newer" overwrites it if the attribute `newer_by` of the imported item
    is greater. The whole export is read and checked first; nothing is written if a file is damaged, or if two
    of its items have one key, unless `allow_duplicates` is set.
    """
    if (on_conflict == "newer") != (newer_by is not None):
        raise DataError('on_conflict="newer" and newer_by= go together; pass both or neither.')
    names = key_names(engine, table)
    is_full = export.summary.type == "FULL_EXPORT"
    if not is_full or allow_duplicates:
        export.verify()
    else:
        reject_duplicates(export, names)
    job = _Import(engine=engine, table=table, names=names, on_conflict=on_conflict, newer_by=newer_by)
    actions = job.puts(export) if is_full else job.apply(export)
    for chunk in _chunks(actions, _TOGETHER):
        job.send(chunk)
        if progress is not None:
            progress(job.report)
    return job.report


def key_names(engine: Engine, table: str) -> tuple[str, ...]:
    """Return the names of a table's key attributes."""
    from .exporting import describe_table

    return tuple(each["AttributeName"] for each in describe_table(engine, table)["KeySchema"])


def reject_duplicates(export: Export, names: Sequence[str]) -> None:
    """Read a whole export, and raise DamagedExport if two items have one key.

    The keys go to a temporary SQLite file, so memory stays bounded.
    """
    with closing(sqlite3.connect("")) as keys:
        keys.execute("CREATE TABLE keys (key BLOB PRIMARY KEY, file TEXT, line INTEGER) WITHOUT ROWID")
        for place, item in export.items():
            key = _key(place, item, names)
            row = (key, place.file, place.line)
            if keys.execute("INSERT OR IGNORE INTO keys VALUES (?, ?, ?)", row).rowcount:
                continue
            file, line = keys.execute("SELECT file, line FROM keys WHERE key = ?", (key,)).fetchone()
            raise DamagedExport(
                f"{place}: the item has the key of {file}, line {line}; importing both would lose one.",
                file=place.file,
                line=place.line,
            )


@dataclass(kw_only=True)
class _Import:
    """One running import."""

    engine: Engine
    table: str
    names: tuple[str, ...]
    on_conflict: OnConflict
    newer_by: str | None
    report: ImportReport = field(default_factory=ImportReport)

    def puts(self, export: Export) -> Iterator[tuple[Place, PutItem | DeleteItem]]:
        """Yield a conditional put for each item; count those that DynamoDB would reject."""
        for place, item in export.items():
            self.report.read += 1
            put = self._decode(place, "PutItem", {"Item": item})
            if put is not None:
                yield place, replace(put, condition=self._condition(put.item), returns_on_failure=True)

    def apply(self, export: Export) -> Iterator[tuple[Place, PutItem | DeleteItem]]:
        """Yield a put or a deletion for each changed item of an incremental export."""
        for place, change in export.changes():
            self.report.read += 1
            action = self._action(place, change)
            if action is not None:
                yield place, action

    def _action(self, place: Place, change: ExportedChange) -> PutItem | DeleteItem | None:
        action: PutItem | DeleteItem | None
        if change.new is None:
            action = self._decode(place, "DeleteItem", {"Key": change.keys})
        else:
            action = self._decode(place, "PutItem", {"Item": change.new})
        return action

    def _decode(self, place: Place, operation: str, members: dict[str, Any]) -> Any:
        try:
            return decode_request(operation, {"TableName": self.table, **members})
        except ServiceError as error:
            self.report.fail(place, str(error))
            return None

    def _condition(self, item: Item) -> Condition | None:
        if self.on_conflict == "replace":
            return None
        is_free = Not(Exists((self.names[0],)))
        if self.newer_by is None or self.newer_by not in item:
            return is_free
        stored = Attr((self.newer_by,))
        return Or((is_free, Compare("<", stored, Const(item[self.newer_by]))))

    def send(self, chunk: list[tuple[Place, PutItem | DeleteItem]]) -> None:
        """Send some actions, together where the engine can, and count their outcomes."""
        together = self.engine.capabilities.handle_together
        if together is not None:
            results = [_result(outcome.get) for outcome in together([action for _, action in chunk])]
        else:
            with ThreadPoolExecutor(_THREADS) as threads:
                results = list(threads.map(lambda each: _result(lambda: self._repeat(each[1])), chunk))
        for (place, action), error in zip(chunk, results, strict=True):
            self._count(place, action, error)

    def _repeat(self, action: PutItem | DeleteItem) -> None:
        run(_send_until_known(action, Retries(random=random.random)), self.engine)

    def _count(self, place: Place, action: PutItem | DeleteItem, error: Exception | None) -> None:
        if error is None:
            if isinstance(action, DeleteItem):
                self.report.deleted += 1
            else:
                self.report.written += 1
        elif isinstance(error, ConditionFailed) and isinstance(action, PutItem):
            if error.item == action.item:
                self.report.unchanged += 1
            elif self.on_conflict == "error":
                self.report.fail(place, "The table has another item under this key.")
            else:
                self.report.skipped += 1
        elif isinstance(error, ServiceError) and not error.retryable and error.status < 500:
            self.report.fail(place, str(error))
        else:
            raise error


def _send_until_known(action: PutItem | DeleteItem, retries: Retries) -> Flow[None]:
    """Send a write of an import; repeat it also after an unknown outcome, as a second one has no effect."""
    attempt = 0
    while True:
        try:
            yield action
        except (ServiceError, TransportError) as error:
            attempt += 1
            is_transient = error.retryable if isinstance(error, ServiceError) else True
            if attempt >= retries.attempts or not is_transient:
                raise
        else:
            return
        yield retries.wait(attempt)


def _result(call: Callable[[], Any]) -> Exception | None:
    """Return the error of a call; None if it has none."""
    try:
        call()
    except (ServiceError, TransportError) as error:
        return error
    return None


def _key(place: Place, item: Item, names: Sequence[str]) -> bytes:
    values: list[AttributeValue] = []
    for name in names:
        if name not in item:
            raise DamagedExport(
                f"{place}: the item has no key attribute {name!r}.", file=place.file, line=place.line
            )
        values.append(item[name])
    return blake2b(dumps(values), digest_size=20).digest()


def _chunks(items: Iterable[ResultT], size: int) -> Iterator[list[ResultT]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
