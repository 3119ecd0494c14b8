"""Links to the pages of one table; each keeps the chosen tenant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from solotable._values import Item

from .data.catalog import INTERNAL, UNCLAIMED, LiveTable
from .paths import encode_key, encode_segment, encode_start, with_query


@dataclass(frozen=True, slots=True)
class TableLinks:
    """The paths of a table's pages."""

    table: str
    tenant: str | None = None

    def _to(self, rest: str = "", **parameters: Any) -> str:
        path = f"/t/{encode_segment(self.table)}{rest}"
        return with_query(path, tenant=self.tenant, **parameters)

    def home(self) -> str:
        """Return the table's first page."""
        return self._to()

    def section(self, name: str, **parameters: Any) -> str:
        """Return a section: patterns, heat, sync, schema, requests, pk, unclaimed."""
        return self._to(f"/-/{name}", **parameters)

    def facet(self, name: str, **parameters: Any) -> str:
        """Return the items of an entity."""
        if name == UNCLAIMED.name:
            return self.section("unclaimed", **parameters)
        return self._to(f"/{encode_segment(name)}", **parameters)

    def partition(self, value: dict[str, str], **parameters: Any) -> str:
        """Return the page of one partition, by the wire value of its key."""
        kind, text = next(iter(value.items()))
        return self._to(f"/-/pk/{encode_key(kind, text)}", **parameters)

    def item(self, table: LiveTable, facet: str, item: Item, rest: str = "", **parameters: Any) -> str:
        """Return the page of an item, or one below it."""
        entity = "/-/item" if facet in (UNCLAIMED.name, INTERNAL.name) else f"/{encode_segment(facet)}"
        return self._to(f"{entity}{_key_path(table, item)}{rest}", **parameters)

    def past(self, table: LiveTable, item: Item, **parameters: Any) -> str:
        """Return the page of an item's versions in continuous backups."""
        return self._to(f"/-/backups{_key_path(table, item)}", **parameters)

    def pattern(self, name: str, **parameters: Any) -> str:
        """Return the page of an access pattern."""
        return self._to(f"/-/patterns/{encode_segment(name)}", **parameters)

    def space(self, tenant: str | None, name: str, **parameters: Any) -> str:
        """Return the page of a space of offline clients."""
        return self._to(f"/-/sync/{encode_segment(tenant or '')}/{encode_segment(name)}", **parameters)

    @staticmethod
    def start(key: Item | None) -> str | None:
        """Return a start key as a parameter."""
        return None if key is None else encode_start(key)


def _key_path(table: LiveTable, item: Item) -> str:
    return "".join(f"/{encode_key(part.kind, str(item[part.name][part.kind]))}" for part in table.keys)
