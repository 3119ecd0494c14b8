"""Purging: items are removed for good, with what belongs to them and with a receipt, in transactions.

Conditions decide, never a reading alone: an item goes only if it is still the one that its ticket was
written for and nobody holds it. What takes more than one transaction (children, history) begins with a mark
that ends the way back, and ends with the item and its ticket, so that a purge that was broken off is
simply done again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from solotable.entities.children import path_to
from solotable.entities.counters import Counted
from solotable.entities.deletion import DELETED_AT, HELD, PURGE_AT, PURGING
from solotable.entities.history import History
from solotable.entities.keys import AccessPath
from solotable.entities.names import Names
from solotable.entities.plan import Plan, UniqueRule
from solotable.entities.table import Table
from solotable.errors import ConditionFailed, TransactionCancelled
from solotable.expressions.ast import And, Assign, Attr, Compare, Condition, Const, Exists, Not, Update
from solotable.protocol.encode import items as decode_items
from solotable.protocol.limits import MOST_TRANSACTION_ACTIONS
from solotable.protocol.requests import DeleteItem, Query, TransactWriteItems, UpdateItem, WriteAction
from solotable.values import Item

from . import counters, history, names, unique
from .ask import Flow, ask
from .merge import with_addition
from .read import fetch
from .receipts import Entry, Why, receipt_put
from .scope import Scope
from .tickets import Ticket, digest_of, held_by, ticket_key
from .write import Change, Stored, all_of, as_stored

#: How many actions a transaction of the purge has; one is the receipt.
MOST_ACTIONS = MOST_TRANSACTION_ACTIONS - 1
_ATTEMPTS = 12
#: After so many conflicts with other writers, items go one by one.
_TOGETHER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """One item that is to go, under which condition, and what goes in the same transaction."""

    plan: Plan
    key: Item
    condition: Condition
    why: Why
    along: tuple[WriteAction, ...] = ()
    history: int = 0

    @property
    def adds(self) -> bool:
        """Whether it adds to counters, which others may do too; a transaction takes an item once."""
        return any(isinstance(action, UpdateItem) for action in self.along)

    @property
    def weight(self) -> int:
        """How many actions it is."""
        return 1 + len(self.along)


@dataclass(frozen=True, slots=True)
class Refused:
    """An item that was not removed, and what stands there; None: nothing does."""

    removal: Removal
    item: Item | None

    @property
    def held(self) -> str | None:
        """Why it is held; None if it is another item than expected."""
        return None if self.item is None else held_by(self.item)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a purge: its name, and the table that its receipts lie in."""

    scope: Scope
    name: str
    table: Table


def is_plain(plan: Plan) -> bool:
    """Whether an item of the entity goes alone: with no lock, name, history or child of its own."""
    traits = (UniqueRule, Names, History)
    cascades = plan.deletion is not None and bool(plan.deletion.cascade)
    return not cascades and not any(isinstance(trait, traits) for trait in plan.traits)


def due(run: Run, plan: Plan, ticket: Ticket) -> Removal:
    """Return the removal of the item that a ticket stands for."""
    action = DeleteItem(table=run.scope.table(plan.table), key=ticket_key(plan, ticket.key, ticket.purge_at))
    condition = all_of([*as_stored(ticket.seen), Not(Exists((HELD,)))])
    assert condition is not None
    return Removal(plan=plan, key=ticket.key, condition=condition, why="deleted", along=(action,))


def remove(run: Run, removals: Sequence[Removal]) -> Flow[list[Refused]]:
    """Remove items together, those that are refused left out; return the refused ones."""
    left = list(removals)
    refused: list[Refused] = []
    for attempt in range(_ATTEMPTS):
        if not left:
            return refused
        if attempt >= _TOGETHER and len(left) > 1:
            for removal in left:
                refused += yield from remove(run, [removal])
            return refused
        try:
            yield from _send(run, left)
        except TransactionCancelled as cancelled:
            left, more = _sorted_out(left, cancelled.reasons)
            refused += more
            if not more:
                yield run.scope.retries.wait(attempt)
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return refused
    return refused


