"""Derived writes: the items that traits write in the same transaction as an entity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._entities.synced import Synced
from solotable._entities.traits.counters import Counted
from solotable._entities.traits.history import History
from solotable._entities.traits.names import Names
from solotable._entities.traits.outbox import Outbox
from solotable._entities.traits.soft_delete import SoftDelete
from solotable._entities.traits.trait import Trait
from solotable._entities.traits.unique import UniqueRule
from solotable._flows.scope import Scope
from solotable._flows.sync import entries as sync
from solotable._flows.sync.entries import LogEntry
from solotable._flows.traits import counters, history, names, outbox, unique
from solotable._values.limits import MOST_COMPARISONS

from .write import Change, DerivedWrite

#: Returns the derived writes of a trait for a change of its entity.
Behaviour = Callable[[Scope, Any, Change], Iterable[DerivedWrite | LogEntry]]
_BEHAVIOURS: Mapping[type[Trait], Behaviour] = {
    Counted: counters.shares,
    History: history.snapshots,
    Names: names.redirects,
    Outbox: outbox.event,
    # The soft delete writes its own purge-queue entry; other changes have none.
    SoftDelete: lambda _scope, _trait, _change: (),
    Synced: sync.entries,
    UniqueRule: unique.locks,
}


def source_fields(plan: Plan) -> tuple[str, ...]:
    """Return the fields that derived writes are computed from."""
    names = [name for trait in plan.traits for name in trait.depends]
    if plan.version is not None and any(trait.whole for trait in plan.traits):
        names.append(plan.version)
    fields = tuple(dict.fromkeys(names))
    # The version changes with every field.
    return fields if plan.version is None or len(fields) <= MOST_COMPARISONS else (plan.version,)


def needs_derived_writes(plan: Plan, changed: Iterable[str]) -> bool:
    """Return whether a change of these fields has derived writes."""
    fields = set(changed)
    return any(trait.whole or trait.always or fields.intersection(trait.depends) for trait in plan.traits)


def derived_writes_of(scope: Scope, change: Change) -> tuple[DerivedWrite | LogEntry, ...]:
    """Return the derived writes of a change of an entity."""
    return tuple(
        derived for trait in change.plan.traits for derived in _BEHAVIOURS[type(trait)](scope, trait, change)
    )
