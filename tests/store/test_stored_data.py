"""What is stored and does not fit is one error, what is given and does not fit is another."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from solotable import Entity, Key, Query, Table, Version, pattern
from solotable._protocol.requests import PutItem
from solotable._store import Database
from solotable.errors import DataError, StoredDataError
from tests.store.opening import SECRET, Clock

NEEDLE = "needle-4711"
things = Table("Things")


class Thing(Entity, table=things):
    """Something with rules."""

    key = Key("THING", "{thing_id}")

    thing_id: str
    colour: Literal["red", "blue"] = "red"
    count: Annotated[int, Field(ge=0)] = 0
    either: int | list[int] = 0
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def every(cls) -> Query[Thing]:
        """All of them."""
        return cls.key.query()


@pytest.fixture
def db() -> Database:
    return things.open("sqlite://", cursor_secrets=[SECRET], clock=Clock())


def plant(db: Database, **attributes: dict[str, str]) -> None:
    """Write an item past the store."""
    item = {"PK": {"S": "THING"}, "SK": {"S": "t1"}, "_type": {"S": "Thing"}, "thing_id": {"S": "t1"}}
    db.engine.handle(PutItem(table="Things", item={**item, **attributes}))


@pytest.mark.parametrize(
    "attributes",
    [{"colour": {"S": NEEDLE}}, {"count": {"S": NEEDLE}}, {"either": {"S": NEEDLE}}, {"count": {"N": "-1"}}],
    ids=str,
)
def test_a_stored_item_that_does_not_fit_is_a_stored_data_error(
    db: Database, attributes: dict[str, dict[str, str]]
) -> None:
    db.put(Thing(thing_id="t0"))
    plant(db, **attributes)
    with pytest.raises(StoredDataError) as refused:
        db.get(Thing, thing_id="t1")
    assert refused.value.public_message is None
    with pytest.raises(StoredDataError):
        db.page(Thing.every())


def test_an_argument_is_not_called_stored_and_not_repeated_to_clients(db: Database) -> None:
    stored = db.put(Thing(thing_id="t1"))
    changes: list[dict[str, Any]] = [{"colour": NEEDLE}, {"count": NEEDLE}, {"either": NEEDLE}]
    for change in changes:
        with pytest.raises(DataError) as updated:
            db.update(stored, set=change)
        with pytest.raises(DataError) as replaced:
            db.put(stored.model_copy(update=change))
        for refused in (updated.value, replaced.value):
            assert not isinstance(refused, StoredDataError), change
            assert NEEDLE not in str(refused.public_message)
    with pytest.raises(DataError) as given:
        db.update(stored, add={"count": -1})
    assert not isinstance(given.value, StoredDataError)
    assert given.value.public_message == "Thing.count: Input should be greater than or equal to 0."
    with pytest.raises(DataError) as given:
        db.get(Thing, thing_id="\ud800" + NEEDLE)
    assert NEEDLE not in str(given.value.public_message)
