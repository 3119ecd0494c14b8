"""History: what a write puts aside of the version that it replaces, and reading what was put aside.

A snapshot goes in the transaction of its cause, under the condition that it does not exist yet; the cause has
the condition that the version is the one read. So no snapshot is lost and none is overwritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from solotable._entities.declare.plan import Plan
from solotable._entities.patterns.paths import field_path as field_of
from solotable._entities.traits.history import ASIDE, History
from solotable._expressions.ast import Attr, Compare, Const, Exists, KeyTerm, Not
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope, decode_item
from solotable._flows.transactions.write import Change, DerivedWrite, Stored, Write, key_of, stored
from solotable._flows.verbs.batch import write_batch
from solotable._flows.verbs.query import FilledPage, view_of
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
    """What differs between two versions; what the store itself keeps (version, stamps) is left out."""

    before: int
    after: int
    changes: tuple[FieldChange, ...]

    def __iter__(self) -> Iterator[FieldChange]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)


@dataclass(frozen=True, slots=True)
class Place:
    """The history of one entity: whose, and where it lies."""

    scope: Scope
    plan: Plan
    trait: History
    values: Mapping[str, Any]
    #: The entity's own key.
    key: Item

    @property
    def table(self) -> str:
        """The table's name in the engine."""
        return self.scope.table(self.plan.table)

    @property
    def title(self) -> str:
        """The entity as messages name it."""
        return title_of(self.plan, self.values)


def place_of(scope: Scope, plan: Plan, given: Mapping[str, Any]) -> Place:
    """Return where the history of an entity lies; nothing is sent."""
    trait = next((each for each in plan.traits if isinstance(each, History)), None)
    if trait is None:
        raise DeclarationError(
            f"{plan.name} keeps no history; declare it: history = History('...#v{{version:06d}}')."
        )
    values = scope.bind(plan, given)
    return Place(scope, plan, trait, values, plan.key_from(values))


def snapshots(scope: Scope, trait: History, change: Change) -> Iterator[DerivedWrite]:
    """Yield what a change does to the history: the former version is put aside, the oldest goes."""
    plan, before, after = change.plan, change.before, change.after
    if change.soft:
        return
    if before is None:
        if after is not None and trait.on_delete == "keep":
            yield _never_deleted(scope, trait, plan, after)
        return
    values = before.entity.__dict__
    place = Place(scope, plan, trait, values, plan.key_of(values))
    if after is not None and plan.key_of(after.entity.__dict__) != place.key:
        raise DeclarationError(
            f"{plan.name} keeps a history, which lies under its key, so it cannot be renamed; "
            f"keep the names in a separate entity that refers to this one."
        )
    number = int(values[plan.version or ""])
    if after is None and trait.on_delete == "purge":
        for each in range(max(0, number - (trait.keep or 0)), number):
            yield _removed(place, each)
        return
    yield _put_aside(place, before, number)
    if trait.keep is not None and number - trait.keep >= 0:
        yield _removed(place, number - trait.keep)
    if after is None:
        yield _marked_deleted(place, number)


def page(
    place: Place, *, limit: int, cursor: str | None, view: type[BaseModel] | None = None
) -> Flow[FilledPage]:
    """Return the snapshots, newest first, by one Query; with a view only its fields are fetched."""
    if limit < 1:
        raise DataError(f"A page has at least one row; limit={limit} was given.")
    scope = place.scope
    request = _query(place)
    bound_to = repr(("history", place.plan.tag, request.key, scope.tenant, scope.admin)).encode()
    start = None if cursor is None else scope.sealer.open(cursor, bound_to)
    projection = None if view is None else _projection(place, view)
    asked = _query(place, limit=limit, start=start, projection=projection)
    reply: Reply = yield from send(asked, scope.retries)
    items = [item for item in decode_items(reply.items or ()) if _is_ours(place, item)]
    if view is None:
        rows = [_loaded(place, item).entity for item in items]
    else:
        rows = [view_of(view, place.plan, _original(place, item)) for item in items]
    sealed = None if not reply.last_key else scope.sealer.seal(reply.last_key, bound_to)
    return FilledPage(rows, sealed, reply.scanned)


def get(place: Place, version: int) -> Flow[Any]:
    """Return one version, also the current one, or None."""
    found = yield from version_at(place, version)
    return None if found is None else found.entity


