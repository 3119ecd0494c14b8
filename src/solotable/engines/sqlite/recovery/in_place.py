"""Restore items in place: a preview of the differences, then normal writes of the past items.

The preview compares the state at a position with the current items. Applying it writes through the same code
as every request, so indexes, streams and counts follow. It skips an item that changed after the preview. An
apply that was interrupted can run again: items that already have their past state are left alone.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from solotable._protocol.json_codec import loads
from solotable._values import Item
from solotable.engines.sqlite.file.pacing import BatchPacer
from solotable.engines.sqlite.items.keys import BEYOND
from solotable.engines.sqlite.items.storage import StoredItem, Writer, find
from solotable.engines.sqlite.tables import windows
from solotable.engines.sqlite.tables.catalog import Table
from solotable.engines.sqlite.tables.definitions import read_table
from solotable.errors import RecoveryError

from .positions import find_position, require_window
from .scopes import Scope, is_dependent
from .undo import ItemRow, UndoIndex, check_file, read_old_image

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

_PREVIEW_STEP = 500
#: Items of one transaction: other writers wait for it.
_APPLY_STEP = 100
#: The most conflicts whose keys are returned.
_MOST_CONFLICTS = 20
#: Takes the changed keys that were looked at, and the number of all.
StepProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An item that a restore in place changes: as it is now, and as it was."""

    kind: Literal["added", "changed", "removed"]
    key: Item
    now: Item | None
    then: Item | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a restore in place would change.

    It puts back `added` items that do not exist now, replaces `changed` ones, and removes `removed` items,
    which did not exist then. `samples` shows some of them.
    """

    table: str
    table_id: str
    scope: Scope
    #: The position that is restored, and the one at which the preview was made.
    sequence: int
    at_micros: int
    until: int
    added: int = 0
    changed: int = 0
    removed: int = 0
    samples: tuple[Difference, ...] = ()

    @property
    def total(self) -> int:
        """How many items the restore would write or remove."""
        return self.added + self.changed + self.removed

    def to_json(self) -> dict[str, Any]:
        """Return what `apply` needs, as JSON."""
        return {
            "table": self.table,
            "table_id": self.table_id,
            "scope": self.scope.to_json(),
            "sequence": self.sequence,
            "at_micros": self.at_micros,
            "until": self.until,
            "added": self.added,
            "changed": self.changed,
            "removed": self.removed,
        }

    @classmethod
    def from_json(cls, members: dict[str, Any]) -> Preview:
        """Return the preview of `to_json`, without samples."""
        try:
            return cls(**{**members, "scope": Scope.from_json(members["scope"])})
        except (KeyError, TypeError) as error:
            raise RecoveryError(f"This is not a preview: {error}.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What a restore in place has changed; `conflicts` counts items that changed after the preview."""

    written: int = 0
    removed: int = 0
    #: Items that already had their past state.
    unchanged: int = 0
    conflicts: int = 0
    conflict_keys: tuple[Item, ...] = ()


def make_preview(
    engine: SqliteEngine,
    name: str,
    at: datetime | int | None,
    scope: Scope,
    *,
    samples: int = 5,
    progress: StepProgress | None = None,
) -> Preview:
    """Compare the items of a scope with their state at a time or sequence number."""
    with engine.database.snapshot() as connection:
        table = read_table(connection, name)
        scope.check(table.schema)
        position = find_position(engine, connection, table, at)
        until = windows.newest_sequence(connection)
    preview = Preview(
        table=name,
        table_id=table.definition["TableId"],
        scope=scope,
        sequence=position.sequence,
        at_micros=position.at_micros,
        until=until,
    )
    counts = Counter[str]()
    shown: list[Difference] = []
    with _undo(preview.table_id, position.sequence) as undo:
        check_file(engine)
        undo.read_all(engine)
        _check_window(engine, preview)
        for keys in _steps(undo, table, scope, _PREVIEW_STEP, progress):
            with engine.database.snapshot() as connection:
                checked = _check_table(connection, preview)
                for key, number in keys:
                    found = _difference(connection, checked, scope, key, number)
                    if found is not None:
                        counts[found.kind] += 1
                        if len(shown) < samples:
                            shown.append(found)
    return replace(
        preview,
        added=counts["added"],
        changed=counts["changed"],
        removed=counts["removed"],
        samples=tuple(shown),
    )


def apply_preview(engine: SqliteEngine, preview: Preview, *, progress: StepProgress | None = None) -> Applied:
    """Write the past items of a preview, in transactions of bounded size."""
    done = Applied()
    pace = BatchPacer(engine.database)
    with engine.database.read() as connection:
        table = _check_table(connection, preview)
    with (
        _undo(preview.table_id, preview.sequence) as undo,
        _undo(preview.table_id, preview.until) as since,
    ):
        # The preview has checked the file.
        undo.read_all(engine)
        _check_window(engine, preview)
        for keys in _steps(undo, table, preview.scope, _APPLY_STEP, progress):
            since.read_all(engine)
            done = engine.write(partial(_apply_step, preview=preview, keys=keys, since=since, done=done))
            pace.yield_to_writers()
    return done