def forget(run: Run, plan: Plan, ticket: Ticket) -> Flow[None]:
    """Remove the ticket of an item that is gone, or is no longer the one that was deleted."""
    key = ticket_key(plan, ticket.key, ticket.purge_at)
    yield from ask(DeleteItem(table=run.scope.table(plan.table), key=key), run.scope.retries)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one ticket, if its item did not go: what holds it."""

    held: str | None = None
    #: The item was gone already, or had back.
    stale: bool = False


def purge_whole(run: Run, plan: Plan, ticket: Ticket, counts: dict[str, int]) -> Flow[Outcome]:
    """Purge an item with its children, history, locks and names; what goes is counted as it goes."""
    item = yield from _current(run, plan, ticket)
    if item is None:
        yield from forget(run, plan, ticket)
        return Outcome(stale=True)
    held = held_by(item) or (yield from held_below(run.scope, plan, item))
    if held is not None:
        return Outcome(held=held)
    root = due(run, plan, ticket)
    if not (yield from _begin(run, root)):
        return (yield from purge_whole(run, plan, ticket, counts))
    stopped = yield from _belongings(run, plan, item, (plan.tag,), counts)
    if stopped is not None:
        return Outcome(held=stopped)
    whole = yield from _with_belongings(run, root, item, (plan.tag,))
    refused = yield from remove(run, [whole])
    if not refused:
        counts[plan.name] = counts.get(plan.name, 0) + 1
    return Outcome(held=refused[0].held if refused else None)


def count_whole(
    run: Run, plan: Plan, ticket: Ticket, counts: dict[str, int], counted: set[str]
) -> Flow[Outcome]:
    """Return what `purge_whole` would do; `counted` has the digests of what was counted before."""
    item = yield from _current(run, plan, ticket)
    if item is None:
        return Outcome(stale=True)
    held = held_by(item) or (yield from held_below(run.scope, plan, item))
    if held is not None:
        return Outcome(held=held)
    _count_once(plan, item, counts, counted)
    yield from _count_below(run.scope, plan, item, counts, counted)
    return Outcome()


def held_below(scope: Scope, plan: Plan, item: Item) -> Flow[str | None]:
    """Return why one of an item's children is held, children of children included; None if none is."""
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


def expired(run: Run, plan: Plan, item: Item) -> Removal:
    """Return the removal of an item whose time to live has passed."""
    path = (plan.attributes[plan.ttl or ""].wire,)
    now = Const({"N": str(int(run.scope.clock()))})
    conditions: tuple[Condition, ...] = (Compare("<=", Attr(path), now), Not(Exists((HELD,))))
    key = {name: item[name] for name in plan.primary.names}
    return Removal(plan=plan, key=key, condition=And(conditions), why="expired")


def chunks(removals: Sequence[Removal]) -> Iterator[list[Removal]]:
    """Yield removals by as many as a transaction takes."""
    chunk: list[Removal] = []
    weight = 0
    for removal in removals:
        if chunk and (weight + removal.weight > MOST_ACTIONS or removal.adds):
            yield chunk
            chunk, weight = [], 0
        chunk.append(removal)
        weight += removal.weight
    if chunk:
        yield chunk


def _send(run: Run, removals: Sequence[Removal]) -> Flow[None]:
    scope = run.scope
    actions: list[WriteAction] = []
    for removal in removals:
        actions.append(
            DeleteItem(
                table=scope.table(removal.plan.table),
                key=removal.key,
                condition=removal.condition,
                returns_on_failure=True,
            )
        )
        actions += removal.along
    entries = (
        Entry(
            entity=each.plan.name, digest=digest_of(each.plan, each.key), why=each.why, history=each.history
        )
        for each in removals
    )
    actions.append(receipt_put(scope, run.table, run.name, entries))
    # The token alone tells a repeated transaction: no other has it.
    token = scope.tokens()
    sent = TransactWriteItems(actions=tuple(actions), token=token, fingerprint=token.encode())
    yield from ask(sent, scope.retries)


def _sorted_out(
    removals: Sequence[Removal], reasons: Sequence[Mapping[str, Any]]
) -> tuple[list[Removal], list[Refused]]:
    """Return what may be tried again, without the companions that were refused, and what was refused."""
    left: list[Removal] = []
    refused: list[Refused] = []
    at = 0
    for removal in removals:
        own, *others = reasons[at : at + removal.weight]
        at += removal.weight
        if own["Code"] == "ConditionalCheckFailed":
            refused.append(Refused(removal, own.get("Item")))
            continue
        # A lock or a name that is another's by now is not the item's to give back.
        pairs = zip(removal.along, others, strict=True)
        kept = tuple(action for action, why in pairs if why["Code"] != "ConditionalCheckFailed")
        left.append(removal if len(kept) == len(removal.along) else replace(removal, along=kept))
    return left, refused


def _current(run: Run, plan: Plan, ticket: Ticket) -> Flow[Item | None]:
    """Return the item that a ticket was written for; None if it is gone or was had back."""
    (item,) = yield from fetch(run.scope, plan, [ticket.key], consistent=True)
    return item if item is not None and is_due(ticket, item) else None


def is_due(ticket: Ticket, item: Item) -> bool:
    """Whether an item is the one that a ticket was written for."""
    return all(item.get(name) == value for name, value in ticket.seen.items())


def _begin(run: Run, root: Removal) -> Flow[bool]:
    """Mark an item: from here on it is neither had back nor held. False if it changed meanwhile."""
    action = UpdateItem(
        table=run.scope.table(root.plan.table),
        key=root.key,
        update=Update((Assign((PURGING,), Const({"S": run.name})),), creates=True),
        condition=root.condition,
    )
    try:
        yield from ask(action, run.scope.retries)
    except ConditionFailed:
        return False
    return True


