"""Checkpoints of jobs that scan a table, stored in the table: one for each segment.

A mark is bound to what the job is for; one of another goal is not gone on from. Losing a mark costs
time and nothing else, because what such jobs do twice they do once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._entities.keys.layout import AttributeLayout, TemplateLayout
from solotable._flows.internal_items import internal_key, internal_partition
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope, decode_item
from solotable._protocol.requests import DeleteItem, GetItem, PutItem
from solotable._values import Item

from .backfill import BackfillCounts

TAG = "_backfill"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentCheckpoint:
    """How far one part of a scan has come."""

    run: str
    goal: str
    segment: int
    segments: int
    #: The key after which to continue; None: at the beginning, or the end.
    last_key: Item | None = None
    done: bool = False
    tally: BackfillCounts = field(default_factory=BackfillCounts)


def saves_checkpoints(plan: Plan) -> bool:
    """Whether the table can hold marks: its keys are texts."""
    table = plan.table
    return table.partition.kind == "S" and (table.sort is None or table.sort.kind == "S")


def goal_of(plan: Plan) -> str:
    """Return what a backfill of an entity leads to, as a short text."""
    keys = [
        (path.name, path.index and path.index.name, _text(path.partition), _text(path.sort))
        for path in plan.indexes
    ]
    words = repr((plan.tag, plan.schema_versions.current, plan.schema_versions.oldest, keys))
    return blake2b(words.encode(), digest_size=8).hexdigest()


def _text(side: TemplateLayout | AttributeLayout | None) -> str:
    if side is None:
        return ""
    if not isinstance(side, TemplateLayout):
        return repr(side.fields)
    spread = side.sharding
    return side.shown if spread is None else repr((side.shown, spread.shards, spread.fields))


def load_checkpoints(scope: Scope, plan: Plan) -> Flow[list[SegmentCheckpoint]]:
    """Return the marks of the job that was begun for this goal; none if there was no such job."""
    first = yield from _load(scope, plan, 0)
    if first is None or first.goal != goal_of(plan):
        return []
    marks = [first]
    for segment in range(1, first.segments):
        mark = yield from _load(scope, plan, segment)
        if mark is None or mark.run != first.run:
            mark = SegmentCheckpoint(run=first.run, goal=first.goal, segment=segment, segments=first.segments)
        marks.append(mark)
    return marks


def save_checkpoint(scope: Scope, plan: Plan, mark: SegmentCheckpoint) -> Flow[None]:
    """Write down how far one part has come."""
    item: Item = {
        **_key(plan, mark.segment),
        plan.table.tag: {"S": TAG},
        "run": {"S": mark.run},
        "goal": {"S": mark.goal},
        "segment": {"N": str(mark.segment)},
        "segments": {"N": str(mark.segments)},
        "done": {"BOOL": mark.done},
        "tally": {
            "M": {each.name: {"N": str(getattr(mark.tally, each.name))} for each in fields(BackfillCounts)}
        },
    }
    if mark.last_key is not None:
        item["last_key"] = {"M": mark.last_key}
    yield from send(PutItem(table=scope.table(plan.table), item=item), scope.retries)


def clear_checkpoints(scope: Scope, plan: Plan, marks: Sequence[SegmentCheckpoint]) -> Flow[None]:
    """Remove what was written down, the first part's last: it says that there is more."""
    for mark in sorted(marks, key=lambda mark: mark.segment, reverse=True):
        key = _key(plan, mark.segment)
        yield from send(DeleteItem(table=scope.table(plan.table), key=key), scope.retries)


def _load(scope: Scope, plan: Plan, segment: int) -> Flow[SegmentCheckpoint | None]:
    request = GetItem(table=scope.table(plan.table), key=_key(plan, segment), consistent=True)
    reply = yield from send(request, scope.retries)
    if reply.item is None:
        return None
    item = decode_item(reply.item)
    return SegmentCheckpoint(
        run=item["run"]["S"],
        goal=item["goal"]["S"],
        segment=int(item["segment"]["N"]),
        segments=int(item["segments"]["N"]),
        last_key=item["last_key"]["M"] if "last_key" in item else None,
        done=item["done"]["BOOL"],
        tally=_tally(item["tally"]["M"]),
    )


def _tally(counts: Item) -> BackfillCounts:
    """Read what was counted; the units have a fraction, everything else is whole."""
    given: dict[str, Any] = {name: int(value["N"]) for name, value in counts.items() if name != "units"}
    return BackfillCounts(**given, units=float(counts["units"]["N"]))


def _key(plan: Plan, segment: int) -> Item:
    return internal_key(plan.table, internal_partition("BACKFILL", plan.tag), f"{segment:04d}")
