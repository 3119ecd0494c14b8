"""The actions that a migration needs: the table of the guide is what its requests are."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from solotable._protocol.requests import Control, Request, TransactWriteItems
from solotable.migrations.diff import DiffOptions, diff, repair
from solotable.migrations.router import Router, RouterOptions, StoreSide

from .lab import OLD, Lab, User, Watched

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "migration-production.md"
OLD_NAMES = frozenset(each.name for each in OLD)
#: Where requests went: (kind of table, action).
Used = set[tuple[str, str]]


def used(engine: Watched, side: str) -> Used:
    """Return the actions of the requests that an engine got, and forget the requests."""
    found: Used = set()
    for request in engine.sent:
        for action, table in _actions(request):
            found.add((_kind(table, side), action))
    engine.sent.clear()
    return found


def _actions(request: Request[Any]) -> list[tuple[str, str]]:
    if isinstance(request, TransactWriteItems):
        return [
            (name if (name := type(each).__name__) != "ConditionCheck" else "ConditionCheckItem", each.table)
            for each in request.actions
        ]
    if isinstance(request, Control):
        members = request.members
        return [(request.operation, str(members.get("TableName", "stream")))]
    tables = getattr(request, "tables", None)
    if tables is not None:
        return [(type(request).__name__, each.table) for each in tables]
    return [(type(request).__name__, request.table)]  # type: ignore[attr-defined] # every other request has one


def _kind(table: str, side: str) -> str:
    if table == "control":
        return "solotable-migrations"
    return "old tables" if table in OLD_NAMES or (table == "stream" and side == "source") else "new table"


def documented(after: str) -> Used:
    """Return the actions of workers and commands in the guide, of the rows that begin with a text."""
    found: Used = set()
    for line in GUIDE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[0].startswith(after):
            for kind in ("old tables", "new table", "solotable-migrations"):
                if kind in cells[1]:
                    found |= {(kind, action) for action in re.findall(r"`(\w+)`", cells[2])}
    return found


class Recorder:
    """Collects what a migration sends, without what the test itself sends."""

    def __init__(self, lab: Lab) -> None:
        self._engines = ((lab.old_engine, "source"), (lab.new_engine, "target"))
        self.used: Used = set()

    def record(self, *commands: Callable[[], object]) -> None:
        for engine, _ in self._engines:
            engine.sent.clear()
        for command in commands:
            command()
        for engine, side in self._engines:
            self.used |= used(engine, side)


def test_the_guide_lists_the_actions_of_workers_and_commands(here: Lab) -> None:
    here.fill(users=2, surveys=2, profiles=2)
    here.put("Users", id="bad", name="B", email="b@x.example", bad=True)
    migration, options, before = here.migration, DiffOptions(settle_seconds=0), Recorder(here)
    before.record(lambda: here.migration.create(samples=1), migration.start, lambda: here.run_to("Running"))
    here.delete("Users", "bad")
    here.survey(1, sections=0)
    here.delete("Accounts", "p1")
    before.record(here.catch_up, migration.status)
    here.new.delete(User, user_id="u1")
    before.record(lambda: diff(migration, options), lambda: repair(migration, options))
    before.record(lambda: diff(migration, options), lambda: migration.mirror(10))
    assert before.used == documented("workers, commands")

    after = Recorder(here)
    after.record(lambda: migration.switch_reads(10), migration.switch_writes)
    here.new.put(User(user_id="u9", name="N", email="n@x.example"))
    here.new.delete(User, user_id="u1")
    after.record(here.catch_up, migration.reverse, here.catch_up, migration.switch_writes, here.catch_up)
    after.record(lambda: diff(migration, options))
    assert after.used - before.used == documented("from `switch-writes` on")

    end = Recorder(here)
    end.record(migration.complete)
    assert end.used - after.used - before.used == documented("`complete` without")


def test_the_guide_lists_the_actions_of_routers(here: Lab) -> None:
    here.fill(users=1)
    here.start()
    here.verified()
    options = RouterOptions(always_check=True)
    with Router(here.migration, old=StoreSide, new=StoreSide, options=options) as router:
        here.migration.switch_writes()
        recorder = Recorder(here)
        recorder.record(lambda: router.put(User(user_id="u5", name="N", email="n@x.example")))
    guard = {("solotable-migrations", "PutItem")}
    control = {each for each in recorder.used if each[0] == "solotable-migrations"}
    assert control | guard == documented("application")
