"""End a migration: cancel removes what it wrote, complete leaves one side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from solotable._expressions.ast import Exists, KeyTerm, Remove, Update
from solotable._flows.retry import send
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import DeleteItem, Query, Scan, UpdateItem
from solotable._values import Item
from solotable.errors import ConditionFailed, MigrationNotReady, ServiceError, TableNotFound
from solotable.migrations.apply.markers import is_marked, markers_in
from solotable.migrations.workflow import cursors, dead_letters, fences
from solotable.migrations.workflow.claims import release_claims
from solotable.migrations.workflow.control import CONTROL, ControlRecord
from solotable.migrations.workflow.sides import Side, control, control_key
from solotable.migrations.workflow.states import State, check_state

if TYPE_CHECKING:
    from solotable.migrations.migration import Migration

_CANCELLABLE: frozenset[State] = frozenset(
    # A cancel that was interrupted is repeated.
    {"Created", "Copying", "CatchingUp", "Running", "Verified", "Stopped", "Error", "Cancelled"}
)
_DAY = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What the end of a migration did, or would do."""

    #: Items deleted from the target (cancel), or whose markers were removed (complete).
    items: int = 0
    #: Source tables that were deleted, or whose items were.
    deleted: list[str] | None = None
    reasons: list[str] | None = None

    @property
    def is_deleting(self) -> bool:
        """Whether source tables were deleted, or would be."""
        return bool(self.deleted) and not self.reasons


def cancel(migration: Migration, *, dry_run: bool = False) -> Ended:
    """Remove everything that a migration wrote; the sources stay as they are."""
    record = migration.record()
    check_state(migration.name, record.state, _CANCELLABLE, "cancel")
    reasons = _cancel_reasons(record)
    if reasons:
        raise MigrationNotReady(
            f"Migration {migration.name!r} cannot be cancelled: {'; '.join(reasons)}.", reasons=reasons
        )
    if dry_run:
        return Ended(items=sum(1 for item in _items(migration.target, _target(migration)) if is_marked(item)))
    if record.state != "Cancelled":
        migration.transition(record, "Cancelled")
    _fence_workers(migration)
    removed = _each_marked(migration, _delete)
    _forget_streams(migration, record)
    _delete_control_items(migration, keep_record=False)
    return Ended(items=removed)


def _cancel_reasons(record: ControlRecord) -> list[str]:
    if record.has_served:
        return ["the target has taken writes of applications; switch the writes to it, and complete"]
    if record.reads_percent or any(record.reads_by_entity.values()):
        return ["the target serves reads; switch them back with `solotable migrate switch-reads --percent 0`"]
    return []


def complete_reasons(migration: Migration, record: ControlRecord) -> list[str]:
    """Return why a migration cannot be completed yet."""
    reasons = []
    if record.diff is None:
        reasons.append("no comparison of both sides; run `solotable migrate diff`")
    elif not record.diff.is_green:
        reasons.append(f"the last comparison found {record.diff.differences} differences")
    elif record.diff.flips < record.flips or record.diff.at < (record.switched_at or 0):
        reasons.append("the last comparison is older than the last switch of the writes")
    dead = migration.target.run(dead_letters.dead_letters(migration.target, migration.name))
    if dead:
        reasons.append(f"{len(dead)} dead letters, such as {dead[0]}")
    return reasons


def complete(
    migration: Migration, *, keep_data: bool = False, park_days: float | None = None, dry_run: bool = False
) -> Ended:
    """End a migration whose writes are on the target: delete, keep or park the source data.

    An interrupted call, or one after the parking time, is repeated with the choice of the first one.
    """
    record = migration.record()
    now = migration.target.clock()
    if record.state != "Completed":
        check_state(migration.name, record.state, frozenset({"WritesSwitched"}), "complete")
        reasons = complete_reasons(migration, record)
        if dry_run:
            kept = keep_data or park_days is not None
            return Ended(reasons=reasons, deleted=[] if kept else list(migration.source.names))
        if reasons:
            raise MigrationNotReady(
                f"Migration {migration.name!r} cannot be completed: {'; '.join(reasons)}.", reasons=reasons
            )
        until = None if keep_data else now + (park_days or 0) * _DAY
        record = migration.transition(record, "Completed", parked_until=until, copying=False)
    elif dry_run:
        due = record.parked_until is not None and record.parked_until <= now
        return Ended(deleted=list(migration.source.names) if due else [])
    elif record.parked_until is not None and now < record.parked_until:
        until_text = datetime.fromtimestamp(record.parked_until, UTC).strftime("%Y-%m-%d %H:%M UTC")
        raise MigrationNotReady(
            f"Migration {migration.name!r} is completed, and has parked its sources until {until_text}; "
            f"run `complete` again after that to delete them.",
            reasons=[f"the sources are parked until {until_text}"],
        )
    return _finish(migration, record)


