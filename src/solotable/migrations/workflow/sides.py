"""The two sides of a migration: an engine, the names of its tables, and its control table.

Each side has a control table, because a transaction reaches only the tables of one engine. If both sides
are on one engine, they share it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from solotable._entities.declare.table import STREAM, Table
from solotable._flows.retry import Flow, Sleep, send
from solotable._flows.scope import Scope
from solotable._protocol.engine import Engine
from solotable._protocol.requests import Control
from solotable._store.runner import run
from solotable._values import Item
from solotable.errors import MigrationError, ServiceError, TableNotFound

from .states import SideName

ResultT = TypeVar("ResultT")
CONTROL_TABLE = "solotable-migrations"
_POLL_SECONDS = 0.25
_MOST_POLLS = 2400


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side: its engine, the names of its tables in the engine, and its control table."""

    name: SideName
    engine: Engine
    #: The clock, the retries, and the names of the tables.
    scope: Scope
    #: The tables by their names in the mapping.
    tables: Mapping[str, Table]
    #: The key attributes of each table, by its name in the engine.
    key_names: Mapping[str, tuple[str, ...]]
    control: str

    @property
    def names(self) -> Mapping[str, str]:
        """The name in the engine of each table, by its name in the mapping."""
        return self.scope.names

    @property
    def label(self) -> str:
        """The side in an error message."""
        return f"the {self.name} ({', '.join(self.names.values())})"

    @property
    def clock(self) -> Callable[[], float]:
        """The clock of the side's scope."""
        return self.scope.clock

    def run(self, flow: Flow[ResultT]) -> ResultT:
        """Run a flow on the side's engine."""
        return run(flow, self.engine)


def control_key(name: str, kind: str) -> Item:
    """Return the key of an item of a migration in the control table."""
    return {"PK": {"S": f"MIGRATION#{name}"}, "SK": {"S": kind}}


def ensure_control_table(side: Side) -> Flow[None]:
    """Create the control table of a side if it is missing, and wait until it can be used."""
    definition = Table(side.control).definition()
    try:
        yield from control(side, "CreateTable", **definition)
    except ServiceError as error:
        if error.code != "ResourceInUseException":
            raise
    yield from wait_active(side, side.control)


def wait_active(side: Side, table: str) -> Flow[dict[str, Any]]:
    """Wait until a table is ACTIVE, and return its description."""
    for _ in range(_MOST_POLLS):
        described = yield from describe_table(side, table)
        if described["TableStatus"] == "ACTIVE":
            return described
        yield Sleep(_POLL_SECONDS)
    raise MigrationError(f"Table {table!r} of {side.label} is not ACTIVE after ten minutes.")


def describe_table(side: Side, table: str) -> Flow[dict[str, Any]]:
    """Return a table's description; raise MigrationError if it does not exist."""
    try:
        reply = yield from control(side, "DescribeTable", TableName=table)
    except TableNotFound as error:
        raise MigrationError(
            f"Table {table!r} of {side.label} does not exist; create it, or correct the name in the mapping."
        ) from error
    found: dict[str, Any] = reply["Table"]
    return found


def ensure_stream(side: Side, table: str) -> Flow[bool]:
    """Enable the stream of a table with both images; return False if it was enabled before."""
    described = yield from describe_table(side, table)
    specification = described.get("StreamSpecification", {})
    if specification.get("StreamEnabled"):
        view = specification.get("StreamViewType")
        if view != STREAM["StreamViewType"]:
            raise MigrationError(
                f"Table {table!r} of {side.label} has a stream of {view}, but a migration needs "
                f"{STREAM['StreamViewType']}; disable the stream, or ask its readers to accept both images."
            )
        return False
    try:
        yield from control(side, "UpdateTable", TableName=table, StreamSpecification=dict(STREAM))
    except ServiceError as error:
        # Another process enabled it first.
        if "already has an enabled stream" not in error.message and error.code != "ResourceInUseException":
            raise
        return False
    yield from wait_active(side, table)
    return True


def control(side: Side, operation: str, **members: Any) -> Flow[dict[str, Any]]:
    """Send a control operation."""
    return (yield from send(Control(operation=operation, members=members), side.scope.retries))
