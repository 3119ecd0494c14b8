"""The migration of the surveys for its tests: the eight old tables, the new one, and clients of both."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Coroutine, Iterator, Mapping
from typing import Any, TypeVar

import pytest

from solotable import AsyncDatabase, Database, flow
from solotable._connect import over, to_async
from solotable._protocol.requests import Control, Request
from solotable._values import Item, dump_item, load_item
from solotable.engines import sqlite
from solotable.flow.requests import DeleteItem, GetItem, PutItem
from solotable.migrations.diff import DiffOptions, DiffReport, diff
from solotable.migrations.migration import Migration
from solotable.migrations.switching.switch import SwitchOptions
from solotable.migrations.worker import Worker
from solotable.systems.surveys import surveyor
from solotable.systems.surveys.migration import OLD_TABLES, DirtyData, old_items, survey_mapping
from solotable.testing.engines.wrapper import EngineWrapper
from solotable.urls import Url
from tests.migrations.stored_items import stored_items

ResultT = TypeVar("ResultT")
#: Routers of a test read the record at once.
#: A loaded machine may apply changes late.
SWITCH = SwitchOptions(announce_seconds=0.0, timeout_seconds=200.0, max_lag_seconds=60.0)


class Requests(EngineWrapper):
    """An engine that keeps the requests which it got."""

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.requests: list[Request[Any]] = []

    def handle(self, request: Request[Any], /) -> Any:
        """Keep and answer a request."""
        self.requests.append(request)
        return self.inner.handle(request)


class Move:
    """A migration, and what clients of the old and the new tables do."""

    def __init__(self, engine: Any, prefix: str = "") -> None:
        self.prefix = prefix
        self.engine = Requests(engine)
        address = Url("sqlite", "test", settings={"prefix": prefix})
        self.old: Database = over(self.engine, OLD_TABLES, address)
        self.new: Database = over(self.engine, (surveyor,), address)
        self.mapping = survey_mapping()
        self.migration = Migration(
            "surveys", self.mapping, sources=self.old, target=self.new, control_table=f"{prefix}control"
        )

    def fill(self, size: DirtyData | None = None) -> dict[str, int]:
        """Store old items, and return their number by table."""
        counts: dict[str, int] = {}
        for table, values in old_items(size):
            self.put(table, values)
            counts[table] = counts.get(table, 0) + 1
        return counts

    def put(self, table: str, values: Mapping[str, Any]) -> None:
        """Write an old item, as a client of the old tables does."""
        self._send(PutItem(table=self.prefix + table, item=dump_item(values)))

    def delete(self, table: str, **key: str) -> None:
        """Delete an old item."""
        self._send(DeleteItem(table=self.prefix + table, key=dump_item(key)))

    def old_item(self, table: str, **key: str) -> dict[str, Any] | None:
        """Read an old item."""
        reply = self._send(GetItem(table=self.prefix + table, key=dump_item(key), consistent=True))
        return None if reply.item is None else load_item(flow.decode_item(reply.item))

    def content_of(self, survey_id: str) -> dict[str, Any]:
        """Return the document of an old survey."""
        item = self.old_item("Surveys", id=survey_id)
        assert item is not None
        found: dict[str, Any] = json.loads(item["content"])
        return found

    def stored(self, table: str = "SurveyorData") -> list[Item]:
        """Return all items of a table."""
        return stored_items(self.new, self.prefix + table)

    def start(self) -> None:
        """Create and start the migration."""
        self.migration.create(samples=5)
        self.migration.start()

    def copy(self) -> None:
        """Work until the copy has caught up."""
        self.migration.work(until=lambda record: record.state == "Running", poll_seconds=0.002)

    def catch_up(self) -> None:
        """Apply every change."""
        worker = Worker(self.migration)
        while worker.step() == "worked":
            pass
        worker.release()

    def diff(self) -> DiffReport:
        """Compare both sides and record the outcome."""
        return diff(self.migration, DiffOptions(settle_seconds=0))

    def moved(self, size: DirtyData | None = None) -> None:
        """Store old items, copy and compare them."""
        self.fill(size)
        self.start()
        self.copy()
        report = self.diff()
        assert report.is_equal, report.to_json()

    def await_(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Run what a service of the new table does."""
        return asyncio.run(work)

    @property
    def db(self) -> AsyncDatabase:
        """The new table for services."""
        return AsyncDatabase(to_async(self.engine), self.new.scope)

    def _send(self, request: Any) -> Any:
        return flow.run(flow.send(flow.scope_of(self.new), request), self.new)


def moves(place: str, request: pytest.FixtureRequest) -> Iterator[Move]:
    """Yield a migration whose both sides are at one place."""
    if place == "engine":
        engine: Any = sqlite.open(sqlite.MEMORY)
        yield Move(engine)
        engine.close()
        return
    engine = request.getfixturevalue("wire_engine" if place == "server" else "local_engine")
    prefix = f"t{uuid.uuid4().hex[:12]}."
    yield Move(engine, prefix)
    for name in engine.handle(Control(operation="ListTables", members={}))["TableNames"]:
        if name.startswith(prefix):
            engine.handle(Control(operation="DeleteTable", members={"TableName": name}))
