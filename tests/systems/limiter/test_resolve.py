"""Which limits count, and the cache of them: inheritance, revisions, what a lookup costs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from solotable._protocol.requests import BatchGetItem
from solotable._store.runner import run
from solotable.systems.limiter.admin.limits import Limit
from solotable.systems.limiter.admin.registry import create_entity, delete_limits, set_limits
from solotable.systems.limiter.admin.resolve import (
    EffectiveLimits,
    LimitsCache,
    Source,
    effective_limits,
    resolve,
)
from tests.store.opening import START, Clock

from .conftest import Drive
from .ground import Place

RPM, TPM = Limit.per_minute("rpm", 100), Limit.per_minute("tpm", 10_000, burst=15_000)


def test_a_level_replaces_and_never_merges(place: Place, drive: Drive) -> None:
    scope = place.scope
    assert drive(effective_limits(scope, "acct", "gpt-4")) == EffectiveLimits()
    levels: list[tuple[Source, dict[str, Any]]] = [
        ("system", {}),
        ("resource", {"resource": "gpt-4"}),
        ("entity", {"entity": "acct"}),
        ("entity-resource", {"entity": "acct", "resource": "gpt-4"}),
    ]
    for source, level in levels:
        stored = drive(set_limits(scope, [Limit.per_minute(source, 5)], **level))
        found = drive(effective_limits(scope, "acct", "gpt-4"))
        since = datetime.fromtimestamp(stored.revision / 1_000_000, UTC)
        assert found == EffectiveLimits(
            limits=stored.limits, source=source, revision=stored.revision, since=since
        )
        assert found.limits is not None
        assert [limit.name for limit in found.limits] == [source]
    assert drive(effective_limits(scope, "acct", "other")).source == "entity"
    assert drive(effective_limits(scope, "else", "gpt-4")).source == "resource"
    assert drive(effective_limits(scope, "else", "other")).source == "system"
    assert drive(effective_limits(place.other, "acct", "gpt-4")) == EffectiveLimits()


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
    for entity in ("acct", None):
        for resource in ("gpt-4", None):
            drive(set_limits(scope, wide, entity=entity, resource=resource))
    place.sent()
    drive(resolve(scope, "acct", "gpt-4"))
    (record,) = place.journal.records
    assert isinstance(record.request, BatchGetItem)
    assert len(record.request.tables[0].keys) == 5
    # Each item is at most 4 KB, whatever the limits and the metadata: half a unit.
    assert place.spent() == (2.5, 0)
    cache = LimitsCache(60, place.clock)
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


def test_a_cache_hit_sends_no_request_and_absence_is_cached(place: Place, drive: Drive) -> None:
    cache = LimitsCache(60, place.clock)
    assert cache.get("acct", "gpt-4") is None
    drive(resolve(place.scope, "acct", "gpt-4", cache=cache))
    place.sent()
    place.clock.seconds += 59.9
    assert cache.get("acct", "gpt-4") == EffectiveLimits()
    assert place.sent() == []
    place.clock.seconds += 0.2
    assert cache.get("acct", "gpt-4") is None
    assert (cache.stats().hits, cache.stats().misses, cache.stats().entries) == (1, 2, 1)


def test_what_is_shared_never_makes_an_answer_older_than_it_may_be(place: Place, drive: Drive) -> None:
    cache = LimitsCache(60, place.clock)
    drive(resolve(place.scope, "first", "gpt-4", cache=cache))
    drive(set_limits(place.scope, [RPM]))
    place.clock.seconds += 59
    assert drive(resolve(place.scope, "second", "gpt-4", cache=cache)).limits is None
    assert cache.get("second", "gpt-4") is not None
    place.clock.seconds += 1
    assert cache.get("second", "gpt-4") is None
    assert drive(resolve(place.scope, "second", "gpt-4", cache=cache)).limits == (RPM,)


def test_after_a_change_of_our_own_the_cache_asks_consistently(place: Place, drive: Drive) -> None:
    cache = LimitsCache(60, place.clock)
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


def test_forgetting_one_entity_reloads_the_levels_of_all(place: Place, drive: Drive) -> None:
    cache = LimitsCache(60, place.clock)
    drive(resolve(place.scope, "acct", "gpt-4", cache=cache))
    run(set_limits(place.scope, [RPM], resource="gpt-4"), place.beside().engine)
    cache.invalidate("acct")  # its bucket showed a higher revision
    assert drive(resolve(place.scope, "acct", "gpt-4", cache=cache)).limits == (RPM,)


def test_an_answer_that_was_asked_for_before_an_invalidation_is_not_kept(place: Place) -> None:
    cache = LimitsCache(60, place.clock)

    def change() -> None:
        run(set_limits(place.scope, [RPM]), place.beside().engine)
        cache.invalidate()

    flow = resolve(place.scope, "acct", "gpt-4", cache=cache)
    reply = place.watched.handle(next(flow))
    change()
    with pytest.raises(StopIteration) as done:
        flow.send(reply)
    assert done.value.value == EffectiveLimits()
    assert cache.get("acct", "gpt-4") is None
    assert place.run(resolve(place.scope, "acct", "gpt-4", cache=cache)).limits == (RPM,)


def test_the_cache_is_bounded_and_forgets_the_oldest_first() -> None:
    clock = Clock()
    cache = LimitsCache(60, clock, max_size=100)
    for number in range(1000):
        cache.put(f"e{number}", "r", EffectiveLimits(revision=number), levels={f"r{number}": None})
    cache.put("e950", "r", EffectiveLimits(revision=1))
    cache.put("new", "r", EffectiveLimits())
    assert cache.stats().entries == 100
    assert cache.get("e900", "r") is None
    assert cache.get("e901", "r") is not None
    assert cache.get("e950", "r") == EffectiveLimits(revision=1)
    assert cache.shared("r899") is None
    assert cache.shared("r999") is not None


def test_an_entity_is_forgotten_alone_or_with_all() -> None:
    cache = LimitsCache(60, Clock())
    for entity, resource in (("a", "x"), ("a", "y"), ("b", "x")):
        cache.put(entity, resource, EffectiveLimits(), levels={resource: None})
    cache.invalidate("a")
    assert cache.get("a", "x") is cache.get("a", "y") is None
    assert cache.get("b", "x") is not None
    assert cache.shared("x") is None  # what it shares may be what has changed
    cache.invalidate("nobody")
    cache.put("a", "x", EffectiveLimits(), levels={"x": None})
    cache.invalidate()
    assert cache.get("b", "x") is None
    assert cache.shared("x") is None


def test_threads_share_a_cache() -> None:
    cache = LimitsCache(60, Clock(), max_size=50)

    def work(seed: int) -> None:
        for number in range(2000):
            name = f"e{(seed * 7 + number) % 80}"
            found = cache.get(name, "r")
            assert found is None or found == EffectiveLimits(parent=name)
            if found is None:
                cache.put(name, "r", EffectiveLimits(parent=name), levels={name: None})
            if number % 500 == 0:
                cache.invalidate(name if number % 1000 else None)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [None] * 8
    stats = cache.stats()
    assert stats.hits + stats.misses == 8 * 2000
    assert stats.entries <= 50
