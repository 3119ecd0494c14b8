"""Locks that a forked child finds free, whichever thread of its parent held them.

A child has only the thread that forked. A lock that another thread held would stay locked in it for ever.
"""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakSet

_locks: WeakSet[Any] = WeakSet()


def new_lock() -> threading.Lock:
    """Return a lock that is free in a child, for state that is whole between any two steps of Python."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def _free_all() -> None:
    for lock in tuple(_locks):
        # What the standard library itself does for its locks.
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
