"""Rows of the systems' requirements that the store itself answers for, each under its number."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from solotable import (
    FROM_SCOPE,
    Counted,
    Counter,
    Created,
    Database,
    Entity,
    History,
    Key,
    Store,
    Table,
    Unique,
)
from solotable._protocol.encode.requests import encode_request
from solotable._protocol.requests import Control, PutItem, UpdateItem
from solotable.engines import sqlite
from solotable.errors import DataError, DeclarationError, NotUnique, ServiceError

from .opening import Opening

flat = Table("Flat", tenant="tenant_id", flat=True)

#: C1.3: those that the seed forgets, among those that it names.
RESERVED = (
    *(
        "name",
        "resource",
        "action",
        "timestamp",
        "counter",
        "total",
        "ttl",
        "status",
        "type",
        "owner",
        "data",
    ),
    *("read", "section", "element", "role", "order", "window", "date", "url", "source", "location", "limit"),
    *("value", "users"),
)
#: Makes entities whose fields are listed in a test.
METACLASS: Any = type(Entity)


class Usage(Entity, table=flat):
    """A flat counter item whose every name is one of DynamoDB's reserved words."""

    key = Key("TENANT#{tenant_id}", "USAGE#{entity_id}")
    tenant_id: str = FROM_SCOPE
    entity_id: str
    resource: str = ""
    counter: int = 0
    total: int = 0
    limit: int = 0
    status: str = ""
    data: str = ""
    name: str = ""
    tokens: int = 0
    created: Annotated[datetime | None, Created()] = None


class Lead(Entity, table=flat):
    key = Key("TENANT#{tenant_id}", "LEAD#{lead_id}")
    tenant_id: str = FROM_SCOPE
    lead_id: str
    email: Annotated[str, Unique(normalise="casefold")]


@pytest.fixture
def base(opening: Opening) -> Database:
    return opening(flat)


@pytest.fixture
def db(base: Database) -> Store:
    return base.tenant("acme")


class Nested(BaseModel):
    count: int


def test_s1_1_nothing_nested_can_be_declared_in_a_flat_table() -> None:
    for annotation in (dict[str, int], list[str], Nested):
        with pytest.raises(DeclarationError, match="data"):
            METACLASS(
                "Wrapped",
                (Entity,),
                {
                    "__module__": __name__,
                    "__qualname__": "Wrapped",
                    "__annotations__": {"name": str, "data": annotation},
                    "key": Key("A#{name}", "B"),
                },
                table=Table("Wrapping", flat=True),
            )


def test_s1_2_a_nested_record_is_not_accepted_when_it_is_read(db: Store, opening: Opening) -> None:
    db.put(Usage(entity_id="e"))
    (item,) = opening.raw(flat)
    item["data"] = {"M": {"counter": {"N": "1"}}}
    opening.engine.handle(PutItem(table=opening.prefix + flat.name, item=item))
    with pytest.raises(DataError, match=r"Usage\.data"):
        db.get(Usage, entity_id="e")


def test_s1_3_whatever_is_written_is_flat(db: Store, opening: Opening) -> None:
    db.put(Usage(entity_id="e", name="n"))
    db.update(Usage, entity_id="e", add={"counter": 1}, set={"data": "d"})
    (item,) = opening.raw(flat)
    assert {kind for value in item.values() for kind in value} == {"S", "N"}


def test_s1_7_an_update_is_one_atomic_request_and_counters_sum(db: Store, opening: Opening) -> None:
    db.put(Usage(entity_id="e", resource="gpt"))
    opening.spy.sent.clear()
    for _ in range(3):
        db.update(Usage, entity_id="e", set={"status": "hot"}, add={"limit": 5, "total": 1})
    assert [type(request) for request in opening.spy.sent] == [UpdateItem] * 3
    found = db.require(Usage, entity_id="e")
    assert (found.resource, found.limit, found.total) == ("gpt", 15, 3)


def test_s1_8_and_c1_4_the_first_time_stays_and_everything_else_follows(db: Store, opening: Opening) -> None:
    first = db.put(Usage(entity_id="e", resource="old"))
    opening.clock.seconds += 60
    db.update(Usage, entity_id="e", set={"resource": "new"})
    again = db.put(first.model_copy(update={"resource": "newest"}))
    assert (again.created, again.resource) == (first.created, "newest")


def test_s1_10_what_was_consumed_is_added_and_never_derived(db: Store) -> None:
    db.put(Usage(entity_id="e", tokens=10_000_000))
    # 100 ms of a limit of ten million a minute come back while 1,000 are taken.
    db.update(Usage, entity_id="e", add={"tokens": 16_667 - 1_000, "total": 1_000})
    found = db.require(Usage, entity_id="e")
    assert (10_000_000 - found.tokens, found.total) == (-15_667, 1_000)


BAD_TRAITS: dict[str, Any] = {
    "whole traits need a version": {"history": History("X#v{version:06d}")},
    "a counter needs a parent that counts": {"counted": Counted(Lead, "email")},
}


