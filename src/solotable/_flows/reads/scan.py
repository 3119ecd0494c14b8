"""Scan a table with a budget, as an explicit verb for jobs. Patterns never scan."""

from __future__ import annotations

from dataclasses import dataclass

from solotable._entities.declare.plan import Plan
from solotable._entities.patterns.conditions import check_joined
from solotable._expressions.ast import And, Condition
from solotable._flows.hooks import after_read, check_readers
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.subject_keys import load_keys
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Scan
from solotable._values import Item
from solotable.errors import DataError, TenantViolation

from .sharded_query import Rows

_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPart:
    """The next part of a table to scan, and the number of items that may still be read."""

    segment: int
    segments: int
    start: Item | None
    budget: int


def rows(scope: Scope, plan: Plan, where: Condition | None, part: ScanPart) -> Flow[Rows]:
    """Return the entities among the next items of a table."""
    if plan.tenant is None:
        scope.bind(plan, {})
    elif not scope.admin:
        raise TenantViolation(
            f"A scan of {plan.name} reads every tenant; use db.admin(), or the scope of db.admin() in a flow."
        )
    if part.budget < 1:
        raise DataError(
            f"The scan of {plan.name} has reached its budget of items; raise budget=, or add an index."
        )
    condition = plan.scan_filter
    if where is not None:
        condition = where if condition is None else And((condition, where))
        check_joined(plan, where, condition)
    request = Scan(
        table=scope.table(plan.table),
        filter=condition,
        start=part.start,
        limit=min(_AT_ONCE, part.budget),
        segment=part.segment if part.segments > 1 else None,
        segments=part.segments if part.segments > 1 else None,
    )
    if plan.hooks_reads:
        yield from check_readers([plan])
    reply = yield from send(request, scope.retries)
    items = decode_items(reply.items or ())
    if plan.loads_keys:
        yield from load_keys(plan, items)
    found = [scope.admit(plan, item) for item in items]
    entities = [row for row in found if row is not None]
    if plan.hooks_reads:
        entities = yield from after_read(entities)
    return Rows(entities, reply.last_key or None, reply.scanned)
