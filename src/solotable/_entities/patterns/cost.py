"""Compute the cost of reads and writes: units from sizes, dollars from units and a price table.

Covers on-demand prices. Ignores the free tier, backups, streams and replication.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from solotable._entities.declare.table import Index, Table
from solotable._protocol.capacity import read_units, write_units
from solotable._values import Item, item_size
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError

#: The length of a month in Amazon's price calculator.
SECONDS_PER_MONTH = 730 * 3600
_MILLION = 1_000_000
_GB = 1024**3
_PER_SECOND = {"s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "hour": 3600.0}
_PER_SECOND |= {"d": 86400.0, "day": 86400.0, "month": float(SECONDS_PER_MONTH)}
_RATE = re.compile(r"([0-9][0-9_,]*(?:\.[0-9]+)?|\.[0-9]+)(?:/([a-z]+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices of one region in dollars, with their date."""

    region: str
    date: str
    read_per_million: float
    write_per_million: float
    storage_per_gb_month: float
    #: Of provisioned capacity; None if the price table lacks them.
    read_unit_hour: float | None = None
    write_unit_hour: float | None = None

    @classmethod
    def parse(cls, table: Any, region: str) -> Prices:
        """Parse a region's prices from a price table, or raise DataError."""
        regions = table.get("regions") if isinstance(table, Mapping) else None
        if not isinstance(regions, Mapping) or not isinstance(table.get("date"), str):
            raise DataError('A price table needs "date" and "regions"; see the reference of `explain`.')
        prices = regions.get(region)
        if not isinstance(prices, Mapping):
            raise DataError(
                f"The price table of {table['date']} has no {region}; it has {', '.join(sorted(regions))}. "
                f"Pass your own table with --prices FILE."
            )
        numbers: dict[str, float] = {}
        provisioned = [name for name in ("read_unit_hour", "write_unit_hour") if name in prices]
        for name in ("read_per_million", "write_per_million", "storage_per_gb_month", *provisioned):
            number = prices.get(name)
            if not isinstance(number, int | float) or isinstance(number, bool) or number < 0:
                raise DataError(f"The price table has no number for {region}.{name}; it has {number!r}.")
            numbers[name] = float(number)
        return cls(region=region, date=table["date"], **numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """The units of one request: for the table, and for each index."""

    table: float = 0.0
    indexes: Mapping[str, float] = field(default_factory=dict)
    writes: bool = False

    def __add__(self, other: Units) -> Units:
        names = (*self.indexes, *(name for name in other.indexes if name not in self.indexes))
        indexes = {name: self.indexes.get(name, 0.0) + other.indexes.get(name, 0.0) for name in names}
        return Units(table=self.table + other.table, indexes=indexes, writes=self.writes or other.writes)

    @property
    def total(self) -> float:
        """All units together."""
        return self.table + sum(self.indexes.values())

    def per_million(self, prices: Prices) -> float:
        """Return the price of a million such requests."""
        return self.total * (prices.write_per_million if self.writes else prices.read_per_million)

    def per_month(self, prices: Prices, rate: float) -> float:
        """Return the price of a month at `rate` requests per second."""
        return self.per_million(prices) * rate * SECONDS_PER_MONTH / _MILLION


def rate_per_second(text: str) -> float:
    """Parse a rate.

    >>> rate_per_second("50/s"), rate_per_second("3_000/min"), rate_per_second("2")
    (50.0, 50.0, 2.0)
    """
    found = _RATE.fullmatch(text.strip().lower())
    unit = (found[2] or "s") if found else ""
    if found is None or unit not in _PER_SECOND:
        raise DataError(f"{text!r} is not a rate; write it like 50/s, 3000/min, 10000/h or 1000000/day.")
    return float(found[1].replace("_", "").replace(",", "")) / _PER_SECOND[unit]


def get_units(size: int, *, consistent: bool = False) -> Units:
    """Return the units of getting an item of this size."""
    return Units(table=read_units(size, consistent))


def query_units(items: int, size: int, *, index: str | None, consistent: bool, hydrates: bool) -> Units:
    """Return the units of a query that reads `items` items; DynamoDB adds up their sizes before it rounds.

    >>> query_units(50, 500, index="GSI1", consistent=False, hydrates=False).total
    3.5
    """
    units = read_units(items * size, consistent)
    # DynamoDB rounds the size of each item that is read from the table.
    fetched = items * read_units(size, consistent=False) if hydrates else 0.0
    if index is None:
        return Units(table=units + fetched)
    return Units(table=fetched, indexes={index: units})


def put_units(table: Table, item: Item, *, size: int | None = None, transactional: bool = False) -> Units:
    """Return the units of writing a new item to the table, and to each index that has the item.

    `size` replaces the size of the item, for an estimate without a whole item.
    """

    def units(index: Index | None) -> float:
        whole = index is None or index.projection == "ALL"
        part = item if index is None or whole else projected(table, index, item)
        return write_units(size if whole and size is not None else item_size(part), transactional)

    indexes = {
        index.name: units(index)
        for index in table.indexes.values()
        if all(attribute.name in item for attribute in (*index.partition, *index.sort))
    }
    return Units(table=units(None), indexes=indexes, writes=True)


def projected(table: Table, index: Index, item: Item) -> Item:
    """Return the part of an item that an index holds."""
    if index.projection == "ALL":
        return item
    names = {each.name for each in (table.partition, table.sort, *index.partition, *index.sort) if each}
    names |= set(table.projection(index).get("NonKeyAttributes", ()))
    return {name: value for name, value in item.items() if name in names}


def storage_per_month(items: int, size: int, prices: Prices) -> float:
    """Return the monthly price of storing `items` items of this size, without indexes."""
    # DynamoDB adds 100 bytes to every stored item.
    return items * (size + 100) / _GB * prices.storage_per_gb_month
