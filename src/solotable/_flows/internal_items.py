"""Keys of the store's internal items, such as locks, whose tags begin with `_`. Reads hide them."""

from __future__ import annotations

from solotable._entities.declare.table import INTERNAL_KINDS, Table
from solotable._entities.keys.parts.codecs import escape
from solotable._expressions.ast import KeyTerm
from solotable._values import Item
from solotable.errors import DeclarationError

from .scope import Scope


def internal_key(table: Table, partition: str, sort: str) -> Item:
    """Return the key of an internal item; without a sort key both parts form the partition key."""
    _check(table)
    # The linter keeps entities out of the partitions of these kinds.
    assert partition.partition("#")[0] in INTERNAL_KINDS, partition
    if table.sort is None:
        return {table.partition.name: {"S": f"{partition}#{sort}"}}
    return {table.partition.name: {"S": partition}, table.sort.name: {"S": sort}}


def internal_partition(kind: str, *parts: str | None) -> str:
    """Return a partition key that begins with a kind; parts that are None are left out.

    >>> internal_partition("OUTBOX", "acme corp")
    'OUTBOX#acme%20corp'
    """
    return "#".join((kind, *(escape(part) for part in parts if part is not None)))


def partition_terms(table: Table, partition: str) -> tuple[KeyTerm, ...]:
    """Return the key condition of an internal partition."""
    _check(table)
    if table.sort is None:
        raise DeclarationError(
            f"Cannot list the internal items of table {table.name!r}: it has no sort key; declare one."
        )
    return (KeyTerm(table.partition.name, "=", ({"S": partition},)),)


def only_table(scope: Scope, table: Table | None, what: str) -> Table:
    """Return the given table, or the only open table."""
    if table is not None:
        return table
    if len(scope.tables) == 1:
        return scope.tables[0]
    names = ", ".join(each.name for each in scope.tables) or "none"
    raise DeclarationError(
        f"table= is required because {len(scope.tables)} tables are open ({names}); name the one that {what}."
    )


def _check(table: Table) -> None:
    if table.partition.kind != "S" or (table.sort is not None and table.sort.kind != "S"):
        raise DeclarationError(
            f"Table {table.name!r} cannot hold internal items: its key attributes must have type S."
        )