@pytest.mark.parametrize("case", BAD_TRAITS)
def test_s1_11_what_is_derived_is_validated_when_it_is_declared(case: str) -> None:
    body = {
        "__module__": __name__,
        "__qualname__": "Bad",
        "__annotations__": {"tenant_id": str, "lead_id": str},
        "key": Key("TENANT#{tenant_id}", "X#{lead_id}"),
        **BAD_TRAITS[case],
    }
    with pytest.raises(DeclarationError, match="Bad"):
        METACLASS("Bad", (Entity,), body, table=Table("Deriving"))


def test_s1_12_no_update_can_name_an_attribute_itself_or_a_path_twice(db: Store, opening: Opening) -> None:
    db.put(Usage(entity_id="e"))
    opening.spy.sent.clear()
    db.update(Usage, entity_id="e", set={"name": "n", "data": "d"}, add={"counter": 1, "limit": 2})
    (sent,) = opening.spy.of(UpdateItem)
    _, members = encode_request(sent)
    words = re.findall(r"[A-Za-z_]+", members["UpdateExpression"])
    assert set(words) <= {"SET", "ADD", "REMOVE", "DELETE", "if_not_exists", "list_append"}
    with pytest.raises(DataError, match="twice"):
        db.update(Usage, entity_id="e", set={"counter": 1}, add={"counter": 1})


def test_c1_2_a_counter_of_a_reserved_name_is_added_to_on_an_item_without_it(db: Store) -> None:
    db.put(Usage(entity_id="e"))
    db.update(Usage, entity_id="e", remove=["counter"])
    assert db.update(Usage, entity_id="e", add={"counter": 5}).counter == 5


def test_c1_3_every_reserved_name_can_be_a_field(opening: Opening) -> None:
    table = Table("Reserved")
    body: dict[str, Any] = {
        "__module__": __name__,
        "__qualname__": "Wordy",
        "__annotations__": {"key_id": str, **dict.fromkeys(RESERVED, str)},
        "key": Key("WORDY#{key_id}", "WORDY"),
        **dict.fromkeys(RESERVED, ""),
    }
    wordy: Any = METACLASS("Wordy", (Entity,), body, table=table)
    db = opening(table)
    db.put(wordy(key_id="w"))
    changed = db.update(wordy, key_id="w", set=dict.fromkeys(RESERVED, "x"))
    assert {getattr(changed, name) for name in RESERVED} == {"x"}
    assert (
        db.first(wordy.key.query(key_id="w").where(lambda w: (w.status == "x") & (w.data == "x"))) == changed
    )


def test_s0_8_one_lead_per_email_and_tenant(base: Database) -> None:
    for tenant in ("a", "b"):
        base.tenant(tenant).create(Lead(lead_id="1", email="Ana@example.com"))
    with pytest.raises(NotUnique):
        base.tenant("a").create(Lead(lead_id="2", email="ana@EXAMPLE.com"))


def test_s2_9_a_name_that_is_taken_is_found_when_it_is_taken_again(db: Store) -> None:
    db.create(Lead(lead_id="1", email="downtown-collective"))
    with pytest.raises(NotUnique) as refused:
        db.create(Lead(lead_id="2", email="Downtown-Collective"))
    assert refused.value.holder == {"tenant_id": "acme", "lead_id": "1"}


def test_s2_19_a_table_is_in_one_region_and_has_no_replicas(base: Database, opening: Opening) -> None:
    """What a write stores is in one table of one region, so the next consistent read returns it."""
    members = {"TableName": base.scope.names[flat.name]}
    described = opening.engine.handle(Control(operation="DescribeTable", members=members))["Table"]
    assert not {"Replicas", "GlobalTableVersion", "GlobalTableWitnesses"} & described.keys()
    assert re.fullmatch(r"arn:aws:dynamodb:[a-z0-9-]+:\d{12}:table/.+", described["TableArn"])
    base.tenant("a").put(Usage(entity_id="e", counter=1))
    assert base.tenant("a").get(Usage, entity_id="e", consistent=True) is not None


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("UpdateTable", {"ReplicaUpdates": [{"Create": {"RegionName": "eu-west-1"}}]}),
        ("CreateGlobalTable", {"GlobalTableName": "Flat", "ReplicationGroup": [{"RegionName": "eu-west-1"}]}),
    ],
)
def test_s2_19_the_embedded_engine_refuses_replication_by_name(
    operation: str, members: dict[str, Any]
) -> None:
    with sqlite.open(":memory:") as engine, pytest.raises(ServiceError, match=r"Replica|CreateGlobalTable"):
        engine.call(operation, {"TableName": "Flat", **members})


def test_a_counter_marker_takes_numbers_only() -> None:
    with pytest.raises(DeclarationError, match="Counter"):

        class Bad(Entity, table=Table("Counting2")):
            key = Key("A#{a}", "B")
            a: str
            n: Annotated[str, Counter()] = ""