def _finish(migration: Migration, record: ControlRecord) -> Ended:
    """Remove markers and control items, and delete sources whose time has passed; it may be repeated."""
    _fence_workers(migration)
    stripped = _each_marked(migration, _strip)
    _forget_streams(migration, record)
    _delete_control_items(migration, keep_record=True)
    deleted: list[str] = []
    if record.parked_until is not None and record.parked_until <= migration.target.clock():
        deleted = _delete_sources(migration)
        migration.transition(record, parked_until=None)
    return Ended(items=stripped, deleted=deleted)


def _fence_workers(migration: Migration) -> None:
    """Make sure that no worker writes any more: delete their cursors."""
    for side in (migration.target, migration.source):
        for kind in ("SEGMENT#", "APPLY#"):
            for cursor in side.run(cursors.load_cursors(side, migration.name, kind)):
                side.run(cursors.delete_cursor(side, migration.name, cursor.kind))


def _target(migration: Migration) -> str:
    return migration.target.names[migration.mapping.target.name]


def _items(side: Side, table: str) -> Iterator[Item]:
    start = None
    while True:
        page = side.run(send(Scan(table=table, start=start, consistent=True), side.scope.retries))
        yield from decode_items(page.items or ())
        start = page.last_key
        if not start:
            return


def _each_marked(migration: Migration, act: Callable[[Migration, Item, Item], None]) -> int:
    count = 0
    for item in _items(migration.target, _target(migration)):
        if is_marked(item):
            key = {name: item[name] for name in migration.mapping.target.key_names}
            try:
                act(migration, key, item)
            except ConditionFailed:
                continue
            count += 1
    return count


def _delete(migration: Migration, key: Item, item: Item) -> None:
    marked = Exists((markers_in(item)[0],))
    request = DeleteItem(table=_target(migration), key=key, condition=marked)
    migration.target.run(send(request, migration.target.scope.retries))


def _strip(migration: Migration, key: Item, item: Item) -> None:
    names = markers_in(item)
    request = UpdateItem(
        table=_target(migration),
        key=key,
        update=Update(tuple(Remove((name,)) for name in names), creates=False),
        condition=Exists((names[0],)),
    )
    migration.target.run(send(request, migration.target.scope.retries))


def _forget_streams(migration: Migration, record: ControlRecord) -> None:
    """Disable the streams that the migration enabled."""
    for name in record.streams:
        side_name, _, table = name.partition(":")
        side = migration.source if side_name == "source" else migration.target
        try:
            side.run(
                control(side, "UpdateTable", TableName=table, StreamSpecification={"StreamEnabled": False})
            )
        except TableNotFound:
            continue
        except ServiceError as error:
            # It was disabled before.
            if error.code != "ValidationException":
                raise


def _delete_sources(migration: Migration) -> list[str]:
    """Delete the source tables, or only the items that took part if a source has a filter."""
    side = migration.source
    deleted = []
    for name, source in migration.mapping.sources.items():
        table = side.names[name]
        shared = side.engine is migration.target.engine and table == _target(migration)
        if source.where is None and source.tenant is None and not shared:
            with suppress(TableNotFound):
                side.run(control(side, "DeleteTable", TableName=table))
        else:
            for item in _items(side, table):
                if source.includes(item):
                    key = source.key_of(item)
                    side.run(send(DeleteItem(table=table, key=key), side.scope.retries))
        deleted.append(table)
    return deleted


def _delete_control_items(migration: Migration, *, keep_record: bool) -> None:
    """Delete the migration's items; the record last, because it says that the migration has ended."""
    for side in (migration.source, migration.target):
        side.run(fences.delete_fences(side, migration.name))
        side.run(fences.clear_journal(side, migration.name))
        side.run(release_claims(side, migration.name))
        for key in _control_items(side, migration.name):
            if key["SK"]["S"] != CONTROL:
                side.run(send(DeleteItem(table=side.control, key=key), side.scope.retries))
    if not keep_record:
        side = migration.target
        key = control_key(migration.name, CONTROL)
        side.run(send(DeleteItem(table=side.control, key=key), side.scope.retries))


def _control_items(side: Side, name: str) -> list[Item]:
    found = []
    start = None
    key = (KeyTerm("PK", "=", (control_key(name, "")["PK"],)),)
    while True:
        request = Query(table=side.control, key=key, start=start, consistent=True)
        page = side.run(send(request, side.scope.retries))
        found += [{"PK": item["PK"], "SK": item["SK"]} for item in decode_items(page.items or ())]
        start = page.last_key
        if not start:
            return found
