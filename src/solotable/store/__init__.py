"""Stores: the verbs that applications call, run on an engine, blocking or awaited."""

from .awaiting import AsyncAdminStore, AsyncDatabase, AsyncStore
from .blocking import AdminStore, Database, Store

__all__ = ["AdminStore", "AsyncAdminStore", "AsyncDatabase", "AsyncStore", "Database", "Store"]
