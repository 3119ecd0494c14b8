"""URLs that are refused, with what to write instead; and tables that somebody else makes at the same time."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import pytest

from solotable import TTL, Entity, Index, Key, Table, connect
from solotable._connect import over
from solotable._protocol.requests import Control, Request
from solotable.engines import sqlite
from solotable.errors import DeclarationError
from solotable.testing.engines.wrapper import EngineWrapper

shop = Table("Shop", indexes=[Index("GSI1")])


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("shop.db", "is not a database URL; write sqlite:///file.db"),
        ("postgres://host/shop", "is not a database URL"),
        ("http:///Shop", "is not a database URL"),
        ("sqlite://shop.db", "write three slashes for a file: sqlite:///file.db"),
        ("sqlite:/shop.db", "too few slashes; write three for a file: sqlite:///file.db"),
        ("sqlite://?durability=none", "durability is full or relaxed"),
        ("sqlite://?lock_timeout=soon", "lock_timeout is a number of seconds, got 'soon'"),
        ("sqlite://?lock_timeout=-1", "lock_timeout is a number of seconds"),
        ("sqlite://?lock_timeout=nan", "lock_timeout is a number of seconds"),
        ("sqlite://?durabilty=relaxed", "did you mean 'durability'?"),
        ("aws://Shop?regoin=eu-west-1", "did you mean 'region'?"),
        ("http://127.0.0.1:8000/a/b", "more than a table name after its host"),
        ("sqlite://?prefix=a%20", "'a Shop' is not a valid name of a DynamoDB table"),
    ],
)
def test_a_url_that_cannot_be_opened_says_why(url: str, told: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        shop.open(url)
    assert told in str(refused.value)


def test_tables_are_named() -> None:
    with pytest.raises(DeclarationError, match="needs at least one table"):
        connect("sqlite://")
    with pytest.raises(DeclarationError, match="names one table"):
        connect("http://127.0.0.1:1/Shop", shop, Table("Other"))


def test_a_name_is_opened_once() -> None:
    with pytest.raises(DeclarationError, match="Two tables have the name 'Shop'"):
        connect("sqlite://", shop, Table("Shop", tenant="org"))


def test_a_second_process_finds_the_table_as_declared() -> None:
    """Two processes that open a new file at once both see no stream and no time to live."""

    class Late(EngineWrapper):
        """Says what there was before the other one came."""

        def handle(self, request: Request[Any], /) -> Any:
            reply = super().handle(request)
            if isinstance(request, Control) and request.operation == "DescribeTimeToLive":
                return {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
            if isinstance(request, Control) and request.operation == "DescribeTable":
                reply["Table"].pop("StreamSpecification", None)
            return reply

    table = Table("Late", ttl="expires", stream=True)

    class Thing(Entity, table=table):
        key = Key("THING#{thing_id}", "THING")
        thing_id: str
        expires: Annotated[datetime | None, TTL()] = None

    engine = sqlite.open(sqlite.MEMORY)
    over(engine, [table])
    over(Late(engine), [table]).put(Thing(thing_id="t1"))
    engine.close()
