"""The router over the wire: a switch from a file to a server, whose transactions carry the check."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from solotable import ANY, Database, Table
from solotable._connect import over
from solotable.engines import dynamodb, sqlite
from solotable.errors import AlreadyExists
from solotable.migrations.router import Router, RouterOptions, StoreSide
from solotable.urls import Url
from tests.serving import served

from .conftest import Monotonic
from .shop import OldShop, Order, User, announce, close, create_old_tables, flip, migration_of, shop


def opened(engine: Any, *tables: Table) -> Database:
    """Open tables, and create them as on an embedded engine."""
    return over(engine, tables, Url("sqlite", "test"))


def test_writes_move_over_the_wire_and_back(wire_place: str, request: pytest.FixtureRequest) -> None:
    with ExitStack() as stack:
        if wire_place == "file to DynamoDB Local":
            url = f"http://127.0.0.1:{request.getfixturevalue('local').port}"
        else:
            url = stack.enter_context(served("--memory")).url
        server = dynamodb.open(endpoint_url=url)
        source = server if wire_place == "server to server" else sqlite.open(sqlite.MEMORY)
        old, new = opened(source, Table("Unused")), opened(server, shop)
        create_old_tables(old)
        migration = migration_of(old, new)
        clock = Monotonic()
        router: Router[Any] = Router(
            migration, old=OldShop, new=StoreSide, options=RouterOptions(clock=clock, wait_seconds=1e9)
        )
        for number in range(2):
            announce(migration)
            clock.seconds += 1
            router.create(User(user_id=f"{number}", name="during"))
            with pytest.raises(AlreadyExists):
                router.create(User(user_id=f"{number}", name="again"))
            assert router.update(User, user_id=f"{number}", add={"visits": 2}, **_any(number)).visits == 2
            with router.transaction() as tx:
                tx.put(Order(user_id="1", number=f"{number}", total=number))
            close(migration)
            flip(migration)
            clock.seconds += 1
            router.put(Order(user_id="2", number=f"{number}"))
        assert router.require(User, user_id="0", consistent=True).visits == 2
        assert new.require(User, user_id="1").visits == 2
        server.close()


def _any(number: int) -> dict[str, Any]:
    """Return what the store of the new side needs to update a versioned entity."""
    return {"version": ANY} if number else {}
