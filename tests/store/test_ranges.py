"""Ranges over arbitrary text, numbers and times give what a plain list gives, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from operator import ge, gt, le, lt
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solotable import Database, Query
from solotable._connect import connect

from .models import Event, events

TEXT = st.text(st.sampled_from("ab#%$ !&\x00\"'~é\U0001f600\uffff"), max_size=4) | st.text(max_size=6)
NUMBERS = st.integers(-9_999_999, 9_999_999).map(lambda number: Decimal(number) / 1000)
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(lambda moment: moment.replace(tzinfo=UTC))
TESTS = {"since": (ge,), "after": (gt,), "until": (le,), "before": (lt,), "between": (ge, le)}


@pytest.fixture(scope="module")
def base() -> Iterator[Database]:
    with connect("sqlite://", events) as opened:
        yield opened


@pytest.mark.parametrize(("part", "values"), [("name", TEXT), ("number", NUMBERS), ("at", TIMES)])
def test_a_range_is_what_a_list_gives(base: Database, part: str, values: st.SearchStrategy[Any]) -> None:
    runs = iter(range(1_000_000))

    @settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
    @given(data=st.data(), stored=st.lists(values, min_size=1, max_size=8))
    def judge(data: st.DataObject, stored: list[Any]) -> None:
        log = f"{part} {next(runs)}"
        with base.batch() as batch:
            for seq, value in enumerate(stored):
                batch.put(Event.model_validate({"log": log, "seq": seq, part: value}))
        by: Any = {"name": Event.by_name, "number": Event.by_number, "at": Event.by_time}[part]
        query: Query[Event] = by.query(log=log)

        def order(value: Any) -> Any:
            return value.encode() if isinstance(value, str) else value

        rows = sorted((order(value), seq) for seq, value in enumerate(stored))
        edges = st.sampled_from(stored) | values
        for verb, tests in TESTS.items():
            given_edges = [data.draw(edges) for _ in tests]
            given_value = given_edges[0] if len(tests) == 1 else tuple(given_edges)
            asked = getattr(query, verb)(**{part: given_value})
            pairs = list(zip(tests, map(order, given_edges), strict=True))
            expected = [value for value, _ in rows if all(test(value, edge) for test, edge in pairs)]
            found = [order(getattr(row, part)) for row in base.all(asked)]
            assert found == expected, (verb, given_value)
            assert [order(getattr(row, part)) for row in base.all(asked.descending())] == expected[::-1]
            assert base.count(asked) == len(expected)
        if part == "name":
            start = data.draw(edges)
            found_names = [row.name for row in base.all(query.starts_with(name=start))]
            assert sorted(found_names) == sorted(name for name in stored if name.startswith(start))
            for name in set(stored):
                exact = [row.name for row in base.all(Event.by_name.query(log=log, name=name))]
                assert exact == [name] * stored.count(name)

    judge()
