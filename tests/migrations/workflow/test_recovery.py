"""What ends a switch halfway, or loses changes of the target, leaves a way on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from solotable._protocol.requests import Control, Request, TransactWriteItems
from solotable.errors import MigrationNotReady, ServiceError, SwitchTimedOut
from solotable.migrations.diff import DiffOptions, diff, repair
from solotable.migrations.switching.switch import SwitchOptions
from solotable.migrations.worker import Worker

from .clients import Client, Killed
from .lab import Lab, User

_DAY = 86_400


def _switchable(lab: Lab) -> None:
    lab.fill(users=3)
    lab.start(segments=1)
    lab.verified()


def _at_the_close(lab: Lab, act: Callable[[], object]) -> None:
    """Act once, before the fences of the source are closed."""
    steps = iter(range(1000))

    def before(request: Request[object]) -> None:
        if type(request).__name__ == "UpdateItem" and next(steps) == 8:
            lab.old_engine.before = None
            act()

    lab.old_engine.before = before


@pytest.mark.parametrize("change", ["rate", "mirror", "diff"])
def test_a_command_beside_a_switch_does_not_end_it(here: Lab, change: str) -> None:
    _switchable(here)
    migration = here.migration
    seen: list[str] = []

    def act() -> None:
        seen.append(migration.record().state)
        if change == "rate":
            migration.set_rate(5000)
        elif change == "mirror":
            migration.mirror(10)
        else:
            migration.record_diff(compared=3, differences=0, flips=0)

    _at_the_close(here, act)
    assert migration.switch_writes().to == "target"
    assert seen == ["SwitchingWrites"]
    record = migration.record()
    assert (record.state, record.writes) == ("WritesSwitched", "target")
    if change != "diff":
        assert (record.rate, record.mirror_percent) == ((5000, 0) if change == "rate" else (None, 10))


def test_a_switch_that_fails_after_another_command_is_undone_at_once(here: Lab) -> None:
    _switchable(here)

    def act() -> None:
        here.migration.set_rate(5000)
        here.clock.ahead += 60

    _at_the_close(here, act)
    with pytest.raises(SwitchTimedOut):
        here.migration.switch_writes(SwitchOptions(timeout_seconds=20))
    record = here.migration.record()
    assert (record.state, record.writes, record.rate) == ("Verified", "source", 5000)


def test_a_worker_opens_the_side_of_a_switch_that_was_killed_after_its_flip(here: Lab) -> None:
    _switchable(here)

    def kill(_request: Request[object]) -> None:
        if here.migration.record().state == "WritesSwitched":
            raise Killed

    here.new_engine.before = kill
    with pytest.raises(Killed):
        here.migration.switch_writes()
    here.new_engine.before = None
    assert here.migration.record().writes == "target"
    actions = Client(here).actions("target", "c1", "Checked")
    checked = TransactWriteItems(actions=(*actions, here.migration.fence_check("target")))
    with pytest.raises(ServiceError):
        here.new_engine.handle(checked)
    here.clock.ahead += 20
    Worker(here.migration).step()
    here.new_engine.handle(checked)


@pytest.mark.parametrize("cause", ["trimmed", "disabled"])
def test_lost_changes_of_the_target_are_repaired_before_the_writes_return(here: Lab, cause: str) -> None:
    _switchable(here)
    migration = here.migration
    migration.switch_writes()
    here.catch_up()
    here.new.put(User(user_id="u9", name="Lost", email="u9@x.example"))
    here.new.delete(User, user_id="u0")
    if cause == "trimmed":
        here.clock.ahead += 3 * _DAY
    else:
        off = {"TableName": "App", "StreamSpecification": {"StreamEnabled": False}}
        here.new_engine.handle(Control(operation="UpdateTable", members=off))
    here.new.put(User(user_id="u8", name="Later", email="u8@x.example"))
    here.run_to("Error")
    assert "migrate repair" in str(migration.record().error)
    assert migration.start().state == "WritesSwitched"
    here.new.put(User(user_id="u7", name="After", email="u7@x.example"))
    here.catch_up()
    with pytest.raises(MigrationNotReady, match="migrate repair"):
        migration.reverse()
    options = DiffOptions(settle_seconds=0)
    assert not diff(migration, options).is_equal
    with pytest.raises(MigrationNotReady, match="migrate repair"):
        migration.reverse()
    repair(migration, options)
    # Only a person can say whether the target deleted this user, or a foreign program wrote it.
    assert diff(migration, options).total == 1
    with pytest.raises(MigrationNotReady, match="migrate repair"):
        migration.reverse()
    here.delete("Users", "u0")
    assert diff(migration, options).is_equal
    here.catch_up()
    assert migration.reverse().to == "source"
    users = {item["id"]["S"]: item["name"]["S"] for item in here.sources()["Users"]}
    assert users == {"u1": "Ana", "u2": "Ana", "u7": "After", "u8": "Later", "u9": "Lost"}
