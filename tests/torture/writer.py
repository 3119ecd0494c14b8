"""The process that is killed: it writes as fast as it can and tells what was acknowledged.

It sends (kind, number) for every write that the engine has answered, right after the answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from multiprocessing.connection import Connection

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.errors import ConditionFailed

from . import shop

PAIR = ("pair-a", "pair-b")
COUNTERS = 2
#: Pages in the log before it is checkpointed: so few that many a kill hits a checkpoint.
_CHECKPOINT_PAGES = 12

Tell = Callable[[str, int], None]


def run(path: str, first: int, acknowledgements: Connection) -> None:
    """Write until killed: items from `first` on, counters, and pairs."""
    lock = threading.Lock()

    def tell(kind: str, number: int) -> None:
        with lock:
            acknowledgements.send_bytes(f"{kind} {number}".encode())

    engine = sqlite.open(path)
    pragma = f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}"
    engine.database.write(lambda connection: connection.execute(pragma).fetchone())
    works = [(_items, first), (_items, first + 500_000), (_pairs, 0), *[(_count, 0)] * COUNTERS]
    for work, start in works:
        threading.Thread(target=work, args=(engine, tell, start), daemon=True).start()
    tell("ready", 0)
    threading.Event().wait()


def _items(engine: SqliteEngine, tell: Tell, number: int) -> None:
    while True:
        number += 1
        shop.put(engine, shop.content(number))
        tell("item", number)


def _count(engine: SqliteEngine, tell: Tell, _: int) -> None:
    while True:
        old = shop.number(engine, "counter")
        try:
            shop.set_from(engine, "counter", old, old + 1)
        except ConditionFailed:
            continue
        tell("count", old + 1)


def _pairs(engine: SqliteEngine, tell: Tell, _: int) -> None:
    while True:
        old = shop.both(engine, PAIR)[0]
        shop.set_both(engine, PAIR, old, old + 1)
        tell("pair", old + 1)
