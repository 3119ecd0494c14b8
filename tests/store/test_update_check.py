"""Updates whose result the model could not read back: they are refused, and nothing is written."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Self

import pytest
from pydantic import BaseModel, Field, field_validator, model_validator

from solotable import ANY, Database, Entity, Index, Key, Table, Version
from solotable._protocol.requests import GetItem, UpdateItem
from solotable.errors import ConditionFailed, DataError, DeclarationError, VersionConflict

from .opening import Opening, stale_keys

warehouse = Table("Warehouse", indexes=[Index("GSI1")])


class Size(BaseModel):
    width: int
    height: int = 1

    @model_validator(mode="after")
    def _is_not_flat(self) -> Self:
        if self.width < self.height:
            raise ValueError("it is higher than it is wide")
        return self


class Place(BaseModel):
    hall: str
    shelf: Annotated[str, Field(max_length=3)] = ""


class Ware(Entity, table=warehouse):
    """Rules of every kind about what can be added to, appended to and changed inside."""

    key = Key("WARE#{ware_id}", "WARE")
    ware_id: str
    stock: Annotated[int, Field(ge=0)] = 0
    sold: int = 0
    price: Annotated[Decimal, Field(gt=0, le=100)] = Decimal(10)
    notes: Annotated[list[str], Field(max_length=2)] = Field(default_factory=list)
    words: list[Annotated[str, Field(min_length=2)]] = Field(default_factory=list)
    labels: Annotated[set[str], Field(min_length=1)] = Field(default_factory=lambda: {"new"})
    colour: str = "red"
    pair: tuple[int, str] = (1, "a")
    more: dict[str, Any] = Field(default_factory=dict)
    size: Size = Size(width=4)
    place: Place = Place(hall="A")

    @field_validator("colour")
    @classmethod
    def _is_a_colour(cls, value: str) -> str:
        if value not in ("red", "blue"):
            raise ValueError("no colour")
        return value


class Span(Entity, table=warehouse):
    """A rule about two fields, one of them in an index key."""

    key = Key("SPAN#{span_id}", "SPAN")
    by_start = Key("SPANS", "{start:06d}#{span_id}", index="GSI1")
    span_id: str
    start: int = 1
    end: int = 5
    version: Annotated[int, Version()] = 0

    @model_validator(mode="after")
    def _ends_after_its_start(self) -> Self:
        if self.end < self.start:
            raise ValueError("it ends before it starts")
        return self


@pytest.fixture
def store(opening: Opening) -> Database:
    return opening(warehouse)


UNFIT: dict[str, tuple[dict[str, Any], str]] = {
    "a sum below a bound": ({"add": {"stock": -3}}, r"Ware\.stock = -1"),
    "a sum above a bound": ({"add": {"price": 91}}, r"Ware\.price = Decimal\('101'\)"),
    "a list that is too long": ({"append": {"notes": ["b", "c"]}}, r"Ware\.notes = "),
    "a short word in a list": ({"append": {"words": ["x"]}}, r"Ware\.words\.0 = 'x'"),
    "a third of a pair": ({"append": {"pair": [2, "b"]}}, r"Ware\.pair"),
    "half of a pair": ({"remove": ["pair[1]"]}, r"Ware\.pair"),
    "a set that is too small": ({"delete": {"labels": {"new"}}}, r"Ware\.labels = "),
    "a validator of a field": ({"set": {"colour": "mud"}}, r"Ware\.colour = 'mud'"),
    "a validator of a nested model": ({"set": {"size.height": 9}}, "it is higher than it is wide"),
    "a required part of a nested model": ({"remove": ["place.hall"]}, r"hall = .*: Field required"),
}


@pytest.mark.parametrize("way", UNFIT)
def test_a_result_that_could_not_be_read_back_is_not_written(
    store: Database, opening: Opening, way: str
) -> None:
    changes, message = UNFIT[way]
    ware = store.put(Ware(ware_id="w", stock=2, notes=["a"]))
    with pytest.raises(DataError, match=message) as refused:
        store.update(Ware, ware_id="w", **changes)
    assert str(refused.value).startswith("Update Ware ware_id='w' would make the entity invalid: ")
    with pytest.raises(DataError, match=message), store.transaction() as tx:
        tx.update(Ware, ware_id="w", **changes)
    assert opening.spy.of(UpdateItem) == []
    assert store.get(Ware, ware_id="w") == ware


FIT: dict[str, dict[str, Any]] = {
    "away from a bound": {"add": {"stock": 3}},
    "a number without a rule": {"add": {"sold": -3}},
    "a whole value": {"set": {"notes": ["x"], "place": Place(hall="B")}},
    "a part of a nested model without a rule": {"set": {"place.shelf": "b2"}},
}


@pytest.mark.parametrize("way", FIT)
def test_what_is_known_to_fit_is_not_read_first(store: Database, opening: Opening, way: str) -> None:
    store.put(Ware(ware_id="w", stock=2))
    store.update(Ware, ware_id="w", **FIT[way])
    assert opening.spy.of(GetItem) == []


def test_what_was_read_for_a_rule_is_read_again_when_it_changed(store: Database, opening: Opening) -> None:
    store.put(Ware(ware_id="w", stock=2))
    beside = opening.beside(warehouse)
    opening.spy.once(UpdateItem, lambda: beside.update(Ware, ware_id="w", add={"stock": 5, "sold": 1}))
    assert store.update(Ware, ware_id="w", add={"stock": -2}).stock == 5
    opening.spy.once(UpdateItem, lambda: beside.update(Ware, ware_id="w", add={"stock": -3}))
    with pytest.raises(DataError, match=r"Ware\.stock = -1"):
        store.update(Ware, ware_id="w", add={"stock": -3})
    assert store.require(Ware, ware_id="w").stock == 2


def test_a_rule_about_several_fields_holds_for_every_update(store: Database, opening: Opening) -> None:
    span = store.put(Span(span_id="s"))
    with pytest.raises(DataError, match="it ends before it starts"):
        store.update(span, set={"start": 6})
    beside = opening.beside(warehouse)
    opening.spy.once(UpdateItem, lambda: beside.update(Span, span_id="s", version=ANY, set={"end": 2}))
    with pytest.raises(DataError, match="it ends before it starts"):
        store.update(Span, span_id="s", version=ANY, set={"start": 3})
    assert store.update(Span, span_id="s", version=ANY, set={"start": 2}).start == 2
    assert stale_keys(opening, warehouse) == []


def test_a_failed_condition_is_reported_before_an_invalid_result(store: Database) -> None:
    store.put(Ware(ware_id="w", stock=0))
    with pytest.raises(ConditionFailed, match="stock >= 1 was required") as refused:
        store.update(Ware, ware_id="w", add={"stock": -1}, where=lambda ware: ware.stock >= 1)
    assert refused.value.found.stock == 0
    old = store.put(Span(span_id="s"))
    store.update(old, set={"end": 9})
    with pytest.raises(VersionConflict):
        store.update(old, set={"start": 10})


def test_add_takes_numbers_and_sets_only(store: Database, opening: Opening) -> None:
    store.put(Ware(ware_id="w"))
    for field, value in (("colour", "x"), ("notes", ["x"]), ("place.hall", "x")):
        with pytest.raises(DataError, match=rf"Ware\.{field} is neither"):
            store.update(Ware, ware_id="w", add={field: value})
    assert opening.spy.of(UpdateItem) == []


def test_remove_takes_a_list_of_fields(store: Database) -> None:
    store.put(Ware(ware_id="w", sold=3))
    with pytest.raises(DataError, match=r"write remove=\['sold'\]"):
        store.update(Ware, ware_id="w", remove="sold")  # type: ignore[arg-type]  # what the test is about
    assert store.update(Ware, ware_id="w", remove=iter(["sold"])).sold == 0


def test_each_element_of_a_tuple_has_its_own_type(store: Database) -> None:
    ware = store.put(Ware(ware_id="w"))
    assert store.count(Ware.key.query(ware_id="w"), where=lambda each: each.pair[1] == "a") == 1
    assert store.update(ware, set={"pair[1]": "b"}).pair == (1, "b")
    with pytest.raises(DataError, match=r"Ware\.pair\[0\] = 'b'"):
        store.update(ware, set={"pair[0]": "b"})
    with pytest.raises(DeclarationError, match=r"Ware\.pair has 2 elements; \[2\] is out of range"):
        store.update(ware, set={"pair[2]": "b"})
    with pytest.raises(DeclarationError, match="counts elements from 0"):
        store.count(Ware.key.query(ware_id="w"), where=lambda each: each.pair[-1] == "a")


def test_what_is_too_deep_is_refused_everywhere(store: Database, opening: Opening) -> None:
    def nested(levels: int) -> Any:
        value: Any = 1
        for _ in range(levels):
            value = [value]
        return value

    store.put(Ware(ware_id="w", more={"deep": nested(30)}))
    store.update(Ware, ware_id="w", set={"more": {"deep": nested(30)}})
    store.update(Ware, ware_id="w", set={"more.deep": nested(30)})
    opening.spy.sent.clear()
    with pytest.raises(DataError, match=r"Ware\.more has lists and maps more than 31 levels deep"):
        store.put(Ware(ware_id="w", more={"deep": nested(31)}))
    with pytest.raises(DataError, match=r"Ware\.more has lists and maps more than 31 levels deep"):
        store.update(Ware, ware_id="w", set={"more": {"deep": nested(31)}})
    with pytest.raises(DataError, match=r"Ware\.more\.deep has lists and maps more than 31 levels deep"):
        store.update(Ware, ware_id="w", set={"more.deep": nested(31)})
    assert opening.spy.sent == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"append": {"notes": "abc"}},
            r"append= takes a list of members for Ware\.notes, got str; write append=",
        ),
        ({"append": {"notes": None}}, r"append= takes a list of members for Ware\.notes, got NoneType"),
        ({"prepend": {"notes": 5}}, r"prepend= takes a list of members for Ware\.notes, got int"),
        ({"prepend": {"notes": {"a": 1}}}, r"prepend= takes a list of members for Ware\.notes, got dict"),
        ({"delete": {"labels": "new"}}, r"delete= takes a list of members for Ware\.labels, got str"),
        ({"delete": {"labels": 5}}, r"delete= takes a list of members for Ware\.labels, got int"),
        ({"set": ["notes"]}, r"set= takes a dict of fields and values, got list; write set="),
        ({"set": {5: 1}}, r"The update of Ware takes the names of fields, got 5"),
        ({"remove": 5}, r"remove= takes a list of fields, got int"),
        ({"remove": [5]}, r"The update of Ware takes the names of fields, got 5"),
    ],
)
def test_changes_of_the_wrong_form_are_rejected(opening: Opening, changes: Any, message: str) -> None:
    db = opening(warehouse)
    with pytest.raises(DataError, match=message):
        db.update(Ware, ware_id="w", **changes)


def test_an_iterator_is_appended_also_if_the_update_is_planned_again(opening: Opening) -> None:
    db, beside = opening(warehouse), opening.beside(warehouse)
    db.put(Ware(ware_id="w"))
    opening.spy.once(UpdateItem, lambda: beside.update(Ware, ware_id="w", set={"notes": ["first"]}))
    notes: Any = iter(["second"])
    assert db.update(Ware, ware_id="w", append={"notes": notes}).notes == ["first", "second"]
