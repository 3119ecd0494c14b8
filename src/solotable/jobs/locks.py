"""Create the locks of unique fields for entities that were stored before the field was unique.

Until it has run, a value that only unlocked entities have can be taken by another. It may run at any
time and again: a lock that is held by its entity stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.traits.unique import UniqueRule
from solotable._expressions.ast import And, Condition, Exists
from solotable._flows.traits import unique
from solotable._flows.transactions.write import fields_unchanged
from solotable._protocol.requests import ConditionCheck, TransactWriteItems
from solotable._store import AdminStore
from solotable.errors import DeclarationError, SolotableError, TransactionCancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """An entity and its locks: created, already held, or rejected with the reason."""

    entity: Entity
    refused: SolotableError | None = None


def take_locks(db: AdminStore, entity: type[Entity], *, budget: int) -> Iterator[Locked]:
    """Create the locks of every stored entity; yield each checked entity.

    Reads the table by a scan of at most `budget` items. Entities whose value another one holds are
    yielded with the error that names the holder, and are left as they are: an operator has to decide.
    """
    plan = entity.plan()
    if not any(isinstance(trait, UniqueRule) for trait in plan.traits):
        raise DeclarationError(f"{plan.name} has no unique field; mark one with Unique().")
    for found in db.scan(entity, budget=budget):
        yield _locked(db, found)


def _locked(db: AdminStore, entity: Entity) -> Locked:
    plan = entity.plan()
    for lock in unique.lock_puts(db.scope, plan, entity):
        # The same transaction checks that the entity still has the locked value.
        there = ConditionCheck(
            table=db.scope.table(plan.table),
            key=plan.key_of(entity.__dict__),
            condition=_unchanged(plan, entity),
        )
        try:
            db.engine.handle(TransactWriteItems(actions=(lock.action, there)))
        except TransactionCancelled as cancelled:
            why = cancelled.reasons[0]
            if why["Code"] == "ConditionalCheckFailed":
                return Locked(entity=entity, refused=lock.explain(why.get("Item")))
            # The entity changed after the read, and that write created its locks.
    return Locked(entity=entity)


def _unchanged(plan: Plan, entity: Entity) -> Condition:
    names = {name for trait in plan.traits if isinstance(trait, UniqueRule) for name in trait.depends}
    facts = {name: plan.attributes[name].encode(getattr(entity, name)) for name in sorted(names)}
    return And((Exists((plan.table.partition.name,)), *fields_unchanged(plan, facts)))
