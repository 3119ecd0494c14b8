"""Mixed queries: one key condition that covers all parts, and the entity of each item that it returns.

DynamoDB reads one range of a partition. Items between the ranges of the parts are read, paid for and skipped.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from operator import ge, gt, le, lt
from typing import Any

from solotable._entities.declare.recognition import tag_of
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
        for term in self.within:
            if not _meets(term, item):
                return False
        condition = self.query.filter
        return condition is None or evaluate(condition, item)


#: Whether a part has an item, and how the part decodes it.
_Reader = tuple[Callable[[Item], bool], Callable[[Item], Any]]


@dataclass(frozen=True, slots=True)
class MixedRead:
    """The parts of a mixed query that have items."""

    parts: tuple[MixedPart, ...]

    def admit_page(self, scope: Scope) -> Callable[[Item, Item], Any]:
        """Return the function that decodes the items of one page to their classes.

        Its arguments are the item that the request returned, and the whole item. It returns None for an item
        that is in no part.
        """
        table = self.parts[0].query.plan.table
        readers: list[_Reader] = [
            (_range_check(part), scope.admit_page(part.query.plan)) for part in self.parts
        ]
        by_tag: dict[str, list[_Reader]] = {}

        def find(whole: Item) -> list[_Reader]:
            """Return the parts that read the entity of an item; all of them if its tag does not decide."""
            tag = None if table.tag is None else tag_of(table, whole)
            plan = None if tag is None else table.plans.get(tag)
            if tag is None or plan is None:
                return readers
            covers = [part.query.plan.covers(plan) for part in self.parts]
            by_tag[tag] = list(compress(readers, covers))
            return by_tag[tag]

        def admit(item: Item, whole: Item) -> Any:
            try:
                found = by_tag[whole[table.internal_tag]["S"]]
            except KeyError:
                found = find(whole)
            for has, decode in found:
                if has(item) and (entity := decode(whole)) is not None:
                    return entity
            return None

        return admit


def _range_check(part: MixedPart) -> Callable[[Item], bool]:
    """Return `part.has`, or a faster function for the commonest range: a prefix, and no filter."""
    if len(part.within) == 1 and part.query.filter is None:
        term = part.within[0]
        if term.operator == "begins_with" and "S" in term.values[0]:
            name, prefix = term.name, term.values[0]["S"]
            return lambda item: item.get(name, {}).get("S", "").startswith(prefix)
    return part.has


def _meets(term: KeyTerm, item: Item) -> bool:
    value = item.get(term.name)
    if value is None or value.keys() != term.values[0].keys():
        return False
    if term.operator == "begins_with":
        if "S" in value:
            return bool(value["S"].startswith(term.values[0]["S"]))
        given, prefix = (b64decode(each["B"]) for each in (value, term.values[0]))
        return given.startswith(prefix)
    if term.operator == "BETWEEN":
        low, high = map(order_of, term.values)
        return bool(low <= order_of(value) <= high)
    if term.operator == "=":
        return bool(order_of(value) == order_of(term.values[0]))
    return _ORDERS[term.operator](order_of(value), order_of(term.values[0]))
