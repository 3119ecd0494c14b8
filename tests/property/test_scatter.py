"""A query over shards and buckets is the plain sorted list, whatever its ends, direction, filter and pages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from solotable import Database, Entity, Index, Key, Query, Store, Table
from solotable.connect import connect

START = datetime(2026, 10, 30, 20, tzinfo=UTC)

meters = Table("Meters", tenant="tenant_id", indexes=[Index("GSI1"), Index("GSI2"), Index("GSI3")])


class Reading(Entity, table=meters):
    key = Key("T#{tenant_id}#{at:day}", "{at:s}#{meter}", shards=3)
    by_kind = Key("T#{tenant_id}#KIND#{kind}", "AT#{at:s}", index="GSI1", shards=4)
    by_month = Key("T#{tenant_id}#KIND#{kind}#{at:month}", "{at:s}", index="GSI2")
    by_hour = Key("T#{tenant_id}#{at:hour}", "{at:s}", index="GSI3", shards=2, shard_by=("meter",))
    tenant_id: str
    meter: str
    at: datetime
    kind: str
    value: int = 0


#: Few hours, so that sort keys of the indexes are often the same; two months, four days.
HOURS = st.integers(0, 60)
READINGS = st.lists(
    st.tuples(st.sampled_from("abcdef"), HOURS, st.sampled_from(["heat", "light"]), st.integers(0, 2)),
    max_size=40,
    unique_by=lambda each: each[:2],
)


@pytest.fixture(scope="module")
def base() -> Iterator[Database]:
    now = (START + timedelta(hours=61)).timestamp()
    with connect("sqlite://", meters, clock=lambda: now) as base:
        yield base


@st.composite
def asked(draw: DrawFn) -> tuple[Query[Reading], Any]:
    """A query, and the same as a condition on readings."""
    low, high = START + timedelta(hours=draw(HOURS)), START + timedelta(hours=draw(HOURS))
    kind = draw(st.sampled_from(["heat", "light"]))
    name = draw(st.sampled_from(["key", "by_kind", "by_month", "by_hour"]))
    has_kind = name in ("by_kind", "by_month")
    query: Query[Reading] = getattr(Reading, name).query(**({"kind": kind} if has_kind else {}))
    verbs = ["between", "since", "after", "day"] if name != "by_kind" else ["none", "until", "before", "between"]
    match verb := draw(st.sampled_from(verbs)):
        case "none":
            fits = [lambda at: True]
        case "between":
            query, fits = query.between(at=(low, high)), [lambda at: low <= at <= high]
        case "day":
            query = getattr(Reading, name).query(at=low.date(), **({"kind": kind} if has_kind else {}))
            fits = [lambda at: at.date() == low.date()]
        case "since":
            query, fits = query.since(at=low), [lambda at: at >= low]
        case "after":
            query, fits = query.after(at=low), [lambda at: at > low]
        case "until":
            query, fits = query.until(at=high), [lambda at: at <= high]
        case _:
            assert verb == "before"
            query, fits = query.before(at=high), [lambda at: at < high]
    least = draw(st.integers(0, 2))
    if least:
        query = query.where(lambda reading: reading.value >= least)

    def fitting(reading: Reading) -> bool:
        return fits[0](reading.at) and reading.value >= least and (not has_kind or reading.kind == kind)

    return query if draw(st.booleans()) else query.descending(), fitting


def _walked(db: Store, query: Query[Reading], limit: int, work: int) -> list[Reading]:
    found: list[Reading] = []
    cursor = None
    for _ in range(1000):
        page = db.page(query, limit=limit, cursor=cursor, work=work)
        assert len(page.items) <= limit
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found
    raise AssertionError("the walk does not end")


@given(READINGS, asked(), st.integers(1, 12), st.integers(1, 50))
@settings(max_examples=300, deadline=None)
def test_a_scattered_query_is_the_sorted_list(
    base: Database,
    readings: list[tuple[str, int, str, int]],
    query_and_fitting: tuple[Query[Reading], Any],
    limit: int,
    work: int,
) -> None:
    query, fitting = query_and_fitting
    db = base.tenant("acme")
    put: list[Reading] = []
    for meter, hours, kind, value in readings:
        at = START + timedelta(hours=hours)
        put.append(Reading(tenant_id="acme", meter=meter, at=at, kind=kind, value=value))
        db.put(put[-1])
    try:
        wanted = sorted(filter(fitting, put), key=lambda each: (each.at, each.meter))
        # The sort key of an index may be the same for several; then their order is the index's own.
        times = [each.at for each in wanted][:: 1 if query.forward else -1]
        for found in (list(db.all(query)), _walked(db, query, limit, work)):
            assert [each.at for each in found] == times
            assert sorted(found, key=lambda each: (each.at, each.meter)) == wanted
        if query.path.name == "key":
            assert list(db.all(query)) == wanted[:: 1 if query.forward else -1]
        assert db.count(query) == len(wanted)
        first = db.first(query)
        assert (first and first.at) == (times[0] if times else None)
    finally:
        for each in put:
            db.delete(each)


@given(READINGS)
@settings(max_examples=50, deadline=None)
def test_every_reading_is_got_by_one_request_and_found_by_its_key(
    base: Database, readings: list[tuple[str, int, str, int]]
) -> None:
    plan = Reading.plan()
    for meter, hours, kind, value in readings:
        at = START + timedelta(hours=hours)
        reading = Reading(tenant_id="acme", meter=meter, at=at, kind=kind, value=value)
        key = plan.key_of(reading.__dict__)
        assert plan.arguments_of(key) == {"tenant_id": "acme", "meter": meter, "at": at}
        moved = {**key, "PK": {"S": key["PK"]["S"][:-2] + "99"}}
        assert plan.arguments_of(moved) is None
