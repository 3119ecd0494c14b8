"""Switches of the writes under load, and what interrupts them; the planted bugs must fail in one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from solotable._protocol.requests import Control, Request, TransactWriteItems
from solotable.errors import MigrationNotReady, SwitchTimedOut, TransactionCancelled
from solotable.migrations.switching.switch import SwitchOptions
from solotable.migrations.worker import Worker

from .clients import Client, Killed, LateStream, MortalEngine
from .lab import Lab, Profile, Section, Survey, mapping


def _verified(lab: Lab) -> None:
    lab.fill(users=3, surveys=3, profiles=3)
    lab.start(segments=1)
    lab.verified()


def _write_during(lab: Lab, client: Client) -> Callable[[], None]:
    """Let a client write before every fourth request to either side; return what ends it."""
    steps = iter(range(100_000))

    def write(_request: Request[Any]) -> None:
        number = next(steps)
        if number % 4 == 0:
            client.write(f"c{number % 7}", None if number % 5 == 4 else f"Name {number}")

    def end() -> None:
        lab.old_engine.before = lab.new_engine.before = None

    lab.old_engine.before = lab.new_engine.before = write
    return end


def _check_reverse(lab: Lab) -> None:
    """Assert that the sources are what the target becomes on the way back."""
    lab.catch_up()
    users = {each["id"]["S"]: each for each in lab.sources()["Users"]}
    back = mapping.reversed()
    expected = {}
    for item in lab.stored().values():
        for output in back.outputs("App", item).items.values():
            if output.table == "Users":
                expected[output.key["id"]["S"]] = output.item
    assert users == expected


def switch_and_reverse_under_load(lab: Lab) -> None:
    """Clients write at every step of two switches and two reversals: nothing is lost."""
    _verified(lab)
    client = Client(lab)
    for _ in range(2):
        end = _write_during(lab, client)
        lab.migration.switch_writes()
        end()
        client.flush()
        client.check()
        _check_reverse(lab)
        end = _write_during(lab, client)
        lab.migration.reverse()
        end()
        client.flush()
        client.check()
        lab.catch_up()
        lab.check()


def changes_of_the_target_return(lab: Lab) -> None:
    """After the switch, surveys and profiles that change on the target change in the sources."""
    _verified(lab)
    lab.migration.switch_writes()
    lab.new.put(Section(survey_id="s1", number="5", text="new"))
    lab.new.delete(Section, survey_id="s2", number="0")
    lab.new.put(Survey(survey_id="s9", title="Nine"))
    lab.new.delete(Survey, survey_id="s0")
    lab.new.update(Profile, profile_id="p1", set={"name": "Other"}, remove=["theme"])
    lab.catch_up()
    sources = {name: {each["id"]["S"]: each for each in items} for name, items in lab.sources().items()}
    assert sources["Surveys"]["s1"]["sections"]["M"] == {"0": {"S": "T 0"}, "5": {"S": "new"}}
    assert set(sources["Surveys"]["s2"]["sections"]["M"]) == {"1"}
    assert sources["Surveys"]["s9"]["title"] == {"S": "Nine"}
    assert "s0" not in sources["Surveys"]
    assert sources["Accounts"]["p1"]["name"] == {"S": "Other"}
    assert "p1" not in sources["Settings"]
    lab.migration.reverse()
    lab.user(77)
    lab.catch_up()
    lab.check()


def switch_that_cannot_drain(lab: Lab) -> None:
    """A program that ignores the switch writes on and on: the switch undoes itself, clients write again."""
    _verified(lab)
    client = Client(lab)
    steps = iter(range(100_000))

    def write(request: Request[Any]) -> None:
        if isinstance(request, Control) and request.operation == "GetRecords":
            lab.user(next(steps) % 5, f"Foreign {next(steps)}")
            lab.clock.ahead += 1

    lab.old_engine.before = write
    with pytest.raises(SwitchTimedOut):
        lab.migration.switch_writes(SwitchOptions(timeout_seconds=20))
    lab.old_engine.before = None
    record = lab.migration.record()
    assert (record.state, record.writes) == ("Verified", "source")
    assert client.write("c1", "After")
    actions = client.actions("source", "c1", "Guarded")
    lab.old_engine.handle(TransactWriteItems(actions=(*actions, *lab.migration.guard("source", actions))))
    lab.catch_up()
    lab.check()
    lab.migration.switch_writes()
    assert lab.migration.record().writes == "target"


def late_guarded_write(lab: Lab) -> None:
    """A client stops between its decision and its write, until the switch is over: its write is rejected."""
    _verified(lab)
    client = Client(lab)
    actions = client.actions("source", "c1", "Late")
    late = TransactWriteItems(actions=(*actions, *lab.migration.guard("source", actions)))
    lab.migration.switch_writes()
    with pytest.raises(TransactionCancelled):
        lab.old_engine.handle(late)


def paused_worker_during_a_switch(lab: Lab) -> None:
    """The apply worker stops before its write, until clients write to the target: it writes nothing."""
    _verified(lab)
    lab.user(1, "Before the switch")

    def switch() -> None:
        lab.migration.switch_writes()
        client.write("u1", "On the target")

    client = Client(lab)
    paused = Worker(lab.migration)
    lab.new_engine.once(TransactWriteItems, switch, table=lab.target_table)
    paused.step()
    client.check()
    _check_reverse(lab)


def killed_switch(lab: Lab) -> None:
    """The switching process is killed at each of its requests: writes go on, on exactly one side."""
    _verified(lab)
    client = Client(lab)
    for number in range(3, 900, 8):
        life = [number]
        old, new = (
            MortalEngine(engine, life, executed=number % 2 == 0)
            for engine in (lab.old_engine, lab.new_engine)
        )
        dying = lab.opened(old, new)
        to_target = lab.migration.record().writes == "source"
        if to_target:
            lab.user(1, f"Before {number}")
        options = SwitchOptions(timeout_seconds=5)
        try:
            if to_target:
                dying.switch_writes(options)
            else:
                dying.reverse(options)
        except Killed:
            lab.clock.ahead += 12
            lab.catch_up()
        else:
            if life[0] > 8:
                break
        lab.catch_up()
        assert lab.migration.record().state in ("Verified", "WritesSwitched")
        assert client.write("c1", f"Name {number}"), number
        client.check()
    lab.catch_up()
    client.check()
    if lab.migration.record().writes == "target":
        _check_reverse(lab)
        lab.migration.reverse()
    lab.catch_up()
    lab.check()


def stream_that_is_late(lab: Lab) -> None:
    """The stream shows no record of the writes during the switch: the journal has them."""
    _verified(lab)
    client = Client(lab)
    late = LateStream(lab.old_engine)
    switching = lab.opened(late, lab.new_engine)

    def write(request: Request[Any]) -> None:
        if lab.migration.record().state == "SwitchingWrites" and lab.clock() - announced[0] > 1:
            late.hides = True
            client.write("c1", f"At {type(request).__name__}")

    announced = [lab.clock()]
    lab.new_engine.before = write
    switching.switch_writes()
    lab.new_engine.before = None
    assert client.users, "no write was executed during the switch"
    client.check()


def switch_before_changes_are_applied(lab: Lab) -> None:
    """Changes from before the announcement are still in the stream: the switch applies them."""
    _verified(lab)
    for number in range(5):
        lab.user(number, "Not applied")
    lab.survey(1, sections=3, title="Not applied")
    lab.migration.switch_writes()
    assert lab.migration.record().writes == "target"
    lab.check()


def refused_switch(lab: Lab) -> None:
    """A switch needs a comparison without differences, and no dead letters."""
    lab.fill(users=2)
    lab.start(segments=1)
    lab.run_to("Running")
    with pytest.raises(MigrationNotReady, match="needs Verified"):
        lab.migration.switch_writes()
    lab.migration.record_diff(compared=1, differences=0, flips=0)
    lab.put("Users", id="bad", name="B", email="b@x.example", bad=True)
    lab.catch_up()
    dry = lab.migration.switch_writes(SwitchOptions(dry_run=True))
    assert len(dry.reasons) == 1
    assert "1 dead letters" in dry.reasons[0]
    with pytest.raises(MigrationNotReady, match="a bad user"):
        lab.migration.switch_writes()
    lab.delete("Users", "bad")
    lab.catch_up()
    lab.migration.switch_writes()


SWITCHES: list[Callable[[Lab], None]] = [
    switch_and_reverse_under_load,
    changes_of_the_target_return,
    switch_that_cannot_drain,
    late_guarded_write,
    paused_worker_during_a_switch,
    killed_switch,
    stream_that_is_late,
    switch_before_changes_are_applied,
    refused_switch,
]
