"""Mixed queries: one key condition that covers all parts, and the entity of each item that it returns.

DynamoDB reads one range of a partition. Items between the ranges of the parts are read, paid for and skipped.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any

from solotable._entities.keys.bounds import order_of
from solotable._entities.patterns.query import Query
from solotable._expressions.ast import KeyTerm
from solotable._expressions.evaluate import evaluate
from solotable._flows.scope import Scope
from solotable._values import Item

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True, slots=True)
class MixedPart:
    """A query of a mixed query, and its range of the sort key."""

    query: Query[Any]
    within: tuple[KeyTerm, ...]

    def has(self, item: Item) -> bool:
        """Return whether an item that the request returned is in the range and meets the filter."""
        condition = self.query.filter
        return all(_meets(term, item) for term in self.within) and (
            condition is None or evaluate(condition, item)
        )


@dataclass(frozen=True, slots=True)
class MixedRead:
    """The parts of a mixed query that have items."""

    parts: tuple[MixedPart, ...]

    def entity_of(self, scope: Scope, item: Item, whole: Item) -> Any:
        """Decode an item to its class; None if it is in no part. `item` is what the request returned."""
        for part in self.parts:
            if part.has(item) and (entity := scope.admit(part.query.plan, whole)) is not None:
                return entity
        return None


def _meets(term: KeyTerm, item: Item) -> bool:
    value = item.get(term.name)
    if value is None or value.keys() != term.values[0].keys():
        return False
    if term.operator == "begins_with":
        given, prefix = (
            each["S"].encode() if "S" in each else b64decode(each["B"]) for each in (value, term.values[0])
        )
        return bool(given.startswith(prefix))
    if term.operator == "BETWEEN":
        low, high = map(order_of, term.values)
        return bool(low <= order_of(value) <= high)
    if term.operator == "=":
        return bool(order_of(value) == order_of(term.values[0]))
    return _ORDERS[term.operator](order_of(value), order_of(term.values[0]))
