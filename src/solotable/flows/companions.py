"""What is written along with an entity: the facts of its traits, in the same transaction as their cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from solotable.entities.counters import Counted
from solotable.entities.deletion import SoftDelete
from solotable.entities.history import History
from solotable.entities.names import Names
from solotable.entities.outbox import Outbox
from solotable.entities.plan import Plan
from solotable.entities.traits import Trait
from solotable.entities.unique import UniqueRule

from . import counters, history, names, outbox, unique
from .scope import Scope
from .write import Change, Companion

#: What a trait writes for a change of its entity.
Behaviour = Callable[[Scope, Any, Change], Iterable[Companion]]
_BEHAVIOURS: Mapping[type[Trait], Behaviour] = {
    Counted: counters.shares,
    History: history.snapshots,
    Names: names.redirects,
    Outbox: outbox.event,
    # A ticket goes with the delete that says when; no other change has any.
    SoftDelete: lambda _scope, _trait, _change: (),
    UniqueRule: unique.locks,
}


def depends_on(plan: Plan) -> tuple[str, ...]:
    """Return the fields whose stored values the companions follow from."""
    names = [name for trait in plan.traits for name in trait.depends]
    if plan.version is not None and any(trait.whole for trait in plan.traits):
        names.append(plan.version)
    return tuple(dict.fromkeys(names))


def follows(plan: Plan, changed: Iterable[str]) -> bool:
    """Whether something has to be written along when these fields change."""
    fields = set(changed)
    return any(trait.whole or fields.intersection(trait.depends) for trait in plan.traits)


def companions_of(scope: Scope, change: Change) -> tuple[Companion, ...]:
    """Return what goes with a change of an entity."""
    return tuple(
        companion
        for trait in change.plan.traits
        for companion in _BEHAVIOURS[type(trait)](scope, trait, change)
    )
