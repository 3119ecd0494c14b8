"""The store's own items: how their keys are made. Their tags begin with `_`, and no read shows them."""

from __future__ import annotations

from solotable._entities.declare.table import INTERNAL_KINDS, Table
from solotable._entities.keys.codecs import escape
from solotable._expressions.ast import KeyTerm
from solotable._values import Item
from solotable.errors import DeclarationError

from .scope import Scope


def internal_key(table: Table, partition: str, sort: str) -> Item:
    """Return the key of an own item; in a table without a sort key both are its partition key."""
    _check(table)
    # So that the linter knows of all of them.
    assert partition.partition("#")[0] in INTERNAL_KINDS, partition
    if table.sort is None:
        return {table.partition.name: {"S": f"{partition}#{sort}"}}
    return {table.partition.name: {"S": partition}, table.sort.name: {"S": sort}}


def internal_partition(kind: str, *parts: str | None) -> str:
    """Return a partition key that begins with a kind; None is left out.

    >>> internal_partition("OUTBOX", "acme corp")
    'OUTBOX#acme%20corp'
    """
    return "#".join((kind, *(escape(part) for part in parts if part is not None)))


def partition_terms(table: Table, partition: str) -> tuple[KeyTerm, ...]:
    """Return the key condition of everything in an own partition."""
    _check(table)
    if table.sort is None:
        raise DeclarationError(
            f"Table {table.name!r} has no sort key, so what is kept there together cannot be listed."
        )
    return (KeyTerm(table.partition.name, "=", ({"S": partition},)),)


def only_table(scope: Scope, table: Table | None, what: str) -> Table:
    """Return the table that is meant: the given one, or the only one that is open."""
    if table is not None:
        return table
    if len(scope.tables) == 1:
        return scope.tables[0]
    names = ", ".join(each.name for each in scope.tables) or "none"
    raise DeclarationError(f"Several tables are open ({names}); say which one {what}: table=...")


def _check(table: Table) -> None:
    if table.partition.kind != "S" or (table.sort is not None and table.sort.kind != "S"):
        raise DeclarationError(
            f"Table {table.name!r} has a key that is no text, so the store has no place for its own items."
        )
