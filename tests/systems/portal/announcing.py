"""A worker in its own process, which reports each transaction: `python -m ... DATABASE FOLDER SECONDS`."""

from __future__ import annotations

import sys
import time

from solotable import connect
from solotable.systems.portal.services.notifications.announcements import Announcer
from solotable.systems.portal.tables import TABLES
from solotable.systems.storage import FolderStorage
from tests.killing import step, tell


def main(path: str, folder: str, ahead: str) -> None:
    """Deliver what waits. The clock is ahead, so that the lease of a killed worker has ended."""
    with connect(f"sqlite:///{path}", *TABLES, clock=lambda: time.time() + float(ahead)) as db:
        tell("open")
        announcer = Announcer(db, FolderStorage(folder))
        done = announcer.run_once(progress=lambda announcement: step(str(announcement.notified)))
        tell(f"done {done.announcements}")


if __name__ == "__main__":
    main(*sys.argv[1:])
