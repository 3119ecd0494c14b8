"""Split a WHERE clause into partitions, a sort key range, and remaining conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from solotable._expressions.ast import (
    And,
    Attr,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Const,
    In,
    KeyOperator,
    KeyTerm,
    Or,
)
from solotable._expressions.evaluate import paths_of
from solotable._values import AttributeValue, Item, sort_key
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import invalid

_FLIPPED: dict[str, KeyOperator] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The names of the key attributes of a table or index; a global index may have several per key.

    `kinds` maps each name to S, N or B; without it, the engine checks the types of values. `projected` has
    the attributes that an index projects; None means all.
    """

    partition: tuple[str, ...]
    sort: tuple[str, ...]
    kinds: Mapping[str, str] = field(default_factory=dict)
    projected: frozenset[str] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return self.partition + self.sort

    def check(self, name: str, *values: AttributeValue) -> None:
        """Reject values that are not of the key attribute's type."""
        kind = self.kinds.get(name)
        for value in values:
            if kind is not None and kind not in value:
                raise invalid(
                    f"Key attribute's data type should match its data type in table's schema: Key {name}"
                )


def terms_of(condition: Condition | None) -> list[Condition]:
    """Return the terms of an AND, also of nested ones; a single term for any other condition."""
    match condition:
        case None:
            return []
        case And(terms):
            return [inner for term in terms for inner in terms_of(term)]
        case _:
            return [condition]


def join(terms: list[Condition]) -> Condition | None:
    """Join terms with AND; None for an empty list."""
    if len(terms) > 1:
        return And(tuple(terms))
    return terms[0] if terms else None


def equality(term: Condition) -> tuple[str, AttributeValue] | None:
    """Return the attribute and value of `attribute = value` or `value = attribute`; None for other terms."""
    match term:
        case Compare("=", Attr((str(name),)), Const(value)) | Compare("=", Const(value), Attr((str(name),))):
            return name, value
        case _:
            return None


def primary_key(schema: Schema, condition: Condition | None) -> tuple[Item, list[Condition]] | None:
    """Split a condition into a primary key and the remaining terms; None if the key is incomplete."""
    key: Item = {}
    rest: list[Condition] = []
    for term in terms_of(condition):
        found = equality(term)
        if found is None or found[0] not in schema.names:
            rest.append(term)
            continue
        name, value = found
        if name in key:
            raise invalid(
                f"Multiple conditions on same key {name}. Only single item Update/Insert/Delete are supported"
            )
        schema.check(name, value)
        key[name] = value
    if len(key) < len(schema.names):
        return None
    return {name: key[name] for name in schema.names}, rest


def partitions(schema: Schema, condition: Condition) -> list[AttributeValue] | None:
    """Return the partition key values that the condition allows; None if it allows any value."""
    name = schema.partition[0]
    match condition:
        case And(terms):
            known = [found for term in terms if (found := partitions(schema, term)) is not None]
            if not known:
                return None
            first, *others = known
            return [value for value in first if all(value in other for other in others)]
        case Or(terms):
            values: list[AttributeValue] = []
            for term in terms:
                found = partitions(schema, term)
                if found is None:
                    return None
                values += [value for value in found if value not in values]
            return values
        case In(Attr((head,)), options) if head == name:
            chosen = [option.value for option in options if isinstance(option, Const)]
            if len(chosen) < len(options):
                return None
            schema.check(name, *chosen)
            return [value for number, value in enumerate(chosen) if value not in chosen[:number]]
        case Compare():
            equal = equality(condition)
            if equal is None or equal[0] != name:
                return None
            schema.check(name, equal[1])
            return [equal[1]]
        case _:
            return None


def only_names_partitions(schema: Schema, condition: Condition) -> bool:
    """Return whether the condition only selects partitions."""
    if isinstance(condition, Or):
        return all(only_names_partitions(schema, term) for term in condition.terms)
    return isinstance(condition, Compare | In) and partitions(schema, condition) is not None


def sort_term(schema: Schema, term: Condition) -> KeyTerm | None:
    """Return the term as a key condition on the sort key; None if it is not one."""
    if not schema.sort:
        return None
    name = schema.sort[0]
    values: tuple[AttributeValue, ...]
    match term:
        case Compare(comparator, Attr((head,)), Const(value)) if head == name and comparator != "<>":
            operator, values = _FLIPPED[_FLIPPED[comparator]], (value,)
        case Compare(comparator, Const(value), Attr((head,))) if head == name and comparator != "<>":
            operator, values = _FLIPPED[comparator], (value,)
        case Between(Attr((head,)), Const(low), Const(high)) if head == name:
            operator, values = "BETWEEN", (low, high)
        case BeginsWith(Attr((head,)), Const(value)) if head == name:
            operator, values = "begins_with", (value,)
        case _:
            return None
    schema.check(name, *values)
    return KeyTerm(name, operator, values)


def check_branches(schema: Schema, condition: Condition) -> None:
    """Reject an OR with branches that select overlapping ranges of one partition.

    DynamoDB does not compare a branch if its sort key condition is not a range (negated, `<>`, IN).
    """
    if not isinstance(condition, Or) or not schema.sort:
        return
    branches: list[tuple[list[AttributeValue], KeyTerm | None]] = []
    for branch in condition.terms:
        values = partitions(schema, branch)
        on_sort = [term for term in terms_of(branch) if schema.sort[0] in heads(term)]
        ranges = [sort_term(schema, term) for term in on_sort]
        if values is None or len(on_sort) > 1 or None in ranges:
            continue
        branches.append((values, ranges[0] if ranges else None))
    for number, (values, span) in enumerate(branches):
        for others, other in branches[:number]:
            if any(value in others for value in values) and _overlap(span, other):
                raise invalid("Overlapping conditions with range keys are not supported in where clause")


def _overlap(one: KeyTerm | None, other: KeyTerm | None) -> bool:
    if one is None or other is None:
        return one is not other
    (low, low_in), (high, high_in) = _ends(one)
    (other_low, other_low_in), (other_high, other_high_in) = _ends(other)
    return _meet(low, other_high, low_in and other_high_in) and _meet(
        other_low, high, other_low_in and high_in
    )


def _ends(term: KeyTerm) -> tuple[tuple[Any, bool], tuple[Any, bool]]:
    """Return the lower and the upper end (None if open), each with a flag that says if it is included."""
    ends = [sort_key(kind, content) for value in term.values for kind, content in value.items()]
    first = ends[0]
    match term.operator:
        case "=":
            return (first, True), (first, True)
        case "<" | "<=":
            return (None, False), (first, term.operator == "<=")
        case ">" | ">=":
            return (first, term.operator == ">="), (None, False)
        case "BETWEEN":
            return (first, True), (ends[1], True)
        case "begins_with":
            beyond = first + ("\U0010ffff" if isinstance(first, str) else b"\xff") * 8
            return (first, True), (beyond, False)


def _meet(low: Any, high: Any, both_included: bool) -> bool:
    if low is None or high is None:
        return True
    return bool(low <= high if both_included else low < high)


def heads(condition: Condition) -> set[str | int]:
    """Return the top-level names of the attributes that a condition reads."""
    return {path[0] for path in paths_of(condition)}
