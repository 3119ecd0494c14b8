"""History: snapshots of replaced versions, and the flows that read them.

A snapshot is written in the same transaction as its cause, under the condition that it does not exist. The
cause requires the version that was read. So no snapshot is lost or overwritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from solotable._entities.codecs.opaque.subjects import check_view
from solotable._entities.declare.plan import Plan
from solotable._entities.patterns.paths import field_path as field_of
from solotable._entities.traits.history import ASIDE, History
from solotable._expressions.ast import Attr, Compare, Const, Exists, KeyTerm, Not
from solotable._flows.consumption import measured
from solotable._flows.reads.query import FilledPage
from solotable._flows.reads.views import view_of
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope, decode_item
from solotable._flows.subject_keys import load_keys
from solotable._flows.transactions.write import Change, DerivedWrite, Stored, Write, key_of, load_stored
from solotable._flows.writes.batch import write_batch
from solotable._protocol import requests
from solotable._protocol.replies import Page as Reply
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import ConditionCheck, DeleteItem, GetItem, PutItem
from solotable._values import Item
from solotable.errors import (
    AlreadyExists,
    DataError,
    DeclarationError,
    NotFound,
    SolotableError,
    StoredDataError,
    VersionConflict,
)

_PURGED_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs between two versions."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class VersionDifference:
    """The fields that differ between two versions, without the version and the timestamps."""

    before: int
    after: int
    changes: tuple[FieldChange, ...]

    def __iter__(self) -> Iterator[FieldChange]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)


@dataclass(frozen=True, slots=True)
class HistoryLocation:
    """The location of one entity's history."""

    scope: Scope
    plan: Plan
    trait: History
    values: Mapping[str, Any]
    #: The primary key of the entity.
    key: Item

    @property
    def table(self) -> str:
        """The table's name in the engine."""
        return self.scope.table(self.plan.table)

    @property
    def title(self) -> str:
        """The name of the entity in error messages."""
        return title_of(self.plan, self.values)


def locate_history(scope: Scope, plan: Plan, given: Mapping[str, Any]) -> HistoryLocation:
    """Return the location of an entity's history; nothing is sent."""
    trait = next((each for each in plan.traits if isinstance(each, History)), None)
    if trait is None:
        raise DeclarationError(
            f"{plan.name} has no history; declare one: history = History('...#v{{version:06d}}')."
        )
    values = scope.bind(plan, given)
    return HistoryLocation(scope, plan, trait, values, plan.key_from(values))


def snapshots(scope: Scope, trait: History, change: Change) -> Iterator[DerivedWrite]:
    """Yield the snapshot of the replaced version, and the delete of the oldest snapshot."""
    plan, before, after = change.plan, change.before, change.after
    if change.soft:
        return
    if before is None:
        if after is not None and trait.on_delete == "keep":
            yield _check_no_marker(scope, trait, plan, after)
        return
    values = before.entity.__dict__
    location = HistoryLocation(scope, plan, trait, values, plan.key_of(values))
    if after is not None and plan.key_of(after.entity.__dict__) != location.key:
        raise DeclarationError(
            f"{plan.name} cannot be renamed, because its history is stored under its key; "
            f"declare the names on a separate entity that refers to this one."
        )
    number = int(values[plan.version or ""])
    if after is None and trait.on_delete == "purge":
        for each in range(max(0, number - (trait.keep or 0)), number):
            yield _delete_snapshot(location, each)
        return
    yield _put_snapshot(location, before, number)
    if trait.keep is not None and number - trait.keep >= 0:
        yield _delete_snapshot(location, number - trait.keep)
    if after is None:
        yield _put_marker(location, number)


@measured
def page(
    location: HistoryLocation, *, limit: int, cursor: str | None, view: type[BaseModel] | None = None
) -> Flow[FilledPage]:
    """Return the snapshots, newest first, with one Query; with a view, fetch only its fields."""
    if limit < 1:
        raise DataError(f"limit= must be at least 1, got {limit}.")
    scope = location.scope
    request = _query(location)
    bound_to = repr(("history", location.plan.tag, request.key, scope.tenant, scope.admin)).encode()
    start = None if cursor is None else scope.cursor_signer.verify(cursor, bound_to)
    projection = None if view is None else _projection(location, view)
    read = _query(location, limit=limit, start=start, projection=projection)
    reply: Reply = yield from send(read, scope.retries)
    items = [item for item in decode_items(reply.items or ()) if _is_snapshot(location, item)]
    if location.plan.loads_keys:
        yield from load_keys(location.plan, items)
    if view is None:
        rows = [_decode_snapshot(location, item).entity for item in items]
    else:
        rows = [view_of(view, location.plan, _original(location, item)) for item in items]
    next_cursor = None if not reply.last_key else scope.cursor_signer.sign(reply.last_key, bound_to)
    return FilledPage(rows, next_cursor, reply.scanned)


