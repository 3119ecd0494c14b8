"""Exports of random tables, imported and exported again: the files are equal to the byte."""

from __future__ import annotations

import base64
import random
import time
from pathlib import Path

import pytest

from solotable._values import AttributeValue, Item
from solotable.engines.sqlite import SqliteEngine
from solotable.exports import FolderLocation, import_export, open_export
from tests.unit.exports.tables import EVERY_TYPE, exported, shop

from .size import LIMIT_SECONDS, SEED, amount, report

ROUNDS = amount(2, 200)
ITEMS = amount(300, 10_000)
_LETTERS = 'abcäßλ語🙂 \n\0\u2028"\\#/'

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def value(dice: random.Random, depth: int = 0) -> AttributeValue:
    """Return a random value of a random type."""
    kind = dice.choice(("S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", *(("L", "M") if depth < 3 else ())))
    match kind:
        case "S":
            return {"S": text(dice)}
        case "N":
            return {"N": number(dice)}
        case "B":
            return {"B": binary(dice)}
        case "BOOL":
            return {"BOOL": dice.random() < 0.5}
        case "NULL":
            return {"NULL": True}
        case "SS":
            return {"SS": sorted({text(dice) + "." for _ in range(dice.randint(1, 3))})}
        case "NS":
            return {"NS": sorted({str(dice.randrange(10**6)) for _ in range(dice.randint(1, 3))})}
        case "BS":
            return {"BS": sorted({binary(dice) for _ in range(dice.randint(1, 3))})}
        case "L":
            return {"L": [value(dice, depth + 1) for _ in range(dice.randrange(4))]}
        case _:
            return {"M": {text(dice) + ".": value(dice, depth + 1) for _ in range(dice.randrange(4))}}


def text(dice: random.Random) -> str:
    return "".join(dice.choices(_LETTERS, k=dice.randrange(12)))


def number(dice: random.Random) -> str:
    digits = str(dice.randrange(10 ** dice.randint(1, 38)))
    return f"{dice.choice(('', '-'))}{digits}e{dice.randint(-80, 80)}"


def binary(dice: random.Random) -> str:
    return base64.b64encode(dice.randbytes(dice.randint(1, 9))).decode()


def fill(engine: SqliteEngine, dice: random.Random) -> None:
    """Put random items, some of which have an owner and so are in the index."""
    items: list[Item] = [EVERY_TYPE]
    for place in range(1, ITEMS):
        item: Item = {f"a{n}": value(dice) for n in range(dice.randrange(5))}
        if dice.random() < 0.5:
            item["owner"] = {"S": text(dice) + "."}
        items.append({**item, "pk": {"S": f"p{dice.randrange(50)}"}, "sk": {"N": str(place)}})
    for start in range(0, ITEMS, 25):
        puts = [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]
        engine.call("BatchWriteItem", {"RequestItems": {"Shop": puts}})


def test_round_trips_of_random_tables_are_equal_to_the_byte(tmp_path: Path) -> None:
    begun = time.process_time()
    for number_ in range(ROUNDS):
        dice = random.Random(f"{SEED} {number_}")
        size = dice.choice((10_000, 100_000, 2**26))
        with shop() as source, shop() as target:
            fill(source, dice)
            folder = exported(source, tmp_path / f"{number_}a", file_bytes=size)
            done = import_export(target, "Shop", open_export(FolderLocation(folder)))
            assert (done.written, done.failed) == (ITEMS, 0), (SEED, number_)
            again = exported(target, tmp_path / f"{number_}b", file_bytes=size)
        contents = [
            [(each / "data" / file.name).read_bytes() for file in open_export(FolderLocation(each)).files]
            for each in (folder, again)
        ]
        assert contents[0] == contents[1], (SEED, number_)
        for each in (*folder.rglob("*.gz"), *again.rglob("*.gz")):
            each.unlink()
    report(
        f"{ROUNDS} round trips of {ITEMS:,} items, equal to the byte; "
        f"{time.process_time() - begun:,.0f} s of CPU (seed {SEED})"
    )
