"""Recount: compare the counters of parents with their children, and repair wrong ones.

The children and the counter change in one transaction, so a counter that stays the same while its
children are counted was right or wrong all along; one that moved is counted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from solotable._entities.declare.children import path_to
from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.key import BoundKey
from solotable._entities.traits.counters import Counted
from solotable._expressions.ast import Assign, Attr, Compare, Condition, Const, Exists, Not, Or, Update
from solotable._flows.transactions.conflicts import CONFLICT_ATTEMPTS
from solotable._protocol.requests import UpdateItem
from solotable._store import AdminStore
from solotable._values import dump
from solotable.errors import ConditionFailed, DataError, DeclarationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Recounted:
    """The counter of a parent: stored value, counted value, and whether it was repaired."""

    parent: str
    key: Mapping[str, Any]
    field: str
    said: Decimal
    counted: Decimal
    repaired: bool

    @property
    def drifted(self) -> bool:
        """Whether the counter was wrong."""
        return self.said != self.counted


def recount(
    db: AdminStore,
    child: type[Entity],
    *,
    budget: int,
    repair: bool = True,
    progress: Callable[[Recounted], None] | None = None,
) -> Iterator[Recounted]:
    """Recount every counter of an entity; yield each checked counter.

    Reads all parents by a scan of at most `budget` items, and their children by queries.
    """
    traits = [trait for trait in child.plan().traits if isinstance(trait, Counted)]
    if not traits:
        raise DeclarationError(
            f"{child.__name__} is counted nowhere; declare counted = Counted(Parent, 'field')."
        )
    for trait in traits:
        path = path_to(child.plan(), trait.parts.values(), trait.of.name)
        for parent in db.scan(trait.parent, budget=budget):
            found = _recount_one(db, child, trait, path, parent, repair=repair)
            if found is not None:
                if progress is not None:
                    progress(found)
                yield found


def _recount_one(
    db: AdminStore, child: type[Entity], trait: Counted, path: AccessPath, parent: Entity, *, repair: bool
) -> Recounted | None:
    plan = parent.plan()
    key = {part: getattr(parent, part) for part in plan.primary.parts}

    def attempt() -> Recounted | None:
        now = db.get(trait.parent, consistent=True, **key)
        if now is None:
            return None
        said = Decimal(getattr(now, trait.field))
        counted = _count(db, child, trait, path, key)
        found = Recounted(
            parent=plan.name, key=key, field=trait.field, said=said, counted=counted, repaired=False
        )
        if said == counted or not repair:
            return found
        _repair(db, plan, key, trait.field, said, counted)
        return replace(found, repaired=True)

    try:
        return db.retry_conflicts(attempt)
    except ConditionFailed as error:
        raise DataError(
            f"{plan.name} {key} changed {CONFLICT_ATTEMPTS} times while it was counted; "
            f"recount it when it is quiet."
        ) from error


def _count(
    db: AdminStore, child: type[Entity], trait: Counted, path: AccessPath, key: Mapping[str, Any]
) -> Decimal:
    mine = {trait.parts[part]: value for part, value in key.items()}
    query = BoundKey(child, path.name).query(**{name: mine[name] for name in path.parts if name in mine})
    if path.index is None:
        query = query.consistent()
    total = Decimal(0)
    for each in db.all(query):
        share = trait.share(each)
        if share is not None and share[0] == dict(key):
            total += share[1]
    return total


def _repair(
    db: AdminStore, plan: Plan, key: Mapping[str, Any], field: str, said: Decimal, counted: Decimal
) -> None:
    """Set a counter to the counted value; raise ConditionFailed if it changed after the read."""
    path = (plan.attributes[field].wire,)
    unmoved: Condition = Compare("=", Attr(path), Const(dump(said)))
    if not said:
        unmoved = Or((unmoved, Not(Exists(path))))
    update = UpdateItem(
        table=db.scope.table(plan.table),
        key=plan.key_from(key),
        update=Update((Assign(path, Const(dump(counted))),), creates=True),
        condition=unmoved,
    )
    db.engine.handle(update)
