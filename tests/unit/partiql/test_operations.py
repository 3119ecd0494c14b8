"""Statements run on an engine: pages, batches and transactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from solotable.engines.sqlite import SqliteEngine
from solotable.errors import ConditionFailed, ServiceError, TransactionCancelled

TABLE = {
    "TableName": "Music",
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "N"},
    ],
}
ITEMS = [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2)]


@pytest.fixture
def engine() -> Iterator[SqliteEngine]:
    with SqliteEngine(":memory:") as engine:
        engine.call("CreateTable", TABLE)
        for pk, sk in ITEMS:
            run(engine, f"INSERT INTO Music VALUE {{'pk': '{pk}', 'sk': {sk}, 'm': {{'x': [{sk}, 9]}}}}")
        yield engine


def run(engine: SqliteEngine, text: str, **members: Any) -> dict[str, Any]:
    return engine.call("ExecuteStatement", {"Statement": text, **members})


def keys(reply: dict[str, Any]) -> list[tuple[str, int]]:
    return [(item["pk"]["S"], int(item["sk"]["N"])) for item in reply["Items"]]


def batch(engine: SqliteEngine, *texts: str, **members: Any) -> dict[str, Any]:
    statements = [{"Statement": text} for text in texts]
    return engine.call("BatchExecuteStatement", {"Statements": statements, **members})


def transact(engine: SqliteEngine, *texts: str, **members: Any) -> dict[str, Any]:
    statements = [{"Statement": text} for text in texts]
    return engine.call("ExecuteTransaction", {"TransactStatements": statements, **members})


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("pk = 'a'", ITEMS[:3]),
        ("pk IN ['b', 'a']", ITEMS),
        ("pk = 'a' AND sk > 1 AND sk < 3", [("a", 2)]),
        ("pk = 'a' AND sk IN [3, 1]", [("a", 1), ("a", 3)]),
        ("pk = 'a' AND NOT sk = 1", [("a", 2), ("a", 3)]),
        ("(pk = 'a' AND sk = 1) OR (pk = 'b' AND sk = 2)", [("a", 1), ("b", 2)]),
        ("pk = 'a' AND pk = 'b'", []),
        ("pk = 'a' ORDER BY sk DESC", ITEMS[2::-1]),
        ("pk IN ['a', 'b'] ORDER BY pk DESC, sk DESC", ITEMS[::-1]),
    ],
)
def test_selects_find_what_they_ask_for(
    engine: SqliteEngine, where: str, expected: list[tuple[str, int]]
) -> None:
    assert keys(run(engine, f"SELECT * FROM Music WHERE {where}")) == expected


def test_columns_are_named_by_their_last_name(engine: SqliteEngine) -> None:
    reply = run(engine, "SELECT m.x[1], m.x[0], zz FROM Music WHERE pk = 'a' AND sk = 2")
    assert reply["Items"] == [{"x[1]": {"N": "9"}, "x[0]": {"N": "2"}}]


@pytest.mark.parametrize("where", ["pk = 'a'", "pk IN ['a', 'b']", "sk > 0", "pk IN ['a', 'b'] AND sk <> 2"])
@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_tokens_lead_through_the_whole_result(engine: SqliteEngine, where: str, limit: int) -> None:
    text = f"SELECT * FROM Music WHERE {where}"
    found: list[tuple[str, int]] = []
    token: dict[str, str] = {}
    for _ in range(10):
        reply = run(engine, text, Limit=limit, **token)
        assert len(reply["Items"]) <= limit
        found += keys(reply)
        if "NextToken" not in reply:
            break
        token = {"NextToken": reply["NextToken"]}
    assert found == keys(run(engine, text))


def test_a_token_belongs_to_its_statement(engine: SqliteEngine) -> None:
    token = run(engine, "SELECT * FROM Music WHERE pk = 'a'", Limit=1)["NextToken"]
    with pytest.raises(ServiceError) as caught:
        run(engine, "SELECT * FROM Music WHERE pk = 'b'", NextToken=token)
    assert caught.value.message == "NextToken does not match request"


@pytest.mark.parametrize("token", ["abc", "YWJj", "é", "W10=", "WzEsMiwzXQ=="])
def test_a_token_that_is_none_is_refused(engine: SqliteEngine, token: str) -> None:
    with pytest.raises(ServiceError) as caught:
        run(engine, "SELECT * FROM Music", NextToken=token)
    assert caught.value.message == "Invalid NextToken"


def test_an_insert_of_what_is_there_is_a_duplicate(engine: SqliteEngine) -> None:
    with pytest.raises(ServiceError) as caught:
        run(engine, "INSERT INTO Music VALUE {'pk': 'a', 'sk': 1}")
    assert caught.value.code == "DuplicateItemException"
    assert caught.value.message == "Duplicate primary key exists in table"


def test_an_update_changes_and_returns(engine: SqliteEngine) -> None:
    text = "UPDATE Music SET n = 1, s = set_add(s, <<'x'>>) REMOVE m WHERE pk = 'a' AND sk = 1"
    assert run(engine, text)["Items"] == []
    assert run(engine, text + " RETURNING ALL NEW *")["Items"] == [
        {"pk": {"S": "a"}, "sk": {"N": "1"}, "n": {"N": "1"}, "s": {"SS": ["x"]}}
    ]
    assert run(engine, "UPDATE Music REMOVE n WHERE pk='a' AND sk=1 RETURNING MODIFIED NEW *")["Items"] == []


def test_an_update_creates_nothing(engine: SqliteEngine) -> None:
    with pytest.raises(ConditionFailed):
        run(engine, "UPDATE Music SET n = 1 WHERE pk = 'zz' AND sk = 1 AND n IS MISSING")
    assert run(engine, "SELECT * FROM Music WHERE pk = 'zz'")["Items"] == []


def test_a_delete_finds_or_not_and_keeps_what_fails_its_condition(engine: SqliteEngine) -> None:
    assert run(engine, "DELETE FROM Music WHERE pk = 'zz' AND sk = 1 AND n = 1")["Items"] == []
    with pytest.raises(ConditionFailed):
        run(engine, "DELETE FROM Music WHERE pk = 'a' AND sk = 1 AND n = 1")
    old = run(engine, "DELETE FROM Music WHERE pk = 'a' AND sk = 1 RETURNING ALL OLD *")
    assert keys(old) == [("a", 1)]


def test_capacity_is_added_up_over_partitions(engine: SqliteEngine) -> None:
    reply = run(engine, "SELECT * FROM Music WHERE pk IN ['a', 'b']", ReturnConsumedCapacity="TOTAL")
    assert reply["ConsumedCapacity"] == {"TableName": "Music", "CapacityUnits": 1.0}


def test_a_batch_answers_slot_by_slot(engine: SqliteEngine) -> None:
    reply = batch(
        engine,
        "SELECT sk FROM Music WHERE pk = 'a' AND sk = 1",
        "SELECT sk FROM Music WHERE pk = 'zz' AND sk = 1",
        "SELECT sk FROM Music WHERE pk = 'a'",
        "SELECT sk FROM Other WHERE pk = 'a'",
        "SELECT sk FROM Music WHERE",
        ReturnConsumedCapacity="TOTAL",
    )
    assert reply["Responses"] == [
        {"TableName": "Music", "Item": {"sk": {"N": "1"}}},
        {"TableName": "Music"},
        {
            "Error": {
                "Code": "ValidationError",
                "Message": "Select statements within BatchExecuteStatement "
                "must specify the primary key in the where clause.",
            }
        },
        {"Error": {"Code": "ResourceNotFound", "Message": "Requested resource not found"}},
        {
            "Error": {
                "Code": "ValidationError",
                "Message": "Statement wasn't well formed, can't be processed: Unexpected term",
            }
        },
    ]
    assert reply["ConsumedCapacity"] == [{"TableName": "Music", "CapacityUnits": 1.0}]


def test_a_batch_of_writes_names_the_table_of_what_failed(engine: SqliteEngine) -> None:
    reply = batch(
        engine,
        "INSERT INTO Music VALUE {'pk': 'a', 'sk': 1}",
        "INSERT INTO Music VALUE {'pk': 'c', 'sk': 1}",
        "UPDATE Music SET n = 1 WHERE pk = 'zz' AND sk = 1",
        "DELETE FROM Music WHERE pk = 'b' AND sk = 1 RETURNING ALL OLD *",
    )
    codes = [response.get("Error", {}).get("Code") for response in reply["Responses"]]
    assert codes == ["DuplicateItem", None, "ConditionalCheckFailed", None]
    assert all(response["TableName"] == "Music" for response in reply["Responses"])
    assert reply["Responses"][3]["Item"]["pk"] == {"S": "b"}


def test_a_batch_reads_or_writes(engine: SqliteEngine) -> None:
    with pytest.raises(ServiceError) as caught:
        batch(
            engine,
            "SELECT * FROM Music WHERE pk = 'a' AND sk = 1",
            "DELETE FROM Music WHERE pk = 'a' AND sk = 2",
        )
    assert caught.value.message == "Read and write requests together in the same batch is not supported."


def test_a_transaction_of_reads(engine: SqliteEngine) -> None:
    reply = transact(
        engine,
        "SELECT m.x[0] FROM Music WHERE pk = 'a' AND sk = 1",
        "SELECT * FROM Music WHERE pk = 'zz' AND sk = 1",
    )
    assert reply == {"Responses": [{"Item": {"x[0]": {"N": "1"}}}, {}]}


def test_a_transaction_of_writes_is_all_or_nothing(engine: SqliteEngine) -> None:
    with pytest.raises(TransactionCancelled) as caught:
        transact(
            engine,
            "INSERT INTO Music VALUE {'pk': 'a', 'sk': 1}",
            "INSERT INTO Music VALUE {'pk': 'c', 'sk': 1}",
            "EXISTS(SELECT * FROM Music WHERE pk = 'a' AND sk = 2 AND n = 1)",
        )
    assert [reason["Code"] for reason in caught.value.reasons] == [
        "DuplicateItem",
        "None",
        "ConditionalCheckFailed",
    ]
    assert run(engine, "SELECT * FROM Music WHERE pk = 'c'")["Items"] == []


def test_a_token_runs_a_transaction_once(engine: SqliteEngine) -> None:
    for _ in range(2):
        text = "UPDATE Music SET m.x[0] = m.x[0] + 1 WHERE pk = 'a' AND sk = 1"
        assert transact(engine, text, ClientRequestToken="once") == {"Responses": []}
    reply = run(engine, "SELECT m.x[0] FROM Music WHERE pk = 'a' AND sk = 1")
    assert reply["Items"] == [{"x[0]": {"N": "2"}}]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            ["SELECT * FROM Music WHERE pk = 'a' AND sk = 1", "DELETE FROM Music WHERE pk = 'b' AND sk = 1"],
            "ExecuteTransaction API does not support both read and write operations in the same request.",
        ),
        (
            ["SELECT * FROM Music WHERE"],
            "Validation failed in TransactStatements[0]: "
            "Statement wasn't well formed, can't be processed: Unexpected term",
        ),
        (
            ["UPDATE Music SET n = 1 WHERE pk = 'a' AND sk = 1 RETURNING ALL NEW *"],
            "Validation failed in TransactStatements[0]: "
            "RETURNING clause is not supported in ExecuteTransaction.",
        ),
        (
            [
                "DELETE FROM Music WHERE pk = 'a' AND sk = 1",
                "EXISTS(SELECT * FROM Music WHERE pk = 'b' AND sk = 1)",
            ],
            "Validation failed in TransactStatements[1]: "
            "EXISTS() must contain a single item read with additional condition",
        ),
    ],
)
def test_transactions_that_are_refused(engine: SqliteEngine, texts: list[str], message: str) -> None:
    with pytest.raises(ServiceError) as caught:
        transact(engine, *texts)
    assert (caught.value.code, caught.value.message) == ("ValidationException", message)


def test_exists_is_for_transactions(engine: SqliteEngine) -> None:
    with pytest.raises(ServiceError) as caught:
        run(engine, "EXISTS(SELECT * FROM Music WHERE pk = 'a' AND sk = 1 AND n = 1)")
    assert caught.value.message == "EXISTS can only be used in ExecuteTransaction write requests."