def _belongings(
    run: Run, plan: Plan, item: Item, above: tuple[str, ...], counts: dict[str, int]
) -> Flow[str | None]:
    """Purge an item's children; return why one of them had to stay, or None."""
    for child in _children(plan):
        start = None
        while True:
            items, start = yield from _some_children(run.scope, plan, item, child, start)
            removals = []
            for each in items:
                stopped = yield from _belongings(run, child, each, (*above, child.tag), counts)
                if stopped is not None:
                    return stopped
                bare = _child(run, child, each)
                removals.append((yield from _with_belongings(run, bare, each, (*above, child.tag))))
            for chunk in chunks(removals):
                refused = yield from remove(run, chunk)
                counts[child.name] = counts.get(child.name, 0) + len(chunk) - len(refused)
                held = next((each.held for each in refused if each.held is not None), None)
                if held is not None:
                    return f"{child.name}: {held}"
            if start is None:
                break
    return None


def _child(run: Run, plan: Plan, item: Item) -> Removal:
    key = {name: item[name] for name in plan.primary.names}
    condition = And((Exists((plan.table.partition.name,)), Not(Exists((HELD,)))))
    along: tuple[WriteAction, ...] = ()
    if DELETED_AT in item:
        ticket = ticket_key(plan, key, int(item[PURGE_AT]["N"]))
        along = (DeleteItem(table=run.scope.table(plan.table), key=ticket),)
    return Removal(plan=plan, key=key, condition=condition, why="cascade", along=along)


def _with_belongings(run: Run, removal: Removal, item: Item, above: tuple[str, ...]) -> Flow[Removal]:
    """Return a removal with the locks, names and counters that go with it; its history goes first."""
    plan, scope = removal.plan, run.scope
    if not any(isinstance(trait, (UniqueRule, Names, History, Counted)) for trait in plan.traits):
        return removal
    before = Stored(item, plan.load(item))
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
                along = _added(along, (each.action for each in counters.shares(scope, trait, change)))
            case History():
                place = history.place_of(scope, plan, plan.arguments_of(removal.key) or {})
                removed += yield from history.purge(place)
            case _:
                pass
    room = MOST_ACTIONS - removal.weight
    for action in along[room:]:
        # More than a transaction takes: these go before it, each by its own condition.
        token = scope.tokens()
        alone = TransactWriteItems(actions=(action,), token=token, fingerprint=token.encode())
        try:
            yield from ask(alone, scope.retries)
        except TransactionCancelled:
            continue
    return replace(removal, along=(*removal.along, *along[:room]), history=removed)


def _added(along: list[WriteAction], more: Iterable[WriteAction]) -> list[WriteAction]:
    """Return actions with more additions, those to one item as one action."""
    found = list(along)
    for action in more:
        assert isinstance(action, UpdateItem)
        for at, each in enumerate(found):
            together = None
            if isinstance(each, UpdateItem) and (each.table, each.key) == (action.table, action.key):
                together = with_addition(each, action)
            if together is not None:
                found[at] = together
                break
        else:
            found.append(action)
    return found


def _children(plan: Plan) -> tuple[Plan, ...]:
    return () if plan.deletion is None else plan.deletion.children(plan)


def _some_children(
    scope: Scope, parent: Plan, item: Item, child: Plan, start: Item | None
) -> Flow[tuple[list[Item], Item | None]]:
    """Return the next children of an item as they are stored, hidden ones among them."""
    path = path_to(child, parent.primary.parts, parent.name)
    values = parent.arguments_of({name: item[name] for name in parent.primary.names}) or {}
    request = Query(
        table=scope.table(child.table),
        key=path.terms(_leading(path, values), None),
        index=None if path.index is None else path.index.name,
        filter=Compare("=", Attr((child.table.tag,)), Const(child.tag_value)) if path.index is None else None,
        start=start,
        consistent=path.index is None,
    )
    reply = yield from ask(request, scope.retries)
    items = decode_items(reply.items or ())
    if path.index is not None and path.index.projection != "ALL":
        keys = [{name: each[name] for name in child.primary.names} for each in items]
        whole = yield from fetch(scope, child, keys, consistent=True)
        items = [each for each in whole if each is not None]
    wanted = {child.attributes[name].wire: child.attributes[name].dump(values[name]) for name in values}
    wanted[child.table.tag] = child.tag_value
    ours = [each for each in items if all(each.get(name) == value for name, value in wanted.items())]
    return ours, reply.last_key or None


def _leading(path: AccessPath, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a key that are known, up to the first that is not."""
    known = {name: values[name] for name in path.partition.fields}
    for name in () if path.sort is None else path.sort.fields:
        if name not in values:
            break
        known[name] = values[name]
    return known


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
