"""Slow rules, filters, expired items, clocks that leap, damaged control items: the migration stays right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from solotable import Entity, flow
from solotable._expressions.ast import Assign, Const, Remove, Update
from solotable._protocol.requests import Control, TransactWriteItems, UpdateItem
from solotable.engines.sqlite import SqliteEngine
from solotable.errors import MigrationError
from solotable.migrations.mapping import Mapping, Source
from solotable.migrations.migration import Migration
from solotable.migrations.router import Router, StoreSide
from solotable.migrations.worker import Worker

from .clients import Killed
from .lab import Lab, User, app

_TTL = {"AttributeName": "expires", "Enabled": True}


def users_only(lab: Lab, *, seconds: float = 0.0, **filters: Any) -> Migration:
    """Return a migration of the users, whose rule takes some time by the clock of the test."""
    mapping = Mapping(app, Source("Users", key="id", **filters))

    @mapping.rule("Users")
    def user(item: dict[str, Any]) -> Iterator[Entity]:
        lab.clock.ahead += seconds
        yield User(user_id=item["id"], name=item["name"], email=item["email"])

    @mapping.inverse("Users", User)
    def old(found: User) -> dict[str, Any]:
        return {"id": found.user_id, "name": found.name, "email": found.email, "tenant": "acme"}

    return Migration("lab", mapping, sources=lab.old, target=lab.new, control_table="control")


def users_of(lab: Lab) -> dict[str, str]:
    return {item["user_id"]["S"]: item["name"]["S"] for item in lab.stored().values()}


def test_rules_slower_than_the_lease_do_not_stop_two_workers(here: Lab) -> None:
    """A page takes 40 times the lease, so its items are written while it is mapped."""
    here.fill(users=40)
    migration = users_only(here, seconds=3.0)
    migration.create(segments=1, samples=0)
    migration.start()
    workers = [Worker(migration), Worker(migration)]

    def other(request: object) -> None:
        # The other worker looks while this one maps.
        if isinstance(request, TransactWriteItems):
            workers[1].step()

    here.new_engine.before = other
    _steps(migration, workers[0])
    here.new_engine.before = None
    assert len(users_of(here)) == 40
    for number in range(40):
        here.user(number, "Newer")
    here.new_engine.before = other
    for _ in range(40):
        workers[0].step()
        if set(users_of(here).values()) == {"Newer"}:
            break
    assert set(users_of(here).values()) == {"Newer"}


def _steps(migration: Migration, worker: Worker) -> None:
    for _ in range(200):
        if migration.record().state == "Running":
            return
        worker.step()
    pytest.fail(f"no progress: {migration.status().copy}")


def test_items_that_leave_a_filter_while_they_are_copied_leave_the_target(here: Lab) -> None:
    for number in range(3):
        here.put("Users", id=f"u{number}", name="Ana", email="a@x.example", tenant="acme")
    migration = users_only(here, where=lambda item: item.get("tenant") == "acme")
    migration.create(segments=1)
    migration.start()

    def move() -> None:
        here.put("Users", id="u1", name="Ana", email="a@x.example", tenant="beta")
        here.put("Users", id="u2", email="a@x.example", tenant="acme")

    here.new_engine.once(TransactWriteItems, move, table="App")
    migration.work(until=lambda record: record.state == "Running", poll_seconds=0.001)
    assert users_of(here) == {"u0": "Ana"}
    # An item without a name is a dead letter, until it leaves the filter.
    assert [letter.key for letter in migration.dead_letters()] == [{"id": {"S": "u2"}}]
    here.put("Users", id="u2", email="a@x.example", tenant="beta")
    here.put("Users", id="u1", name="Back", email="a@x.example", tenant="acme")
    worker = Worker(migration)
    while worker.step() == "worked":
        pass
    assert users_of(here) == {"u0": "Ana", "u1": "Back"}
    assert migration.dead_letters() == []


def test_the_way_back_overwrites_no_item_outside_the_filter(here: Lab) -> None:
    """A tenant that moved creates an id that another tenant has in the old table."""
    here.put("Users", id="u1", name="Ben", email="b@x.example", tenant="beta")
    migration = users_only(here, where=lambda item: item.get("tenant") == "acme")
    migration.create(segments=1)
    migration.start()
    migration.work(until=lambda record: record.state == "Running", poll_seconds=0.001)
    migration.record_diff(compared=0, differences=0, flips=0)
    migration.switch_writes()
    here.new.put(User(user_id="u1", name="Ana", email="a@x.example"))
    worker = Worker(migration)
    while worker.step() == "worked":
        pass
    (ben,) = here.sources()["Users"]
    assert ben["name"] == {"S": "Ben"}
    (letter,) = migration.dead_letters()
    assert "takes no part in the migration" in letter.cause
    here.new.delete(User, user_id="u1")
    while worker.step() == "worked":
        pass
    assert here.sources()["Users"] == [ben]


@pytest.mark.parametrize("moment", ["scanned", "copied"])
def test_an_expired_item_is_not_resurrected_by_the_copy(here: Lab, moment: str) -> None:
    """I3: the deletion by the source's TTL races the copy."""
    engine = here.old_engine.inner
    assert isinstance(engine, SqliteEngine)
    engine.handle(
        Control(
            operation="UpdateTimeToLive",
            members={"TableName": "Users", "TimeToLiveSpecification": _TTL},
        )
    )
    here.put("Users", id="u0", name="Ana", email="a@x.example", expires=int(here.clock()) + 5)
    here.user(1)
    here.start(segments=1)

    def expire() -> None:
        here.clock.ahead += 10
        assert engine.sweep() == 1

    if moment == "scanned":
        here.new_engine.once(TransactWriteItems, expire, table="App")
        here.run_to("Running")
    else:
        here.run_to("Running")
        expire()
    here.catch_up()
    assert ("App", "S:USER#u0", "S:USER") not in here.stored()
    here.check()


