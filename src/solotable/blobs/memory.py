"""A storage in memory, for tests and demos."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from solotable._entities.declare.field_storage import StoredObject
from solotable.fork_safe import new_lock

from .blocking import BlockingStorage


class MemoryStorage(BlockingStorage):
    """Keeps objects in this process; `clock` returns the seconds since 1970."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._objects: dict[str, tuple[bytes, datetime]] = {}
        self._lock = new_lock()

    def get(self, name: str) -> bytes | None:
        """Return the content of an object; None if it does not exist."""
        found = self._objects.get(name)
        return None if found is None else found[0]

    def put(self, name: str, data: bytes, media_type: str | None) -> None:
        """Store an object, or replace it."""
        with self._lock:
            self._objects[name] = (data, self._now())

    def touch(self, name: str, media_type: str | None) -> bool:
        """Set the time of an object to now; return whether it exists."""
        with self._lock:
            found = self._objects.get(name)
            if found is not None:
                self._objects[name] = (found[0], self._now())
            return found is not None

    def delete(self, name: str, *, unless_modified_after: datetime) -> bool:
        """Delete an object unless it was stored or touched after a time; return whether it was deleted."""
        with self._lock:
            found = self._objects.get(name)
            if found is None or found[1] > unless_modified_after:
                return False
            del self._objects[name]
            return True

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects whose names start with a prefix."""
        for name, (data, modified) in sorted(self._objects.items()):
            if name.startswith(prefix):
                yield StoredObject(name, len(data), modified)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)
