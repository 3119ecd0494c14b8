"""One definition of your data: DynamoDB in a file on your laptop, Amazon DynamoDB by changing a URL.

The front door of the package: names re-exported from the rooms behind it, and nothing else. They
are imported when they are first used, so that the engine and the CLI do not wait for Pydantic.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .connect import Table, connect, connect_async
    from .entities.conditions import between, contains, exists, missing, one_of, size, some
    from .entities.counters import Counted
    from .entities.deletion import SoftDelete
    from .entities.entity import Entity
    from .entities.events import Actor, Event
    from .entities.fields import FROM_SCOPE, TTL, Attr, Counter, Created, Json, Unique, Updated, Version
    from .entities.history import History
    from .entities.keys import Key
    from .entities.names import Names, Redirect
    from .entities.outbox import Outbox
    from .entities.patterns import pattern
    from .entities.queries import Query
    from .entities.reading import is_stored
    from .entities.retention import Retention
    from .entities.shapes import downgrade, upgrade
    from .entities.table import Index
    from .flows.changes import Changed
    from .flows.checkpoints import Checkpoint
    from .flows.write import ANY
    from .ids import new_id
    from .store import AdminStore, AsyncAdminStore, AsyncDatabase, AsyncStore, Database, Store
    from .store.leases import AsyncLease, Lease
    from .store.pages import Page

__version__ = "0.1.0"

_ROOMS = {
    "connect": ("Table", "connect", "connect_async"),
    "entities.conditions": ("between", "contains", "exists", "missing", "one_of", "size", "some"),
    "entities.counters": ("Counted",),
    "entities.deletion": ("SoftDelete",),
    "entities.entity": ("Entity",),
    "entities.events": ("Actor", "Event"),
    "entities.fields": (
        "FROM_SCOPE",
        "TTL",
        "Attr",
        "Counter",
        "Created",
        "Json",
        "Unique",
        "Updated",
        "Version",
    ),
    "entities.history": ("History",),
    "entities.keys": ("Key",),
    "entities.names": ("Names", "Redirect"),
    "entities.outbox": ("Outbox",),
    "entities.patterns": ("pattern",),
    "entities.queries": ("Query",),
    "entities.reading": ("is_stored",),
    "entities.retention": ("Retention",),
    "entities.shapes": ("downgrade", "upgrade"),
    "entities.table": ("Index",),
    "flows.changes": ("Changed",),
    "flows.checkpoints": ("Checkpoint",),
    "flows.write": ("ANY",),
    "ids": ("new_id",),
    "store": ("AdminStore", "AsyncAdminStore", "AsyncDatabase", "AsyncStore", "Database", "Store"),
    "store.leases": ("AsyncLease", "Lease"),
    "store.pages": ("Page",),
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "ANY",
    "FROM_SCOPE",
    "TTL",
    "Actor",
    "AdminStore",
    "AsyncAdminStore",
    "AsyncDatabase",
    "AsyncLease",
    "AsyncStore",
    "Attr",
    "Changed",
    "Checkpoint",
    "Counted",
    "Counter",
    "Created",
    "Database",
    "Entity",
    "Event",
    "History",
    "Index",
    "Json",
    "Key",
    "Lease",
    "Names",
    "Outbox",
    "Page",
    "Query",
    "Redirect",
    "Retention",
    "SoftDelete",
    "Store",
    "Table",
    "Unique",
    "Updated",
    "Version",
    "__version__",
    "between",
    "connect",
    "connect_async",
    "contains",
    "downgrade",
    "exists",
    "is_stored",
    "missing",
    "new_id",
    "one_of",
    "pattern",
    "size",
    "some",
    "upgrade",
]


def __getattr__(name: str) -> Any:
    room = _HOMES.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{room}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


class _FrontDoor(ModuleType):
    """Keeps `connect` the function: importing the room of that name would put the room in its place."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in _HOMES):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _FrontDoor
