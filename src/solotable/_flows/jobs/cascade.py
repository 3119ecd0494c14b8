"""Purge an item with its children, history, locks, names and counters.

This takes more than one transaction. The first marks the item, so that it can no longer be restored. The
last removes the item and its queue entry. So an interrupted purge can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from solotable._entities.declare.children import path_to
from solotable._entities.declare.plan import Plan
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.layout import TemplateLayout
from solotable._entities.traits.counters import Counted
from solotable._entities.traits.history import History
from solotable._entities.traits.names import Names
from solotable._entities.traits.soft_delete import DELETED_AT, HELD, PURGE_AT, PURGING
from solotable._entities.traits.unique import UniqueRule
from solotable._expressions.ast import And, Assign, Const, Exists, KeyTerm, Not, Update
from solotable._flows.reads.get import fetch
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.sync.entries import deletion_entry, is_deleted
from solotable._flows.traits import counters, history, names, unique
from solotable._flows.transactions.conflicts import CONFLICT_ATTEMPTS
from solotable._flows.transactions.derived_writes import source_fields
from solotable._flows.transactions.merge import merge_addition
from solotable._flows.transactions.write import Change, DerivedWrite, Stored, attributes_unchanged
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import DeleteItem, Query, TransactWriteItems, UpdateItem, WriteAction
from solotable._values import Item
from solotable.errors import ConditionFailed, TransactionCancelled

from .purge import MOST_ACTIONS, PurgeRun, Removal, chunks, due, forget, is_due, remove
from .purge_queue import QueueEntry, digest_of, held_by, queue_key


@dataclass(frozen=True, slots=True)
class PurgeOutcome:
    """The result of one queue entry; `held` is the reason why its item was not removed."""

    held: str | None = None
    #: Whether the item was already purged or restored.
    stale: bool = False


def purge_whole(run: PurgeRun, plan: Plan, entry: QueueEntry, counts: dict[str, int]) -> Flow[PurgeOutcome]:
    """Purge an item with its children, history, locks and names, and add to `counts`."""
    item = yield from _current(run, plan, entry)
    if item is None:
        yield from forget(run, plan, entry)
        return PurgeOutcome(stale=True)
    held = held_by(item) or (yield from held_below(run.scope, plan, item))
    if held is not None:
        return PurgeOutcome(held=held)
    root = due(run, plan, entry)
    if not (yield from _begin(run, root)):
        return (yield from purge_whole(run, plan, entry, counts))
    stopped = yield from _purge_children(run, plan, item, (plan.tag,), counts)
    if stopped is not None:
        return PurgeOutcome(held=stopped)
    whole = yield from _with_derived_removals(run, root, item, (plan.tag,))
    rejected = yield from remove(run, [whole])
    if not rejected:
        counts[plan.name] = counts.get(plan.name, 0) + 1
    return PurgeOutcome(held=rejected[0].held if rejected else None)


def count_whole(
    run: PurgeRun, plan: Plan, entry: QueueEntry, counts: dict[str, int], counted: set[str]
) -> Flow[PurgeOutcome]:
    """Count what `purge_whole` would remove; `counted` has the digests of the items counted before."""
    item = yield from _current(run, plan, entry)
    if item is None:
        return PurgeOutcome(stale=True)
    held = held_by(item) or (yield from held_below(run.scope, plan, item))
    if held is not None:
        return PurgeOutcome(held=held)
    _count_once(plan, item, counts, counted)
    yield from _count_below(run.scope, plan, item, counts, counted)
    return PurgeOutcome()


def held_below(scope: Scope, plan: Plan, item: Item) -> Flow[str | None]:
    """Return the reason of a hold on a descendant of an item; None without a hold."""
    for child in _children(plan):
        start = None
        while True:
            items, start = yield from _some_children(scope, plan, item, child, start)
            for each in items:
                held = held_by(each) or (yield from held_below(scope, child, each))
                if held is not None:
                    return f"{child.name}: {held}"
            if start is None:
                break
    return None


def _current(run: PurgeRun, plan: Plan, entry: QueueEntry) -> Flow[Item | None]:
    """Return the item of an entry; None if it was removed or restored."""
    (item,) = yield from fetch(run.scope, plan, [entry.key], consistent=True)
    return item if item is not None and is_due(entry, item) else None


def _begin(run: PurgeRun, root: Removal) -> Flow[bool]:
    """Mark an item, so that it can no longer be restored or held; return False if it has changed."""
    action = UpdateItem(
        table=run.scope.table(root.plan.table),
        key=root.key,
        update=Update((Assign((PURGING,), Const({"S": run.name})),), creates=True),
        condition=root.condition,
    )
    try:
        yield from send(action, run.scope.retries)
    except ConditionFailed:
        return False
    return True


def _purge_children(
    run: PurgeRun, plan: Plan, item: Item, above: tuple[str, ...], counts: dict[str, int]
) -> Flow[str | None]:
    """Purge an item's children; return the reason why one was not removed, or None."""
    for child in _children(plan):
        start = None
        changed = False
        attempt = 0
        while True:
            items, start = yield from _some_children(run.scope, plan, item, child, start)
            removals = []
            for each in items:
                stopped = yield from _purge_children(run, child, each, (*above, child.tag), counts)
                if stopped is not None:
                    return stopped
                bare = _child(run, child, each)
                removals.append((yield from _with_derived_removals(run, bare, each, (*above, child.tag))))
            for chunk in chunks(removals):
                rejected = yield from remove(run, chunk)
                counts[child.name] = counts.get(child.name, 0) + len(chunk) - len(rejected)
                held = next((each.held for each in rejected if each.held is not None), None)
                if held is not None:
                    return f"{child.name}: {held}"
                changed = changed or any(each.item is not None for each in rejected)
            if start is None and changed:
                # Another writer changed a child after it was read: read it again and purge it then.
                changed, attempt = False, attempt + 1
                if attempt == CONFLICT_ATTEMPTS:
                    return f"{child.name}: conflict with another writer in {CONFLICT_ATTEMPTS} attempts"
                yield run.scope.retries.wait(attempt)
            elif start is None:
                break
    return None


