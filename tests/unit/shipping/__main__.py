"""The programs of the tests: `write PATH NAME` writes items until killed, `ship PATH FOLDER` ships them.

`once PATH FOLDER` ships, makes a snapshot and prunes; `recover FOLDER PATH` restores.
"""

from __future__ import annotations

import sys
import threading

from solotable.engines import sqlite
from solotable.locations import FolderLocation
from solotable.shipping import Shipped, Shipper, ShippingLimits, prune, restore_file
from tests.killing import tell

#: So small that a test meets every branch: parts of transactions, checkpoints, new logs and snapshots.
SMALL = ShippingLimits(segment_pages=8, held_frames=16, checkpoint_frames=64, snapshot_seconds=0.2)


def write(path: str, name: str) -> None:
    """Write numbered items, two in each transaction, and tell each number after its commit."""
    engine = sqlite.open(path, durability="relaxed")
    pragma = "PRAGMA wal_autocheckpoint = 40"
    engine.database.write(lambda connection: connection.execute(pragma).fetchone())
    number = 0
    while True:
        number += 1
        puts = [
            {
                "Put": {
                    "TableName": "Shop",
                    "Item": {"id": {"S": f"{name}{side}"}, "n": {"N": str(number)}, "x": {"S": "x" * size}},
                }
            }
            for side, size in (("a", number % 3_000), ("b", 10))
        ]
        engine.call("TransactWriteItems", {"TransactItems": puts})
        tell(str(number))


def ship(path: str, folder: str) -> None:
    """Ship until killed, and tell the sequence of each segment."""

    def show(now: Shipped) -> None:
        tell(f"{now.generation} {now.sequence}")

    with Shipper(path, FolderLocation(folder), limits=SMALL) as shipper:
        shipper.run(threading.Event(), interval_seconds=0.0, progress=show)


def once(path: str, folder: str) -> None:
    """Ship, checkpoint, make a snapshot, and prune all that it makes superfluous."""
    limits = ShippingLimits(segment_pages=4, held_frames=1, checkpoint_frames=1, snapshot_seconds=0)
    with Shipper(path, FolderLocation(folder), limits=limits) as shipper:
        for _ in range(2):
            shipper.ship()
            if shipper._snapshot is not None:
                shipper._snapshot.join()
    prune(FolderLocation(folder), keep_seconds=1e-6)


def recover(folder: str, path: str) -> None:
    """Restore a backup to a file."""
    restore_file(FolderLocation(folder), path)


if __name__ == "__main__":
    {"write": write, "ship": ship, "once": once, "recover": recover}[sys.argv[1]](*sys.argv[2:])
