"""The items of a page, decoded by compiled functions, are what the exact checks of one item return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from solotable import FROM_SCOPE, TTL, Entity, Index, Key, SoftDelete, Table, Version
from solotable._entities.codecs.item_decoder import STORED
from solotable._flows.cursors import CursorSigner
from solotable._flows.retry import Retries
from solotable._flows.scope import Scope
from solotable._values import Item
from solotable.errors import SolotableError

shop = Table("Shop", tenant="tenant_id", ttl="until", indexes=[Index("GSI1"), Index("GSI2")])
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Product(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "PRODUCT#{product_id}")
    by_rank = Key("TENANT#{tenant_id}#RANK", "{rank:06d}", index="GSI1")
    tenant_id: str = FROM_SCOPE
    product_id: str
    rank: int
    price: Decimal
    sold: bool
    tags: set[str] = Field(default_factory=set)
    parts: frozenset[int] = frozenset()
    at: datetime | None
    note: str | None = None


class Gift(Product):
    label: str = ""


class Lot(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "LOT#{lot_id}")
    deletion = SoftDelete(grace=timedelta(days=2))
    tenant_id: str = FROM_SCOPE
    lot_id: str
    amount: Annotated[int, Field(ge=1)]
    until: Annotated[datetime | None, TTL()] = None
    version: Annotated[int, Version()] = 0


class Crate(Product):
    """The only test that reads it needs its compiled functions."""


SCOPE = Scope(
    names={"Shop": "shop"},
    tables=(shop,),
    clock=NOW.timestamp,
    retries=Retries(random=lambda: 0.0),
    cursor_signer=CursorSigner(secrets=[b"a secret of enough bytes"], clock=lambda: 0.0),
    tokens=lambda: "token",
    tenant="acme",
)
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
products = st.builds(
    Product,
    tenant_id=st.just("acme"),
    product_id=texts,
    rank=st.integers(0, 999_999),
    price=st.decimals(-1000, 1000, places=2),
    sold=st.booleans(),
    tags=st.sets(texts, max_size=2),
    parts=st.frozensets(st.integers(-9, 9), max_size=2),
    at=st.none() | st.just(NOW),
    note=st.none() | texts,
)
gifts = st.builds(
    Gift,
    tenant_id=st.just("acme"),
    product_id=texts,
    rank=st.just(1),
    price=st.just(Decimal(1)),
    sold=st.just(True),
    at=st.none(),
    label=texts,
)
lots = st.builds(
    Lot,
    tenant_id=st.just("acme"),
    lot_id=texts,
    amount=st.integers(1, 9),
    until=st.none() | st.sampled_from([NOW - timedelta(days=1), NOW + timedelta(days=1)]),
)


def _without(*names: str) -> Callable[[Item], Item]:
    return lambda item: {name: value for name, value in item.items() if name not in names}


def _with(**attributes: Any) -> Callable[[Item], Item]:
    return lambda item: {**item, **attributes}


#: What another program may have written, and what a compiled function must not accept.
CHANGES: dict[str, Callable[[Item], Item]] = {
    "nothing": _with(),
    "another order": lambda item: dict(sorted(item.items())),
    "another tenant": _with(tenant_id={"S": "other"}),
    "a key of another tenant": _with(tenant_id={"S": "other"}, PK={"S": "TENANT#other"}),
    "another tag": _with(_type={"S": "Gift"}),
    "an unknown tag": _with(_type={"S": "Nothing"}),
    "another key": _with(SK={"S": "PRODUCT#another"}),
    "an unknown attribute": _with(colour={"S": "red"}),
    "the key of another index": _with(GSI2PK={"S": "p"}, GSI2SK={"S": "s"}),
    "a field only in the key": _without("product_id", "lot_id"),
    "no required field": _without("price", "amount"),
    "no tag": _without("_type"),
    "a deleted item": _with(_deleted_at={"S": "2026-01-01T00:00:00.000000Z"}),
    "a null": _with(note={"NULL": True}, tags={"NULL": True}, at={"NULL": True}),
    "a wrong type": _with(rank={"S": "1"}, amount={"S": "1"}),
    "a number in another form": _with(rank={"N": "1E2"}, amount={"N": "1E2"}),
    "a fraction": _with(rank={"N": "1.5"}, amount={"N": "1.5"}),
    "a broken rule": _with(amount={"N": "0"}),
    "a schema version": _with(_schema={"N": "2"}),
}
changed = st.sampled_from(sorted(CHANGES))


def _outcome(admit: Callable[[Item], Any], item: Item) -> Any:
    try:
        entity = admit(item)
    except SolotableError as error:
        return type(error), str(error)
    if entity is None:
        return None
    return type(entity), entity.__dict__, entity.__pydantic_fields_set__, entity.__pydantic_private__


@given(st.lists(st.tuples(products | gifts | lots, changed), min_size=1, max_size=5))
@settings(max_examples=30, deadline=None)
@pytest.mark.parametrize("scope", [SCOPE, replace(SCOPE, unknown="skip"), SCOPE.of_admin()])
def test_the_rows_of_a_page_are_those_of_the_exact_checks(
    scope: Scope, rows: Sequence[tuple[Entity, str]]
) -> None:
    items = [CHANGES[change](each.plan().encode(each.__dict__)) for each, change in rows]
    for plan in (Product.plan(), Gift.plan(), Lot.plan()):
        for first in (items[0], None):
            admit = scope.admit_page(plan, first)
            assert [_outcome(admit, item) for item in items] == [
                _outcome(lambda item: scope.admit(plan, item), item)  # noqa: B023 - called here
                for item in items
            ]


@given(products | gifts | lots, changed)
@settings(max_examples=30, deadline=None)
def test_a_compiled_function_decodes_as_the_slow_path(entity: Entity, change: str) -> None:
    plan, item = entity.plan(), CHANGES[change](entity.plan().encode(entity.__dict__))
    decoder = plan._decoder

    def slowly(item: Item) -> Any:
        values = decoder._decode_slowly(item)
        return plan.entity.__pydantic_validator__.validate_python(values, context=STORED)

    def outcome(decode: Callable[[Item], Any]) -> Any:
        try:
            found = decode(item)
        except (SolotableError, ValidationError) as error:
            return type(error), str(error)
        return found.__dict__, found.__pydantic_fields_set__

    assert outcome(lambda item: decoder.decode(item, STORED)) == outcome(slowly)


def test_an_item_like_the_first_takes_no_exact_check() -> None:
    plan = Crate.plan()
    entity = Crate(tenant_id="acme", product_id="p", rank=1, price=Decimal(2), sold=True, at=NOW)
    item = plan.encode(entity.__dict__)
    make = plan.make_admit(item)
    assert make is not None
    missed: list[Item] = []
    admit = make(missed.append, "acme", lambda item: False)
    assert admit(item) == entity
    assert missed == []
    changes = ("another tenant", "a key of another tenant", "another tag", "another key", "another order")
    for change in changes:
        assert admit(CHANGES[change](item)) is None
    assert len(missed) == len(changes)


def test_a_scope_without_a_tenant_rejects_the_items_of_tenants() -> None:
    plan = Lot.plan()
    item = plan.encode(Lot(tenant_id="acme", lot_id="l", amount=1).__dict__)
    scope = replace(SCOPE, tenant=None)
    exact = _outcome(lambda item: scope.admit(plan, item), item)
    assert exact[0].__name__ == "TenantViolation"
    assert _outcome(scope.admit_page(plan, item), item) == exact


def test_attribute_sets_beyond_the_most_take_the_slow_path() -> None:
    table = Table("Many")
    body: dict[str, Any] = {
        "__module__": __name__,
        "__qualname__": "Wide",
        "__annotations__": {"one": str, **{f"f{n}": str | None for n in range(8)}},
        "key": Key("ONE#{one}", "ONE"),
        **{f"f{n}": None for n in range(8)},
    }
    made: Any = type(Entity)
    wide: Any = made("Wide", (Entity,), body, table=table)
    for number in range(256):
        entity = wide(one="1", **{f"f{n}": "x" for n in range(8) if number >> n & 1})
        assert wide.plan().decode(wide.plan().encode(entity.__dict__)) == entity
    assert len(wide.plan()._decoder._attribute_sets) == 64
