"""A live table: how it differs from the declared one, and the steps that change it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click

from solotable._entities.declare.table import STREAM, Table
from solotable._entities.schema.diff import Difference, compare
from solotable._protocol.engine import Engine
from solotable._protocol.requests import Control
from solotable.cli.exit_codes import UNAVAILABLE
from solotable.errors import TableNotFound

_FIRST_WAIT_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 5.0
_SECONDS_BETWEEN_LINES = 10.0


class WaitTimeout(click.ClickException):
    """A table or index did not become ready in time."""

    exit_code = UNAVAILABLE


class LiveTable:
    """A declared table in an engine; without an engine the table does not exist."""

    def __init__(self, engine: Engine | None, table: Table, name: str) -> None:
        self._engine = engine
        self._table = table
        self.name = name

    def differences(self) -> list[Difference]:
        """Return the differences between the live and the declared table."""
        live = self._describe()
        ttl = None
        if live is not None:
            reply = self._call("DescribeTimeToLive", {"TableName": self.name})
            ttl = reply.get("TimeToLiveDescription", {})
        return compare(self._table.definition(self.name), self._table.ttl, live, ttl)

    def repair(self, difference: Difference, timeout: float) -> Iterator[str]:
        """Remove a difference, and yield a line for each step; a new table also gets its time to live."""
        match difference.remedy:
            case "create":
                self._call("CreateTable", self._table.definition(self.name))
                yield "the table is being created"
                yield from self._wait(timeout, None)
                if self._table.ttl is not None:
                    yield from self._time_to_live(self._table.ttl, enabled=True)
            case "add":
                yield from self._add(difference, timeout)
            case "delete":
                yield from self._delete(difference, timeout)
            case "replace":
                yield from self._delete(difference, timeout)
                yield from self._add(difference, timeout)
            case "enable-ttl":
                assert difference.declared is not None
                yield from self._time_to_live(difference.declared, enabled=True)
            case "enable-stream":
                yield from self._stream(dict(STREAM), timeout)
            case "replace-stream":
                yield from self._stream({"StreamEnabled": False}, timeout)
                yield from self._stream(dict(STREAM), timeout)
            case "disable-ttl":
                assert difference.live is not None
                yield from self._time_to_live(difference.live, enabled=False)
                if difference.declared is not None:
                    yield "DynamoDB accepts another TTL attribute after an hour; apply again then"

    def _stream(self, specification: dict[str, Any], timeout: float) -> Iterator[str]:
        self._call("UpdateTable", {"TableName": self.name, "StreamSpecification": specification})
        yield f"the stream is turned {'on' if specification['StreamEnabled'] else 'off'}"
        yield from self._wait(timeout, None)

    def _add(self, difference: Difference, timeout: float) -> Iterator[str]:
        assert difference.index is not None
        live = self._describe() or {}
        index = dict(difference.index)
        provisioned = live.get("ProvisionedThroughput", {})
        if provisioned.get("ReadCapacityUnits") and provisioned.get("WriteCapacityUnits"):
            names = ("ReadCapacityUnits", "WriteCapacityUnits")
            index["ProvisionedThroughput"] = {name: provisioned[name] for name in names}
        members = {
            "TableName": self.name,
            "AttributeDefinitions": self._definitions(live, index),
            "GlobalSecondaryIndexUpdates": [{"Create": index}],
        }
        self._call("UpdateTable", members)
        yield f"index {index['IndexName']} is being added"
        yield from self._wait(timeout, index["IndexName"])

    def _delete(self, difference: Difference, timeout: float) -> Iterator[str]:
        assert difference.index is not None
        name = difference.index["IndexName"]
        updates = [{"Delete": {"IndexName": name}}]
        self._call("UpdateTable", {"TableName": self.name, "GlobalSecondaryIndexUpdates": updates})
        yield f"index {name} is being deleted"
        yield from self._wait(timeout, name, gone=True)

    def _time_to_live(self, attribute: str, *, enabled: bool) -> Iterator[str]:
        wanted = {"AttributeName": attribute, "Enabled": enabled}
        self._call("UpdateTimeToLive", {"TableName": self.name, "TimeToLiveSpecification": wanted})
        yield f"time to live by {attribute} is turned {'on' if enabled else 'off'}"

    def _definitions(self, live: dict[str, Any], index: dict[str, Any]) -> list[dict[str, str]]:
        """Return the attributes of existing keys and of the new index; DynamoDB rejects any others."""
        kinds = {
            each["AttributeName"]: each["AttributeType"]
            for each in self._table.definition(self.name)["AttributeDefinitions"]
        }
        attributes = {each["AttributeName"]: each["AttributeType"] for each in live["AttributeDefinitions"]}
        attributes |= {each["AttributeName"]: kinds[each["AttributeName"]] for each in index["KeySchema"]}
        return [{"AttributeName": name, "AttributeType": kind} for name, kind in attributes.items()]

    def _wait(self, timeout: float, index: str | None, *, gone: bool = False) -> Iterator[str]:
        """Wait until the table and the named index are ready, or the index is gone."""
        what = "the table" if index is None else f"index {index}"
        start = printed = time.monotonic()
        wait = _FIRST_WAIT_SECONDS
        while True:
            live = self._describe() or {}
            status = live.get("TableStatus")
            if index is not None and status == "ACTIVE":
                found = [
                    each for each in live.get("GlobalSecondaryIndexes", ()) if each["IndexName"] == index
                ]
                status = found[0].get("IndexStatus", "ACTIVE") if found else "GONE"
            now = time.monotonic()
            if status == ("GONE" if gone else "ACTIVE"):
                yield f"{what} is {'gone' if gone else 'ready'} after {now - start:.1f} s"
                return
            if now - start > timeout:
                raise WaitTimeout(
                    f"{self.name}: {what} is still {status} after {timeout:.0f} s; apply again later."
                )
            if now - printed > _SECONDS_BETWEEN_LINES:
                printed = now
                yield f"{what} is {status} after {now - start:.0f} s"
            time.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT_SECONDS)

    def _describe(self) -> dict[str, Any] | None:
        if self._engine is None:
            return None
        try:
            live: dict[str, Any] = self._call("DescribeTable", {"TableName": self.name})["Table"]
        except TableNotFound:
            return None
        return live

    def _call(self, operation: str, members: dict[str, Any]) -> dict[str, Any]:
        assert self._engine is not None
        reply: dict[str, Any] = self._engine.handle(Control(operation=operation, members=members))
        return reply
