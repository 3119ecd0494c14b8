"""Restores, backs up or prunes a file, and stops after each step until it is released; or writes to it.

Run as `python -m tests.torture.restorer FILE ACTION ARGUMENT`.
"""

from __future__ import annotations

import json
import random
import sys
import time

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.maintenance import change_pruning
from solotable.engines.sqlite.recovery import copying, in_place, targets
from solotable.engines.sqlite.recovery.in_place import Preview, apply_preview
from solotable.engines.sqlite.recovery.restore import restore_table, restore_to_file
from solotable.engines.sqlite.recovery.scopes import Scope
from tests.killing import step, tell

#: Items of one step, so that there are many.
STEP = 50


def make_steps_small() -> None:
    copying._SMALL_STEP = copying._LARGE_STEP = STEP
    copying._STEP_BYTES = 20_000
    in_place._APPLY_STEP = STEP
    change_pruning.BATCH = STEP


def show(done: int, total: int) -> None:
    step(f"{done} of {total}")


def put(engine: SqliteEngine, key: str, value: int) -> None:
    item = {"pk": {"S": key}, "v": {"N": str(value)}, "g": {"S": str(value % 7)}}
    engine.call("PutItem", {"TableName": "Shop", "Item": item})


def write(engine: SqliteEngine, seed: int) -> None:
    """Write until killed."""
    chance = random.Random(seed)
    number = 0
    while True:
        key = f"k{chance.randrange(3_000):05d}"
        if chance.random() < 0.3:
            engine.call("DeleteItem", {"TableName": "Shop", "Key": {"pk": {"S": key}}})
        else:
            put(engine, key, chance.randrange(1_000_000))
        number += 1
        tell(str(number))


def main(path: str, action: str, argument: str) -> None:
    make_steps_small()
    moment = float(argument) if action == "prune" else 0.0
    clock = (lambda: moment) if action == "prune" else time.time
    with sqlite.open(path, durability="relaxed", clock=clock) as engine:
        step("begun")
        match action:
            case "table":
                restore_table(engine, "Shop", int(argument), "Restored", scope=Scope(), progress=show)
            case "file":
                with sqlite.open(f"{path}.copy", durability="relaxed") as other:
                    restore_to_file(
                        engine, "Shop", int(argument), other, "Shop", scope=Scope(), progress=show
                    )
            case "continue":
                targets.complete(engine, argument)
            case "place":
                apply_preview(engine, Preview.from_json(json.loads(argument)), progress=show)
            case "prune":
                remove = change_pruning._remove

                def remove_and_step(*arguments: object) -> object:
                    done = remove(*arguments)  # type: ignore[arg-type]
                    step(f"pruned {done}")
                    return done

                change_pruning._remove = remove_and_step  # type: ignore[assignment]
                engine.sweep()
            case "write":
                write(engine, int(argument))
        tell("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
