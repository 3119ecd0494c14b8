"""S2.16: a table is restored to any of its transactions, and equals the model there."""

from __future__ import annotations

from pathlib import Path

import pytest

from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.maintenance.checkup import examine
from solotable.engines.sqlite.recovery.history import Replay, read_history
from solotable.engines.sqlite.recovery.in_place import apply_preview, make_preview
from solotable.engines.sqlite.recovery.positions import to_datetime
from solotable.engines.sqlite.recovery.restore import restore_table, restore_to_file
from solotable.engines.sqlite.recovery.scopes import Scope
from solotable.errors import Corrupt
from tests.unit.engines.sqlite.clocked import Clock, opened

from .past import SCOPES, Json, Past, newest, part_of, scan

WRITES = 120


@pytest.fixture
def past(tmp_path: Path) -> Past:
    clock = Clock()
    return Past(opened(tmp_path / "shop.db", clock), clock, seed=7)


def drop(engine: SqliteEngine, name: str) -> None:
    engine.call("DeleteTable", {"TableName": name})


@pytest.mark.parametrize("scope", SCOPES, ids=["whole", "tenant", "collection", "item"])
def test_s2_16_every_transaction_can_be_restored_by_its_sequence_number(past: Past, scope: Scope) -> None:
    past.run(WRITES)
    engine = past.engine
    for sequence, _, items in past.random.sample(past.states, 8):
        restore_table(engine, "Shop", sequence, "Restored", scope=scope)
        assert scan(engine, "Restored") == part_of(items, scope)
        drop(engine, "Restored")
    engine.close()


def test_s2_16_every_time_can_be_restored_although_the_clock_went_backwards(past: Past) -> None:
    past.run(WRITES)
    engine = past.engine
    first, last = past.states[0][1], past.states[-1][1]
    times = [past.random.randint(first, last) for _ in range(8)] + [at for _, at, _ in past.states[::40]]
    for micros in times:
        restore_table(engine, "Shop", to_datetime(micros), "Restored", scope=Scope())
        assert scan(engine, "Restored") == past.state_at(micros=micros)
        drop(engine, "Restored")
    assert [at for _, at, _ in past.states] == sorted(at for _, at, _ in past.states)
    engine.close()


def test_a_sequence_number_inside_a_transaction_means_its_end(past: Past) -> None:
    past.run(WRITES)
    engine = past.engine
    ends = {sequence for sequence, _, _ in past.states}
    inside = [each for each in range(past.states[0][0], past.states[-1][0]) if each not in ends]
    assert inside
    for sequence in past.random.sample(inside, 6):
        restore_table(engine, "Shop", sequence, "Restored", scope=Scope())
        end = min(each for each in ends if each > sequence)
        assert scan(engine, "Restored") == past.state_at(sequence=end)
        drop(engine, "Restored")
    engine.close()


def test_a_restored_table_has_every_index_and_the_file_is_sound(past: Past, tmp_path: Path) -> None:
    past.run(WRITES)
    engine = past.engine
    sequence, _, items = past.states[WRITES // 2]
    restore_table(engine, "Shop", sequence, "Restored", scope=Scope())
    keyed = {key for key, item in items.items() if "g" in item}
    for name in ("by-g", "names", "local"):
        assert scan(engine, "Restored", IndexName=name).keys() == keyed
    described = engine.call("DescribeTable", {"TableName": "Restored"})["Table"]
    assert described["ItemCount"] == len(items)
    engine.close()
    assert examine(str(tmp_path / "shop.db")).problems == []


def test_a_state_is_restored_into_another_file(past: Past, tmp_path: Path) -> None:
    past.run(WRITES)
    sequence, _, items = past.states[WRITES // 3]
    with opened(tmp_path / "copy.db") as other:
        restore_to_file(past.engine, "Shop", sequence, other, "Shop", scope=Scope())
        assert scan(other, "Shop") == items
    past.engine.close()
    assert examine(str(tmp_path / "copy.db")).problems == []


@pytest.mark.parametrize("scope", SCOPES, ids=["whole", "tenant", "collection", "item"])
def test_a_part_is_restored_in_place_and_the_rest_stays(past: Past, scope: Scope, tmp_path: Path) -> None:
    past.run(WRITES)
    engine = past.engine
    for sequence, _, items in past.random.sample(past.states, 5):
        before = scan(engine, "Shop")
        wanted, current = part_of(items, scope), part_of(before, scope)
        preview = make_preview(engine, "Shop", sequence, scope)
        assert preview.added == len(wanted.keys() - current.keys())
        assert preview.removed == len(current.keys() - wanted.keys())
        assert preview.changed == sum(wanted[key] != current[key] for key in wanted.keys() & current.keys())
        done = apply_preview(engine, preview)
        assert (done.written, done.removed, done.conflicts) == (
            preview.added + preview.changed,
            preview.removed,
            0,
        )
        rest = {key: item for key, item in before.items() if key not in current}
        assert scan(engine, "Shop") == wanted | rest
        assert make_preview(engine, "Shop", sequence, scope).total == 0
    engine.close()
    assert examine(str(tmp_path / "shop.db")).problems == []


def test_the_history_of_an_item_has_all_its_versions(past: Past) -> None:
    past.run(WRITES)
    engine = past.engine
    for key in past.random.sample(sorted({key for _, _, items in past.states for key in items}), 6):
        versions = read_history(engine, "Shop", {"pk": {"S": key[0]}, "sk": {"S": key[1]}})
        expected: list[Json | None] = []
        for _, _, items in past.states:
            if (items.get(key) or None) != (expected[-1] if expected else None):
                expected.append(items.get(key))
        assert [version.item for version in versions] == expected
    engine.close()


def test_a_replay_of_all_changes_agrees_with_a_restore(past: Past) -> None:
    past.run(WRITES)
    engine = past.engine
    sequence, _, items = past.states[WRITES // 4]
    restore_table(engine, "Shop", sequence, "Restored", scope=Scope())
    replay = Replay(engine, "Shop", sequence)
    assert replay.items == len(items)
    assert replay.changes > WRITES // 2
    assert replay.differences(engine, "Restored") == 0
    engine.call("DeleteItem", {"TableName": "Restored", "Key": wire(next(iter(items)))})
    assert replay.differences(engine, "Restored") == 1
    replay.close()
    engine.close()


def test_a_replay_and_a_history_find_a_change_that_is_missing(past: Past) -> None:
    engine, key = past.engine, {"pk": {"S": "TENANT#acme"}, "sk": {"S": "a"}}
    for value in "123":
        engine.call("PutItem", {"TableName": "Shop", "Item": {**key, "v": {"S": value}}})
    first = past.states[0][0]
    assert len(read_history(engine, "Shop", key)) >= 3
    engine.database.write(
        lambda connection: connection.execute("DELETE FROM changes WHERE sequence = ?", (newest(engine) - 1,))
    )
    with pytest.raises(Corrupt, match="does not lead to the next state"):
        read_history(engine, "Shop", key)
    with pytest.raises(Corrupt, match="does not lead to the next state"):
        Replay(engine, "Shop", first)
    engine.close()


def wire(key: tuple[str, str]) -> dict[str, dict[str, str]]:
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}


def test_the_newest_state_is_the_default(past: Past) -> None:
    past.run(20)
    position = restore_table(past.engine, "Shop", None, "Restored", scope=Scope())
    assert position.sequence == newest(past.engine)
    assert scan(past.engine, "Restored") == past.items
    past.engine.close()
