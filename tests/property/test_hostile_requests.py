"""Whatever is sent, the answer is a grant or DynamoDB's own refusal, soon, and a refusal changes nothing.

Most requests are valid ones that were spoiled (`hostile`); what only an attacker would think of
stands here. The profile "thorough" plays twenty times as many.
"""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from time import thread_time
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solotable._protocol import wire
from solotable._protocol.constraints.operations import CONSTRAINTS
from solotable.engines.sqlite import SqliteEngine
from solotable.errors import ServiceError
from tests.conformance.tables import index, table

from . import hostile
from .hostile import ITEM, KEY, Json, nested, target

# Enough for the profile "thorough"; what hangs is found by the tests of time.

T = TypeVar("T")

REQUESTS = 30
ROOT = Path(__file__).parents[2]
EXAMPLES = settings().max_examples


@pytest.fixture
def engine() -> Iterator[SqliteEngine]:
    with hostile.opened() as made:
        yield made


@pytest.fixture(scope="module")
def shared() -> Iterator[SqliteEngine]:
    """One engine for many examples: its items change as they go, and no claim depends on them."""
    with hostile.opened() as made:
        yield made


def ask(engine: SqliteEngine, operation: str, body: bytes | Json) -> tuple[int, Json]:
    """Send a request, judge the form of its answer, and return it."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return judge(*wire.answer(engine, target(operation), raw), raw)


def judge(status: int, body: bytes, sent: bytes) -> tuple[int, Json]:
    # TagResource and UntagResource have no reply.
    answer = json.loads(body) if body or status != 200 else {}
    assert isinstance(answer, dict)
    if status != 200:
        assert 400 <= status < 500, (status, answer, sent[:2000])
        assert answer["__type"].startswith("com.amazon")
        assert isinstance(answer.get("message", answer.get("Message")), str)
    return status, answer


def contents(engine: SqliteEngine) -> dict[str, list[Any]]:
    """Everything that the engine's file holds."""
    with engine.database.read() as connection:
        names = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        return {"schema": names} | {
            name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in tables
        }


def test_every_operation_is_played_and_granted() -> None:
    with hostile.opened() as engine:
        valid = hostile.valid_requests(engine)
    assert {operation for operation, _ in valid} == set(CONSTRAINTS)
    for operation, payload in valid:
        with hostile.opened() as engine:
            assert ask(engine, operation, payload)[0] == 200, (operation, payload)


@given(st.integers(0, 2**32))
def test_spoiled_requests_are_granted_or_refused_and_a_refusal_changes_nothing(seed: int) -> None:
    with hostile.opened() as engine:
        before = contents(engine)
        for name, raw in hostile.requests(seed, engine, count=REQUESTS):
            status, _ = judge(*wire.answer(engine, name, raw), raw)
            after = contents(engine)
            assert status == 200 or after == before, (name, raw)
            before = after