def _child(run: PurgeRun, plan: Plan, item: Item) -> Removal:
    key = {name: item[name] for name in plan.primary.names}
    # Locks, counters and queue entries are computed from these attributes, so they must not change.
    sources = {plan.attributes[name].wire for name in source_fields(plan)}
    sources |= set() if plan.deletion is None else {DELETED_AT, PURGE_AT}
    unchanged = attributes_unchanged({name: item.get(name) for name in sorted(sources)})
    condition = And((run.scope.is_entity(plan), Not(Exists((HELD,))), *unchanged))
    along: tuple[WriteAction, ...] = ()
    if DELETED_AT in item:
        entry = queue_key(plan, key, int(item[PURGE_AT]["N"]))
        along = (DeleteItem(table=run.scope.table(plan.table), key=entry),)
    is_seen = plan.synced is not None and not is_deleted(plan, item)
    logged = deletion_entry(plan, _key_values(plan, item)) if is_seen else None
    return Removal(plan=plan, key=key, condition=condition, why="cascade", along=along, entry=logged)


def _with_derived_removals(
    run: PurgeRun, removal: Removal, item: Item, above: tuple[str, ...]
) -> Flow[Removal]:
    """Purge the history of an item, and add the writes of its locks, names and counters to its removal."""
    plan, scope = removal.plan, run.scope
    if not any(isinstance(trait, (UniqueRule, Names, History, Counted)) for trait in plan.traits):
        return removal
    before = Stored(item, plan.decode(item))
    change = Change(plan, before, None)
    along: list[WriteAction] = []
    removed = 0
    for trait in plan.traits:
        match trait:
            case UniqueRule():
                along += [each.action for each in unique.locks(scope, trait, change)]
            case Names():
                along += [each.action for each in names.redirects(scope, trait, change)]
            case Counted() if DELETED_AT not in item and trait.of.tag not in above:
                along = _merge_all(
                    along, (_subtract(trait, each) for each in counters.shares(scope, trait, change))
                )
            case History():
                location = history.locate_history(scope, plan, _key_values(plan, item))
                removed += yield from history.purge(location)
            case _:
                pass
    capacity = MOST_ACTIONS - removal.room
    for action in along[capacity:]:
        # These exceed the transaction; send them before it, each under its own condition.
        token = scope.tokens()
        alone = TransactWriteItems(actions=(action,), token=token, fingerprint=token.encode())
        try:
            yield from send(alone, scope.retries)
        except TransactionCancelled:
            continue
    return replace(removal, along=(*removal.along, *along[:capacity]), history=removed)


