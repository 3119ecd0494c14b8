"""Add type tags to items that have none, a page of a scan at a time; nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from solotable._entities.codecs.containers import CODEC_ERRORS
from solotable._entities.declare.plan import Plan
from solotable._entities.declare.recognition import is_internal, matching, tag_of
from solotable._entities.declare.table import Table
from solotable._entities.keys.key_check import compared_names
from solotable._expressions.ast import And, Assign, Attr, Const, Exists, Not, TypeIs, Update
from solotable._flows.reads.scan import ScanPart
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Scan, TransactWriteItems, UpdateItem
from solotable._values import Item
from solotable.errors import ConditionFailed, DataError, OutcomeUnknown, ServiceError

from .backfill import Pace, paced

_AT_ONCE = 1_000
_MOST_SAMPLES = 20


@dataclass(slots=True)
class TagCounts:
    """The items of a table by what the job does with them."""

    #: Items that were read.
    seen: int = 0
    #: Items without a tag, by the entity whose key they match.
    matched: dict[str, int] = field(default_factory=dict)
    #: Items that got a tag, and items that another writer deleted or tagged first, or without an answer.
    tagged: int = 0
    conflicts: int = 0
    #: Items with the tag of an entity, internal items, and items with a tag that no entity has.
    known: int = 0
    internal: int = 0
    unknown_tags: dict[str, int] = field(default_factory=dict)
    #: Items without a tag whose key matches no entity, or several. They stay unchanged.
    unmatched: int = 0
    ambiguous: int = 0
    #: Items without a tag whose fields derive another key, so reads reject them. They stay unchanged.
    mismatched: int = 0
    units: float = 0.0
    #: Keys of the first such items; those of ambiguous ones with the entities that match.
    unmatched_samples: list[Item] = field(default_factory=list)
    ambiguous_samples: list[tuple[Item, list[str]]] = field(default_factory=list)
    mismatched_samples: list[Item] = field(default_factory=list)

    def add(self, other: TagCounts) -> None:
        """Add the counts of another page."""
        for name in (
            *("seen", "tagged", "conflicts", "known", "internal", "unmatched", "ambiguous", "mismatched"),
            "units",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for mine, theirs in ((self.matched, other.matched), (self.unknown_tags, other.unknown_tags)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count
        self.unmatched_samples = [*self.unmatched_samples, *other.unmatched_samples][:_MOST_SAMPLES]
        self.ambiguous_samples = [*self.ambiguous_samples, *other.ambiguous_samples][:_MOST_SAMPLES]
        self.mismatched_samples = [*self.mismatched_samples, *other.mismatched_samples][:_MOST_SAMPLES]


@dataclass(frozen=True, slots=True, kw_only=True)
class TagWork:
    """The table and the options of the job."""

    scope: Scope
    table: Table
    dry_run: bool
    #: The number of tags in one transaction; 1: no transactions.
    together: int = 1
    pace: Pace | None = None


def tag_page(work: TagWork, part: ScanPart) -> Flow[tuple[TagCounts, Item | None]]:
    """Tag the items of the next page of a scan; return the counts and the key after which to continue."""
    table, name = work.table, work.scope.table(work.table)
    request = Scan(
        table=name,
        # The key, its fields and the tag are all that the job needs; DynamoDB charges for whole items.
        projection=tuple((each,) for each in _needed(table)),
        start=part.start,
        limit=min(_AT_ONCE, part.budget),
        segment=part.segment if part.segments > 1 else None,
        segments=part.segments if part.segments > 1 else None,
        capacity="NONE" if work.pace is None else "TOTAL",
    )
    reply = yield from send(request, work.scope.retries)
    counts = TagCounts(seen=reply.scanned)
    counts.units += yield from paced(work.pace, reply.capacity)
    group: list[UpdateItem] = []
    for plan, item in _to_tag(table, decode_items(reply.items or ()), counts):
        counts.matched[plan.name] = counts.matched.get(plan.name, 0) + 1
        group.append(_action(work, plan, item))
        if len(group) >= work.together:
            yield from _write(work, group, counts)
            group = []
    yield from _write(work, group, counts)
    return counts, reply.last_key or None


def _to_tag(table: Table, items: list[Item], counts: TagCounts) -> Iterator[tuple[Plan, Item]]:
    """Yield the items without a tag that match one entity, and count all others."""
    for item in items:
        tag = tag_of(table, item)
        if tag is not None:
            if is_internal(table, item):
                counts.internal += 1
            elif tag in table.plans:
                counts.known += 1
            else:
                counts.unknown_tags[tag] = counts.unknown_tags.get(tag, 0) + 1
            continue
        plans = list(matching(table, item))
        key = {name: item[name] for name in table.key_names}
        if len(plans) == 1 and _has_derived_key(plans[0], item):
            yield plans[0], item
        elif len(plans) == 1:
            counts.mismatched += 1
            counts.mismatched_samples.append(key)
        elif plans:
            counts.ambiguous += 1
            counts.ambiguous_samples.append((key, [plan.name for plan in plans]))
        else:
            counts.unmatched += 1
            counts.unmatched_samples.append(key)


def _needed(table: Table) -> dict[str, None]:
    """Return the attributes that the job reads."""
    attributes = [plan.attributes[name] for plan in table.plans.values() for name in plan.primary.fields]
    stored = (each.wire for each in attributes if each.stored)
    return dict.fromkeys((*table.key_names, table.internal_tag, *stored))


def _has_derived_key(plan: Plan, item: Item) -> bool:
    """Return whether the fields of an item derive its key; a field that the item lacks is that of the key."""
    try:
        # An older schema version may store a field in another form, which only its upgrade knows.
        values = {} if plan.schema_versions.upgrades else plan.raw_values(item)
        derived = plan.key_of({**(plan.arguments_of(item) or {}), **values})
    except (DataError, *CODEC_ERRORS):
        return False
    return all(item.get(name) == derived[name] for name in compared_names(plan.primary))


def _action(work: TagWork, plan: Plan, item: Item) -> UpdateItem:
    table = work.table
    path = (table.internal_tag,)
    return UpdateItem(
        table=work.scope.table(table),
        key={name: item[name] for name in table.key_names},
        update=Update((Assign(path, Const(plan.tag_value)),), creates=True),
        # The key decides which entity it is and never changes, so a concurrent write cannot conflict.
        condition=And((Exists((table.partition.name,)), Not(TypeIs(Attr(path), "S")))),
        capacity="NONE" if work.pace is None else "TOTAL",
    )


def _write(work: TagWork, group: list[UpdateItem], counts: TagCounts) -> Flow[None]:
    """Write tags as one transaction; after a conflict, one by one."""
    if work.dry_run:
        return
    if len(group) > 1:
        capacity = group[0].capacity
        actions = tuple(replace(action, capacity="NONE") for action in group)
        try:
            done = yield from send(TransactWriteItems(actions=actions, capacity=capacity), work.scope.retries)
        except (ServiceError, OutcomeUnknown):
            # A write alone shows which item has the conflict.
            pass
        else:
            counts.tagged += len(group)
            for each in done.capacity or ():
                counts.units += yield from paced(work.pace, each)
            return
    for action in group:
        yield from _tag(work, action, counts)


def _tag(work: TagWork, action: UpdateItem, counts: TagCounts) -> Flow[None]:
    try:
        reply = yield from send(action, work.scope.retries)
    except (ConditionFailed, OutcomeUnknown):
        # Another writer was first, or the next run finds the item if the tag is not written.
        counts.conflicts += 1
    else:
        counts.tagged += 1
        counts.units += yield from paced(work.pace, reply.capacity)