def _apply_step(
    writer: Writer, preview: Preview, keys: list[tuple[bytes, int]], since: UndoIndex, done: Applied
) -> Applied:
    table = _check_table(writer.connection, preview)
    # Before this step writes: its own changes are no conflicts.
    newer = since.newer_keys(writer.connection)
    for change in keys:
        has_changed = change[0] in newer or since.contains(change[0])
        done = _restore_item(writer, table, preview, change, done, has_changed=has_changed)
    return done


def _restore_item(
    writer: Writer,
    table: Table,
    preview: Preview,
    change: tuple[bytes, int],
    done: Applied,
    *,
    has_changed: bool,
) -> Applied:
    """Write the past item of a key, unless it has changed since the preview."""
    key, number = change
    then = read_old_image(writer.connection, table, key, number)
    now = writer.find(table, key)
    if not _is_in_scope(preview.scope, table, key, then, now):
        return done
    then, is_taken = _dependent_image(preview.scope, table, key, then, now)
    if _is_equal(then, now):
        return replace(done, unchanged=done.unchanged + 1)
    if has_changed or is_taken:
        item: Item = loads(then[3]) if then is not None else {} if now is None else now.item
        keys = (*done.conflict_keys, {name: item[name] for name in table.schema.names})
        return replace(done, conflicts=done.conflicts + 1, conflict_keys=keys[:_MOST_CONFLICTS])
    if then is None:
        if now is not None:
            writer.remove(table, key, now)
        return replace(done, removed=done.removed + 1)
    writer.save(table, key, now, loads(then[3]), then[1])
    return replace(done, written=done.written + 1)


def _check_window(engine: SqliteEngine, preview: Preview) -> None:
    """Raise RecoveryError if the file may have lost changes before they were read."""
    with engine.database.snapshot() as connection:
        _check_table(connection, preview)


def _check_table(connection: sqlite3.Connection, preview: Preview) -> Table:
    """Return the table, or raise RecoveryError if the preview cannot be applied to it any more."""
    table = read_table(connection, preview.table)
    if table.definition["TableId"] != preview.table_id:
        raise RecoveryError(f"Table {preview.table} was deleted and created again after the preview.")
    window = require_window(connection, table)
    if preview.sequence < window.start:
        raise RecoveryError(
            f"The window of table {preview.table} does not reach back to the previewed state any more."
        )
    return table


def _difference(
    connection: sqlite3.Connection, table: Table, scope: Scope, key: bytes, number: int
) -> Difference | None:
    then = read_old_image(connection, table, key, number)
    now = find(connection, table, key)
    if not _is_in_scope(scope, table, key, then, now):
        return None
    then, _ = _dependent_image(scope, table, key, then, now)
    if _is_equal(then, now):
        return None
    before = None if then is None else loads(then[3])
    after = None if now is None else now.item
    item: Item = before or after or {}
    return Difference(
        kind="added" if after is None else "removed" if before is None else "changed",
        key={name: item[name] for name in table.schema.names},
        now=after,
        then=before,
    )


def _is_in_scope(
    scope: Scope, table: Table, key: bytes, then: ItemRow | None, now: StoredItem | None
) -> bool:
    return scope.contains(table.schema, key, None if then is None else then[3]) or (
        now is not None and scope.contains(table.schema, key, now.raw)
    )


def _dependent_image(
    scope: Scope, table: Table, key: bytes, then: ItemRow | None, now: StoredItem | None
) -> tuple[ItemRow | None, bool]:
    """Return the image to restore, and whether an entity outside of the scope now has the item.

    A lock that such an entity had then is not given back to it: the entity keeps its current values.
    """
    if not is_dependent(key) or then is None or now is None:
        return then, False
    if not scope.contains(table.schema, key, then[3]):
        return None, False
    return then, not scope.contains(table.schema, key, now.raw)


def _is_equal(then: ItemRow | None, now: StoredItem | None) -> bool:
    if then is None or now is None:
        return then is None and now is None
    return then[3] == now.raw or bool(loads(then[3]) == now.item)


def _steps(
    undo: UndoIndex, table: Table, scope: Scope, limit: int, progress: StepProgress | None
) -> Iterator[list[tuple[bytes, int]]]:
    """Yield the changed keys of a scope, in order."""
    first, end = scope.bounds(table.schema)
    # The dependent items of a scope with a key are outside of its bounds.
    low, high = b"", BEYOND
    total = undo.count()
    seen = 0
    while keys := undo.firsts(low, high, limit):
        if scope.key is not None:
            chosen = [each for each in keys if first <= each[0] < end or is_dependent(each[0])]
        elif scope.attribute is None and scope.tenant is None:
            # Without an attribute and a tenant, the key alone says whether an item is in the scope.
            chosen = [
                each for each in keys if is_dependent(each[0]) or scope.contains(table.schema, each[0], None)
            ]
        else:
            chosen = keys
        if chosen:
            yield chosen
        low = keys[-1][0] + b"\0"
        seen += len(keys)
        if progress is not None:
            progress(seen, total)


@contextmanager
def _undo(stream: str, sequence: int) -> Iterator[UndoIndex]:
    undo = UndoIndex(stream, sequence)
    try:
        yield undo
    finally:
        undo.close()
