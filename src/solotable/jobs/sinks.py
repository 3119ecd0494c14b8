"""Sinks of the outbox: the audit trail, EventBridge entries, a JSON-lines file, a function.

A sink gets every event at least once and may raise; it is asked again. What it keeps by the event's id
it keeps once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.table import Table
from solotable._entities.traits.events import Event
from solotable._flows.traits.outbox import keep_audit
from solotable._store import AdminStore
from solotable._store.runner import run
from solotable._values import Item
from solotable.errors import AlreadyExists


@runtime_checkable
class Sink(Protocol):
    """Accepts events; messages and dead letters name it by `name`."""

    @property
    def name(self) -> str:
        """The sink's name, the same in every run."""
        ...

    def send(self, db: AdminStore, table: Table, item: Item, event: Event) -> None:
        """Accept one event; `item` is its stored item."""
        ...


class AuditSink:
    """Stores events in the table: as items of the audit trail, or as entities that `make` returns.

    `db.tenant(...).audit()` lists the built-in ones, newest first. An entity is created under a key
    that must come from the event alone, so that the same event is kept once; `days` is how long.
    """

    name = "audit"

    def __init__(self, make: Callable[[Event], Entity] | None = None, *, days: int | None = None) -> None:
        self._make = make
        self._days = days

    def send(self, db: AdminStore, table: Table, item: Item, event: Event) -> None:
        """Store an event unless it is already stored."""
        if self._make is None:
            run(keep_audit(db.scope, table, item, days=self._days), db.engine)
            return
        try:
            db.create(self._make(event))
        except AlreadyExists:
            return


class EventBridgeSink:
    """Passes events to `put` as entries of EventBridge's PutEvents, one per call.

    `boto3.client("events").put_events(Entries=[entry])` takes them; with a path they become lines of
    a file.
    """

    name = "eventbridge"

    def __init__(
        self,
        put: Callable[[dict[str, Any]], object] | str | Path,
        *,
        source: str = "solotable",
        bus: str | None = None,
    ) -> None:
        self._put = _appending(Path(put)) if isinstance(put, str | Path) else put
        self._source = source
        self._bus = bus

    def send(self, db: AdminStore, table: Table, item: Item, event: Event) -> None:
        """Pass an event to `put`."""
        self._put(self.entry(event))

    def entry(self, event: Event) -> dict[str, Any]:
        """Return an event as an entry of PutEvents; its id is in the detail."""
        key = "/".join(str(part) for part in event.target.key.values())
        entry = {
            "Source": self._source,
            "DetailType": f"{event.target.entity} {event.verb}",
            "Detail": event_json(event),
            "Time": event.at.isoformat(),
            "Resources": [f"{event.table}/{event.target.entity}/{key}"],
        }
        return entry if self._bus is None else {**entry, "EventBusName": self._bus}


class JsonLinesSink:
    """Appends events to a file, one JSON object per line."""

    def __init__(self, path: str | Path) -> None:
        self._append = _appending(Path(path))
        self.name = "jsonl"

    def send(self, db: AdminStore, table: Table, item: Item, event: Event) -> None:
        """Append an event."""
        self._append(json.loads(event_json(event)))


class CallableSink:
    """Calls a function with each event."""

    def __init__(self, function: Callable[[Event], object]) -> None:
        self._function = function
        self.name: str = getattr(function, "__name__", type(function).__name__)

    def send(self, db: AdminStore, table: Table, item: Item, event: Event) -> None:
        """Call the function."""
        self._function(event)


def event_json(event: Event) -> str:
    """Return an event as JSON text."""
    return json.dumps(event.model_dump(exclude_none=True), ensure_ascii=False, default=_plain)


def sink_of(given: Sink | Callable[[Event], object]) -> Sink:
    """Return a sink unchanged, and a function as a sink."""
    return given if isinstance(given, Sink) else CallableSink(given)


def _appending(path: Path) -> Callable[[dict[str, Any]], object]:
    def append(entry: dict[str, Any]) -> None:
        # One write per line: a crash can cut off at most one line.
        with path.open("ab") as file:
            file.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")

    return append


def _plain(value: Any) -> Any:
    match value:
        case bytes():
            return value.hex()
        case set() | frozenset():
            return sorted(value, key=str)
    text = getattr(value, "isoformat", None)
    return str(value) if text is None else text()