def get(location: HistoryLocation, version: int) -> Flow[Any]:
    """Return one version, which may be the current one, or None."""
    found = yield from version_at(location, version)
    return None if found is None else found.entity


def diff(location: HistoryLocation, before: int, after: int) -> Flow[VersionDifference]:
    """Return the fields that differ between two versions."""
    plan = location.plan
    old, new = (yield from require(location, before)).entity, (yield from require(location, after)).entity
    managed = {plan.version, plan.created, plan.updated}
    changes = tuple(
        FieldChange(name, getattr(old, name), getattr(new, name))
        for name in plan.attributes
        if name not in managed and getattr(old, name) != getattr(new, name)
    )
    return VersionDifference(before, after, changes)


def version_at(location: HistoryLocation, version: int) -> Flow[Stored | None]:
    """Return the item and entity of one version, or None."""
    plan = location.plan
    found = yield from snapshot_at(location, version)
    if found is None:
        current = yield from load_stored(location.scope, plan, location.key)
        number = None if current is None else getattr(current.entity, plan.version or "")
        if number == version:
            return current
        if number is not None and number > version:
            # The version may have become a snapshot between the two reads.
            found = yield from snapshot_at(location, version)
    return found


def require(location: HistoryLocation, version: int) -> Flow[Stored]:
    """Return one version, or raise NotFound."""
    found = yield from version_at(location, version)
    if found is None:
        raise missing(location, version)
    return found


def snapshot_at(location: HistoryLocation, version: int) -> Flow[Stored | None]:
    """Return one snapshot, or None."""
    if version < 0:
        return None
    key = location.trait.key_of(location.key, location.values, version)
    item = yield from _item(location, key)
    if location.plan.loads_keys:
        yield from load_keys(location.plan, [item])
    return None if item is None or not _is_snapshot(location, item) else _decode_snapshot(location, item)


def deleted_at(location: HistoryLocation) -> Flow[int | None]:
    """Return the version at which the entity was deleted; None if it was not deleted or has no history."""
    item = yield from _item(location, location.trait.marker_of(location.key, location.values))
    if item is None:
        return None
    return int(item[_version_name(location.plan)]["N"])


def purge(location: HistoryLocation, *, keep: int = 0) -> Flow[int]:
    """Remove all but the newest `keep` snapshots, in batches, and return their number; idempotent."""
    if keep < 0:
        raise DataError(f"keep= must be at least 0, got {keep}; 0 removes every snapshot.")
    scope, plan = location.scope, location.plan
    names = tuple((name,) for name in plan.primary.names)
    removed, start = 0, None
    left = keep
    while True:
        request = _query(location, limit=_PURGED_AT_ONCE, start=start, projection=names)
        reply: Reply = yield from send(request, scope.retries)
        keys = decode_items(reply.items or ())
        surplus, left = keys[left:], max(0, left - len(keys))
        writes = [_plan_delete(location, key) for key in surplus]
        removed += (yield from write_batch(scope, writes)) if writes else 0
        start = reply.last_key
        if not start:
            break
    if keep == 0:
        # Delete the marker last, so that an interrupted purge still shows that the entity had a history.
        marker = location.trait.marker_of(location.key, location.values)
        yield from write_batch(scope, [_plan_delete(location, marker)])
    return removed


def missing(location: HistoryLocation, version: int) -> NotFound:
    """Return the error for a missing version."""
    return NotFound(
        f"Version {version} of {location.title} not found: it never existed, or was removed from the history."
    )


def delete_marker(location: HistoryLocation, number: int) -> DerivedWrite:
    """Return the delete of the deletion marker, for an entity that is restored."""
    key = location.trait.marker_of(location.key, location.values)

    def explain(found: Item | None) -> SolotableError:
        message = f"Restore {location.title}: another writer restored or purged it; read it again."
        return VersionConflict(message, item=None, mine=None, theirs=None)

    # Compare the number: the entity may have been restored and deleted again since.
    unchanged = Compare("=", Attr((_version_name(location.plan),)), Const({"N": str(number)}))
    action = DeleteItem(table=location.table, key=key, condition=unchanged, returns_on_failure=True)
    return DerivedWrite(
        action=action, title=f"the end of {location.title} at version {number}", explain=explain
    )


def is_marker(location: HistoryLocation, derived: DerivedWrite) -> bool:
    """Return whether a derived write has the key of the deletion marker."""
    marker = location.trait.marker_of(location.key, location.values)
    return key_of(location.plan, derived.action) == marker


def title_of(plan: Plan, values: Mapping[str, Any]) -> str:
    """Return an entity as messages name it."""
    parts = (part for part in plan.primary.parts if part != plan.tenant)
    return f"{plan.name} {', '.join(f'{name}={values.get(name)!r}' for name in parts)}".rstrip()


