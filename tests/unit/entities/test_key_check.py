"""The fast check that an item's stored primary key is the one that its attributes derive."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest

from solotable import Entity, Epoch, Iso, Key, KeyFormat, Table
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
