"""Checkpoints of jobs that scan a table, stored in the table: one for each segment.

A checkpoint is bound to the goal of its job; a job with another goal ignores it. A lost checkpoint costs
only time, because the jobs are idempotent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._entities.keys.access_path import AccessPath
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
    """The position in one segment of a scan."""

    run: str
    goal: str
    segment: int
    segments: int
    #: The key after which to continue; None at the beginning and at the end.
    last_key: Item | None = None
    done: bool = False
    tally: BackfillCounts = field(default_factory=BackfillCounts)


def saves_checkpoints(plan: Plan) -> bool:
    """Return whether the table can hold checkpoints: its key attributes must have type S."""
    table = plan.table
    return table.partition.kind == "S" and (table.sort is None or table.sort.kind == "S")


def goal_of(plan: Plan) -> str:
    """Return a digest of the result of a backfill: the schema version and the index keys."""
    keys = [
        (
            path.name,
            path.index and path.index.name,
            _text(path.partition),
            _text(path.sort),
            *_condition(path),
        )
        for path in plan.indexes
    ]
    words = repr((plan.tag, plan.schema_versions.current, plan.schema_versions.oldest, keys))
    return blake2b(words.encode(), digest_size=8).hexdigest()


def _condition(path: AccessPath) -> list[str]:
    return [repr((attribute.wire, allowed)) for attribute, allowed in path.when]


def _text(layout: TemplateLayout | AttributeLayout | None) -> str:
    if layout is None:
        return ""
    if not isinstance(layout, TemplateLayout):
        return repr(layout.fields)
    sharding = layout.sharding
    return layout.shown if sharding is None else repr((layout.shown, sharding.shards, sharding.fields))


def load_checkpoints(scope: Scope, plan: Plan) -> Flow[list[SegmentCheckpoint]]:
    """Return the checkpoints of the unfinished job with this goal; an empty list without one."""
    first = yield from _load(scope, plan, 0)
    if first is None or first.goal != goal_of(plan):
        return []
    checkpoints = [first]
    for segment in range(1, first.segments):
        checkpoint = yield from _load(scope, plan, segment)
        if checkpoint is None or checkpoint.run != first.run:
            checkpoint = SegmentCheckpoint(
                run=first.run, goal=first.goal, segment=segment, segments=first.segments
            )
        checkpoints.append(checkpoint)
    return checkpoints


def save_checkpoint(scope: Scope, plan: Plan, checkpoint: SegmentCheckpoint) -> Flow[None]:
    """Store the checkpoint of one segment."""
    item: Item = {
        **_key(plan, checkpoint.segment),
        plan.table.internal_tag: {"S": TAG},
        "run": {"S": checkpoint.run},
        "goal": {"S": checkpoint.goal},
        "segment": {"N": str(checkpoint.segment)},
        "segments": {"N": str(checkpoint.segments)},
        "done": {"BOOL": checkpoint.done},
        "tally": {
            "M": {
                each.name: {"N": str(getattr(checkpoint.tally, each.name))} for each in fields(BackfillCounts)
            }
        },
    }
    if checkpoint.last_key is not None:
        item["last_key"] = {"M": checkpoint.last_key}
    yield from send(PutItem(table=scope.table(plan.table), item=item), scope.retries)


def clear_checkpoints(scope: Scope, plan: Plan, checkpoints: Sequence[SegmentCheckpoint]) -> Flow[None]:
    """Remove the checkpoints; the first segment's last, because loading begins with it."""
    for checkpoint in sorted(checkpoints, key=lambda checkpoint: checkpoint.segment, reverse=True):
        key = _key(plan, checkpoint.segment)
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
    """Decode the counts; units are a float, the others are ints. A newer release may have added some."""
    names = {each.name for each in fields(BackfillCounts)} - {"units"}
    given: dict[str, Any] = {name: int(value["N"]) for name, value in counts.items() if name in names}
    return BackfillCounts(**given, units=float(counts["units"]["N"]))


def _key(plan: Plan, segment: int) -> Item:
    return internal_key(plan.table, internal_partition("BACKFILL", plan.tag), f"{segment:04d}")