def _merge_all(along: list[WriteAction], more: Iterable[WriteAction]) -> list[WriteAction]:
    """Return actions with more additions; additions to one item become one action."""
    found = list(along)
    for action in more:
        assert isinstance(action, UpdateItem)
        for at, each in enumerate(found):
            combined = None
            if isinstance(each, UpdateItem) and (each.table, each.key) == (action.table, action.key):
                combined = merge_addition(each, action)
            if combined is not None:
                found[at] = combined
                break
        else:
            found.append(action)
    return found


def _subtract(trait: Counted, share: DerivedWrite) -> WriteAction:
    """Return the subtraction from a parent's counter, which also applies to a soft-deleted parent."""
    parent = trait.of
    is_parent = parent.is_entity
    assert isinstance(share.action, UpdateItem)
    return replace(share.action, condition=is_parent)


def _children(plan: Plan) -> tuple[Plan, ...]:
    return () if plan.deletion is None else plan.deletion.children(plan)


@dataclass(frozen=True, slots=True)
class _ChildrenStart:
    """The position of the next children: the shard of their key, and the last key read."""

    shard: int
    key: Item | None = None


def _some_children(
    scope: Scope, parent: Plan, item: Item, child: Plan, start: _ChildrenStart | None
) -> Flow[tuple[list[Item], _ChildrenStart | None]]:
    """Return the items of the next children, including hidden ones."""
    path = path_to(child, parent.primary.parts, parent.name)
    values = _key_values(parent, item)
    shards, position = shard_keys(path, values), start or _ChildrenStart(0)
    request = Query(
        table=scope.table(child.table),
        key=shards[position.shard],
        index=None if path.index is None else path.index.name,
        filter=child.entity_filter if path.index is None else None,
        start=position.key,
        consistent=path.index is None,
    )
    reply = yield from send(request, scope.retries)
    items = decode_items(reply.items or ())
    if path.index is not None and path.index.projection != "ALL":
        keys = [{name: each[name] for name in child.primary.names} for each in items]
        whole = yield from fetch(scope, child, keys, consistent=True)
        items = [each for each in whole if each is not None]
    children = [each for each in items if child.recognises(each) and _has_values(child, each, values)]
    if reply.last_key:
        return children, _ChildrenStart(position.shard, reply.last_key)
    return children, _ChildrenStart(position.shard + 1) if position.shard + 1 < len(shards) else None


def _key_values(plan: Plan, item: Item) -> dict[str, Any]:
    """Return the fields of an item's primary key."""
    attributes = [plan.attributes[name] for name in plan.primary.parts]
    found = {each.field: each.decode(item[each.wire]) for each in attributes if each.wire in item}
    return found if len(found) == len(attributes) else {**(plan.arguments_of(item) or {}), **found}


def _has_values(plan: Plan, item: Item, values: Mapping[str, Any]) -> bool:
    """Return whether an item has these values, in its attributes or only in its key."""
    wanted = {name: plan.attributes[name].encode(value) for name, value in values.items()}
    missing = [name for name in wanted if plan.attributes[name].wire not in item]
    in_key = (plan.arguments_of(item) or {}) if missing else {}
    return all(
        in_key.get(name) == values[name] if name in missing else item[plan.attributes[name].wire] == value
        for name, value in wanted.items()
    )


def shard_keys(path: AccessPath, values: Mapping[str, Any]) -> list[tuple[KeyTerm, ...]]:
    """Return the key conditions of one parent's children, one for each shard."""
    layout = path.partition
    partitions: list[tuple[KeyTerm, ...]]
    if isinstance(layout, TemplateLayout):
        partitions = [(KeyTerm(layout.attribute, "=", ({"S": text},)),) for text in layout.partitions(values)]
    else:
        partitions = [layout.equals(values)]
    if path.sort is None:
        return partitions
    known: dict[str, Any] = {}
    for name in path.sort.fields:
        if name not in values:
            break
        known[name] = values[name]
    within = path.sort.within(known, None)
    return [(*partition, *within) for partition in partitions]


def _count_once(plan: Plan, item: Item, counts: dict[str, int], counted: set[str]) -> None:
    digest = digest_of(plan, item)
    if digest not in counted:
        counted.add(digest)
        counts[plan.name] = counts.get(plan.name, 0) + 1


def _count_below(
    scope: Scope, plan: Plan, item: Item, counts: dict[str, int], counted: set[str]
) -> Flow[None]:
    for child in _children(plan):
        start = None
        while True:
            items, start = yield from _some_children(scope, plan, item, child, start)
            for each in items:
                _count_once(child, each, counts, counted)
                yield from _count_below(scope, child, each, counts, counted)
            if start is None:
                break