def test_a_worker_undoes_a_switch_whose_clock_was_ahead(here: Lab) -> None:
    """The switch was killed on a machine whose clock was an hour ahead: clients wait for its timeout only."""
    here.fill(users=2)
    here.start(segments=1)
    here.verified()
    here.clock.ahead += 3600
    # The worker of that machine knows that nothing is behind.
    here.catch_up()

    def kill(_request: object) -> None:
        if here.migration.record().state == "SwitchingWrites":
            raise Killed

    here.new_engine.before = kill
    with pytest.raises(Killed):
        here.migration.switch_writes()
    here.new_engine.before = None
    here.clock.ahead -= 3600
    now = 0.0
    worker = Worker(here.migration, monotonic=lambda: now)
    worker.step()
    assert here.migration.record().state == "SwitchingWrites"
    now = 31.0
    worker.step()
    assert here.migration.record().state == "Verified"


def _set(lab: Lab, kind: str, **values: Any) -> None:
    """Change attributes of a control item, as another program would; None removes one."""
    actions = [
        Remove((name,)) if value is None else Assign((name,), Const(flow.encode_value(value)))
        for name, value in values.items()
    ]
    key = {"PK": {"S": "MIGRATION#lab"}, "SK": {"S": kind}}
    update = Update(tuple(actions), creates=False)
    lab.new_engine.handle(UpdateItem(table="control", key=key, update=update))


@pytest.mark.parametrize(
    "damage",
    [
        {"writes": None},
        {"writes": "both"},
        {"state": "Perhaps"},
        {"state": None},
        {"epoch": "many"},
        {"flips": None},
        {"diff": {"at": 1}},
        {"generation": True},
    ],
    ids=str,
)
def test_a_damaged_record_stops_commands_workers_and_routers(here: Lab, damage: dict[str, Any]) -> None:
    """A router never guesses which side takes writes."""
    here.fill(users=1)
    here.start(segments=1)
    here.verified()
    here.migration.switch_writes()
    _set(here, "CONTROL", **damage)
    before = here.sources(), here.stored()
    with pytest.raises(MigrationError, match="damaged"):
        here.migration.status()
    with pytest.raises(MigrationError, match="damaged"):
        Worker(here.migration).step()
    with (
        Router(here.migration, old=StoreSide, new=StoreSide) as router,
        pytest.raises(MigrationError, match="damaged"),
    ):
        router.put(User(user_id="u9", name="Lost", email="l@x.example"))
    assert (here.sources(), here.stored()) == before


@pytest.mark.parametrize("damage", [{"step": None}, {"step": "x"}], ids=str)
def test_a_damaged_cursor_stops_the_migration_with_its_cause(here: Lab, damage: dict[str, Any]) -> None:
    here.fill(users=2)
    here.start(segments=1)
    Worker(here.migration).step()
    _set(here, "SEGMENT#Users#0000", **damage)
    Worker(here.migration).step()
    record = here.migration.record()
    assert record.state == "Error"
    assert "SEGMENT#Users#0000" in str(record.error)
