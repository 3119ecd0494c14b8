"""Short words for the table `Things`: write an item, read all, and find the window."""

from __future__ import annotations

from typing import Any

from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.tables import windows

from .past import newest

Json = dict[str, Any]


def write(engine: SqliteEngine, key: str, name: str = "Things", **more: Json) -> int:
    engine.call("PutItem", {"TableName": name, "Item": {"pk": {"S": key}, **more}})
    return newest(engine)


def rows(engine: SqliteEngine, name: str = "Things", **members: Any) -> dict[str, Json]:
    found = engine.call("Scan", {"TableName": name, **members})["Items"]
    return {item["pk"]["S"]: item for item in found}


def window_of(engine: SqliteEngine) -> windows.Window:
    with engine.database.read() as connection:
        found = windows.find(connection, str(engine.table("Things").definition["TableId"]))
    assert found is not None
    return found


def first(engine: SqliteEngine) -> int:
    return window_of(engine).start
