"""Source: a table to migrate from, and which of its items take part."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import BaseModel

from solotable._entities.declare.table import Table
from solotable._flows.jobs.tenant_erasure import tenant_of
from solotable._values import Item, load_item
from solotable.errors import DeclarationError


class Source:
    """A table to migrate from: `Source("Orders", key=("user", "number"))`.

    - `table` is a table's name, or a declared `Table`, whose items the rules get as entities.
    - `key` names the attributes of the primary key; a declared table has its own.
    - `model` is a Pydantic model that validates an item before its rule gets it.
    - `where` is a predicate over an item's Python values: other items stay where they are.
    - `tenant` migrates the items of one tenant of a declared table.
    """

    def __init__(
        self,
        table: str | Table,
        *,
        key: str | Iterable[str] | None = None,
        model: type[BaseModel] | None = None,
        where: Callable[[dict[str, Any]], bool] | None = None,
        tenant: str | None = None,
    ) -> None:
        self.table = table if isinstance(table, Table) else None
        self.name = table.name if isinstance(table, Table) else table
        self.key_names = self._key_names(key)
        self.model = model
        self.where = where
        self.tenant = tenant
        #: Whether every item takes part.
        self.is_whole = where is None and tenant is None
        if model is not None and self.table is not None:
            raise DeclarationError(
                f"Source {self.name!r} is a declared table, so its rules get entities; remove model=."
            )
        if tenant is not None and (self.table is None or self.table.tenant is None):
            raise DeclarationError(
                f"Source {self.name!r}: tenant= needs a declared table with a tenant; use where= instead."
            )

    def _key_names(self, key: str | Iterable[str] | None) -> tuple[str, ...]:
        if self.table is not None:
            if key is not None:
                raise DeclarationError(
                    f"Source {self.name!r} is a declared table, which has a key; remove key=."
                )
            return self.table.key_names
        names = (key,) if isinstance(key, str) else tuple(key or ())
        if not 1 <= len(names) <= 2:
            raise DeclarationError(
                f"Source {self.name!r} needs key=: the partition key, or the partition key and the sort key."
            )
        return names

    def key_of(self, item: Item) -> Item:
        """Return the primary key of an item in wire form."""
        return {name: item[name] for name in self.key_names}

    def includes(self, item: Item) -> bool:
        """Return whether an item takes part in the migration."""
        if self.tenant is not None and self.table is not None:
            try:
                if tenant_of(self.table, item) != self.tenant:
                    return False
            except KeyError:
                return False
        return self.where is None or bool(self.where(load_item(item)))

    def __repr__(self) -> str:
        return f"Source({self.name!r})"