@given(st.integers(0, 2**32))
@settings(max_examples=EXAMPLES // 4)
def test_callers_in_process_meet_service_errors_only(seed: int) -> None:
    with hostile.opened() as engine:
        for name, raw in hostile.requests(seed, engine, count=REQUESTS):
            try:
                payload = json.loads(raw)
            except (ValueError, RecursionError):
                continue
            try:
                engine.call(name.partition(".")[2], payload)
            except ServiceError as refused:
                assert refused.status == 400


@given(st.sampled_from(sorted(CONSTRAINTS)), st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_invalid_requests_are_rejected(shared: SqliteEngine, operation: str, raw: bytes) -> None:
    ask(shared, operation, raw)


VALUES: Json = {
    ":s": {"S": "x"},
    ":n": {"N": "1"},
    ":b": {"B": "AQ=="},
    ":l": {"L": [{"N": "1"}]},
    ":m": {"M": {"a": {"S": "x"}}},
    ":ss": {"SS": ["a"]},
    ":ns": {"NS": ["1"]},
    ":t": {"BOOL": True},
    ":0": {"NULL": True},
}
WORDS = [
    *VALUES, "pk", "sk", "gp", "n", "l", "m", "ss", "ns", "zz", "m.a", "l[0]", "l[9]", "m.a[0].b", "#p",
    "#q", "SET", "REMOVE", "ADD", "DELETE", "AND", "OR", "NOT", "IN", "BETWEEN", "=", "<>", "<", "<=",
    ">", ">=", "+", "-", "(", ")", ",", ".", "[", "]", "0", "size(", "contains(", "begins_with(",
    "attribute_exists(", "attribute_type(", "if_not_exists(", "list_append(", "l", "m", "n = :n",
    "SET n = :n",
]  # fmt: skip
STATEMENT_WORDS = [
    "SELECT", "*", "FROM", "Music", '"Music"."global"', "WHERE", "pk = 'a'", "sk = 1", "AND", "OR", "NOT",
    "IN", "[", "]", "(", ")", "<<", ">>", "{", "}", "'pk'", ":", "1", "-1", "1e5", "'a'", "null", "true",
    "missing", "?", ",", "IS", "STRING", "BETWEEN", "=", "<>", "<", ">=", "+", "-", "||", "INSERT INTO",
    "VALUE", "UPDATE", "SET", "REMOVE", "DELETE FROM", "RETURNING ALL NEW *", "ORDER BY", "sk", "DESC",
    "size(", "contains(", "begins_with(", "attribute_type(", "list_append(", "if_not_exists(", "set_add(",
    "EXISTS(", "n", "l[0]", "m.a", "ss", "n = n + 1", "SELECT * FROM Music WHERE",
    "UPDATE Music SET n = 1 WHERE pk = 'a' AND sk = 1",
]  # fmt: skip


def sentences(words: list[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(words), max_size=12).map(" ".join)


@given(
    sentences(WORDS), sentences(WORDS), st.sampled_from(["ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW"])
)
@settings(max_examples=EXAMPLES * 3)
def test_expressions_of_any_words_are_granted_or_refused(
    shared: SqliteEngine, one: str, other: str, returned: str
) -> None:
    names = {"#p": "pk", "#q": "m"}
    used = {
        "ExpressionAttributeNames": {
            name: name_ for name, name_ in names.items() if name in f"{one} {other}"
        },
        "ExpressionAttributeValues": {
            name: value for name, value in VALUES.items() if name in f"{one} {other}"
        },
    }
    used = {member: given for member, given in used.items() if given}
    music = {"TableName": "Music", **used}
    for prefix in ("", "SET ", "REMOVE ", "ADD ", "DELETE "):
        expressions = {"UpdateExpression": prefix + one, "ConditionExpression": other}
        ask(shared, "UpdateItem", {**music, "Key": KEY, "ReturnValues": returned, **expressions})
    ask(shared, "Query", {**music, "KeyConditionExpression": one, "FilterExpression": other})
    ask(
        shared,
        "Query",
        {**music, "KeyConditionExpression": one, "ProjectionExpression": other, "IndexName": "global"},
    )
    ask(shared, "Scan", {**music, "FilterExpression": one, "ProjectionExpression": other})
    ask(shared, "PutItem", put() | used | {"ConditionExpression": one})


@given(sentences(STATEMENT_WORDS), st.lists(st.sampled_from(list(VALUES.values())), max_size=2))
@settings(max_examples=EXAMPLES * 3)
def test_statements_of_any_words_are_granted_or_refused(
    shared: SqliteEngine, text: str, parameters: list[Json]
) -> None:
    given = {"Parameters": parameters} if parameters else {}
    for start in ("", "SELECT * FROM Music WHERE ", "UPDATE Music ", "INSERT INTO Music VALUE "):
        statement = {"Statement": start + text, **given}
        ask(shared, "ExecuteStatement", statement)
        ask(shared, "BatchExecuteStatement", {"Statements": [statement]})
        ask(shared, "ExecuteTransaction", {"TransactStatements": [statement]})


CHILD = """
import sys
sys.modules["orjson"] = None
from hashlib import sha256
from tests.property import hostile
for seed in range(int(sys.argv[1])):
    answers = list(hostile.play(seed, count=int(sys.argv[2])))
    print(sha256(repr(answers).encode()).hexdigest())
"""


def test_the_standard_librarys_json_gives_the_same_answers() -> None:
    pytest.importorskip("orjson")
    seeds = EXAMPLES // 2
    child = subprocess.run(  # noqa: S603 - this Python, on a text of our own
        [sys.executable, "-c", CHILD, str(seeds), str(REQUESTS)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
    )
    for seed, digest in enumerate(child.stdout.split()):
        answers = list(hostile.play(seed, count=REQUESTS))
        assert sha256(repr(answers).encode()).hexdigest() == digest, f"seed {seed}"
    assert len(child.stdout.split()) == seeds


UNREADABLE = [
    b"",
    b" ",
    b"{",
    b'{"TableName":"Music"',
    b'{"TableName":"Mus\xff"}',
    b'{"TableName":"\\ud800"}',
    b'{"TableName":"\xed\xa0\x80"}',
    b'{"Limit":NaN}',
    b'{"Limit":Infinity}',
    b'{"Limit":1e999}',
    b'{"Limit":01}',
    b"\xef\xbb\xbf{}",
    "{}".encode("utf-16"),
    "{}".encode("utf-32"),
    b"{}{}",
    b"{'a':1}",
    b'{"a":1,}',
    b"\x00",
    b"[" * 100_000,
    b"[" * 100_000 + b"]" * 100_000,
    b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
]


@pytest.mark.parametrize("raw", UNREADABLE, ids=lambda raw: repr(raw[:24]))
@pytest.mark.parametrize("operation", ["ListTables", "PutItem", "NoSuchOperation"])
def test_invalid_json_is_a_serialization_exception(engine: SqliteEngine, operation: str, raw: bytes) -> None:
    status, answer = ask(engine, operation, raw)
    if operation == "NoSuchOperation" and not raw:
        # No body is not unreadable JSON.
        assert answer["__type"] == "com.amazon.coral.service#UnknownOperationException"
        return
    assert (status, answer) == (
        400,
        {"__type": "com.amazon.coral.service#SerializationException", "Message": ""},
    )


@pytest.mark.parametrize("raw", [b"null", b"true", b"1", b'"x"', b"[]", b"[{}]", b"1" * 100_000])
def test_json_that_is_not_an_object_is_a_serialization_exception(engine: SqliteEngine, raw: bytes) -> None:
    for operation in CONSTRAINTS:
        assert ask(engine, operation, raw)[1]["__type"].endswith("#SerializationException")


@pytest.mark.parametrize(
    "name",
    ["", ".", "GetItem", "DynamoDB_20120810.", "DynamoDB_20120810.getItem", "DynamoDB_20111205.GetItem",
     "DynamoDBStreams_20120810.GetItem", "DynamoDB_20120810.GetRecords", "DynamoDB_20120810.__class__",
     "DynamoDB_20120810.GetItem\x00", "\U0001f600" * 1000],
)  # fmt: skip
def test_unknown_targets_are_unknown_operations(engine: SqliteEngine, name: str) -> None:
    status, answer = judge(*wire.answer(engine, name, b"{}"), b"{}")
    assert (status, answer["__type"]) == (400, "com.amazon.coral.service#UnknownOperationException")


def test_of_duplicate_members_the_last_wins(engine: SqliteEngine) -> None:
    raw = b'{"TableName":"Nope","Key":{"id":{"B":"AA==","B":"AA=="}},"TableName":"Other"}'
    assert ask(engine, "GetItem", raw) == (200, {"Item": {"id": {"B": "AA=="}}})


@pytest.mark.parametrize("levels", [30, 31, 32, 100, 480, 500, 511])
def test_nesting_never_meets_the_stacks_end(engine: SqliteEngine, levels: int) -> None:
    deep = b'{"L":[' * levels + b'{"S":"x"}' + b"]}" * levels
    item = b'{"pk":%b}' % deep
    keys = b",".join([item] * 101)
    ask(engine, "PutItem", b'{"TableName":"Music","Item":%b}' % item)
    ask(engine, "PutItem", b'{"TableName":"Music","Unknown":%b,"Item":{}}' % deep)
    ask(engine, "BatchGetItem", b'{"RequestItems":{"Music":{"Keys":[%b]}}}' % keys)
    ask(engine, "Query", b'{"TableName":"Music","KeyConditionExpression":"a","ExclusiveStartKey":%b}' % item)
    ask(engine, "ExecuteStatement", b'{"Statement":"","Parameters":[%b]}' % deep)
    statement = b'{"Statement":"SELECT * FROM Music WHERE pk = ?","Parameters":[%b]}' % deep
    ask(engine, "ExecuteStatement", statement)
    ask(engine, "BatchExecuteStatement", b'{"Statements":[%b]}' % b",".join([statement] * 26))
    ask(engine, "ExecuteTransaction", b'{"ClientRequestToken":"t","TransactStatements":[%b]}' % statement)
    put = b'{"Put":{"TableName":"Music","Item":%b}}' % item
    ask(engine, "TransactWriteItems", b'{"ClientRequestToken":"t","TransactItems":[%b]}' % put)
    updates = b'"AttributeUpdates":{"x":{"Value":%b}},"Expected":{"x":{"Value":%b}}' % (deep, deep)
    ask(engine, "UpdateItem", b'{"TableName":"Music","Key":{},%b}' % updates)


def test_nesting_without_end_is_refused_in_process_too(engine: SqliteEngine) -> None:
    deep = nested("L", 100_000)
    payloads: list[tuple[str, Json]] = [
        ("PutItem", {"TableName": "Music", "Item": {**KEY, "x": deep}}),
        ("BatchGetItem", {"RequestItems": {"Music": {"Keys": [{"pk": deep}] * 101}}}),
        ("ExecuteStatement", {"Statement": "SELECT * FROM Music WHERE pk = ?", "Parameters": [deep]}),
    ]
    for operation, payload in payloads:
        with pytest.raises(ServiceError):
            engine.call(operation, payload)
    while "L" in deep:  # Python's own destructor would overflow the stack
        deep = deep["L"].pop()


LONE = "\ud800"


@pytest.mark.parametrize(
    "operation, payload",
    [
        ("PutItem", {"TableName": "Music", "Item": {**KEY, "x": {"S": LONE}}}),
        ("PutItem", {"TableName": "Music", "Item": {**KEY, LONE: {"S": "x"}}}),
        ("PutItem", {"TableName": "Music", "Item": {**KEY, "pk": {"S": LONE}}}),
        ("GetItem", {"TableName": "Music", "Key": {**KEY, "pk": {"S": LONE}}}),
        ("Scan", {"TableName": f"Mus{LONE}"}),
        ("CreateTable", table("Lone", f"{LONE}:S")),
        ("CreateTable", table("Lone", "pk:S", Tags=[{"Key": LONE, "Value": "x"}])),
        ("UpdateTimeToLive", {"TableName": "Music"}
         | {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": LONE}}),
        ("ListStreams", {"TableName": LONE}),
        ("GetRecords", {"ShardIterator": f"{LONE}|1|{LONE}"}),
        ("ExecuteStatement", {"Statement": f"SELECT * FROM Music WHERE pk = '{LONE}'"}),
        ("ExecuteStatement", {"Statement": "SELECT * FROM Music", "NextToken": LONE}),
        ("TransactWriteItems", {"ClientRequestToken": LONE}
         | {"TransactItems": [{"Put": {"TableName": "Music", "Item": ITEM}}]}),
        ("UpdateItem", {"TableName": "Music", "Key": KEY, "UpdateExpression": f"SET {LONE} = a"}),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)  # fmt: skip
def test_half_a_surrogate_pair_is_refused_in_process(
    engine: SqliteEngine, operation: str, payload: Json
) -> None:
    before = contents(engine)
    with pytest.raises(ServiceError):
        engine.call(operation, payload)
    assert contents(engine) == before


NAMES = [text for text in hostile.TEXTS if 0 < len(text) <= 255]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_hostile_names_and_values_come_back_byte_for_byte(engine: SqliteEngine, name: str) -> None:
    longest = len(name) == 255
    kinds = {name: "S"} if longest else {name: "S", f"{name}2": "B", f"g{name}": "S"}
    definition = {
        "TableName": "Named",
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [
            {"AttributeName": part, "KeyType": kind}
            for part, kind in zip(kinds, ("HASH", "RANGE"), strict=False)
        ],
        "AttributeDefinitions": [
            {"AttributeName": part, "AttributeType": kind} for part, kind in kinds.items()
        ],
    }
    if not longest:
        definition["GlobalSecondaryIndexes"] = [index("global", f"g{name}")]
    assert ask(engine, "CreateTable", definition)[0] == 200
    key: Json = {name: {"S": name}}
    if not longest:
        key[f"{name}2"] = {"B": b64encode(name.encode()).decode()}
    item = key | {"g" + name: {"S": name}, "m": {"M": {name: {"SS": [name]}}}}
    assert ask(engine, "PutItem", {"TableName": "Named", "Item": item})[0] == 200
    got = ask(engine, "GetItem", {"TableName": "Named", "Key": key})[1]["Item"]
    assert json.dumps(got).encode() == json.dumps(item).encode()
    asked = {
        "TableName": "Named",
        "KeyConditionExpression": "#k = :k",
        "FilterExpression": "m.#k = :s",
        "ExpressionAttributeNames": {"#k": name},
        "ExpressionAttributeValues": {":k": {"S": name}, ":s": {"SS": [name]}},
    }
    assert ask(engine, "Query", asked)[1]["Items"] == [item]
    if not longest:
        assert ask(engine, "Scan", {"TableName": "Named", "IndexName": "global"})[1]["Items"] == [item]
    assert (
        ask(engine, "DescribeTable", {"TableName": "Named"})[1]["Table"]["KeySchema"]
        == definition["KeySchema"]
    )
    quoted = name.replace("'", "''")
    statement = f"""SELECT * FROM Named WHERE "{name.replace('"', '""')}" = '{quoted}'"""
    assert ask(engine, "ExecuteStatement", {"Statement": statement})[1]["Items"] == [item]
    assert ask(engine, "DeleteItem", {"TableName": "Named", "Key": key})[0] == 200
    assert ask(engine, "Scan", {"TableName": "Named"})[1]["Count"] == 0
    assert ask(engine, "DeleteTable", {"TableName": "Named"})[0] == 200


@given(st.text(min_size=1, max_size=20), st.text(max_size=20))
def test_any_text_comes_back_byte_for_byte(name: str, content: str) -> None:
    with hostile.opened() as engine:
        item = {**KEY, f"x{name}": {"S": content}, "m": {"M": {name: {"L": [{"S": content}]}}}}
        raw = json.dumps({"TableName": "Music", "Item": item}, ensure_ascii=False).encode()
        assert wire.answer(engine, target("PutItem"), raw) == (200, b"{}")
        assert ask(engine, "GetItem", {"TableName": "Music", "Key": KEY}) == (200, {"Item": item})


PAGE: Json = {"Statement": "SELECT * FROM Music WHERE pk = ?", "Parameters": [{"S": "a"}], "Limit": 2}


@pytest.mark.parametrize(
    "key",
    [
        {},
        {"pk": {"S": "a"}},
        KEY | {"x": {"S": "x"}},
        KEY | {"sk": {"N": "abc"}},
        KEY | {"sk": {"N": "NaN"}},
        KEY | {"sk": {"N": "1" * 1000}},
        KEY | {"sk": {"B": "!"}},
        KEY | {"sk": {"N": 1}},
        KEY | {"pk": {"S": LONE}},
        KEY | {"pk": {"S": ""}},
        KEY | {"pk": {"S": "x" * 3000}},
        KEY | {"pk": nested("L", 5)},
        [],
        "x",
        1,
    ],
    ids=lambda key: ascii(key)[:40],
)
def test_a_forged_next_token_is_refused(engine: SqliteEngine, key: Any) -> None:
    token = engine.call("ExecuteStatement", PAGE)["NextToken"]
    binding, place, _ = json.loads(urlsafe_b64decode(token))
    forged = urlsafe_b64encode(json.dumps([binding, place, key]).encode()).decode()
    assert ask(engine, "ExecuteStatement", {**PAGE, "NextToken": forged})[0] == 400


@pytest.mark.parametrize("place", [-1, 1, 2**63, 10**30, True, None, "0", 0.5, []])
def test_a_next_token_of_another_place_is_refused(engine: SqliteEngine, place: Any) -> None:
    binding, _, key = json.loads(urlsafe_b64decode(engine.call("ExecuteStatement", PAGE)["NextToken"]))
    forged = urlsafe_b64encode(json.dumps([binding, place, key]).encode()).decode()
    assert ask(engine, "ExecuteStatement", {**PAGE, "NextToken": forged})[0] == 400


@pytest.mark.parametrize(
    "position",
    [[2**63, 0], [2**64 - 1, 0], [10**30, 0], [1e300, 0], [1.5, 0], [-1, 0], [-(2**64), 0], ["1", 0],
     [None, 0], [True, 0], [[], 0], [1, 2**70], [1, -1e300], [1, None], [1], [1, 2, 3], {}, "ab", 1, None],
    ids=repr,
)  # fmt: skip
def test_a_forged_shard_iterator_is_refused(engine: SqliteEngine, position: Any) -> None:
    stream = engine.call("ListStreams", {})["Streams"][0]["StreamArn"]
    if isinstance(position, list) and position[1:] == [0]:
        position = [position[0], int(hostile.NOW * 1_000_000)]
    forged = f"{stream}|1|{b64encode(json.dumps(position).encode()).decode()}"
    assert ask(engine, "GetRecords", {"ShardIterator": forged})[0] == 400


@given(st.integers(0, 200), st.integers(0, 255))
def test_a_tampered_shard_iterator_is_answered(shared: SqliteEngine, at: int, byte: int) -> None:
    stream = shared.call("ListStreams", {})["Streams"][0]["StreamArn"]
    position = f"[1,{int(hostile.NOW * 1_000_000)}]".encode()
    valid = f"{stream}|1|{b64encode(position).decode()}"
    assert ask(shared, "GetRecords", {"ShardIterator": valid})[0] == 200
    place = at % len(valid)
    ask(shared, "GetRecords", {"ShardIterator": valid[:place] + chr(byte) + valid[place + 1 :]})
    raw = bytearray(position)
    raw[at % len(raw)] = byte
    ask(shared, "GetRecords", {"ShardIterator": f"{stream}|1|{b64encode(bytes(raw)).decode()}"})


def test_items_that_do_not_fit_a_new_index_stay_out_of_it(engine: SqliteEngine) -> None:
    unfit = {"number": {"N": "1"}, "empty": {"S": ""}, "long": {"S": "x" * 2049}}
    for name, value in (unfit | {"good": {"S": "g"}}).items():
        item = {"id": {"B": b64encode(name.encode()).decode()}, "g": value}
        assert ask(engine, "PutItem", {"TableName": "Other", "Item": item})[0] == 200
    created = {
        "TableName": "Other",
        "AttributeDefinitions": [{"AttributeName": "g", "AttributeType": "S"}],
        "GlobalSecondaryIndexUpdates": [{"Create": index("late", "g")}],
    }
    assert ask(engine, "UpdateTable", created)[0] == 200
    scan = {"TableName": "Other", "IndexName": "late"}
    assert [item["g"] for item in ask(engine, "Scan", scan)[1]["Items"]] == [{"S": "g"}]
    for name in unfit:
        key = {"id": {"B": b64encode(name.encode()).decode()}}
        update = {"TableName": "Other", "Key": key, "UpdateExpression": "SET a = id"}
        assert ask(engine, "UpdateItem", update)[0] == 400
        assert ask(engine, "UpdateItem", update | {"UpdateExpression": "SET a = id REMOVE g"})[0] == 200
    assert ask(engine, "Scan", scan)[1]["Count"] == 1


def put(**attributes: Json) -> Json:
    return {"TableName": "Music", "Item": KEY | attributes}


def conditional(expression: str) -> Json:
    return put() | {"ConditionExpression": expression}


def update(expression: str) -> Json:
    return {"TableName": "Music", "Key": KEY, "UpdateExpression": expression}


def select(condition: str) -> Json:
    return {"Statement": f"SELECT * FROM Music WHERE {condition}"}


def definitions(number: int) -> Json:
    names = [f"a{place}" for place in range(number)]
    return {
        "TableName": "Large",
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "a0", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in names],
        "GlobalSecondaryIndexes": [index(f"index-{name}", name) for name in names],
    }


#: The operation, a request of a size, and the largest size to try.
GROWING: dict[str, tuple[str, Callable[[int], Json], int]] = {
    "digits": ("PutItem", lambda size: put(x={"N": "1" * size}), 400_000),
    "zeros": ("PutItem", lambda size: put(x={"N": "0" * size + "1" + "0" * size}), 400_000),
    "digits, then none": ("PutItem", lambda size: put(x={"N": "1" * size + "x"}), 400_000),
    "exponent": ("PutItem", lambda size: put(x={"N": "1e" + "9" * size}), 400_000),
    "base64": ("PutItem", lambda size: put(x={"B": "AAAA" * size}), 400_000),
    "base64 padding": ("PutItem", lambda size: put(x={"B": "A===" * size}), 400_000),
    "string set": ("PutItem", lambda size: put(x={"SS": [str(place) for place in range(size)]}), 40_000),
    "number set": ("PutItem", lambda size: put(x={"NS": [str(place) for place in range(size)]}), 20_000),
    "list": ("PutItem", lambda size: put(x={"L": [{"M": {}}] * size}), 20_000),
    "long name": ("PutItem", lambda size: put(**{"n" * size: {"S": ""}}), 400_000),
    "many names": ("PutItem", lambda size: put(**{f"n{place}": {"N": "1"} for place in range(size)}), 20_000),
    "long table name": ("GetItem", lambda size: {"TableName": "a" * size, "Key": KEY}, 400_000),
    "long ARN": ("GetItem", lambda size: {"TableName": "arn:" + "a:" * size, "Key": KEY}, 400_000),
    "parentheses": ("PutItem", lambda size: conditional("(" * size), 4_000),
    "parentheses around": ("PutItem", lambda size: conditional("(" * size + "a=b" + ")" * size), 2_000),
    "negations": ("PutItem", lambda size: conditional("NOT " * size + "a=b"), 1_000),
    "calls": ("PutItem", lambda size: conditional("size(" * size + "a" + ")" * size), 600),
    "path": ("PutItem", lambda size: conditional("a" + ".a" * size + "=b"), 2_000),
    "placeholders": ("PutItem", lambda size: conditional("#" * size), 4_000),
    "long expression": ("PutItem", lambda size: conditional("a" * size), 400_000),
    "removals": (
        "UpdateItem",
        lambda size: update("REMOVE " + ",".join(f"a[{n}]" for n in range(size))),
        500,
    ),
    "same removal": ("UpdateItem", lambda size: update("REMOVE " + ",".join("a" * size)), 2_000),
    "unused names": (
        "GetItem",
        lambda size: (
            {"TableName": "Music", "Key": KEY, "ProjectionExpression": "a"}
            | {"ExpressionAttributeNames": {f"#{place}": "x" for place in range(size)}}
        ),
        20_000,
    ),
    "attributes to get": (
        "GetItem",
        lambda size: {"TableName": "Music", "Key": KEY, "AttributesToGet": [f"a{n}" for n in range(size)]},
        20_000,
    ),
    "PartiQL parentheses": ("ExecuteStatement", lambda size: select("(" * size), 8_000),
    "PartiQL quotes": ("ExecuteStatement", lambda size: select("a = " + "'a" * size), 4_000),
    "PartiQL terms": ("ExecuteStatement", lambda size: select("a = 1" + " AND a = 1" * size), 800),
    "PartiQL choices": (
        "ExecuteStatement",
        lambda size: select(" OR ".join(f"pk = '{place}'" for place in range(size))),
        400,
    ),
    "PartiQL truths": (
        "ExecuteStatement",
        lambda size: select("(" * size + "a = 1" + ") = (b = 1)" * size),
        60,
    ),
    "PartiQL lists": (
        "ExecuteStatement",
        lambda size: {"Statement": "INSERT INTO Music VALUE {'pk':" + "[" * size + "]" * size + "}"},
        4_000,
    ),
    "PartiQL signs": ("ExecuteStatement", lambda size: select("a = " + "- " * size + "1"), 4_000),
    "PartiQL numbers": ("ExecuteStatement", lambda size: select("a = " + "1" * size + "x"), 8_000),
    "PartiQL comments": ("ExecuteStatement", lambda size: {"Statement": "/*" * size}, 4_000),
    "indexes": ("CreateTable", definitions, 4_000),
    "projected attributes": (
        "CreateTable",
        lambda size: (
            table("Large", "pk:S", types={"gp": "S"})
            | {
                "GlobalSecondaryIndexes": [
                    index(
                        "global", "gp", projection="INCLUDE", include=[f"a{place}" for place in range(size)]
                    )
                ]
            }
        ),
        20_000,
    ),
    "tables of a batch": (
        "BatchGetItem",
        lambda size: {"RequestItems": {f"Table{place}": {"Keys": [KEY]} for place in range(size)}},
        4_000,
    ),
    "actions": (
        "TransactWriteItems",
        lambda size: {"TransactItems": [{"Put": put()}] * size},
        8_000,
    ),
}


@pytest.mark.parametrize("name", GROWING)
def test_time_grows_with_the_size_of_a_request_and_no_faster(engine: SqliteEngine, name: str) -> None:
    operation, request, size = GROWING[name]
    small, large = (json.dumps(request(part)).encode() for part in (size // 4, size))

    def seconds(raw: bytes) -> float:
        taken, (status, body) = timed(lambda: wire.answer(engine, target(operation), raw))
        judge(status, body, raw)
        return taken

    grows_evenly(lambda: seconds(small), lambda: seconds(large))


def test_time_to_take_members_from_a_set_grows_with_its_size_and_no_faster(engine: SqliteEngine) -> None:
    def seconds(size: int) -> float:
        members = [str(place) for place in range(size)]
        ask(engine, "PutItem", put(x={"SS": members}))
        request = update("DELETE x :x") | {"ExpressionAttributeValues": {":x": {"SS": members[::2]}}}
        taken, (status, _) = timed(lambda: ask(engine, "UpdateItem", request))
        assert status == 200
        return taken

    grows_evenly(lambda: seconds(15_000), lambda: seconds(60_000))


def timed(act: Callable[[], T]) -> tuple[float, T]:
    # A full collection looks at all that the process holds, which is no matter of the request.
    gc.disable()
    try:
        start = thread_time()
        result = act()
        return thread_time() - start, result
    finally:
        gc.enable()


def grows_evenly(small: Callable[[], float], large: Callable[[], float]) -> None:
    """Assert that four times as much takes no more time than that; both return seconds."""
    # Less than three times for each doubling; a square would be 16 here. The best of many, because
    # on a busy machine even a thread's own time is not all its own.
    best_small, best_large = small(), large()
    for _ in range(20):
        if best_large < max(0.004, 3**2 * best_small):
            return
        best_small, best_large = min(best_small, small()), min(best_large, large())
    pytest.fail(f"{best_small:.4f} s, and {best_large:.4f} s for four times as much")


RESIDENT = Path("/proc/self/statm")


def resident_megabytes() -> float:
    gc.collect()
    return int(RESIDENT.read_text().split()[1]) * resource.getpagesize() / 1_000_000


@pytest.mark.skipif(not RESIDENT.exists(), reason="only Linux tells what a process holds now")
def test_memory_stays_flat() -> None:
    def play(first: int, rounds: int) -> None:
        for seed in range(first, first + rounds):
            for _ in hostile.play(seed, count=100):
                pass

    play(0, EXAMPLES // 10)
    before = resident_megabytes()
    play(EXAMPLES, EXAMPLES // 5)
    assert resident_megabytes() - before < 50
