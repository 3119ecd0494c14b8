"""One definition of your data: DynamoDB in a file on your laptop, Amazon DynamoDB by changing a URL.

The front door of the package: names re-exported from the rooms behind it, and nothing else. They
are imported when they are first used, so that the engine and the CLI do not wait for Pydantic.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._connect import connect, connect_async
    from ._entities.codecs.loader import is_stored
    from ._entities.declare.entity import Entity
    from ._entities.declare.fields import (
        FROM_SCOPE,
        TTL,
        Attr,
        Counter,
        Created,
        Json,
        Unique,
        Updated,
        Version,
    )
    from ._entities.declare.table import Index
    from ._entities.keys.key import Key
    from ._entities.patterns.conditions import between, contains, exists, missing, one_of, size, some
    from ._entities.patterns.pattern import pattern
    from ._entities.patterns.query import Query
    from ._entities.schema.upgrades import downgrade, upgrade
    from ._entities.traits.counters import Counted
    from ._entities.traits.events import Actor, Event
    from ._entities.traits.history import History
    from ._entities.traits.names import Names, Redirect
    from ._entities.traits.outbox import Outbox
    from ._entities.traits.retention import Retention
    from ._entities.traits.soft_delete import SoftDelete
    from ._flows.feed.changes import Changed
    from ._flows.feed.checkpoints import Checkpoint
    from ._flows.transactions.write import ANY
    from ._store import AdminStore, AsyncAdminStore, AsyncDatabase, AsyncStore, Database, Store
    from ._store.handles.leases import AsyncLease, Lease
    from ._store.page import Page
    from ._table import Table
    from .ids import new_id

__version__ = "0.1.0"

_ROOMS = {
    "_connect": ("connect", "connect_async"),
    "_entities.patterns.conditions": ("between", "contains", "exists", "missing", "one_of", "size", "some"),
    "_entities.traits.counters": ("Counted",),
    "_entities.traits.soft_delete": ("SoftDelete",),
    "_entities.declare.entity": ("Entity",),
    "_entities.traits.events": ("Actor", "Event"),
    "_entities.declare.fields": (
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
    "_entities.traits.history": ("History",),
    "_entities.keys.key": ("Key",),
    "_entities.traits.names": ("Names", "Redirect"),
    "_entities.traits.outbox": ("Outbox",),
    "_entities.patterns.pattern": ("pattern",),
    "_entities.patterns.query": ("Query",),
    "_entities.codecs.loader": ("is_stored",),
    "_entities.traits.retention": ("Retention",),
    "_entities.schema.upgrades": ("downgrade", "upgrade"),
    "_entities.declare.table": ("Index",),
    "_flows.feed.changes": ("Changed",),
    "_flows.feed.checkpoints": ("Checkpoint",),
    "_flows.transactions.write": ("ANY",),
    "_table": ("Table",),
    "ids": ("new_id",),
    "_store": ("AdminStore", "AsyncAdminStore", "AsyncDatabase", "AsyncStore", "Database", "Store"),
    "_store.handles.leases": ("AsyncLease", "Lease"),
    "_store.page": ("Page",),
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
