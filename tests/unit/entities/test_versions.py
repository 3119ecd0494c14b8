"""The declaration of schema versions, and upgrades of items to the current one."""

from __future__ import annotations

from collections.abc import Callable
from types import new_class
from typing import Annotated, Any

import pytest
from pydantic import Field

from solotable import Attr, Entity, Key, Table, downgrade, upgrade
from solotable.errors import DataError, DeclarationError, NewerSchemaVersion

Record = dict[str, Any]


def same(record: Record) -> Record:
    return record


def declared(schema_version: int | None, table: Table | None = None, **members: Any) -> type[Entity]:
    """Define an entity of this schema version with these steps."""
    namespace = {
        "key": Key("A#{one}", "A"),
        "__annotations__": {"one": str},
        "__module__": __name__,
        "__qualname__": "Thing",
        **members,
    }
    return new_class(
        "Thing",
        (Entity,),
        {"table": table or Table("Things"), "schema_version": schema_version},
        lambda own: own.update(namespace),
    )


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "no first": (lambda: declared(0), "the first schema version is 1"),
    "a step is missing": (lambda: declared(2), r"no upgrade to 2; write @upgrade\(to=2\)"),
    "a gap": (lambda: declared(4, a=upgrade(to=2)(same), b=upgrade(to=4)(same)), "no upgrade to 3"),
    "twice": (
        lambda: declared(2, a=upgrade(to=2)(same), b=upgrade(to=2)(same)),
        "two upgrades to schema version 2: a and b",
    ),
    "beyond": (
        lambda: declared(1, a=upgrade(to=2)(same)),
        r"Thing\.a upgrades to schema version 2, but Thing has version 1; write schema_version=2",
    ),
    "undeclared": (lambda: declared(None, a=upgrade(to=2)(same)), "write schema_version=2"),
    "to the first": (lambda: declared(1, a=upgrade(to=1)(same)), "upgrades to schema version 1"),
    "back from nowhere": (
        lambda: declared(1, a=downgrade(to=1)(same)),
        "has version 1 only; write schema_version=2",
    ),
    "back to the future": (
        lambda: declared(2, a=upgrade(to=2, replaces="x")(same), b=downgrade(to=2)(same)),
        "versions before 2 are 1 to 1",
    ),
    "back for nothing": (
        lambda: declared(2, a=upgrade(to=2)(same), b=downgrade(to=1)(same)),
        r"names none; write @upgrade\(to=2, replaces=",
    ),
    "back over a gap": (
        lambda: declared(
            3,
            a=upgrade(to=2, replaces="x")(same),
            b=upgrade(to=3, replaces="y")(same),
            c=downgrade(to=1)(same),
        ),
        r"no downgrade leads from 3 to it; add @downgrade\(to=2\)",
    ),
    "a field is replaced": (
        lambda: declared(2, a=upgrade(to=2, replaces="one")(same)),
        "'one', which is still an",
    ),
    "a key is replaced": (
        lambda: declared(2, a=upgrade(to=2, replaces="PK")(same)),
        "'PK', which is still an",
    ),
    "the attribute is taken": (
        lambda: declared(1, Table("Things", schema_version="one")),
        r"has the attribute 'one'.*Table\(\.\.\., schema_version=",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_declaration_is_refused(case: str) -> None:
    define, message = WRONG[case]
    with pytest.raises(DeclarationError, match=message):
        define()


things = Table("Things")


class Price(Entity, table=things, schema_version=3):
    key = Key("PRICE#{name}", "PRICE")
    name: str
    cents: int
    currency: str = "EUR"
    tags: list[str] = Field(default_factory=list)

    @upgrade(to=2, replaces=("price",))
    @staticmethod
    def to_cents(record: Record) -> Record:
        record["cents"] = int(record["price"] * 100)
        return record

    @upgrade(to=3, replaces=("euro",))
    @staticmethod
    def to_currency(record: Record) -> Record:
        record.setdefault("tags", []).append("upgraded")
        return {**record, "currency": "EUR" if record.get("euro", True) else "USD"}

    @downgrade(to=2)
    @staticmethod
    def euro(record: Record) -> Record:
        return {**record, "euro": record["currency"] == "EUR"}

    @downgrade(to=1)
    @staticmethod
    def price(record: Record) -> Record:
        return {**record, "price": record["cents"] // 100}


def stored(**attributes: Any) -> dict[str, Any]:
    return {
        "PK": {"S": "PRICE#a"},
        "SK": {"S": "PRICE"},
        "_type": {"S": "Price"},
        "name": {"S": "a"},
        **attributes,
    }


def test_each_step_is_taken_from_the_stored_schema_version() -> None:
    decode: Callable[[Record], Any] = Price.plan().decode
    first = decode(stored(price={"N": "9.5"}, tags={"L": [{"S": "x"}]}, mine={"S": "kept"}))
    assert (first.cents, first.tags, first.unknown_attributes) == (
        950,
        ["x", "upgraded"],
        {"mine": {"S": "kept"}},
    )
    second = decode(stored(cents={"N": "3"}, euro={"BOOL": False}, _shape={"N": "2"}))
    assert (second.currency, second.cents, second.unknown_attributes) == ("USD", 3, {})
    third = decode(stored(cents={"N": "3"}, _shape={"N": "3"}))
    assert third == Price(name="a", cents=3)


def test_an_upgrade_in_place_does_not_reach_the_stored_item() -> None:
    item = stored(price={"N": "1"}, tags={"L": [{"S": "x"}]})
    Price.plan().decode(item)
    assert item == stored(price={"N": "1"}, tags={"L": [{"S": "x"}]})


def test_what_is_written_says_its_schema_version_and_serves_the_ones_before() -> None:
    item = Price.plan().encode({"name": "a", "cents": 700, "currency": "USD", "tags": []})
    assert (item["_shape"], item["_shape_from"]) == ({"N": "3"}, {"N": "1"})
    assert (item["euro"], item["price"]) == ({"BOOL": False}, {"N": "7"})
    loaded = Price.plan().decode(item)
    assert (loaded, loaded.unknown_attributes) == (Price(name="a", cents=700, currency="USD"), {})


def test_the_first_schema_version_leaves_no_trace() -> None:
    plan = declared(1).plan()
    assert plan.encode({"one": "x"}).keys() == {"PK", "SK", "_type", "one"}


def test_an_attribute_that_is_not_a_schema_version_is_named() -> None:
    plan = declared(None).plan()
    with pytest.raises(
        DataError,
        match=r"_shape = \{'S': 'round'\}, which is not a schema version.*Table\(\.\.\., schema_version=",
    ):
        plan.decode({**plan.encode({"one": "x"}), "_shape": {"S": "round"}})


def test_an_entity_without_schema_versions_rejects_a_newer_item_too() -> None:
    plan = declared(None).plan()
    with pytest.raises(
        NewerSchemaVersion, match="has schema version 2, but this code knows versions up to 1"
    ):
        plan.decode({**plan.encode({"one": "x"}), "_shape": {"N": "2"}})
    served = plan.decode({**plan.encode({"one": "x"}), "_shape": {"N": "2"}, "_shape_from": {"N": "1"}})
    assert served.unknown_attributes == {}


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda record: None, "returned NoneType; return a dict"),
        (lambda record: {**record, "PK": "x"}, "returned 'PK', which only the store may write"),
        (lambda record: record["gone"], "failed for a stored item: KeyError: 'gone'"),
    ],
)
def test_a_faulty_step_is_named(step: Callable[[Record], Record], message: str) -> None:
    plan = declared(2, a=upgrade(to=2)(step)).plan()
    with pytest.raises(DataError, match=message):
        plan.decode({"PK": {"S": "A#x"}, "SK": {"S": "A"}, "_type": {"S": "Thing"}, "one": {"S": "x"}})


