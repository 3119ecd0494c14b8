"""A worker in its own process, which waits for the test at one step: `DATABASE FOLDER STAGE STEP SECONDS`."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime

from solotable import connect
from solotable.systems.community.builds.stages import Stage
from solotable.systems.community.builds.worker import BuildWorker
from solotable.systems.community.table import community
from solotable.systems.storage import FolderStorage
from tests.killing import step, tell

from .workshop import SETTINGS


def main(path: str, folder: str, stage: str, at: str, ahead: str) -> None:
    """Build what waits. The clock is ahead, so that the lease of a killed worker has ended."""

    def clock() -> float:
        return time.time() + float(ahead)

    def report(entered: Stage, done: int) -> None:
        if entered == stage and done >= int(at):
            step(f"{entered} {done}")

    with connect(f"sqlite:///{path}", community, clock=clock) as db:
        now = lambda: datetime.fromtimestamp(clock(), UTC)  # noqa: E731 - a clock as a value
        with BuildWorker(db, FolderStorage(folder), SETTINGS, now=now, progress=report) as worker:
            tell(f"done {worker.run_once().live}")


if __name__ == "__main__":
    main(*sys.argv[1:])
