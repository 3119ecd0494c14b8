"""Ways to damage a file, and a check of what is read from it afterwards."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.errors import EngineError, ServiceError

from . import shop

Json = dict[str, Any]
State = dict[str, Json]

#: The longest stretch of bytes that is lost at once: a page and a half.
_STRETCH = 6000


def spoil(path: Path, chance: random.Random) -> str:
    """Damage some bytes of a file, and say how."""
    content = bytearray(path.read_bytes())
    if not content:
        return "nothing"
    place = chance.randrange(len(content))
    length = min(chance.choice((1, 1, 8, 512, chance.randrange(1, _STRETCH))), len(content) - place)
    kind = chance.choice(("flip", "flip", "flip", "zero", "garbage", "copy", "truncate"))
    match kind:
        case "flip":
            content[place] ^= 1 << chance.randrange(8)
        case "zero":
            content[place : place + length] = bytes(length)
        case "garbage":
            content[place : place + length] = chance.randbytes(length)
        case "copy":
            # A misdirected write: one page over another.
            page = 4096
            source, target = (chance.randrange(-(-len(content) // page)) * page for _ in range(2))
            piece = content[source : source + page]
            content[target : target + len(piece)] = piece
        case _:
            del content[place:]
    path.write_bytes(content)
    return f"{kind} {path.suffix or 'db'} {place}+{length}"


@dataclass(slots=True)
class Findings:
    """What was read from a damaged file."""

    errors: int = 0
    #: Items that no state of the file ever had.
    wrong: list[str] = field(default_factory=list)
    #: Items that the reads passed over in silence.
    missing: int = 0
    #: The reads together show a state that the file once had, though not its last.
    older: bool = False


def check_file(path: Path, states: list[State], chance: random.Random) -> Findings:
    """Read everything in every way; `states` are those that commits have left, the last one last."""
    found = Findings()
    try:
        engine = sqlite.open(path)
    except EngineError:
        found.errors += 1
        return found
    try:
        _check_engine(engine, states, chance, found)
    finally:
        engine.close()
    return found


def _check_engine(engine: SqliteEngine, states: list[State], chance: random.Random, found: Findings) -> None:
    last = states[-1]
    versions: dict[str, list[Json]] = {}
    for state in states:
        for key, item in state.items():
            versions.setdefault(key, []).append(item)
    reads: list[tuple[str, Any, set[str]]] = [("scan", lambda: shop.pages(engine, "Scan"), set(last))]
    for place in range(shop.SHELVES):
        name = f"shelf-{place}"
        there = {key for key, item in last.items() if item["shelf"]["S"] == name}
        reads.append((name, partial(shop.shelf, engine, place), there))
    reads += [
        (key, partial(_one, engine, key), {key} & set(last)) for key in chance.sample(sorted(versions), 40)
    ]
    # Images of a stream are items too; missing records are not checked.
    reads.append(("stream", lambda: _images(engine), set()))
    scanned: State | None = None
    silent: set[str] = set()
    for name, read, expected in reads:
        try:
            items = read()
        except EngineError:
            found.errors += 1
            continue
        except ServiceError:
            # The table itself has gone missing.
            items = []
        served = {item["pk"]["S"]: item for item in items}
        if len(served) < len(items) and name != "stream":
            found.wrong.append(f"{name}: an item twice")
        for key, item in served.items():
            if item not in versions.get(key, ()) or (name.startswith("shelf") and item["shelf"]["S"] != name):
                found.wrong.append(f"{name}: {item}")
        if name == "scan":
            scanned = served
        silent |= {key for key in expected if served.get(key) != last[key]}
    if silent and scanned is not None and scanned != last and scanned in states:
        found.older = True
    else:
        found.missing = len(silent)
        stale = [key for key in silent if scanned and key in scanned and scanned[key] != last[key]]
        found.wrong += [f"scan: {key} is of another moment" for key in stale]


def _images(engine: SqliteEngine) -> list[Json]:
    streams = engine.call("ListStreams", {"TableName": "Shop"})["Streams"]
    if not streams:
        return []
    arn = streams[0]["StreamArn"]
    described = engine.call("DescribeStream", {"StreamArn": arn})["StreamDescription"]
    place = {"StreamArn": arn, "ShardId": described["Shards"][0]["ShardId"]}
    start = engine.call("GetShardIterator", {**place, "ShardIteratorType": "TRIM_HORIZON"})["ShardIterator"]
    records = engine.call("GetRecords", {"ShardIterator": start})["Records"]
    return [
        record["dynamodb"][image]
        for record in records
        for image in ("OldImage", "NewImage")
        if image in record["dynamodb"]
    ]


def _one(engine: SqliteEngine, key: str) -> list[Json]:
    item = shop.get(engine, key)
    return [] if item is None else [item]