def diff(place: Place, before: int, after: int) -> Flow[VersionDifference]:
    """Return which fields differ between two versions, and how."""
    plan = place.plan
    old, new = (yield from require(place, before)).entity, (yield from require(place, after)).entity
    kept = {plan.version, plan.created, plan.updated}
    changes = tuple(
        FieldChange(name, getattr(old, name), getattr(new, name))
        for name in plan.attributes
        if name not in kept and getattr(old, name) != getattr(new, name)
    )
    return VersionDifference(before, after, changes)


def version_at(place: Place, version: int) -> Flow[Stored | None]:
    """Return one version as it is or was stored, or None."""
    plan = place.plan
    found = yield from snapshot_at(place, version)
    if found is None:
        current = yield from stored(place.scope, plan, place.key)
        there = None if current is None else getattr(current.entity, plan.version or "")
        if there == version:
            return current
        if there is not None and there > version:
            # It may have become a snapshot between the two readings.
            found = yield from snapshot_at(place, version)
    return found


def require(place: Place, version: int) -> Flow[Stored]:
    """Return one version, or raise NotFound."""
    found = yield from version_at(place, version)
    if found is None:
        raise missing(place, version)
    return found


def snapshot_at(place: Place, version: int) -> Flow[Stored | None]:
    """Return one snapshot, or None."""
    if version < 0:
        return None
    key = place.trait.key_of(place.key, place.values, version)
    item = yield from _item(place, key)
    return None if item is None or not _is_ours(place, item) else _loaded(place, item)


def deleted_at(place: Place) -> Flow[int | None]:
    """Return the version at which the entity was deleted; None when it was not, or has no history."""
    item = yield from _item(place, place.trait.marker_of(place.key, place.values))
    if item is None:
        return None
    return int(item[_version_name(place.plan)]["N"])


def purge(place: Place, *, keep: int = 0) -> Flow[int]:
    """Remove all but the newest snapshots, in batches, and return how many; may be repeated."""
    if keep < 0:
        raise DataError(f"keep={keep} makes no sense; 0 removes every snapshot.")
    scope, plan = place.scope, place.plan
    names = tuple((name,) for name in plan.primary.names)
    removed, start = 0, None
    left = keep
    while True:
        request = _query(place, limit=_PURGED_AT_ONCE, start=start, projection=names)
        reply: Reply = yield from send(request, scope.retries)
        keys = decode_items(reply.items or ())
        going, left = keys[left:], max(0, left - len(keys))
        writes = [_bare_delete(place, key) for key in going]
        removed += (yield from write_batch(scope, writes)) if writes else 0
        start = reply.last_key
        if not start:
            break
    if keep == 0:
        # Last, so that a purge that was broken off still says that the entity had a history.
        marker = place.trait.marker_of(place.key, place.values)
        yield from write_batch(scope, [_bare_delete(place, marker)])
    return removed


def missing(place: Place, version: int) -> NotFound:
    """Return the error for a version that is not there."""
    return NotFound(
        f"Version {version} of {place.title} not found: it never existed, or was removed from the history."
    )


def revived(place: Place, number: int) -> DerivedWrite:
    """Return what takes back that an entity was deleted."""
    key = place.trait.marker_of(place.key, place.values)

    def explain(met: Item | None) -> SolotableError:
        message = f"Restore {place.title}: another writer restored or purged it; read it again."
        return VersionConflict(message, item=None, mine=None, theirs=None)

    # It may have been restored and deleted again since, so that the number is used.
    still = Compare("=", Attr((_version_name(place.plan),)), Const({"N": str(number)}))
    action = DeleteItem(table=place.table, key=key, condition=still, returns_on_failure=True)
    return DerivedWrite(action=action, title=f"the end of {place.title} at version {number}", explain=explain)


def is_marker(place: Place, derived: DerivedWrite) -> bool:
    """Return whether a derived write is of the item that marks the entity as deleted."""
    marker = place.trait.marker_of(place.key, place.values)
    return key_of(place.plan, derived.action) == marker


def title_of(plan: Plan, values: Mapping[str, Any]) -> str:
    """Return an entity as messages name it."""
    parts = (part for part in plan.primary.parts if part != plan.tenant)
    return f"{plan.name} {', '.join(f'{name}={values.get(name)!r}' for name in parts)}".rstrip()


