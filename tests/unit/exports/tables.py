"""Engines with a small table to export, and items of every type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from solotable._protocol.engine import Capabilities
from solotable._protocol.requests import Request
from solotable._values import Item
from solotable.engines.sqlite import SqliteEngine
from solotable.exports import FolderLocation, export_table
from solotable.testing.engines.wrapper import EngineWrapper
from tests.conformance.tables import table
from tests.unit.engines.sqlite.clocked import opened


class PlainEngine(EngineWrapper):
    """An engine that answers one request at a time, as one on the network does, and keeps the requests."""

    def __init__(self, engine: SqliteEngine) -> None:
        super().__init__(engine)
        self.requests: list[Request[Any]] = []

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(sleep=lambda seconds: None)

    def handle(self, request: Request[Any], /) -> Any:
        self.requests.append(request)
        return super().handle(request)


EVERY_TYPE: Item = {
    "pk": {"S": "every"},
    "sk": {"N": "1"},
    "text": {"S": "Grüße\n\u0000\u2028"},
    "number": {"N": "-12345678901234567890.123456789012345678"},
    "bytes": {"B": "AAEC/w=="},
    "yes": {"BOOL": True},
    "none": {"NULL": True},
    "list": {"L": [{"S": "a"}, {"M": {"deep": {"N": "1"}}}]},
    "map": {"M": {}},
    "texts": {"SS": ["a", "b"]},
    "numbers": {"NS": ["1", "2.5"]},
    "binaries": {"BS": ["AA==", "AQ=="]},
}


def shop(path: object = ":memory:") -> SqliteEngine:
    """Return an engine with the table Shop, which has an index."""
    engine = opened(path)
    engine.call("CreateTable", table("Shop", "pk:S", "sk:N", gsi=[_index()], types={"owner": "S"}))
    return engine


def _index() -> dict[str, Any]:
    return {
        "IndexName": "by_owner",
        "KeySchema": [{"AttributeName": "owner", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }


def put(engine: SqliteEngine, *items: Item, name: str = "Shop") -> None:
    for item in items:
        engine.call("PutItem", {"TableName": name, "Item": item})


def order(number: int, **more: Any) -> Item:
    return {"pk": {"S": f"o{number % 7}"}, "sk": {"N": str(number)}, "_type": {"S": "Order"}, **more}


def all_items(engine: SqliteEngine, name: str = "Shop") -> list[Item]:
    found: list[Item] = engine.call("Scan", {"TableName": name})["Items"]
    return found


def exported(engine: SqliteEngine, folder: Path, **options: Any) -> Path:
    """Export the table to a folder, and return the folder of the export."""
    done = export_table(engine, "Shop", FolderLocation(folder), clock=engine._clock, **options)
    return folder / done.folder
