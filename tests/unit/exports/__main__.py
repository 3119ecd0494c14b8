"""A worker of the tests: `daily PATH FOLDER` exports once a day, and stops between the tables' exports."""

from __future__ import annotations

import sys

from solotable import connect
from solotable.exports import FolderLocation, export_daily
from tests.killing import step, tell

from .daily_tables import app, log


def main(path: str, folder: str) -> None:
    with connect(f"sqlite:///{path}", app, log) as db:
        done = export_daily(
            db, FolderLocation(folder), lease_seconds=0.05, progress=lambda name, *_: step(name)
        )
        tell(f"{len(done.exported)} exported")


if __name__ == "__main__":
    main(*sys.argv[1:])
