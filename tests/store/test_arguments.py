"""Wrong arguments of the verbs: each error says what the verb takes and what it got."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from solotable import Store
from solotable.errors import DataError

from .models import Reader, Section

pytestmark = pytest.mark.in_process


class NotAnEntity(BaseModel):
    reader_id: str


READER = Reader(reader_id="r")
NEITHER = [
    ("Reader", "the string 'Reader'"),
    ("R" * 50, "the string '" + "R" * 40 + "...'"),
    (NotAnEntity, "the class NotAnEntity"),
    (NotAnEntity(reader_id="r"), "NotAnEntity"),
    (7, "int"),
    (None, "None"),
]


@pytest.mark.parametrize(("given", "shown"), [*NEITHER, (READER, "an instance of Reader")])
@pytest.mark.parametrize(
    "verb", ["get", "require", "get_many", "modify", "history", "names", "undelete", "hold", "release_hold"]
)
def test_verb_that_takes_a_class_says_so(db: Store, verb: str, given: Any, shown: str) -> None:
    arguments: dict[str, tuple[Any, ...]] = {"get_many": ([],), "modify": (lambda reader: reader,)}
    options = {"hold": {"reason": "law"}}
    with pytest.raises(DataError) as raised:
        getattr(db, verb)(given, *arguments.get(verb, ()), **options.get(verb, {}))
    assert str(raised.value) == f"{verb}() takes an Entity class, got {shown}."


@pytest.mark.parametrize(("given", "shown"), [*NEITHER, (Reader, "the class Reader")])
@pytest.mark.parametrize("verb", ["put", "create"])
def test_verb_that_takes_an_instance_says_so(db: Store, verb: str, given: Any, shown: str) -> None:
    expected = f"{verb}() takes an Entity instance, got {shown}."
    with pytest.raises(DataError) as raised:
        getattr(db, verb)(given)
    assert str(raised.value) == expected
    with pytest.raises(DataError) as raised, db.transaction() as tx:
        getattr(tx, verb)(given)
    assert str(raised.value) == expected


@pytest.mark.parametrize(("given", "shown"), NEITHER)
@pytest.mark.parametrize("verb", ["update", "delete"])
def test_verb_that_takes_either_says_so(db: Store, verb: str, given: Any, shown: str) -> None:
    expected = f"{verb}() takes an Entity class and its key, or an instance, got {shown}."
    with pytest.raises(DataError) as raised:
        getattr(db, verb)(given, reader_id="r")
    assert str(raised.value) == expected
    with pytest.raises(DataError) as raised, db.transaction() as tx:
        getattr(tx, verb)(given, reader_id="r")
    assert str(raised.value) == expected


@pytest.mark.parametrize(
    ("given", "shown"), [*NEITHER, (Section, "the class Section"), (READER, "an instance of Reader")]
)
@pytest.mark.parametrize("verb", ["page", "first", "count", "explain"])
def test_verb_that_takes_a_query_says_so(db: Store, verb: str, given: Any, shown: str) -> None:
    with pytest.raises(DataError) as raised:
        getattr(db, verb)(given)
    assert str(raised.value) == f"{verb}() takes a Query (from a pattern or key.query()), got {shown}."


def test_iteration_takes_a_query(db: Store) -> None:
    given: Any = Section
    with pytest.raises(DataError, match=r"^all\(\) takes a Query .*, got the class Section\.$"):
        list(db.all(given))


def test_pattern_and_key_in_place_of_a_query_are_named(db: Store) -> None:
    given: Any = Section.of_survey
    with pytest.raises(DataError) as raised:
        db.page(given)
    assert str(raised.value) == (
        "page() takes a Query, got the pattern Section.of_survey; call it with its arguments."
    )
    given = Section.by_order
    with pytest.raises(DataError) as raised:
        db.page(given)
    assert str(raised.value) == (
        "page() takes a Query, got the key Section.by_order; call its query() with its parts."
    )


def test_members_of_a_collection_and_a_check_are_classes(db: Store) -> None:
    given: Any = "Section"
    with pytest.raises(
        DataError, match=r"^collection\(\) takes an Entity class, got the string 'Section'\.$"
    ):
        db.collection(Section, given, survey_id="s")
    with (
        pytest.raises(DataError, match=r"^check\(\) takes an Entity class, got the string 'Section'\.$"),
        db.transaction() as tx,
    ):
        tx.check(given, survey_id="s")
