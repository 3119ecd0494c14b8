"""A pool of threads that a forked child starts again."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from solotable._store import thread_pool
from solotable._store.thread_pool import ThreadPool


def test_no_other_thread_of_a_child_finds_the_parents_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool counts as the child's only once it is one: the parent's has no threads there."""
    pool = ThreadPool(2, name="test")
    pool.shutdown()
    pool._process = 0
    seen: list[int] = []

    def start(*arguments: Any, **settings: Any) -> ThreadPoolExecutor:
        seen.append(pool._process)
        return ThreadPoolExecutor(*arguments, **settings)

    monkeypatch.setattr(thread_pool, "ThreadPoolExecutor", start)
    assert pool.submit(os.getpid).result() == os.getpid()
    assert seen == [0]
    pool.shutdown()
