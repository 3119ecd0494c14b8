"""Ids that sort by the time of their creation: `thing_id: str = Field(default_factory=new_id)`."""

from __future__ import annotations

import os
import time

from solotable._entities.declare.fields import Ulids
from solotable.fork_safe import new_lock

_ulids = Ulids(time.time, os.urandom, new_lock())


def new_id() -> str:
    """Return a new ULID: 26 characters, ascending in this process also within one millisecond.

    >>> first, second = new_id(), new_id()
    >>> (len(first), first < second)
    (26, True)
    """
    return _ulids()
