"""Run workers of a migration in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING

from .worker import Worker
from .workflow.control import ControlRecord

if TYPE_CHECKING:
    from .migration import Migration


def work(
    migration: Migration,
    *,
    workers: int = 1,
    until: Callable[[ControlRecord], bool] | None = None,
    poll_seconds: float = 0.2,
    stop: threading.Event | None = None,
) -> ControlRecord | None:
    """Run workers in threads; an error of one ends all of them."""
    if workers == 1:
        return Worker(migration).run(until=until, poll_seconds=poll_seconds, stop=stop)
    ended = stop or threading.Event()
    with ThreadPoolExecutor(workers, thread_name_prefix="migration") as threads:
        running = [
            threads.submit(Worker(migration).run, until=until, poll_seconds=poll_seconds, stop=ended)
            for _ in range(workers)
        ]
        try:
            for each in as_completed(running):
                each.result()
        except BaseException:
            ended.set()
            raise
    return migration.find_record()
