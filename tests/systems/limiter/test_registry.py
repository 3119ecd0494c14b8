"""Entities, stored limits and their inheritance: S1.1-S1.3, S1.8 and bad input."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from solotable._flows.retry import Flow
from solotable._protocol.requests import GetItem, TransactWriteItems
from solotable._store.runner import run
from solotable.errors import AlreadyExists, ConditionFailed, CursorRejected, DataError, NotFound
from solotable.systems.limiter.admin.entities import MOST_METADATA, Family, LimitedEntity, StoredLimits
from solotable.systems.limiter.admin.limits import Limit
from solotable.systems.limiter.admin.registry import (
    children,
    create_entity,
    delete_entity,
    delete_limits,
    entities,
    get_entity,
    get_limits,
    limited_resources,
    set_limits,
    stored_limits,
)
from solotable.systems.limiter.admin.resolve import effective_limits, resolve

from .conftest import Drive
from .ground import ANN, Place

RPM, TPM = Limit.per_minute("rpm", 100), Limit.per_minute("tpm", 10_000, burst=15_000)


def nested(item: dict[str, Any]) -> list[str]:
    return [name for name, value in item.items() if "M" in value or "L" in value]


def test_s1_1_every_item_that_is_written_is_flat(place: Place, drive: Drive) -> None:
    drive(create_entity(place.scope, "acct", metadata={"plan": {"tier": "gold", "seats": [1, 2]}}))
    drive(create_entity(place.scope, "key-1", name="Key", parent="acct", cascade=True))
    drive(set_limits(place.scope, [RPM, TPM], entity="key-1", resource="gpt-4"))
    drive(set_limits(place.scope, [RPM], on_unavailable="allow"))
    ours = [item for item in place.raw() if not item["_type"]["S"].startswith("_")]
    assert sorted(item["_type"]["S"] for item in ours) == [
        "Family",
        *["LimitedEntity"] * 2,
        *["StoredLimits"] * 2,
    ]
    assert [nested(item) for item in ours] == [[]] * 5
    assert not any("data" in item for item in place.raw())


def test_s1_2_a_nested_record_is_refused_and_not_read_around(place: Place, drive: Drive) -> None:
    made = drive(create_entity(place.scope, "acct"))
    drive(set_limits(place.scope, [RPM], entity="acct"))
    (entity,) = place.raw("LimitedEntity")
    (limits,) = place.raw("StoredLimits")
    place.plant({**entity, "data": {"M": {"name": {"S": "Old"}}}})
    with pytest.raises(DataError, match="nested attribute 'data'"):
        drive(get_entity(place.scope, "acct"))
    with pytest.raises(DataError, match="nested attribute 'data'"):
        drive(resolve(place.scope, "acct", "gpt-4"))
    wrapped = {name: value for name, value in entity.items() if name not in ("name", "family", "metadata")}
    place.plant({**wrapped, "data": {"M": {"name": {"S": "Old"}, "metadata": {"M": {}}}}})
    with pytest.raises(DataError):
        drive(get_entity(place.scope, "acct"))
    place.plant(entity)
    place.plant({**limits, "data": {"L": []}})
    with pytest.raises(DataError, match="nested attribute 'data'"):
        drive(get_limits(place.scope, entity="acct"))
    assert drive(get_entity(place.scope, "acct")) == made


def test_s1_3_metadata_is_one_text(place: Place, drive: Drive) -> None:
    given = {"plan": {"tier": "gold"}, "seats": [1, 2.5, None, True]}
    drive(create_entity(place.scope, "acct", metadata=given))
    (item,) = place.raw("LimitedEntity")
    assert "S" in item["metadata"]
    found = drive(get_entity(place.scope, "acct"))
    assert found is not None
    assert found.metadata == given


def test_an_entity_is_made_once_by_one_transaction(place: Place, drive: Drive) -> None:
    place.clock.seconds += 7
    made = drive(create_entity(place.scope, "acct", name="Account", metadata={"a": 1}))
    assert place.sent() == ["TransactWriteItems"]
    assert (made.entity_id, made.name, made.parent_id, made.cascade) == ("acct", "Account", None, False)
    assert (made.version, made.created) == (1, place.clock.at(7))
    assert drive(get_entity(place.scope, "acct")) == made
    assert drive(get_entity(place.other, "acct")) is None
    with pytest.raises(AlreadyExists, match="Entity 'acct' already exists"):
        drive(create_entity(place.scope, "acct"))
    assert drive(create_entity(place.other, "acct")).name == "acct"


@pytest.mark.parametrize("bad", ["", "a#b", "é", "a b", "_x", "x" * 257, "a\n", "a\u200b"])
def test_a_name_that_is_none_is_refused_before_anything_is_sent(place: Place, bad: str) -> None:
    flows: list[Flow[Any]] = [
        create_entity(place.scope, bad),
        create_entity(place.scope, "ok", parent=bad),
        get_entity(place.scope, bad),
        delete_entity(place.scope, bad),
        children(place.scope, bad),
        set_limits(place.scope, [RPM], entity=bad),
        set_limits(place.scope, [RPM], resource=bad),
        get_limits(place.scope, entity=bad),
        delete_limits(place.scope, resource=bad),
        limited_resources(place.scope, entity=bad),
        resolve(place.scope, bad, "gpt-4"),
        resolve(place.scope, "ok", bad),
    ]
    for flow in flows:
        with pytest.raises(DataError, match="name has"):
            place.run(flow)
    assert place.sent() == []


def test_metadata_and_names_have_a_size_and_are_json(place: Place, drive: Drive) -> None:
    just = {"a": "x" * (MOST_METADATA - len('{"a": ""}'))}
    assert drive(create_entity(place.scope, "full", metadata=just)).metadata == just
    for unfit in ({"a": just["a"] + "x"}, {"a": object()}, {"a": float("nan")}):
        with pytest.raises(DataError, match="metadata is not valid: metadata is"):
            drive(create_entity(place.scope, "more", metadata=unfit))
    with pytest.raises(DataError, match="name is not valid"):
        drive(create_entity(place.scope, "more", name="x" * 257))


def test_a_parent_is_there_and_has_no_parent_itself(place: Place, drive: Drive) -> None:
    scope = place.scope
    with pytest.raises(NotFound, match="parent 'acct' does not exist; create it first"):
        drive(create_entity(scope, "key-1", parent="acct"))
    assert place.raw() == []
    drive(create_entity(scope, "acct"))
    drive(create_entity(scope, "key-1", parent="acct"))
    with pytest.raises(DataError, match="'key-1' belongs to 'acct', so it cannot be a parent"):
        drive(create_entity(scope, "key-2", parent="key-1"))
    with pytest.raises(DataError, match="its own parent"):
        drive(create_entity(scope, "key-2", parent="key-2"))
    with pytest.raises(DataError, match="has no parent to charge"):
        drive(create_entity(scope, "key-2", cascade=True))
    with pytest.raises(NotFound):
        drive(create_entity(place.other, "key-1", parent="acct"))
    with pytest.raises(AlreadyExists, match="'key-1' already exists"):
        drive(create_entity(scope, "key-1", parent="acct"))
    assert drive(get_entity(scope, "key-2")) is None


def test_children_and_entities_come_in_pages(place: Place, drive: Drive) -> None:
    scope = place.scope
    for name in ("b", "a", "b.c"):
        drive(create_entity(scope, name))
    for number in range(5):
        drive(create_entity(scope, f"k{number}", parent="b"))
    drive(create_entity(scope, "a0", parent="b.c"))
    place.sent()
    first = drive(children(scope, "b", limit=3))
    assert place.sent() == ["Query"]
    assert [each.entity_id for each in first] == ["k0", "k1", "k2"]
    rest = drive(children(scope, "b", limit=3, cursor=first.cursor))
    assert ([each.entity_id for each in rest], rest.cursor) == (["k3", "k4"], None)
    assert [each.entity_id for each in drive(children(scope, "a"))] == []
    assert [each.entity_id for each in drive(children(scope, "b.c"))] == ["a0"]
    with pytest.raises(CursorRejected):
        drive(children(scope, "a", cursor=first.cursor))
    with pytest.raises(CursorRejected):
        drive(children(place.other, "b", cursor=first.cursor))
    page = drive(entities(scope, limit=4))
    listed = [each.entity_id for each in page]
    listed += [each.entity_id for each in drive(entities(scope, cursor=page.cursor))]
    assert listed == ["a", "b", "k0", "k1", "k2", "k3", "k4", "b.c", "a0"]
    assert [each.entity_id for each in drive(entities(place.other))] == []


def test_a_parent_is_deleted_after_its_children(place: Place, drive: Drive) -> None:
    scope = place.scope
    drive(create_entity(scope, "acct"))
    drive(set_limits(scope, [RPM], entity="acct"))
    for name in ("k1", "k2"):
        drive(create_entity(scope, name, parent="acct", cascade=True))
    with pytest.raises(ConditionFailed, match="Entity 'acct' has 2 children; delete"):
        drive(delete_entity(scope, "acct"))
    assert drive(get_limits(scope, entity="acct")) is not None
    assert drive(delete_entity(scope, "k1")).entity_id == "k1"
    with pytest.raises(ConditionFailed, match="has a child"):
        drive(delete_entity(scope, "acct"))
    drive(delete_entity(scope, "k2"))
    assert drive(delete_entity(scope, "acct")).entity_id == "acct"
    assert place.raw("LimitedEntity") == place.raw("Family") == []
    with pytest.raises(NotFound):
        drive(delete_entity(scope, "acct"))


def test_a_child_that_comes_in_between_keeps_its_parent(place: Place) -> None:
    place.run(create_entity(place.scope, "acct"))
    beside = place.beside()
    late = create_entity(place.scope, "late", parent="acct")
    place.watched.slip_in(TransactWriteItems, lambda: run(late, beside.engine))
    with pytest.raises(ConditionFailed, match="has a child"):
        place.run(delete_entity(place.scope, "acct"))
    assert place.run(get_entity(place.scope, "acct")) is not None


def test_a_parent_that_goes_in_between_gets_no_child(place: Place) -> None:
    place.run(create_entity(place.scope, "acct"))
    beside = place.beside()
    gone = delete_entity(place.scope, "acct")
    place.watched.slip_in(TransactWriteItems, lambda: run(gone, beside.engine))
    with pytest.raises(NotFound, match="The parent 'acct' does not exist"):
        place.run(create_entity(place.scope, "late", parent="acct"))
    assert place.raw("LimitedEntity") == place.raw("Family") == []


def test_many_make_children_of_one_parent_at_once(place: Place) -> None:
    place.run(create_entity(place.scope, "acct"))
    with ThreadPoolExecutor(4) as pool:
        made = [
            pool.submit(run, create_entity(place.scope, f"k{number}", parent="acct"), place.watched)
            for number in range(12)
        ]
    assert len([each.result() for each in made]) == 12
    (family,) = place.raw("Family")
    assert family["children"] == {"N": "12"}
    place.run(delete_entity(place.scope, "k3"))
    (family,) = place.raw("Family")
    assert family["children"] == {"N": "11"}


def test_limits_are_stored_at_four_levels(place: Place, drive: Drive) -> None:
    scope = place.scope
    levels: list[dict[str, Any]] = [
        {"entity": "acct", "resource": "gpt-4"},
        {"entity": "acct"},
        {"resource": "gpt-4"},
        {},
    ]
    for number, level in enumerate(levels):
        assert drive(get_limits(scope, **level)) is None
        stored = drive(set_limits(scope, [Limit.per_minute("rpm", 10 + number)], **level))
        assert (stored.rules, stored.version) == (f"rpm={10 + number}/60", 1)
        assert drive(get_limits(scope, **level)) == stored
        assert drive(get_limits(place.other, **level)) is None
    assert sorted((item["PK"]["S"], item["SK"]["S"]) for item in place.raw("StoredLimits")) == [
        ("acme#LIMITS#_default_", "LIMITS#_default_"),
        ("acme#LIMITS#_default_", "LIMITS#gpt-4"),
        ("acme#LIMITS#acct", "LIMITS#_default_"),
        ("acme#LIMITS#acct", "LIMITS#gpt-4"),
    ]
    page = drive(stored_limits(scope, limit=3))
    rest = drive(stored_limits(scope, cursor=page.cursor))
    assert [(each.entity, each.resource) for each in (*page, *rest)] == [
        (None, "_default_"),
        (None, "gpt-4"),
        ("acct", "_default_"),
        ("acct", "gpt-4"),
    ]
    assert [each.resource for each in drive(limited_resources(scope, entity="acct"))] == [
        "_default_",
        "gpt-4",
    ]
    assert [each.resource for each in drive(limited_resources(scope))] == ["_default_", "gpt-4"]
    drive(delete_limits(scope, entity="acct", resource="gpt-4"))
    assert [each.resource for each in drive(limited_resources(scope, entity="acct"))] == ["_default_"]
    assert len(drive(stored_limits(scope))) == 3


def test_limits_that_are_set_at_once_are_set_one_after_another(place: Place) -> None:
    def setting(rate: int) -> StoredLimits:
        return run(set_limits(place.scope, [Limit.per_minute("rpm", rate)], entity="acct"), place.watched)

    with ThreadPoolExecutor(4) as pool:
        stored = list(pool.map(setting, range(1, 9)))
    assert sorted(each.version for each in stored) == list(range(1, 9))
    assert len({each.revision for each in stored}) == 8
    last = max(stored, key=lambda each: each.revision)
    assert place.run(get_limits(place.scope, entity="acct")) == last


def test_unfit_limits_are_refused(place: Place) -> None:
    scope = place.scope
    unfit: list[tuple[Flow[Any], str]] = [
        (set_limits(scope, []), "At least one limit"),
        (set_limits(scope, None), "At least one limit"),
        (set_limits(scope, None, entity="acct", on_unavailable="allow"), "Only the system"),
        (set_limits(scope, [RPM], resource="gpt-4", on_unavailable="block"), "Only the system"),
        (set_limits(scope, [RPM], on_unavailable="maybe"), '"block" or "allow"'),  # type: ignore[arg-type]  # refused
        (set_limits(scope, [RPM, Limit.per_day("rpm", 1)]), "given twice"),
        (resolve(scope, "acct", "_default_"), "A resource name has"),
    ]
    for flow, told in unfit:
        with pytest.raises(DataError, match=told):
            place.run(flow)
    assert place.sent() == []


def test_deleting_an_entity_takes_its_limits_and_leaves_those_of_others(place: Place, drive: Drive) -> None:
    scope = place.scope
    drive(create_entity(scope, "acct"))
    for entity, resource in (("acct", None), ("acct", "a"), ("acct2", None), (None, None)):
        drive(set_limits(scope, [RPM], entity=entity, resource=resource))
    drive(delete_entity(scope, "acct"))
    assert drive(limited_resources(scope, entity="acct")) == []
    assert [each.entity for each in drive(stored_limits(scope))] == [None, "acct2"]
    assert drive(effective_limits(scope, "acct", "a")).source == "system"
    drive(create_entity(scope, "acct"))
    assert drive(get_limits(scope, entity="acct")) is None


def test_a_write_names_who_did_it_and_a_refused_one_leaves_no_event(place: Place, drive: Drive) -> None:
    drive(create_entity(place.scope, "acct"))
    (event,) = place.raw("_outbox")
    assert event["event"]["M"]["actor"]["M"]["id"] == {"S": ANN.id}
    with pytest.raises(AlreadyExists):
        drive(create_entity(place.scope, "acct"))
    with pytest.raises(NotFound):
        drive(create_entity(place.scope, "k", parent="none"))
    assert place.raw("_outbox") == [event]


def test_a_flow_of_a_lookup_needs_no_engine(place: Place) -> None:
    flow = get_entity(place.scope, "acct")
    asked = next(flow)
    assert isinstance(asked, GetItem)
    assert asked.key == {"PK": {"S": "acme#ENTITY#acct"}, "SK": {"S": "ENTITY"}}
    assert LimitedEntity.plan().tenant == Family.plan().tenant == "namespace"


def test_limits_that_an_operator_sets_whose_clock_is_behind_are_the_newest_all_the_same(
    place: Place, drive: Drive
) -> None:
    system = drive(set_limits(place.scope, [RPM]))
    place.clock.seconds -= 600
    before = drive(effective_limits(place.scope, "acct", "gpt-4"))
    for entity, resource in ((None, "gpt-4"), ("acct", None), ("acct", "gpt-4")):
        stored = drive(set_limits(place.scope, [TPM], entity=entity, resource=resource))
        after = drive(effective_limits(place.scope, "acct", "gpt-4"))
        assert stored.revision == after.revision > before.revision >= system.revision
        before = after