def _put_snapshot(location: HistoryLocation, before: Stored, number: int) -> DerivedWrite:
    key = location.trait.key_of(location.key, location.values, number)

    def explain(found: Item | None) -> SolotableError:
        return DataError(
            f"Version {number} of {location.title} is already in its history, left by a deleted entity with "
            f"the same key; purge() that history first."
        )

    action = PutItem(
        table=location.table,
        item=location.trait.snapshot(before.item, key),
        condition=Not(Exists((location.trait.sort,))),
        returns_on_failure=True,
    )
    return DerivedWrite(action=action, title=f"the snapshot of version {number}", explain=explain)


def _delete_snapshot(location: HistoryLocation, number: int) -> DerivedWrite:
    key = location.trait.key_of(location.key, location.values, number)
    action = DeleteItem(table=location.table, key=key)
    return DerivedWrite(action=action, title=f"the snapshot of version {number}", explain=_unconditional)


def _put_marker(location: HistoryLocation, number: int) -> DerivedWrite:
    item: Item = {
        **location.trait.marker_of(location.key, location.values),
        location.plan.table.internal_tag: location.trait.tag_value,
        _version_name(location.plan): {"N": str(number)},
    }
    action = PutItem(table=location.table, item=item)
    return DerivedWrite(action=action, title="the mark of the delete", explain=_unconditional)


def _check_no_marker(scope: Scope, trait: History, plan: Plan, after: Stored) -> DerivedWrite:
    values = after.entity.__dict__
    location = HistoryLocation(scope, plan, trait, values, plan.key_of(values))

    def explain(found: Item | None) -> SolotableError:
        number = "?" if found is None else found.get(_version_name(plan), {}).get("N", "?")
        return AlreadyExists(
            f"{location.title} was deleted at version {number} and still has a history; restore() a version, "
            f"or purge() the history before you create it again.",
            item=found,
        )

    action = ConditionCheck(
        table=location.table,
        key=trait.marker_of(location.key, values),
        condition=Not(Exists((trait.sort,))),
        returns_on_failure=True,
    )
    return DerivedWrite(action=action, title="the history of a former one", explain=explain)


def _unconditional(found: Item | None) -> SolotableError:
    raise AssertionError("a write without a condition cannot fail its condition")


def _query(
    location: HistoryLocation,
    *,
    limit: int | None = None,
    start: Item | None = None,
    projection: tuple[tuple[str, ...], ...] | None = None,
) -> requests.Query:
    low, high = location.trait.range_of(location.values)
    terms = (
        *location.plan.primary.partition.equals(location.values),
        KeyTerm(location.trait.sort, "BETWEEN", ({"S": low}, {"S": high})),
    )
    return requests.Query(
        table=location.table,
        key=terms,
        limit=limit,
        start=start,
        projection=projection,
        forward=False,
        consistent=True,
    )


def _item(location: HistoryLocation, key: Item) -> Flow[Item | None]:
    reply = yield from send(GetItem(table=location.table, key=key, consistent=True), location.scope.retries)
    return None if reply.item is None else decode_item(reply.item)


def _is_snapshot(location: HistoryLocation, item: Item) -> bool:
    return item.get(location.plan.table.internal_tag) == location.trait.tag_value


def _projection(location: HistoryLocation, view: type[BaseModel]) -> tuple[tuple[str, ...], ...] | None:
    plan = location.plan
    for name in view.model_fields:
        field_of(plan, name)
    if plan.loads_keys:
        check_view(plan, view)
    # Only upgrades know which attributes they need, so read items that may be old whole.
    if plan.schema_versions.upgrades:
        return None
    wanted = [plan.attributes[name].wire for name in view.model_fields]
    versions = (
        [plan.schema_versions.attribute, plan.schema_versions.oldest_attribute]
        if plan.schema_versions.declared
        else []
    )
    return tuple(
        (name,)
        for name in dict.fromkeys((*wanted, ASIDE, plan.table.internal_tag, *plan.primary.names, *versions))
    )


def _original(location: HistoryLocation, item: Item) -> Item:
    return {**location.trait.original(item, location.plan.identity), **location.key}


def _decode_snapshot(location: HistoryLocation, item: Item) -> Stored:
    plan = location.plan
    original = _original(location, item)
    try:
        entity = plan.decode(original)
    except DataError as error:
        number = item.get(_version_name(plan), {}).get("N", "?")
        problem = "was stored by an older model and is invalid in the current one"
        if plan.cipher is not None:
            # A former key may be missing as well.
            problem = "cannot be decoded with the current model and keys"
        raise StoredDataError(f"Version {number} of {location.title} {problem}: {error}") from error
    location.scope.check_tenant(plan, entity)
    return Stored(original, entity)


def _version_name(plan: Plan) -> str:
    return plan.attributes[plan.version or ""].wire


def _plan_delete(location: HistoryLocation, key: Item) -> Write:
    action = DeleteItem(table=location.table, key=key)
    return Write(plan=location.plan, verb="delete", given=location.values, action=action)
