"""Spaces, and the keys of their internal items: the head, the log, and the records of clients."""

from __future__ import annotations

from dataclasses import dataclass

from solotable._entities.declare.table import Table
from solotable._entities.keys.parts.codecs import escape
from solotable._flows.internal_items import internal_key, internal_partition
from solotable._values import Item

#: The type tag of the internal items of spaces.
TAG = "_sync"
HEAD = "HEAD"
_LOG, _CLIENT, _GROUP = "LOG#", "CLIENT#", "GROUP#"
#: Versions have this number of digits in the sort keys of log records.
VERSION_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Space:
    """The scope of one version counter: a tenant's space, or one part of the tenant's data."""

    table: Table
    #: None for the spaces of global entities.
    tenant: str | None
    #: Empty for the tenant's own space.
    name: str = ""

    @property
    def partition(self) -> str:
        """The partition key of its internal items."""
        return internal_partition("SYNC", self.tenant or "", self.name)

    def key(self, sort: str) -> Item:
        """Return the key of an internal item of the space."""
        return internal_key(self.table, self.partition, sort)

    def __str__(self) -> str:
        return f"space {self.name!r} of tenant {self.tenant!r}" if self.name else f"tenant {self.tenant!r}"


def log_sort(version: int) -> str:
    """Return the sort key of the log record of a version.

    >>> log_sort(42)
    'LOG#000000000000042'
    """
    return f"{_LOG}{version:0{VERSION_DIGITS}d}"


def client_sort(group: str, client: str = "") -> str:
    """Return the sort key of a client's record, or the prefix of all records of a group."""
    return f"{_CLIENT}{escape(group)}#{escape(client)}"


def group_sort(group: str) -> str:
    """Return the sort key of a group's record."""
    return f"{_GROUP}{escape(group)}"
