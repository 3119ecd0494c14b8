"""Meters: the consumed capacity of the calls of a block, on one engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from solotable._flows.consumption import Consumed
from solotable.fork_safe import new_lock

#: Held while a meter is changed: the threads and tasks of a block may do it at the same time.
METER_LOCK = new_lock()

#: The open blocks of this task or thread, each with its engine.
METERS: ContextVar[tuple[tuple[object, Consumed], ...]] = ContextVar("solotable_meters", default=())


@contextmanager
def metered(engine: object) -> Iterator[Consumed]:
    """Sum what the flows of a block consume on an engine; blocks may be nested."""
    consumed = Consumed()
    token = METERS.set((*METERS.get(), (engine, consumed)))
    try:
        yield consumed
    finally:
        METERS.reset(token)
