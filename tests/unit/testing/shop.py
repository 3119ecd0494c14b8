"""A small shop for the tests of this package; the plugin's tests also write it into separate projects."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from solotable import TTL, Created, Entity, Index, Key, Query, Table, Version, pattern

shop = Table("Shop", indexes=[Index("ByBuyer")], ttl="expires")
stock = Table("Stock", indexes=[Index("ByShelf", projection="KEYS_ONLY")])


class Order(Entity, table=shop):
    key = Key("ORDER#{order_id}", "ORDER")
    by_buyer = Key("BUYER#{buyer}", "ORDER#{order_id}", index="ByBuyer")

    order_id: str
    buyer: str = "ana"
    note: str = ""
    placed: Annotated[datetime | None, Created()] = None

    @pattern
    @classmethod
    def of_buyer(cls, buyer: str) -> Query[Order]:
        """A buyer's orders."""
        return cls.by_buyer.query(buyer=buyer)


class Account(Entity, table=shop):
    key = Key("ACCOUNT#{name}", "ACCOUNT")

    name: str
    points: int = 0
    version: Annotated[int, Version()] = 0


class Visit(Entity, table=shop):
    key = Key("VISIT#{visit_id}", "VISIT")

    visit_id: str
    expires: Annotated[datetime | None, TTL()] = None


class Tally(Entity, table=stock):
    key = Key("TALLY#{name}", "TALLY")

    name: str
    count: int = 0
