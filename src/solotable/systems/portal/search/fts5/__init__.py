"""Search beside the embedded engine, with SQLite FTS5."""

from .index import Fts5Index

__all__ = ["Fts5Index"]
