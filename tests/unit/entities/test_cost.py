"""Units and dollars: the arithmetic against DynamoDB's rules, and estimates against the engine."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solotable._entities.declare.table import Index, Table
from solotable._entities.patterns.cost import (
    Prices,
    Units,
    get_units,
    put_units,
    query_units,
    rate_per_second,
    storage_per_month,
)
from solotable._protocol.requests import Control, PutItem
from solotable.engines import sqlite
from solotable.errors import DataError

PRICES = Prices(
    region="r", date="2035-01-01", read_per_million=0.125, write_per_million=0.625, storage_per_gb_month=0.25
)
TABLE = Table(
    "Tab",
    indexes=[
        Index("ALL"),
        Index("KEYS", projection="KEYS_ONLY"),
        Index("SOME", projection=["a"]),
        Index("LOCAL", sort="a", local=True),
    ],
)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("50/s", 50),
        ("3000/min", 50),
        ("1,000,000/day", 1_000_000 / 86400),
        ("0.5/s", 0.5),
        ("2", 2),
        (".5/h", 0.5 / 3600),
    ],
)
def test_rates(text: str, rate: float) -> None:
    assert rate_per_second(text) == pytest.approx(rate)


@pytest.mark.parametrize("text", ["", "often", "50/fortnight", "-1/s", "1e9/s", "50 per second"])
def test_an_invalid_rate_is_rejected(text: str) -> None:
    with pytest.raises(DataError, match="write it like 50/s"):
        rate_per_second(text)


def test_reads_are_rounded_to_4_kb_and_halved() -> None:
    assert get_units(4096).total == 0.5
    assert get_units(4097).total == 1.0
    assert get_units(4097, consistent=True).total == 2.0
    # A query adds its items up before it rounds; fetched items are rounded one by one.
    asked = query_units(10, 400, index="G", consistent=False, hydrates=True)
    assert (asked.indexes["G"], asked.table, asked.total) == (0.5, 5.0, 5.5)
    assert query_units(10, 4096, index=None, consistent=True, hydrates=False).table == 10.0


def test_dollars() -> None:
    read, write = Units(table=0.5), Units(table=1.0, indexes={"G": 1.0}, writes=True)
    assert read.per_million(PRICES) == 0.0625
    assert write.per_million(PRICES) == 1.25
    assert write.per_month(PRICES, 50) == pytest.approx(1.25 * 131.4)
    assert (read + read).total == 1.0
    assert (write + write).indexes == {"G": 2.0}
    assert storage_per_month(1_000_000, 1024**3 - 100, PRICES) == 250_000


@pytest.mark.parametrize(
    "table",
    [
        None,
        {},
        {"date": "x"},
        {"date": 1, "regions": {}},
        {"date": "x", "regions": {"r": {}}},
        {"date": "x", "regions": {"r": {"read_per_million": -1}}},
        {"date": "x", "regions": {"r": {"read_per_million": True}}},
        {"date": "x", "regions": {"other": {}}},
    ],
)
def test_a_price_table_that_cannot_be_read_is_refused(table: Any) -> None:
    with pytest.raises(DataError):
        Prices.parse(table, "r")


@settings(max_examples=40)
@given(
    size=st.integers(0, 6000),
    indexes=st.sets(st.sampled_from(["ALL", "KEYS", "SOME"])),
    local=st.booleans(),
    where=st.sampled_from(["a", "b"]),
)
def test_an_estimate_is_what_the_engine_reports(
    size: int, indexes: set[str], local: bool, where: str
) -> None:
    item = {"PK": {"S": "p"}, "SK": {"S": "s"}, "b": {"S": ""}}
    for name in indexes:
        item |= {f"{name}PK": {"S": "p"}, f"{name}SK": {"S": "s"}}
    if local or where == "a":
        item["a"] = {"S": "x"}
    item[where] = {"S": "x" * (size + 1 if where == "b" else min(size + 1, 1000))}
    with sqlite.open(sqlite.MEMORY) as engine:
        engine.handle(Control(operation="CreateTable", members=TABLE.definition()))
        reply = engine.handle(PutItem(table="Tab", item=item, capacity="INDEXES"))
    told = reply.capacity
    assert told is not None
    places = {**told.get("GlobalSecondaryIndexes", {}), **told.get("LocalSecondaryIndexes", {})}
    estimated = put_units(TABLE, item)
    assert estimated.table == told["Table"]["CapacityUnits"]
    assert estimated.indexes == {name: units["CapacityUnits"] for name, units in places.items()}
    assert estimated.total == told["CapacityUnits"]
