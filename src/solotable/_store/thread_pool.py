"""A thread pool that works after a fork: it starts new threads in the child."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

ParamsT = ParamSpec("ParamsT")
ResultT = TypeVar("ResultT")


class ThreadPool(Executor):
    """Runs calls in up to `threads` threads of the process that submits them."""

    def __init__(self, threads: int, *, name: str) -> None:
        self._threads = threads
        self._name = name
        self._start()

    def _start(self) -> None:
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix=self._name)
        # Set last, so that no thread of a child uses the parent's pool under the child's process id.
        self._process = os.getpid()

    def submit(
        self, work: Callable[ParamsT, ResultT], /, *args: ParamsT.args, **kwargs: ParamsT.kwargs
    ) -> Future[ResultT]:
        """Run the call in a thread."""
        if self._process != os.getpid():
            self._start()
        return self._pool.submit(work, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads of this process."""
        if self._process == os.getpid():
            self._pool.shutdown(wait, cancel_futures=cancel_futures)
