"""Both engines give the same records for the same requests, and raise the same errors."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from solotable._expressions.ast import Assign, Attr, Compare, Const, Exists, KeyTerm, Not, Update
from solotable._protocol.encode.replies import encode_reply
from solotable._protocol.engine import Engine
from solotable._protocol.requests import (
    BatchDelete,
    BatchExecuteStatement,
    BatchGetItem,
    BatchPut,
    BatchWriteItem,
    ConditionCheck,
    Control,
    DeleteItem,
    ExecuteStatement,
    ExecuteTransaction,
    GetItem,
    PutItem,
    Query,
    Request,
    Scan,
    Statement,
    TableKeys,
    TransactGetItems,
    TransactWriteItems,
    UpdateItem,
)
from solotable.engines import sqlite
from solotable.engines.dynamodb import DynamoEngine
from solotable.engines.dynamodb.http.error_body import ErrorResponse
from solotable.errors import ConditionFailed, ServiceError, TableNotFound, TransactionCancelled
from tests.unit.server.running import TABLE

T = "Things"
ARN = f"arn:aws:dynamodb:us-east-1:000000000000:table/{T}"
EVERY_TYPE: dict[str, Any] = {
    "pk": {"S": "é 😀"},
    "n": {"N": "-1.5"},
    "b": {"B": "AP8="},
    "bs": {"BS": ["AP8=", "YQ=="]},
    "ss": {"SS": ["a", "b"]},
    "ns": {"NS": ["1", "2"]},
    "l": {"L": [{"B": "YQ=="}, {"NULL": True}, {"M": {"b": {"B": ""}}}]},
    "t": {"BOOL": False},
}
SOME = {"pk": {"S": "some"}, "v": {"N": "1"}, "b": {"B": "AP8="}}
SOME_KEY, NONE_KEY = {"pk": {"S": "some"}}, {"pk": {"S": "none"}}
FRESH = Not(Exists(("pk",)))
RAISED = Update((Assign(("v",), Const({"N": "2"})),), creates=True)
SELECT = Statement(text='SELECT * FROM "Things" WHERE pk = ?', parameters=({"S": "some"},))
BINARY = Compare("=", Attr(("b",)), Const({"B": "AP8="}))

REQUESTS: list[Request[Any]] = [
    PutItem(table=T, item=EVERY_TYPE, returns="ALL_OLD", capacity="INDEXES", collection="SIZE"),
    GetItem(table=T, key={"pk": EVERY_TYPE["pk"]}, consistent=True, capacity="TOTAL"),
    GetItem(table=T, key=NONE_KEY),
    GetItem(table=T, key=SOME_KEY, projection=(("b",),)),
    UpdateItem(table=T, key=SOME_KEY, update=RAISED, condition=BINARY, returns="ALL_NEW", capacity="TOTAL"),
    UpdateItem(table=T, key=NONE_KEY),
    DeleteItem(table=T, key=SOME_KEY, returns="ALL_OLD"),
    Query(table=T, key=(KeyTerm("pk", "=", ({"S": "some"},)),), filter=BINARY, capacity="TOTAL"),
    Query(table=T, key=(KeyTerm("pk", "=", ({"S": "some"},)),), select="COUNT"),
    Scan(table=T, limit=1),
    Control(operation="TagResource", members={"ResourceArn": ARN, "Tags": [{"Key": "env", "Value": "test"}]}),
    Control(operation="UntagResource", members={"ResourceArn": ARN, "TagKeys": ["env"]}),
    BatchGetItem(tables=(TableKeys(table=T, keys=(SOME_KEY, NONE_KEY)),), capacity="TOTAL"),
    BatchWriteItem(tables=((T, (BatchPut(item=EVERY_TYPE), BatchDelete(key=SOME_KEY))),), capacity="TOTAL"),
    TransactGetItems(gets=tuple(GetItem(table=T, key=key) for key in (SOME_KEY, NONE_KEY)), capacity="TOTAL"),
    TransactWriteItems(
        actions=(
            PutItem(table=T, item=EVERY_TYPE, condition=FRESH),
            ConditionCheck(table=T, key=SOME_KEY, condition=BINARY),
            UpdateItem(table=T, key=NONE_KEY, update=RAISED),
            DeleteItem(table=T, key={"pk": {"S": "other"}}),
        ),
        token="import-7",
        capacity="TOTAL",
    ),
    ExecuteStatement(statement=SELECT, capacity="TOTAL"),
    BatchExecuteStatement(statements=(SELECT,)),
    ExecuteTransaction(statements=(SELECT,)),
    Control(operation="ListTables", members={}),
    Control(operation="DescribeTimeToLive", members={"TableName": T}),
    Control(operation="ListStreams", members={}),
]
REFUSED: list[tuple[Request[Any], type[ServiceError]]] = [
    (PutItem(table=T, item=SOME, condition=FRESH, returns_on_failure=True), ConditionFailed),
    (PutItem(table=T, item=SOME, condition=FRESH), ConditionFailed),
    (
        TransactWriteItems(
            actions=(
                DeleteItem(table=T, key=NONE_KEY),
                PutItem(table=T, item=SOME, condition=FRESH, returns_on_failure=True),
            )
        ),
        TransactionCancelled,
    ),
    (GetItem(table="Nowhere", key=SOME_KEY), TableNotFound),
    (GetItem(table=T, key={"pk": {"N": "1"}}), ServiceError),
    (Control(operation="CreateTable", members=TABLE), ServiceError),
]


@pytest.fixture
def embedded() -> Iterator[sqlite.SqliteEngine]:
    with sqlite.open(":memory:") as made:
        made.call("CreateTable", TABLE)
        yield made


def filled(engine: Engine) -> None:
    engine.handle(PutItem(table=T, item=SOME))


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_both_engines_reply_alike(
    engine: DynamoEngine, embedded: sqlite.SqliteEngine, request_: Request[Any]
) -> None:
    filled(engine)
    filled(embedded)
    if isinstance(request_, TransactWriteItems):
        # The server knows the last one's token, and would not do the same again.
        request_ = replace(request_, token=uuid.uuid4().hex)
    reply, expected = engine.handle(request_), embedded.handle(request_)
    assert type(reply) is type(expected)
    assert encode_reply(reply) == encode_reply(expected)
    everything = Scan(table=T)
    assert stored(engine.handle(everything)) == stored(embedded.handle(everything))


def stored(page: Any) -> list[Any]:
    found: list[Any] = encode_reply(page)["Items"]
    return found


@pytest.mark.parametrize("request_, kind", REFUSED, ids=lambda one: getattr(one, "__name__", "request"))
def test_both_engines_refuse_alike(
    engine: DynamoEngine, embedded: sqlite.SqliteEngine, request_: Request[Any], kind: type[ServiceError]
) -> None:
    filled(engine)
    filled(embedded)
    with pytest.raises(kind) as expected:
        embedded.handle(request_)
    with pytest.raises(kind) as refused:
        engine.handle(request_)
    assert type(refused.value) is type(expected.value) is kind
    assert refused.value.body() == expected.value.body()
    assert refused.value.status == expected.value.status == 400
    assert refused.value.retryable is False
    assert isinstance(refused.value.__cause__, ClientError | ErrorResponse)


def test_the_item_that_a_condition_met_keeps_its_wire_form(engine: DynamoEngine) -> None:
    filled(engine)
    with pytest.raises(ConditionFailed) as refused:
        engine.handle(PutItem(table=T, item=SOME, condition=FRESH, returns_on_failure=True))
    assert refused.value.item == SOME
    put = PutItem(table=T, item=SOME, condition=FRESH, returns_on_failure=True)
    with pytest.raises(TransactionCancelled) as cancelled:
        engine.handle(TransactWriteItems(actions=(DeleteItem(table=T, key=NONE_KEY), put)))
    assert [reason["Code"] for reason in cancelled.value.reasons] == ["None", "ConditionalCheckFailed"]
    assert cancelled.value.reasons[1]["Item"] == SOME


def test_items_are_dicts_of_wire_values(engine: DynamoEngine) -> None:
    engine.handle(PutItem(table=T, item=EVERY_TYPE))
    assert engine.handle(GetItem(table=T, key={"pk": EVERY_TYPE["pk"]})).item == EVERY_TYPE


def test_threads_do_not_get_each_others_answers(engine: DynamoEngine) -> None:
    def there_and_back(at: int) -> bool:
        item = {"pk": {"S": str(at)}, "b": {"B": "YQ=="}}
        engine.handle(PutItem(table=T, item=item))
        found: Any = engine.handle(GetItem(table=T, key={"pk": {"S": str(at)}})).item
        return bool(found == item)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(there_and_back, range(80)))


def test_a_page_goes_on_where_the_last_one_ended(engine: DynamoEngine) -> None:
    for name in "abc":
        engine.handle(PutItem(table=T, item={"pk": {"S": name}}))
    found: list[Any] = []
    start = None
    while True:
        page = engine.handle(Scan(table=T, limit=1, start=start))
        found += page.items or []
        start = page.last_key
        if start is None:
            break
    assert sorted(item["pk"]["S"] for item in found) == ["a", "b", "c"]
