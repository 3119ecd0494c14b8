"""Entities, stored limits and their inheritance: S1.1-S1.3, S1.8 and bad input."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from solotable.errors import AlreadyExists, ConditionFailed, CursorRejected, DataError, NotFound
from solotable.flows.ask import Flow
from solotable.protocol.requests import BatchGetItem, GetItem, TransactWriteItems
from solotable.store.drive import run
from solotable.systems.limiter.entities import MOST_METADATA, Family, LimitedEntity, StoredLimits
from solotable.systems.limiter.limits import Limit
from solotable.systems.limiter.resolve import Settings, SettingsCache, effective_limits, resolve
from solotable.systems.limiter.settings import (
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
from tests.store.opening import START, Clock

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
    with pytest.raises(AlreadyExists, match="Entity 'acct' is there already"):
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
        with pytest.raises(DataError, match="is named by"):
            place.run(flow)
    assert place.sent() == []


def test_metadata_and_names_have_a_size_and_are_json(place: Place, drive: Drive) -> None:
    just = {"a": "x" * (MOST_METADATA - len('{"a": ""}'))}
    assert drive(create_entity(place.scope, "full", metadata=just)).metadata == just
    for unfit in ({"a": just["a"] + "x"}, {"a": object()}, {"a": float("nan")}):
        with pytest.raises(DataError, match="metadata does not fit: metadata is"):
            drive(create_entity(place.scope, "more", metadata=unfit))
    with pytest.raises(DataError, match="name does not fit"):
        drive(create_entity(place.scope, "more", name="x" * 257))


def test_a_parent_is_there_and_has_no_parent_itself(place: Place, drive: Drive) -> None:
    scope = place.scope
    with pytest.raises(NotFound, match="no entity 'acct' to be the parent; create it first"):
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
    with pytest.raises(AlreadyExists, match="'key-1' is there already"):
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
    with pytest.raises(NotFound, match="to be the parent"):
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


def test_a_level_replaces_and_never_merges(place: Place, drive: Drive) -> None:
    scope = place.scope
    assert drive(effective_limits(scope, "acct", "gpt-4")) == Settings()
    for source, level in (
        ("system", {}),
        ("resource", {"resource": "gpt-4"}),
        ("entity", {"entity": "acct"}),
        ("entity-resource", {"entity": "acct", "resource": "gpt-4"}),
    ):
        stored = drive(set_limits(scope, [Limit.per_minute(source, 5)], **level))
        found = drive(effective_limits(scope, "acct", "gpt-4"))
        assert found == Settings(limits=stored.limits, source=source, revision=stored.revision)  # type: ignore[arg-type]  # one of four
        assert found.limits is not None
        assert [limit.name for limit in found.limits] == [source]
    assert drive(effective_limits(scope, "acct", "other")).source == "entity"
    assert drive(effective_limits(scope, "else", "gpt-4")).source == "resource"
    assert drive(effective_limits(scope, "else", "other")).source == "system"
    assert drive(effective_limits(place.other, "acct", "gpt-4")) == Settings()


def test_a_setting_tells_of_the_parent_and_the_system(place: Place, drive: Drive) -> None:
    scope = place.scope
    drive(create_entity(scope, "acct"))
    drive(create_entity(scope, "k1", parent="acct", cascade=True))
    drive(create_entity(scope, "k2", parent="acct"))
    drive(set_limits(scope, None, on_unavailable="allow"))
    found = {name: drive(resolve(scope, name, "gpt-4")) for name in ("acct", "k1", "k2", "nobody")}
    assert {name: (each.parent, each.cascade) for name, each in found.items()} == {
        "acct": (None, False),
        "k1": ("acct", True),
        "k2": ("acct", False),
        "nobody": (None, False),
    }
    assert {(each.limits, each.source, each.on_unavailable) for each in found.values()} == {
        (None, None, "allow")
    }
    drive(set_limits(scope, [RPM]))
    assert drive(effective_limits(scope, "k1", "gpt-4")).on_unavailable is None


def test_a_lookup_is_one_batch_of_at_most_five_small_items(place: Place, drive: Drive) -> None:
    scope = place.scope
    drive(create_entity(scope, "acct", metadata={"a": "x" * 1900}))
    wide = [
        Limit.custom("n" + "x" * 62 + str(number), capacity=10**12, refill=10**11, period_seconds=60)
        for number in range(10)
    ]
    for level in ({"entity": "acct", "resource": "gpt-4"}, {"entity": "acct"}, {"resource": "gpt-4"}, {}):
        drive(set_limits(scope, wide, **level))
    place.sent()
    drive(resolve(scope, "acct", "gpt-4"))
    (record,) = place.journal.records
    assert isinstance(record.request, BatchGetItem)
    assert len(record.request.tables[0].keys) == 5
    # Each item is at most 4 KB, whatever the limits and the metadata: half a unit.
    assert place.spent() == (2.5, 0)
    cache = SettingsCache(60, place.clock)
    drive(resolve(scope, "acct", "gpt-4", cache=cache))
    place.sent()
    drive(resolve(scope, "other", "gpt-4", cache=cache))
    (record,) = place.journal.records
    assert isinstance(record.request, BatchGetItem)
    assert len(record.request.tables[0].keys) == 3  # the levels of all are known


def test_a_revision_goes_up_with_every_change_though_the_clock_stands_or_goes_back(
    place: Place, drive: Drive
) -> None:
    scope = place.scope
    seen = []

    def note(limits: list[Limit] | None) -> None:
        if limits is None:
            drive(delete_limits(scope, entity="acct"))
        else:
            drive(set_limits(scope, limits, entity="acct"))
        seen.append(drive(effective_limits(scope, "acct", "gpt-4")).revision)

    drive(set_limits(scope, [TPM]))
    assert drive(effective_limits(scope, "acct", "gpt-4")).revision == int(START * 1_000_000)
    place.clock.seconds += 1.5
    note([RPM])
    assert seen == [int((START + 1.5) * 1_000_000)]
    note([TPM])
    note(None)
    place.clock.seconds -= 3600
    note([RPM])
    note(None)
    assert seen == [seen[0] + step for step in range(5)]
    # What was deleted counts for nothing but its revision: an older level must not look older than it.
    assert drive(effective_limits(scope, "acct", "gpt-4")).source == "system"
    assert drive(delete_limits(scope, entity="acct")) is None


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
        (set_limits(scope, None, entity="acct", on_unavailable="allow"), "for the system alone"),
        (set_limits(scope, [RPM], resource="gpt-4", on_unavailable="block"), "for the system alone"),
        (set_limits(scope, [RPM], on_unavailable="maybe"), '"block" or "allow"'),  # type: ignore[arg-type]  # refused
        (set_limits(scope, [RPM, Limit.per_day("rpm", 1)]), "given twice"),
        (resolve(scope, "acct", "_default_"), "A resource is named by"),
    ]
    for flow, told in unfit:
        with pytest.raises(DataError, match=told):
            place.run(flow)
    assert place.sent() == []


def test_deleting_an_entity_takes_its_limits_and_leaves_those_of_others(place: Place, drive: Drive) -> None:
    scope = place.scope
    drive(create_entity(scope, "acct"))
    for level in ({"entity": "acct"}, {"entity": "acct", "resource": "a"}, {"entity": "acct2"}, {}):
        drive(set_limits(scope, [RPM], **level))
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


# The cache.


def test_a_hit_asks_nobody_and_there_is_nothing_is_kept_too(place: Place, drive: Drive) -> None:
    cache = SettingsCache(60, place.clock)
    assert cache.get("acct", "gpt-4") is None
    drive(resolve(place.scope, "acct", "gpt-4", cache=cache))
    place.sent()
    place.clock.seconds += 59.9
    assert cache.get("acct", "gpt-4") == Settings()
    assert place.sent() == []
    place.clock.seconds += 0.2
    assert cache.get("acct", "gpt-4") is None
    assert (cache.stats().hits, cache.stats().misses, cache.stats().entries) == (1, 2, 1)


def test_what_is_shared_never_makes_an_answer_older_than_it_may_be(place: Place, drive: Drive) -> None:
    cache = SettingsCache(60, place.clock)
    drive(resolve(place.scope, "first", "gpt-4", cache=cache))
    drive(set_limits(place.scope, [RPM]))
    place.clock.seconds += 59
    assert drive(resolve(place.scope, "second", "gpt-4", cache=cache)).limits is None
    assert cache.get("second", "gpt-4") is not None
    place.clock.seconds += 1
    assert cache.get("second", "gpt-4") is None
    assert drive(resolve(place.scope, "second", "gpt-4", cache=cache)).limits == (RPM,)


def test_after_a_change_of_our_own_the_cache_asks_consistently(place: Place, drive: Drive) -> None:
    cache = SettingsCache(60, place.clock)
    drive(resolve(place.scope, "acct", "gpt-4", cache=cache))
    drive(set_limits(place.scope, [RPM], entity="acct"))
    cache.invalidate("acct")
    assert cache.get("acct", "gpt-4") is None
    place.sent()
    assert drive(resolve(place.scope, "acct", "gpt-4", cache=cache)).limits == (RPM,)
    (asked,) = place.journal.requests("BatchGetItem")
    assert isinstance(asked, BatchGetItem)
    assert asked.tables[0].consistent
    place.clock.seconds += 60
    place.sent()
    drive(resolve(place.scope, "acct", "gpt-4", cache=cache))
    (asked,) = place.journal.requests("BatchGetItem")
    assert isinstance(asked, BatchGetItem)
    assert not asked.tables[0].consistent


def test_an_answer_that_was_asked_for_before_an_invalidation_is_not_kept(place: Place) -> None:
    cache = SettingsCache(60, place.clock)

    def change() -> None:
        run(set_limits(place.scope, [RPM]), place.beside().engine)
        cache.invalidate()

    flow = resolve(place.scope, "acct", "gpt-4", cache=cache)
    reply = place.watched.handle(next(flow))
    change()
    with pytest.raises(StopIteration) as done:
        flow.send(reply)
    assert done.value.value == Settings()
    assert cache.get("acct", "gpt-4") is None
    assert place.run(resolve(place.scope, "acct", "gpt-4", cache=cache)).limits == (RPM,)


def test_the_cache_is_bounded_and_forgets_the_oldest_first() -> None:
    clock = Clock()
    cache = SettingsCache(60, clock, most=100)
    for number in range(1000):
        cache.keep(f"e{number}", "r", Settings(revision=number), levels={f"r{number}": None})
    cache.keep("e950", "r", Settings(revision=1))
    cache.keep("new", "r", Settings())
    assert cache.stats().entries == 100
    assert cache.get("e900", "r") is None
    assert cache.get("e901", "r") is not None
    assert cache.get("e950", "r") == Settings(revision=1)
    assert cache.shared("r899") is None
    assert cache.shared("r999") is not None


def test_an_entity_is_forgotten_alone_or_with_all() -> None:
    cache = SettingsCache(60, Clock())
    for entity, resource in (("a", "x"), ("a", "y"), ("b", "x")):
        cache.keep(entity, resource, Settings(), levels={resource: None})
    cache.invalidate("a")
    assert cache.get("a", "x") is cache.get("a", "y") is None
    assert cache.get("b", "x") is not None
    assert cache.shared("x") is not None
    cache.invalidate()
    assert cache.get("b", "x") is cache.shared("x") is None


def test_threads_share_a_cache() -> None:
    cache = SettingsCache(60, Clock(), most=50)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for number in range(2000):
                name = f"e{(seed * 7 + number) % 80}"
                found = cache.get(name, "r")
                assert found is None or found == Settings(parent=name)
                if found is None:
                    cache.keep(name, "r", Settings(parent=name), levels={name: None})
                if number % 500 == 0:
                    cache.invalidate(name if number % 1000 else None)
        except BaseException as failed:
            failures.append(failed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    stats = cache.stats()
    assert stats.hits + stats.misses == 8 * 2000
    assert stats.entries <= 50


def test_a_flow_of_a_lookup_needs_no_engine(place: Place) -> None:
    flow = get_entity(place.scope, "acct")
    asked = next(flow)
    assert isinstance(asked, GetItem)
    assert asked.key == {"PK": {"S": "acme#ENTITY#acct"}, "SK": {"S": "ENTITY"}}
    assert LimitedEntity.plan().tenant == Family.plan().tenant == "namespace"
