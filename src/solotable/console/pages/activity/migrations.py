"""Migrations: where each one stands, what failed, and the commands for the next step. Changes nothing."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from solotable._expressions.ast import KeyTerm
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Query, Scan
from solotable._values import Item, load_item
from solotable.console.state import Console, PageRequest, View
from solotable.errors import NotFound, TableNotFound
from solotable.migrations.workflow.control import CONTROL, ControlRecord, decode_record
from solotable.migrations.workflow.sides import CONTROL_TABLE, control_key
from solotable.migrations.workflow.states import TRANSITIONS

#: The states of a migration that goes well, with what happens in each.
_STEPS = (
    ("Created", "planned"),
    ("Copying", "items go over"),
    ("CatchingUp", "changes since the copy"),
    ("Running", "both sides are kept equal"),
    ("Verified", "both sides were compared"),
    ("ReadsSwitched", "reads move, in shares"),
    ("WritesSwitched", "the target leads"),
    ("Completed", "the sources may go"),
)
#: The commands that lead to each state.
_COMMANDS = {
    "Copying": "start",
    "Verified": "diff",
    "ReadsSwitched": "switch-reads",
    "SwitchingWrites": "switch-writes",
    "Completed": "complete",
    "Stopped": "stop",
    "Cancelled": "cancel",
}
_MOST = 100


def migrations(console: Console, asked: PageRequest) -> View:
    """List the migrations whose control table is in this database."""
    del asked
    records = [decode_record(item) for item in _controls(console)]
    data = {"migrations": [_summary(each) for each in records], "control_table": CONTROL_TABLE}
    return View(template="migrations.html", title="Migrations", data=data, crumbs=(("Migrations", ""),))


def migration(console: Console, asked: PageRequest) -> View:
    """Show one migration."""
    name = asked.segments[0]
    items = _partition(console, name)
    record = next((decode_record(each) for each in items if each["SK"].get("S") == CONTROL), None)
    if record is None:
        raise NotFound(f"{console.url.text} has no migration {name!r}; the list shows those that it has.")
    segments = [
        each
        for each in (load_item(item) for item in items if item["SK"]["S"].startswith("SEGMENT#"))
        if each.get("generation") == record.generation
    ]
    letters = [each for each in items if each["SK"]["S"].startswith("DEAD#")]
    scanned: dict[str, int] = {}
    for each in segments:
        source = str(each.get("source", ""))
        scanned[source] = scanned.get(source, 0) + int(each.get("scanned", 0))
    data: dict[str, Any] = _summary(record) | {
        "steps": _steps(record),
        "error": record.error,
        "throttled": record.throttled,
        "writes": record.writes,
        "reads_percent": record.reads_percent,
        "mirror_percent": record.mirror_percent,
        "rate": record.rate,
        "copied": sum(scanned.values()),
        "total": sum(record.totals.values()),
        "total_is_exact": record.totals_exact,
        "outputs": sum(int(each.get("outputs", 0)) for each in segments),
        "sources": [
            {
                "name": source,
                "scanned": scanned.get(source, 0),
                "total": total,
                "percent": min(100.0, 100 * scanned.get(source, 0) / total) if total else 100.0,
            }
            for source, total in record.totals.items()
        ],
        "dead_letters": [
            {
                "source": each["source"]["S"],
                "key": json.dumps(each["key"]["M"], ensure_ascii=False),
                "cause": str(load_item(each)["cause"]),
            }
            for each in letters[:_MOST]
        ],
        "dead_count": len(letters),
        "diff": None if record.diff is None else asdict(record.diff),
        "commands": [
            f"solotable migrate {_COMMANDS[state]} {record.name}"
            for state in sorted(TRANSITIONS[record.state])
            if state in _COMMANDS
        ],
    }
    return View(
        template="migration.html",
        title=record.name,
        data=data,
        crumbs=(("Migrations", "/-/migrations"), (record.name, "")),
    )


def _summary(record: ControlRecord) -> dict[str, Any]:
    return {
        "name": record.name,
        "state": record.state,
        "epoch": record.epoch,
        "sources_named": sorted(record.totals),
        "items": sum(record.totals.values()),
        "created_at": record.created_at,
        "level": {"Error": "bad", "Stopped": "warn", "Cancelled": ""}.get(record.state, "info"),
    }


def _steps(record: ControlRecord) -> list[dict[str, str]]:
    state = record.resume or record.state if record.state in ("Stopped", "Error") else record.state
    names = [name for name, _ in _STEPS]
    # A switch of the writes is on the way from the reads to the writes.
    now = names.index("ReadsSwitched") if state == "SwitchingWrites" else -1
    now = names.index(state) if state in names else now
    now += state == "Completed"
    return [
        {"name": name, "text": text, "class": "done" if at < now else "now" if at == now else ""}
        for at, (name, text) in enumerate(_STEPS)
    ]


def _controls(console: Console) -> list[Item]:
    """Return the control records; the control table is small, and at Amazon it is not scanned unasked."""
    if console.census.allowed is not None and CONTROL_TABLE not in console.census.allowed:
        return []
    try:
        reply = console.engine.handle(Scan(table=CONTROL_TABLE, limit=1_000))
    except TableNotFound:
        return []
    return [each for each in decode_items(reply.items or ()) if each["SK"].get("S") == CONTROL]


def _partition(console: Console, name: str) -> list[Item]:
    key = (KeyTerm("PK", "=", (control_key(name, "")["PK"],)),)
    try:
        reply = console.engine.handle(Query(table=CONTROL_TABLE, key=key, limit=1_000, consistent=True))
    except TableNotFound:
        return []
    return decode_items(reply.items or ())
