"""The price of recorded traffic: by table, by partition and by access pattern."""

from __future__ import annotations

from typing import Self

import pytest

from solotable import Entity, Index, Key, Query, Table, pattern
from solotable._entities.patterns.access_patterns import access_patterns
from solotable._entities.patterns.cost import Prices
from solotable.heat import HeatInterval, HeatLog, PartitionTraffic, Traffic
from solotable.heat.monthly_cost import cost_by_partition, cost_by_pattern, cost_by_table

PRICES = Prices(
    region="us-east-1",
    date="2025-07-21",
    read_per_million=0.125,
    write_per_million=0.625,
    storage_per_gb_month=0.25,
    read_unit_hour=0.00013,
    write_unit_hour=0.00065,
)
shop = Table("Shop", indexes=[Index("GSI1")])


class Order(Entity, table=shop):
    key = Key("CUSTOMER#{customer_id}", "ORDER#{order_id}")
    by_status = Key("STATUS#{status}", "{order_id}", index="GSI1")
    customer_id: str
    order_id: str
    status: str

    @pattern
    @classmethod
    def of_customer(cls, customer_id: str) -> Query[Self]:
        """The orders of a customer."""
        return cls.key.query(customer_id=customer_id)

    @pattern
    @classmethod
    def with_status(cls, status: str) -> Query[Self]:
        """The orders of a status."""
        return cls.by_status.query(status=status)


def reads(key: str | None, units: float) -> PartitionTraffic:
    return PartitionTraffic(
        key=None if key is None else {"PK": {"S": key}}, reads=Traffic(units=units, peak=units)
    )


LOG = HeatLog(
    intervals=(
        HeatInterval(start=0, table="Shop", read_units=600, partitions=(reads("CUSTOMER#ana", 600),)),
        HeatInterval(
            start=60,
            table="Shop",
            read_units=60,
            write_units=6000,
            partitions=(reads("CUSTOMER#ben", 20), reads("OTHER", 30), reads(None, 10)),
        ),
        HeatInterval(
            start=60, table="Shop", index="GSI1", read_units=1, partitions=(reads("STATUS#open", 1),)
        ),
    )
)


def test_a_table_costs_its_units_or_the_capacity_of_its_busiest_minute() -> None:
    table, index = cost_by_table(LOG, 120.0, PRICES)
    month = 730 * 3600 / 120 / 1e6
    assert (table.label, table.read_units, table.write_units) == ("Shop", 660, 6000)
    assert table.on_demand == pytest.approx((660 * 0.125 + 6000 * 0.625) * month)
    # 600 and 6,000 units in a minute are 10 and 100 a second, at 70 %.
    assert (table.read_capacity, table.write_capacity) == (15, 143)
    assert table.provisioned == pytest.approx((15 * 0.00013 + 143 * 0.00065) * 730)
    assert (index.label, index.read_capacity, index.write_capacity) == ("Shop.GSI1", 1, 1)


def test_partitions_and_patterns_share_the_units_of_their_table() -> None:
    by_partition = {line.label: line.read_units for line in cost_by_partition(LOG, 120.0, PRICES)}
    assert by_partition["Shop CUSTOMER#ana"] == 600
    assert by_partition["Shop (scans)"] == 10
    by_pattern = {
        line.label: line.read_units for line in cost_by_pattern(LOG, 120.0, PRICES, access_patterns([shop]))
    }
    assert by_pattern == {
        "Order.of_customer  CUSTOMER#{customer_id}": 620,
        "Order.with_status  STATUS#{status}": 1,
        "Shop (other keys)": 30,
        "Shop (scans)": 10,
    }


def test_without_prices_of_capacity_there_is_no_provisioned_price() -> None:
    on_demand = Prices.parse(
        {
            "date": "2025-07-21",
            "regions": {
                "x": {"read_per_million": 1, "write_per_million": 1, "storage_per_gb_month": 1},
            },
        },
        "x",
    )
    assert all(line.provisioned is None for line in cost_by_table(LOG, 120.0, on_demand))
