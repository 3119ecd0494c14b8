"""A query over shards and buckets is the plain sorted list, whatever its ends, order, filter and pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solotable import Database, Entity, Index, Key, Query, Store, Table
from solotable._connect import connect

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


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A query, and the same as a condition on readings."""

    name: str
    verb: str
    kind: str
    low: datetime
    high: datetime
    least: int
    forward: bool

    @property
    def _has_kind(self) -> bool:
        return self.name in ("by_kind", "by_month")

    def query(self) -> Query[Reading]:
        low, high, least = self.low, self.high, self.least
        given: dict[str, Any] = {"kind": self.kind} if self._has_kind else {}
        if self.verb == "day":
            given["at"] = low.date()
        query: Query[Reading] = getattr(Reading, self.name).query(**given)
        if self.verb == "between":
            query = query.between(at=(low, high))
        elif self.verb in ("since", "after"):
            query = getattr(query, self.verb)(at=low)
        elif self.verb in ("until", "before"):
            query = getattr(query, self.verb)(at=high)
        if least:
            query = query.where(lambda reading: reading.value >= least)
        return query if self.forward else query.descending()

    def fits(self, reading: Reading) -> bool:
        at, low, high = reading.at, self.low, self.high
        within = {
            "none": True,
            "between": low <= at <= high,
            "day": at.date() == low.date(),
            "since": at >= low,
            "after": at > low,
            "until": at <= high,
            "before": at < high,
        }
        return (
            within[self.verb]
            and reading.value >= self.least
            and (not self._has_kind or reading.kind == self.kind)
        )


def _asked(names: list[str], verbs: list[str]) -> st.SearchStrategy[Asked]:
    moments = HOURS.map(lambda hours: START + timedelta(hours=hours))
    return st.builds(
        Asked,
        name=st.sampled_from(names),
        verb=st.sampled_from(verbs),
        kind=st.sampled_from(["heat", "light"]),
        low=moments,
        high=moments,
        least=st.integers(0, 2),
        forward=st.booleans(),
    )


ASKED = _asked(["key", "by_month", "by_hour"], ["between", "since", "after", "day"]) | _asked(
    ["by_kind"], ["none", "until", "before", "between"]
)


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


@given(READINGS, ASKED, st.integers(1, 12), st.integers(1, 50))
@settings(max_examples=300, deadline=None)
def test_a_scattered_query_is_the_sorted_list(
    base: Database,
    readings: list[tuple[str, int, str, int]],
    asked: Asked,
    limit: int,
    work: int,
) -> None:
    query = asked.query()
    db = base.tenant("acme")
    put: list[Reading] = []
    for meter, hours, kind, value in readings:
        at = START + timedelta(hours=hours)
        put.append(Reading(tenant_id="acme", meter=meter, at=at, kind=kind, value=value))
        db.put(put[-1])
    try:
        wanted = sorted(filter(asked.fits, put), key=lambda each: (each.at, each.meter))
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
