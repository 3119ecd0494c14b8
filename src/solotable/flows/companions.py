"""What is written along with an entity: derived facts, in the same transaction as their cause."""

from __future__ import annotations

from typing import Any

from solotable.entities.plan import Plan

from . import unique
from .scope import Scope
from .write import Companion


def depends_on(plan: Plan) -> tuple[str, ...]:
    """Return the fields whose stored values the companions follow from."""
    return tuple(dict.fromkeys(name for rule in plan.uniques for name in rule.fields))


def companions_of(scope: Scope, plan: Plan, before: Any, after: Any) -> tuple[Companion, ...]:
    """Return what goes with a change from one state of an entity to another; None is no entity."""
    if not plan.uniques:
        return ()
    return tuple(unique.locks(scope, plan, before, after))
