"""A worker process of the shop's migration: `python -m tests.migrations.router.worker OLD NEW`."""

from __future__ import annotations

import sys
import threading

from .customer import open_migration


def main(old_file: str, new_file: str) -> None:
    """Work until the test closes the standard input."""
    stop = threading.Event()
    migration = open_migration(old_file, new_file)
    working = threading.Thread(target=lambda: migration.work(workers=1, poll_seconds=0.02, stop=stop))
    working.start()
    sys.stdin.read()
    stop.set()
    working.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
