"""Switch the writes of the shop back and forth under the load of client processes, and check the history."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from solotable.errors import MigrationNotReady
from solotable.migrations.diff import DiffOptions, compare
from solotable.migrations.migration import Migration
from solotable.migrations.router import Router, StoreSide
from solotable.migrations.switching.switch import Switched, SwitchOptions
from tests.killing import Program, Start
from tests.waiting import jitter, wait_until

from .customer import open_migration
from .shop import OldShop, Order, User, create_old_tables

HERE = "tests.migrations.router"


@dataclass
class Load:
    """A running migration with clients, and what they told."""

    migration: Migration
    clients: dict[str, Program]
    worker: Program
    switched: list[Switched] = field(default_factory=list)
    events: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def switch(self, seconds: float) -> None:
        """Switch the writes to the other side once it is ready."""
        options = SwitchOptions(announce_seconds=seconds, timeout_seconds=200.0, max_lag_seconds=60.0)
        to_target = self.migration.record().writes == "source"

        def attempt() -> Switched | None:
            try:
                return self.migration.switch_writes(options) if to_target else self.migration.reverse(options)
            except MigrationNotReady:
                jitter(Random(0), 0.1)
                return None

        switched = wait_until(attempt, seen=self.migration.status)
        assert switched is not None
        self.switched.append(switched)

    def wait_for_writes(self, count: int) -> None:
        """Wait until each client has told so many more replies."""
        goals = {name: len(client.lines) + count for name, client in self.clients.items()}
        for name, client in self.clients.items():
            client.wait_for_lines(goals[name])

    def end(self) -> None:
        """Let the clients end, then the worker, and read what the clients told."""
        for client in self.clients.values():
            client.release()
            for event in map(json.loads, client.end()):
                self.events.setdefault(event["client"], []).append(event)
        self.worker.end()

    def of(self, verb: str) -> list[dict[str, Any]]:
        """Return all events of one kind."""
        return [event for events in self.events.values() for event in events if event["verb"] == verb]

    @property
    def pauses(self) -> list[float]:
        """The seconds that writes waited, of all clients."""
        return sorted(second for event in self.of("pauses") for second in event["seconds"])


def create_shop(migration: Migration, *, users: int, orders: int) -> None:
    """Create the old tables with some users, and orders of the first one."""
    create_old_tables(_database(migration))
    router = Router(migration, old=OldShop, new=StoreSide)
    for number in range(users):
        router.put(User(user_id=str(number), name=f"user {number}"))
    for number in range(orders):
        router.put(Order(user_id="0", number=str(number)))


def start_load(start: Start, folder: Path, *, clients: int, lease: float, moment: str = "") -> Load:
    """Copy a small shop, compare, and start clients that write; see `customer` for their `moment`."""
    old_file, new_file = str(folder / "old.db"), str(folder / "new.db")
    migration = open_migration(old_file, new_file)
    create_shop(migration, users=1, orders=50)
    Router(migration, old=OldShop, new=StoreSide).put(User(user_id="shared", name="shared"))
    migration.create()
    migration.start()
    worker = start("-m", f"{HERE}.worker", old_file, new_file)
    running = {
        name: start("-m", f"{HERE}.customer", name, old_file, new_file, str(lease), moment)
        for name in (f"client{number}" for number in range(clients))
    }
    load = Load(migration, running, worker)
    wait_until(lambda: migration.record().state == "Running", seen=migration.status)
    report = compare(migration)
    assert report.is_equal, report.to_json()
    migration.record_diff(compared=report.expected, differences=0, flips=0)
    return load


def _database(migration: Migration) -> Any:
    from solotable import Table
    from solotable._connect import over

    return over(migration.source.engine, (Table("Unused"),))


def check_history(load: Load) -> None:
    """Check I2, I5 and I8 from what the clients were told, and that no client met an error."""
    assert load.of("error") == []
    _check_no_overlap(load)
    _check_present(load)
    record = load.migration.record()
    wait_until(lambda: _is_equal(load.migration, forward=record.writes == "source"))


def _check_no_overlap(load: Load) -> None:
    """I5: no write is accepted on a side after the other side has accepted one of a later epoch."""
    writes = [event for events in load.events.values() for event in events if "flips" in event]
    for flips in {event["flips"] for event in writes}:
        earlier = [event for event in writes if event["flips"] <= flips]
        later = [event for event in writes if event["flips"] > flips]
        if earlier and later:
            assert max(event["start"] for event in earlier) < min(event["end"] for event in later)


def _check_present(load: Load) -> None:
    """I2: every acknowledged write is on the serving side, no deleted item is back, and no visit is lost."""
    router = Router(load.migration, old=OldShop, new=StoreSide)
    for name, events in load.events.items():
        last = {event["key"]: event["verb"] for event in events if event["verb"] in ("put", "delete")}
        for key, verb in last.items():
            found = router.get(Order, user_id=name, number=key, consistent=True)
            assert (found is not None) == (verb == "put"), (name, key, verb)
    visits = Counter(event["verb"] for event in load.of("visit"))["visit"]
    assert router.require(User, user_id="shared", consistent=True).visits == visits


def _is_equal(migration: Migration, *, forward: bool) -> bool:
    from solotable.migrations.worker import Worker

    worker = Worker(migration)
    while worker.step() == "worked":
        pass
    worker.release()
    return compare(migration, DiffOptions(forward=forward, settle_seconds=0.0)).is_equal
