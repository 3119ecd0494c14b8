"""Locks that are unlocked in a forked child.

A child has only the thread that forked, so a lock that another thread held would never be released in it.
"""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakSet

_locks: WeakSet[Any] = WeakSet()


def new_lock() -> threading.Lock:
    """Return a lock that is unlocked in a child; the state that it protects must be valid at any fork."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def _free_all() -> None:
    for lock in tuple(_locks):
        # The standard library does the same for its own locks.
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
