"""The process whose disk fails: it continues to write, and prints the answer to each write.

`python -m tests.torture.victim DB WRITES` prints a JSON line per write: its number and None, or the
error's name and whether the engine could still read. It never reopens what could be opened once.
"""

from __future__ import annotations

import json
import sys

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.errors import EngineError, ServiceError

from . import shop

_CHECKPOINT_OFTEN = "PRAGMA wal_autocheckpoint = 12"
_TRIES = 20


def main(path: str, writes: int) -> None:
    engine = _open(path)
    for number in range(1, writes + 1):
        answer: str | None = None
        try:
            shop.put(engine, shop.content(number))
        except EngineError as error:
            answer = type(error).__name__
        print(json.dumps([number, answer, shop.get(engine, "item-0") == shop.content(0)]), flush=True)
    engine.close()


def _open(path: str) -> SqliteEngine:
    """Open the file and make the table; a fault may hit that too, and then it is tried again."""
    for _ in range(_TRIES):
        try:
            engine = sqlite.open(path)
            engine.database.write(lambda connection: connection.execute(_CHECKPOINT_OFTEN).fetchone())
            try:
                engine.call("CreateTable", shop.SHOP)
            except ServiceError as refused:
                assert refused.code == "ResourceInUseException"
            shop.put(engine, shop.content(0))
        except EngineError as error:
            print(json.dumps([0, type(error).__name__, True]), flush=True)
        else:
            return engine
    raise SystemExit("the engine never came back")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
