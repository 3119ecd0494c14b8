"""A server with two workers whose engines note who opens and who sweeps: FILE LOG."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

from solotable.engines.sqlite import SqliteEngine
from solotable.server import Settings
from solotable.server.workers import serve_with_workers


class NotingEngine(SqliteEngine):
    """An engine that appends to a log."""

    def __init__(self, path: str, log: str, *, maintenance: bool) -> None:
        self._log = log
        self._note("maintains" if maintenance else "reads")
        super().__init__(path, maintenance=maintenance)

    def sweep(self) -> int:
        self._note("sweep")
        return super().sweep()

    def _note(self, what: str) -> None:
        with Path(self._log).open("a", encoding="ascii") as log:
            log.write(f"{what} {os.getpid()}\n")


if __name__ == "__main__":
    serve_with_workers(
        partial(NotingEngine, sys.argv[1], sys.argv[2]),
        Settings(port=0, sweep_seconds=0.01),
        2,
        ready=lambda _: print("serving", flush=True),  # noqa: T201 - reports to the test
    )
