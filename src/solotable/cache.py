"""TTL cache: bounded in time and size, with one load per key at a time. For threads and event loops.

    cache: TTLCache[str, Tenant] = TTLCache(ttl_seconds=30, max_size=1024)
    tenant = cache.load(name, lambda: read_tenant(name))            # in threads
    tenant = await cache.load_async(name, lambda: read_tenant(name))    # on an event loop

Callers that ask for a key during its load wait for that load. Errors are raised to all of them and are not
cached. A value that was read before a `forget` is not stored after it.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast, overload

from solotable.fork_safe import new_lock

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")
DefaultT = TypeVar("DefaultT")

_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Lookups that found a fresh entry, lookups that did not, and entries stored now."""

    hits: int
    misses: int
    entries: int


@dataclass(frozen=True, slots=True)
class _Entry(Generic[ValueT]):
    value: ValueT
    expires: float
    size: int


@dataclass(slots=True)
class _Load:
    """A load in one thread that other threads wait for."""

    process: int = field(default_factory=os.getpid)
    done: threading.Event = field(default_factory=threading.Event)
    value: Any = None
    error: BaseException | None = None


class TTLCache(Generic[KeyT, ValueT]):
    """A cache of up to `max_size` entries; the least recently used are evicted first.

    `ttl_seconds` may depend on the value; an entry of 0 seconds is not stored. With `size_of`, `max_size`
    bounds the sum of sizes. With `group_of`, `forget_group` forgets related keys without a scan.
    """

    def __init__(
        self,
        *,
        ttl_seconds: float | Callable[[ValueT], float],
        max_size: int,
        size_of: Callable[[ValueT], int] | None = None,
        group_of: Callable[[KeyT], Hashable] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # NaN fails every comparison, so that it is rejected too.
        if not callable(ttl_seconds) and not ttl_seconds >= 0:
            raise ValueError(f"ttl_seconds is a number of at least 0, got {ttl_seconds!r}.")
        if not max_size >= 0:
            raise ValueError(f"max_size is a number of at least 0, got {max_size!r}.")
        self._ttl_seconds = ttl_seconds
        self._max_size = max_size
        self._size_of = size_of
        self._group_of = group_of
        self._clock = clock
        self._lock = new_lock()
        self._entries: OrderedDict[KeyT, _Entry[ValueT]] = OrderedDict()
        self._groups: dict[Hashable, set[KeyT]] = {}
        self._size = self._generation = self._hits = self._misses = 0
        self._loads: dict[KeyT, _Load] = {}
        self._tasks: dict[KeyT, asyncio.Task[ValueT]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def generation(self) -> int:
        """The number of `forget` calls so far; see `put`."""
        return self._generation

    def stats(self) -> CacheStats:
        """Return the counts since the creation of the cache."""
        return CacheStats(self._hits, self._misses, len(self._entries))

    @overload
    def get(self, key: KeyT) -> ValueT | None: ...
    @overload
    def get(self, key: KeyT, default: DefaultT) -> ValueT | DefaultT: ...
    def get(self, key: KeyT, default: Any = None) -> Any:
        """Return the fresh value of a key, or the default."""
        now = self._clock()
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.expires <= now:
                self._misses += 1
                return default
            self._hits += 1
            self._entries.move_to_end(key)
        return entry.value

    def is_current(self, key: KeyT, value: ValueT) -> bool:
        """Return whether a key still has this very value, fresh; only then it counts as a hit."""
        now = self._clock()
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.value is not value or entry.expires <= now:
                return False
            self._hits += 1
            self._entries.move_to_end(key)
        return True

    def expires(self, key: KeyT) -> float | None:
        """Return when the value of a key expires by the cache's clock; None without a fresh value."""
        entry = self._entries.get(key)
        return None if entry is None or entry.expires <= self._clock() else entry.expires

    def put(
        self,
        key: KeyT,
        value: ValueT,
        *,
        expires: float = float("inf"),
        generation: int | None = None,
    ) -> None:
        """Store a value, not longer than `expires`.

        Pass the `generation` from before the read: after a `forget` since then, the value is not stored.
        """
        ttl = self._ttl_seconds(value) if callable(self._ttl_seconds) else self._ttl_seconds
        entry = _Entry(value, min(self._clock() + ttl, expires), self._size_of(value) if self._size_of else 1)
        with self._lock:
            if generation not in (None, self._generation):
                return
            if ttl > 0:
                self._store(key, entry)
            else:
                self._drop(key)

    def load(self, key: KeyT, loader: Callable[[], ValueT]) -> ValueT:
        """Return the fresh value of a key, or load it; threads that ask during the load wait for it.

        The loader must not load the same key: it would wait for itself.
        """
        while True:
            found = self.get(key, _MISSING)
            if found is not _MISSING:
                return cast(ValueT, found)
            own = _Load()
            with self._lock:
                # A load may have stored the value since the lookup.
                entry = self._entries.get(key)
                if entry is not None and entry.expires > self._clock():
                    return entry.value
                load = self._loads.get(key)
                # The thread of a load does not exist in a forked child.
                if load is None or load.process != own.process:
                    load = self._loads[key] = own
            if load is own:
                return self._run(key, own, loader)
            load.done.wait()
            if load.error is None:
                return cast(ValueT, load.value)
            # An interrupt concerns only the loading thread, so this thread loads the value itself.
            if isinstance(load.error, Exception):
                raise load.error

    async def load_async(self, key: KeyT, loader: Callable[[], Coroutine[Any, Any, ValueT]]) -> ValueT:
        """Return the fresh value of a key, or load it; tasks that ask during the load wait for it."""
        found = self.get(key, _MISSING)
        if found is not _MISSING:
            return cast(ValueT, found)
        task = self._tasks.get(key)
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            task = self._tasks[key] = asyncio.create_task(loader())
            task.add_done_callback(lambda done: self._finish(key, done))
        # A cancelled caller must not cancel the load of the others.
        return await asyncio.shield(task)

    def forget(self, key: KeyT) -> None:
        """Forget one key."""
        with self._lock:
            self._forget([key])

    def forget_group(self, group: Hashable) -> None:
        """Forget the keys of a group."""
        with self._lock:
            loading = (key for key in (*self._loads, *self._tasks) if self._group(key) == group)
            self._forget([*self._groups.get(group, ()), *loading])

    def forget_where(self, match: Callable[[KeyT], bool]) -> None:
        """Forget every key that matches; it looks at all keys."""
        with self._lock:
            keys = [*self._entries, *self._loads, *self._tasks]
        chosen = [key for key in keys if match(key)]
        with self._lock:
            self._forget(chosen)

    def clear(self) -> None:
        """Forget every key."""
        with self._lock:
            self._generation += 1
            self._size = 0
            self._entries.clear()
            self._groups.clear()
            self._loads.clear()
            self._tasks.clear()

    def _run(self, key: KeyT, load: _Load, loader: Callable[[], ValueT]) -> ValueT:
        try:
            value = load.value = loader()
            self._put_loaded(self._loads, key, load, value)
        except BaseException as error:
            load.error = error
            raise
        finally:
            with self._lock:
                if self._loads.get(key) is load:
                    del self._loads[key]
            load.done.set()
        return value

    def _finish(self, key: KeyT, task: asyncio.Task[ValueT]) -> None:
        try:
            # Reading the exception also marks it as seen, for a load whose callers were all cancelled.
            if not task.cancelled() and task.exception() is None:
                self._put_loaded(self._tasks, key, task, task.result())
        finally:
            if self._tasks.get(key) is task:
                del self._tasks[key]

    def _put_loaded(self, loads: dict[KeyT, Any], key: KeyT, load: object, value: ValueT) -> None:
        generation = self._generation
        if loads.get(key) is load:
            self.put(key, value, generation=generation)

    def _forget(self, keys: Iterable[KeyT]) -> None:
        """Remove entries, and let no load of these keys store one; the lock is held."""
        self._generation += 1
        for key in keys:
            self._drop(key)
            self._loads.pop(key, None)
            self._tasks.pop(key, None)

    def _group(self, key: KeyT) -> Hashable:
        return None if self._group_of is None else self._group_of(key)

    def _store(self, key: KeyT, entry: _Entry[ValueT]) -> None:
        """Replace the entry of a key and evict others; the lock is held."""
        self._drop(key)
        if entry.size > self._max_size:
            return
        self._entries[key] = entry
        self._size += entry.size
        if self._group_of is not None:
            self._groups.setdefault(self._group(key), set()).add(key)
        while self._size > self._max_size:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: KeyT) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        self._size -= entry.size
        if self._group_of is not None:
            group = self._group(key)
            self._groups[group].discard(key)
            if not self._groups[group]:
                del self._groups[group]
