"""Stores: the verbs that applications call, run on an engine, blocking or awaited."""

from .async_store import AsyncAdminStore, AsyncDatabase, AsyncStore
from .store import AdminStore, Database, Store

__all__ = ["AdminStore", "AsyncAdminStore", "AsyncDatabase", "AsyncStore", "Database", "Store"]