def _put_aside(place: Place, before: Stored, number: int) -> DerivedWrite:
    key = place.trait.key_of(place.key, place.values, number)

    def explain(met: Item | None) -> SolotableError:
        return DataError(
            f"Version {number} of {place.title} is in its history already, left by one of the same key that "
            f"is gone; purge() that history first."
        )

    action = PutItem(
        table=place.table,
        item=place.trait.snapshot(before.item, key),
        condition=Not(Exists((place.trait.sort,))),
        returns_on_failure=True,
    )
    return DerivedWrite(action=action, title=f"the snapshot of version {number}", explain=explain)


def _removed(place: Place, number: int) -> DerivedWrite:
    key = place.trait.key_of(place.key, place.values, number)
    action = DeleteItem(table=place.table, key=key)
    return DerivedWrite(action=action, title=f"the snapshot of version {number}", explain=_unconditional)


def _marked_deleted(place: Place, number: int) -> DerivedWrite:
    item: Item = {
        **place.trait.marker_of(place.key, place.values),
        place.plan.table.tag: place.trait.tag_value,
        _version_name(place.plan): {"N": str(number)},
    }
    action = PutItem(table=place.table, item=item)
    return DerivedWrite(action=action, title="the mark of the delete", explain=_unconditional)


def _never_deleted(scope: Scope, trait: History, plan: Plan, after: Stored) -> DerivedWrite:
    values = after.entity.__dict__
    place = Place(scope, plan, trait, values, plan.key_of(values))

    def explain(met: Item | None) -> SolotableError:
        number = "?" if met is None else met.get(_version_name(plan), {}).get("N", "?")
        return AlreadyExists(
            f"{place.title} was deleted at version {number} and its history is kept; restore() a version, "
            f"or purge() the history before a new one takes its key.",
            item=met,
        )

    action = ConditionCheck(
        table=place.table,
        key=trait.marker_of(place.key, values),
        condition=Not(Exists((trait.sort,))),
        returns_on_failure=True,
    )
    return DerivedWrite(action=action, title="the history of a former one", explain=explain)


def _unconditional(met: Item | None) -> SolotableError:
    raise AssertionError("a write without a condition is not refused by one")


def _query(
    place: Place,
    *,
    limit: int | None = None,
    start: Item | None = None,
    projection: tuple[tuple[str, ...], ...] | None = None,
) -> requests.Query:
    low, high = place.trait.range_of(place.values)
    terms = (
        *place.plan.primary.partition.equals(place.values),
        KeyTerm(place.trait.sort, "BETWEEN", ({"S": low}, {"S": high})),
    )
    return requests.Query(
        table=place.table,
        key=terms,
        limit=limit,
        start=start,
        projection=projection,
        forward=False,
        consistent=True,
    )


def _item(place: Place, key: Item) -> Flow[Item | None]:
    reply = yield from send(GetItem(table=place.table, key=key, consistent=True), place.scope.retries)
    return None if reply.item is None else decode_item(reply.item)


def _is_ours(place: Place, item: Item) -> bool:
    return item.get(place.plan.table.tag) == place.trait.tag_value


def _projection(place: Place, view: type[BaseModel]) -> tuple[tuple[str, ...], ...] | None:
    plan = place.plan
    # Only an upgrader knows what it needs, so items that may be old are read whole.
    if plan.schema_versions.upgrades:
        return None
    for name in view.model_fields:
        field_of(plan, name)
    wanted = [plan.attributes[name].wire for name in view.model_fields]
    marks = (
        [plan.schema_versions.attribute, plan.schema_versions.oldest_attribute]
        if plan.schema_versions.declared
        else []
    )
    return tuple(
        (name,) for name in dict.fromkeys((*wanted, ASIDE, plan.table.tag, *plan.primary.names, *marks))
    )


def _original(place: Place, item: Item) -> Item:
    return {**place.trait.original(item, place.plan.tag_value), **place.key}


def _loaded(place: Place, item: Item) -> Stored:
    plan = place.plan
    original = _original(place, item)
    try:
        entity = plan.decode(original)
    except DataError as refused:
        number = item.get(_version_name(plan), {}).get("N", "?")
        raise StoredDataError(
            f"Version {number} of {place.title} was stored by an older model and does not fit the one of "
            f"today: {refused}"
        ) from refused
    place.scope.check_tenant(plan, entity)
    return Stored(original, entity)


def _version_name(plan: Plan) -> str:
    return plan.attributes[plan.version or ""].wire


def _bare_delete(place: Place, key: Item) -> Write:
    action = DeleteItem(table=place.table, key=key)
    return Write(plan=place.plan, verb="delete", given=place.values, action=action)
