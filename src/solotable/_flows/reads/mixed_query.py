"""Mixed queries: one key condition that covers all parts, and the entity of each item that it returns.

DynamoDB reads one range of a partition. Items between the ranges of the parts are read, paid for and skipped.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any

from solotable._entities.keys.bounds import highest_with_prefix
from solotable._entities.patterns.query import Query
from solotable._expressions.ast import KeyTerm
from solotable._expressions.evaluate import evaluate
from solotable._flows.scope import Scope
from solotable._values import AttributeValue, Item, sort_key

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


def cover(ranges: Sequence[tuple[KeyTerm, ...]]) -> tuple[KeyTerm, ...]:
    """Return the narrowest condition on the sort key that covers all ranges."""
    first = ranges[0]
    if all(terms == first for terms in ranges):
        return first
    shared = 0
    while all(
        len(terms) > shared and terms[shared] == first[shared] and terms[shared].operator == "="
        for terms in ranges
    ):
        shared += 1
    if any(len(terms) <= shared for terms in ranges):
        return first[:shared]
    ends = [_ends(terms[shared]) for terms in ranges]
    lows, highs = [low for low, _ in ends if low], [high for _, high in ends if high]
    low = min(lows, key=_order) if len(lows) == len(ends) else None
    high = max(highs, key=_order) if len(highs) == len(ends) else None
    name = first[shared].name
    if low is not None and high is not None:
        term = KeyTerm(name, "=", (low,)) if low == high else KeyTerm(name, "BETWEEN", (low, high))
        return (*first[:shared], term)
    if low is not None:
        return (*first[:shared], KeyTerm(name, ">=", (low,)))
    return first[:shared] if high is None else (*first[:shared], KeyTerm(name, "<=", (high,)))


def _ends(term: KeyTerm) -> tuple[AttributeValue | None, AttributeValue | None]:
    """Return the least and the greatest value of a term; None for no limit."""
    value = term.values[0]
    match term.operator:
        case "=":
            return value, value
        case "begins_with":
            high = highest_with_prefix(value["S"]) if "S" in value else None
            return value, None if high is None else {"S": high}
        case ">=" | ">":
            return value, None
        case "<=" | "<":
            return None, value
        case _:
            return value, term.values[1]


def _order(value: AttributeValue) -> Any:
    return sort_key(*next(iter(value.items())))


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
        low, high = map(_order, term.values)
        return bool(low <= _order(value) <= high)
    if term.operator == "=":
        return bool(_order(value) == _order(term.values[0]))
    return _ORDERS[term.operator](_order(value), _order(term.values[0]))
