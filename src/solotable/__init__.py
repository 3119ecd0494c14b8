"""One definition of your data: DynamoDB in a file on your laptop, Amazon DynamoDB by changing a URL.

The public names, each imported when it is first used, so that the engine and the CLI do not load
Pydantic. Errors are here and in `solotable.errors`; flows are in `solotable.flow`, URLs in `solotable.urls`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._connect import connect, connect_async
    from ._entities.codecs.item_decoder import is_stored
    from ._entities.codecs.opaque.blob import Blob
    from ._entities.declare.entity import Entity
    from ._entities.declare.field_storage import Cipher, Compressed, Encrypted, Offloaded, SubjectCipher
    from ._entities.declare.fields import (
        FROM_SCOPE,
        TTL,
        Attr,
        Counter,
        Created,
        Epoch,
        Iso,
        Json,
        Unique,
        Updated,
        Version,
    )
    from ._entities.declare.table import Index
    from ._entities.hooks import HookEvent, hook
    from ._entities.keys.key import EntityKey, Key, KeyFormat
    from ._entities.patterns.conditions import between, contains, exists, missing, one_of, size, some
    from ._entities.patterns.pattern import pattern
    from ._entities.patterns.query import Query
    from ._entities.schema.upgrades import downgrade, upgrade
    from ._entities.synced import Synced
    from ._entities.traits.counters import Counted
    from ._entities.traits.events import Actor, Event, EventVerb, Target
    from ._entities.traits.history import History
    from ._entities.traits.names import Names, Redirect
    from ._entities.traits.outbox import Outbox
    from ._entities.traits.retention import Retention
    from ._entities.traits.soft_delete import SoftDelete
    from ._flows.feed.changes import Changed
    from ._flows.feed.checkpoints import Checkpoint
    from ._flows.jobs.tenant_erasure import Erasure
    from ._flows.traits.history import FieldChange, VersionDifference
    from ._flows.transactions.write import ANY, ExpectedVersion
    from ._flows.writes.delete_partition import PartitionDeletion
    from ._store import AdminStore, AsyncAdminStore, AsyncDatabase, AsyncStore, Database, Store
    from ._store.asynchronous.units import AsyncBatch, AsyncTransaction
    from ._store.handles.changes import AsyncChanges, Changes
    from ._store.handles.leases import AsyncLease, Lease
    from ._store.page import Collection, Page
    from ._table import Table
    from .errors import (
        AlreadyExists,
        BatchIncomplete,
        ConditionFailed,
        Corrupt,
        CursorRejected,
        DataError,
        DeclarationError,
        EngineError,
        FeedTrimmed,
        FileLocked,
        FileReplaced,
        ItemTooLarge,
        LeaseHeld,
        LeaseLost,
        NewerSchemaVersion,
        NotConfigured,
        NotFound,
        NotOurFile,
        NotUnique,
        OutcomeUnknown,
        ReadOnly,
        ServiceError,
        SolotableError,
        StorageFull,
        StoredDataError,
        SubjectForgotten,
        TableNotFound,
        TenantViolation,
        Throttled,
        TooManyConflicts,
        TransactionCancelled,
        TransactionFailed,
        TransportError,
        UnknownEntity,
        VersionConflict,
    )
    from .ids import new_id

__version__ = "0.1.0"

_MODULES = {
    "_connect": ("connect", "connect_async"),
    "_entities.patterns.conditions": ("between", "contains", "exists", "missing", "one_of", "size", "some"),
    "_entities.traits.counters": ("Counted",),
    "_entities.traits.soft_delete": ("SoftDelete",),
    "_entities.synced": ("Synced",),
    "_entities.declare.entity": ("Entity",),
    "_entities.traits.events": ("Actor", "Event", "EventVerb", "Target"),
    "_entities.codecs.opaque.blob": ("Blob",),
    "_entities.declare.field_storage": (
        "Cipher",
        "Compressed",
        "Encrypted",
        "Offloaded",
        "SubjectCipher",
    ),
    "_entities.declare.fields": (
        "FROM_SCOPE",
        "TTL",
        "Attr",
        "Counter",
        "Created",
        "Epoch",
        "Iso",
        "Json",
        "Unique",
        "Updated",
        "Version",
    ),
    "_entities.traits.history": ("History",),
    "_entities.hooks": ("HookEvent", "hook"),
    "_entities.keys.key": ("EntityKey", "Key", "KeyFormat"),
    "_entities.traits.names": ("Names", "Redirect"),
    "_entities.traits.outbox": ("Outbox",),
    "_entities.patterns.pattern": ("pattern",),
    "_entities.patterns.query": ("Query",),
    "_entities.codecs.item_decoder": ("is_stored",),
    "_entities.traits.retention": ("Retention",),
    "_entities.schema.upgrades": ("downgrade", "upgrade"),
    "_entities.declare.table": ("Index",),
    "_flows.feed.changes": ("Changed",),
    "_flows.feed.checkpoints": ("Checkpoint",),
    "_table": ("Table",),
    "_flows.jobs.tenant_erasure": ("Erasure",),
    "_flows.traits.history": ("FieldChange", "VersionDifference"),
    "_flows.transactions.write": ("ANY", "ExpectedVersion"),
    "errors": (
        "AlreadyExists",
        "BatchIncomplete",
        "ConditionFailed",
        "Corrupt",
        "CursorRejected",
        "DataError",
        "DeclarationError",
        "EngineError",
        "FeedTrimmed",
        "FileLocked",
        "FileReplaced",
        "ItemTooLarge",
        "LeaseHeld",
        "LeaseLost",
        "NewerSchemaVersion",
        "NotConfigured",
        "NotFound",
        "NotOurFile",
        "NotUnique",
        "OutcomeUnknown",
        "ReadOnly",
        "ServiceError",
        "SolotableError",
        "StorageFull",
        "StoredDataError",
        "SubjectForgotten",
        "TableNotFound",
        "TenantViolation",
        "Throttled",
        "TooManyConflicts",
        "TransactionCancelled",
        "TransactionFailed",
        "TransportError",
        "UnknownEntity",
        "VersionConflict",
    ),
    "ids": ("new_id",),
    "_flows.writes.delete_partition": ("PartitionDeletion",),
    "_store": ("AdminStore", "AsyncAdminStore", "AsyncDatabase", "AsyncStore", "Database", "Store"),
    "_store.asynchronous.units": ("AsyncBatch", "AsyncTransaction"),
    "_store.handles.changes": ("AsyncChanges", "Changes"),
    "_store.handles.leases": ("AsyncLease", "Lease"),
    "_store.page": ("Collection", "Page"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "ANY",
    "FROM_SCOPE",
    "TTL",
    "Actor",
    "AdminStore",
    "AlreadyExists",
    "AsyncAdminStore",
    "AsyncBatch",
    "AsyncChanges",
    "AsyncDatabase",
    "AsyncLease",
    "AsyncStore",
    "AsyncTransaction",
    "Attr",
    "BatchIncomplete",
    "Blob",
    "Changed",
    "Changes",
    "Checkpoint",
    "Cipher",
    "Collection",
    "Compressed",
    "ConditionFailed",
    "Corrupt",
    "Counted",
    "Counter",
    "Created",
    "CursorRejected",
    "DataError",
    "Database",
    "DeclarationError",
    "Encrypted",
    "EngineError",
    "Entity",
    "EntityKey",
    "Epoch",
    "Erasure",
    "Event",
    "EventVerb",
    "ExpectedVersion",
    "FeedTrimmed",
    "FieldChange",
    "FileLocked",
    "FileReplaced",
    "History",
    "HookEvent",
    "Index",
    "Iso",
    "ItemTooLarge",
    "Json",
    "Key",
    "KeyFormat",
    "Lease",
    "LeaseHeld",
    "LeaseLost",
    "Names",
    "NewerSchemaVersion",
    "NotConfigured",
    "NotFound",
    "NotOurFile",
    "NotUnique",
    "Offloaded",
    "Outbox",
    "OutcomeUnknown",
    "Page",
    "PartitionDeletion",
    "Query",
    "ReadOnly",
    "Redirect",
    "Retention",
    "ServiceError",
    "SoftDelete",
    "SolotableError",
    "StorageFull",
    "Store",
    "StoredDataError",
    "SubjectCipher",
    "SubjectForgotten",
    "Synced",
    "Table",
    "TableNotFound",
    "Target",
    "TenantViolation",
    "Throttled",
    "TooManyConflicts",
    "TransactionCancelled",
    "TransactionFailed",
    "TransportError",
    "Unique",
    "UnknownEntity",
    "Updated",
    "Version",
    "VersionConflict",
    "VersionDifference",
    "__version__",
    "between",
    "connect",
    "connect_async",
    "contains",
    "downgrade",
    "exists",
    "hook",
    "is_stored",
    "missing",
    "new_id",
    "one_of",
    "pattern",
    "size",
    "some",
    "upgrade",
]


#: Modules that are imported when they are first used as attributes.
_SUBMODULES = frozenset(
    {
        "cache",
        "encryption",
        "engines",
        "errors",
        "flow",
        "ids",
        "jobs",
        "observe",
        "seeding",
        "testing",
        "urls",
    }
)


def __getattr__(name: str) -> Any:
    module = _HOMES.get(name)
    if module is None:
        if name in _SUBMODULES:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
