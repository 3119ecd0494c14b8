"""What the tests of every design share: expected requests, and items as another program writes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from solotable import Table
from solotable._values import Item
from tests.store.opening import Opening


@contextmanager
def requests(opening: Opening, *operations: str) -> Iterator[None]:
    """Check that the block sends exactly these requests."""
    opening.spy.sent.clear()
    yield
    assert [type(request).__name__ for request in opening.spy.sent] == list(operations)


def item(**attributes: object) -> Item:
    """Return an item in wire form."""
    return {name: _wire(value) for name, value in attributes.items()}


def _wire(value: object) -> dict[str, object]:
    match value:
        case str():
            return {"S": value}
        case int():
            return {"N": str(value)}
        case dict():
            return {"M": {name: _wire(each) for name, each in value.items()}}
        case list():
            return {"L": [_wire(each) for each in value]}
        case _:
            raise TypeError(type(value))


def contents(opening: Opening, table: Table) -> list[list[tuple[str, object]]]:
    """Return the items of a table in an order that does not depend on the order of their attributes."""
    return sorted((sorted(each.items()) for each in opening.raw(table)), key=str)


def at(text: str) -> datetime:
    """Return the time of an ISO text, in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
