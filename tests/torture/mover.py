"""Programs of a migration between two files: a worker, workers that are killed, and a writer beside them.

python -m tests.torture.mover work FOLDER LEASE_SECONDS
python -m tests.torture.mover kill FOLDER WORKERS MOST_REQUESTS SEED
python -m tests.torture.mover write FOLDER ITEMS RATE SEED
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from solotable._protocol.requests import BatchPut, BatchWriteItem
from solotable._values import dump_item
from solotable.engines import sqlite
from solotable.migrations.worker import Worker
from solotable.migrations.workflow import cursors
from tests.killing import tell
from tests.migrations.workflow.lab import Lab
from tests.waiting import jitter

#: Writes between two reports of the writer.
_REPORTED = 50
#: The cursors of a killed worker are free soon. On a loaded machine, those of a living one are too.
SHORT_LEASE = 1.0


def open_lab(folder: Path) -> Lab:
    """Open the files of a migration, as every process of it does."""
    engines = (sqlite.open(folder / name, durability="relaxed") for name in ("old.db", "new.db"))
    source, target = engines
    # The clock of the machine: a wait is a wait here.
    return Lab(source, target, waits=True)


def fill(lab: Lab, users: int, surveys: int) -> None:
    """Write items to the sources in batches."""
    for first in range(0, users, 25):
        puts = tuple(
            BatchPut(item=dump_item({"id": f"u{n}", "name": f"Name {n}", "email": f"u{n}@x.example"}))
            for n in range(first, min(users, first + 25))
        )
        lab.old_engine.handle(BatchWriteItem(tables=(("Users", puts),)))
    for number in range(surveys):
        lab.survey(number, sections=number % 5)


def work(folder: Path, lease_seconds: float, met: Callable[[], object] | None = None) -> None:
    """Work until the process, or the one that started it, is killed; call `met` before each request."""
    cursors.LEASE_SECONDS = lease_seconds
    lab = open_lab(folder)
    if met is None:
        tell("working")
    else:
        lab.old_engine.before = lab.new_engine.before = lambda _: met()
    worker, parent = Worker(lab.migration), os.getppid()
    while os.getppid() == parent:
        if worker.step() == "waiting":
            time.sleep(0.02)


def kill(folder: Path, workers: int, most_requests: int, seed: int) -> None:
    """Start workers, one after the other, and send kill -9 to each after a random number of requests.

    A fork starts in milliseconds, also on a loaded machine. This process opens no database.
    """
    dice = random.Random(seed)
    for _ in range(workers):
        told, telling = os.pipe()
        left = dice.randrange(1, most_requests)
        worker = os.fork()
        if worker == 0:
            requests = iter(range(left, -1, -1))
            work(folder, SHORT_LEASE, lambda: next(requests, 1) or os.write(telling, b"."))  # noqa: B023
        os.close(telling)
        os.read(told, 1)
        # The request runs, or has ended.
        jitter(dice)
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
        os.close(told)
        tell("killed")


def write(folder: Path, items: int, rate: float, seed: int) -> None:
    """Update users, and create and delete surveys, at a rate until the process is killed."""
    lab = open_lab(folder)
    dice = random.Random(seed)
    tell("writing")
    began, count = time.monotonic(), 0
    while True:
        number = dice.randrange(items)
        match dice.randrange(10):
            case 0:
                lab.survey(number % 1000, sections=dice.randrange(5), title=f"At {count}")
            case 1:
                lab.delete("Surveys", f"s{number % 1000}")
            case _:
                lab.user(number, f"At {count}", email=f"{dice.choice('ab')}{number}@x.example")
        count += 1
        if count % _REPORTED == 0:
            tell(str(count))
        time.sleep(max(0.0, began + count / rate - time.monotonic()))


def main() -> None:
    """Run one of the programs."""
    folder = Path(sys.argv[2])
    if sys.argv[1] == "work":
        work(folder, float(sys.argv[3]))
    elif sys.argv[1] == "kill":
        kill(folder, int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
    else:
        write(folder, int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))


if __name__ == "__main__":
    main()