def test_upgrades_are_inherited_and_overridden_in_a_subclass() -> None:
    class Steps(Entity):
        @upgrade(to=2)
        @staticmethod
        def step(record: Record) -> Record:
            return {**record, "two": "base"}

    class Child(Steps, table=Table("Children"), schema_version=2):
        key = Key("C#{one}", "C")
        one: str
        two: str = ""

    class Override(Steps, table=Table("Others"), schema_version=2):
        key = Key("C#{one}", "C")
        one: str
        two: str = ""

        @upgrade(to=2)
        @staticmethod
        def step(record: Record) -> Record:
            return {**record, "two": "own"}

    for entity, two in ((Child, "base"), (Override, "own")):
        item = {"PK": {"S": "C#x"}, "SK": {"S": "C"}, "_type": {"S": entity.__name__}, "one": {"S": "x"}}
        loaded: Any = entity.plan().decode(item)
        assert loaded.two == two
    assert Child.step({}) == {"two": "base"}


def test_steps_see_attributes_by_their_names_in_the_table() -> None:
    class Renamed(Entity, table=Table("Renamed"), schema_version=2):
        key = Key("R#{one}", "R")
        one: str
        long_name: Annotated[str, Attr("ln")] = ""

        @upgrade(to=2)
        @staticmethod
        def upper(record: Record) -> Record:
            assert record.keys() == {"one", "ln"}
            return {**record, "ln": record["ln"].upper()}

    item = Renamed.plan().encode({"one": "x", "long_name": "abc"})
    del item["_shape"]
    assert Renamed.plan().decode(item) == Renamed(one="x", long_name="ABC")
