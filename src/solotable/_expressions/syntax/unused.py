"""Placeholders that came with a request and that none of its expressions mentions."""

from __future__ import annotations

from collections.abc import Iterable

from solotable._expressions.path_overlap import hashed_order
from solotable.errors import invalid

from .unbound import Placeholders


def check_used(names: Iterable[str], values: Iterable[str], used: list[Placeholders]) -> None:
    """Refuse placeholders that no expression mentions."""
    _check_used("Names", names, [mentioned.names for mentioned in used])
    _check_used("Values", values, [mentioned.values for mentioned in used])


def _check_used(kind: str, given: Iterable[str], used: list[frozenset[str]]) -> None:
    if len(used) == 1 and used[0].issuperset(given):
        return
    unused = [key for key in given if not any(key in mentioned for mentioned in used)]
    if unused:
        keys = ", ".join(hashed_order(unused))
        raise invalid(f"Value provided in ExpressionAttribute{kind} unused in expressions: keys: {{{keys}}}")
