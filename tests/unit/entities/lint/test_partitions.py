"""Partitions that take all the traffic, and those that do not."""

from __future__ import annotations

from datetime import date, datetime
from enum import Enum, IntEnum
from typing import Any, Literal

import pytest

from solotable._entities.declare.table import Index, Table
from solotable._entities.keys.key import Key
from solotable._entities.lint import Finding, lint

from .test_keys import entity

TYPES: dict[str, Any] = {
    "status": Literal["draft", "done", "gone"],
    "level": IntEnum("Level", {"LOW": 1, "HIGH": 2}),
    "day": date,
    "at": datetime,
    "shard": int,
    "many": Enum("Many", {f"M{n}": f"m{n}" for n in range(100)}),
    "at_most": Enum("Most", {f"M{n}": f"m{n}" for n in range(99)}),
}


def hot(partition: str, *, tenant: str | None = None, shards: int | None = None) -> list[Finding]:
    table = Table("Shop", tenant=tenant)
    entity(table, "Order", {"key": Key(partition, "ORDER#{order_id}#{at}", shards=shards)}, **TYPES)
    return [each for each in lint(table) if each.code in ("ST201", "ST202")]


@pytest.mark.parametrize(
    ("partition", "said"),
    [
        ("ORDERS", "Order.key puts all items into one partition, and"),
        ("{at_most}", "into 99 partitions by at_most"),
        ("STATUS#{status}", "into 3 partitions by status"),
        ("{status}#{level:02d}", "into 6 partitions by level and status"),
    ],
)
def test_few_partitions_are_hot(partition: str, said: str) -> None:
    (finding,) = hot(partition)
    assert (finding.code, finding.severity, finding.entity) == ("ST201", "warning", "Order")
    assert said in finding.message
    assert "1,000 WCU and 3,000 RCU" in finding.message


@pytest.mark.parametrize("partition", ["DAY#{day}", "{at:s}", "LOG#{at:day}"])
def test_the_present_is_hot(partition: str) -> None:
    (finding,) = hot(partition)
    assert (finding.code, finding.severity) == ("ST202", "warning")
    assert "shard it with shards=8" in finding.message


@pytest.mark.parametrize(
    "partition", ["ORDERS", "STATUS#{status}", "{at:s}", "LOG#{at:day}", "{status}#{at:hour}"]
)
def test_c0_9_c3_8_shards_are_the_way_out_of_hot_partitions(partition: str) -> None:
    assert hot(partition) == [] or any("shards=8" in each.message for each in hot(partition))
    assert hot(partition, shards=8) == []


@pytest.mark.parametrize(
    "partition", ["ORDER#{order}", "DAY#{day}#{shard:02d}", "{status}#{owner}", "{shard:02d}", "{many}"]
)
def test_many_partitions_are_not(partition: str) -> None:
    assert hot(partition) == []


@pytest.mark.parametrize(
    ("partition", "codes"),
    [
        ("T#{tenant_id}", []),
        ("T#{tenant_id}#{status}", [("ST201", "note")]),
        ("T#{tenant_id}#{day}", [("ST202", "note")]),
        ("T#{tenant_id}#{owner}", []),
    ],
)
def test_a_tenant_in_the_key_spreads_the_traffic(partition: str, codes: list[tuple[str, str]]) -> None:
    found = hot(partition, tenant="tenant_id")
    assert [(each.code, each.severity) for each in found] == codes
    assert all("of each tenant" in each.message for each in found)


def test_native_partitions_of_an_index_are_checked_too() -> None:
    table = Table("Shop", indexes=[Index("Status", partition="status", sort="n:N")])
    keys = {"key": Key("ORDER#{order_id}", "ORDER"), "by_status": Key(("status",), ("n",), index="Status")}
    entity(table, "Order", keys, status=TYPES["status"], n=int)
    (finding,) = [each for each in lint(table) if each.code == "ST201"]
    assert "Order.by_status puts all items into 3 partitions by status" in finding.message
