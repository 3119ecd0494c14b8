"""The fast check that an item's stored primary key is the one that its attributes derive."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest

from solotable import Attr, Entity, Epoch, Iso, Key, KeyFormat, Table
from solotable._entities.declare.plan import Plan
from solotable.errors import StoredDataError

AT = datetime(2026, 11, 16, 12, 30, 45, tzinfo=UTC)
PLAIN = Table("Plain")
FOREIGN = Table("Foreign", key_format=KeyFormat(delimiter="|", escape=False, case="lower"))


class Text(Entity, table=PLAIN):
    key = Key("TEXT#{name}", "{kind}#{number:06d}")
    name: str
    kind: Literal["a", "b"]
    number: int


class Times(Entity, table=PLAIN):
    key = Key("TIMES#{day}", "{at}#{seconds:s}#{millis:ms}")
    day: date
    at: datetime
    seconds: datetime
    millis: datetime


class Marked(Entity, table=PLAIN):
    key = Key("MARKED#{number}", "{iso}#{epoch}")
    number: uuid.UUID
    iso: Annotated[datetime, Iso("ms")]
    epoch: Annotated[datetime, Epoch("s")]


class Amount(Entity, table=PLAIN):
    key = Key("AMOUNT#{price:08.2f}", "AMOUNT")
    price: Decimal


class Folded(Entity, table=FOREIGN):
    key = Key("folded|{name}", "folded|{number:d}")
    name: str
    number: int


class Native(Entity, table=Table("Native", partition="number", sort="at")):
    key = Key(("number",), ("at",))
    number: uuid.UUID
    at: datetime


class NativeEpoch(Entity, table=Table("NativeEpoch", partition="name", sort="at:N")):
    key = Key(("name",), ("at",))
    name: str
    at: Annotated[datetime, Epoch("s")]


class Sharded(Entity, table=PLAIN):
    key = Key("FEED#{feed}", "POST#{post_id}", shards=8)
    feed: str
    post_id: str


class Hourly(Entity, table=PLAIN):
    key = Key("LOG#{at:hour}", "AT#{at}", shards=4)
    at: datetime


class Daily(Entity, table=PLAIN):
    key = Key("DAY#{at:day}", "{at:ms}#{name}")
    at: datetime
    name: str


class Monthly(Entity, table=PLAIN):
    key = Key("MONTH#{on:month}", "{on}")
    on: date


class Event(Entity, table=PLAIN):
    key = Key("EVENT#{event_id:day}", "{event_id}")
    event_id: str


class ShardedKeyOnly(Entity, table=PLAIN):
    key = Key("BOX#{box}", "SLOT#{slot}", shards=8)
    box: str
    slot: Annotated[str, Attr(stored=False)]


def millisecond(number: int) -> datetime:
    return AT.replace(microsecond=number * 1000)


ENTITIES = [
    Text(name="Zoe", kind="a", number=7),
    Text(name="50% of #7", kind="b", number=0),
    Times(day=AT.date(), at=AT.replace(microsecond=5), seconds=AT, millis=millisecond(123)),
    Times(day=AT.date(), at=AT, seconds=AT, millis=millisecond(0)),
    Marked(number=uuid.UUID(int=7), iso=millisecond(120), epoch=AT),
    Amount(price=Decimal("12.50")),
    Folded(name="Eric Johnson", number=7),
    Sharded(feed="f", post_id="p7"),
    Hourly(at=AT),
    Daily(at=millisecond(5), name="n"),
    Monthly(on=AT.date()),
    Event(event_id="01ARZ3NDEKTSV4RRFFQ69G5FAV"),
]


def plan_of(entity: Entity) -> Plan:
    return entity.plan()


@pytest.mark.parametrize("entity", ENTITIES, ids=lambda each: type(each).__name__)
def test_the_key_of_a_written_item_is_accepted(entity: Any) -> None:
    plan_of(entity).check_key(entity.to_item(), entity)


@pytest.mark.parametrize("entity", [each for each in ENTITIES if "%" not in str(each)])
def test_the_fast_check_knows_the_common_keys(entity: Any) -> None:
    check = plan_of(entity).key_check
    assert check is not None
    assert check(entity.to_item())


@pytest.mark.parametrize("attribute", ["PK", "SK"])
@pytest.mark.parametrize("entity", ENTITIES, ids=lambda each: type(each).__name__)
def test_another_key_is_rejected(entity: Any, attribute: str) -> None:
    item = entity.to_item()
    other = {**item, attribute: {"S": item[attribute]["S"] + "x"}}
    with pytest.raises(StoredDataError, match="derive another key"):
        plan_of(entity).check_key(other, entity)


def test_a_time_of_another_zone_is_compared_exactly() -> None:
    entity = Times(day=AT.date(), at=AT, seconds=AT, millis=AT)
    item = entity.to_item() | {"at": {"S": "2026-11-16T13:30:45+01:00"}}
    check = Times.plan().key_check
    assert check is not None
    assert not check(item)
    Times.plan().check_key(item, Times.from_item(item))


@pytest.mark.parametrize(
    ("entity", "stored"),
    [
        (Native(number=uuid.UUID(int=7), at=millisecond(1)), {"at": {"S": "2026-11-16T12:30:45.001Z"}}),
        (Native(number=uuid.UUID(int=7), at=AT), {"at": {"S": "2026-11-16T13:30:45.000000+01:00"}}),
        (Native(number=uuid.UUID(int=10), at=AT), {"number": {"S": str(uuid.UUID(int=10)).upper()}}),
        (NativeEpoch(name="a", at=AT), {"at": {"N": "1794832245.5"}}),
    ],
)
def test_an_attribute_key_in_another_form_is_rejected(entity: Any, stored: Any) -> None:
    plan = plan_of(entity)
    item = entity.to_item()
    plan.check_key(item, entity)
    with pytest.raises(StoredDataError, match="derive another key"):
        plan.check_key(item | stored, entity)


@pytest.mark.parametrize("entity", [Sharded(feed="f", post_id="p7"), ShardedKeyOnly(box="b", slot="s7")])
def test_only_the_shard_that_the_fields_choose_is_accepted(entity: Any) -> None:
    plan, item = plan_of(entity), entity.to_item()
    text, _, shard = item["PK"]["S"].rpartition("#")
    plan.check_key(item, entity)
    for number in (f"{each:02d}" for each in range(100)):
        other = {**item, "PK": {"S": f"{text}#{number}"}}
        if number == shard:
            plan.check_key(other, entity)
        else:
            with pytest.raises(StoredDataError, match="derive another key"):
                plan.check_key(other, entity)


@pytest.mark.parametrize(
    ("entity", "stored"),
    [
        (Hourly(at=AT), "LOG#2026-11-16T13#"),
        (Daily(at=AT, name="n"), "DAY#2026-11-17"),
        (Monthly(on=AT.date()), "MONTH#2026-10"),
        (Event(event_id="01ARZ3NDEKTSV4RRFFQ69G5FAV"), "EVENT#2016-07-31"),
    ],
)
def test_only_the_bucket_of_the_time_is_accepted(entity: Any, stored: str) -> None:
    plan, item = plan_of(entity), entity.to_item()
    shard = item["PK"]["S"][-2:] if stored.endswith("#") else ""
    with pytest.raises(StoredDataError, match="derive another key"):
        plan.check_key({**item, "PK": {"S": stored + shard}}, entity)


def test_the_bucket_of_a_time_in_another_zone_is_that_of_its_time_in_utc() -> None:
    at = datetime(2026, 11, 16, 23, 30, tzinfo=UTC)
    entity = Daily(at=at, name="n")
    item = entity.to_item() | {"at": {"S": "2026-11-17T01:30:00+02:00"}}
    Daily.plan().check_key(item, entity)
    with pytest.raises(StoredDataError, match="derive another key"):
        Daily.plan().check_key(item | {"PK": {"S": "DAY#2026-11-17"}}, entity)
