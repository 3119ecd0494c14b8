"""Stores: the verbs that applications call, run on an engine, blocking or awaited."""

from .asynchronous.stores import AsyncAdminStore, AsyncDatabase, AsyncStore
from .sync.stores import AdminStore, Database, Store

__all__ = ["AdminStore", "AsyncAdminStore", "AsyncDatabase", "AsyncStore", "Database", "Store"]
