"""Streams: what a change leaves behind, read through ListStreams, DescribeStream, GetShardIterator, GetRecords.

Every case reads the one open shard of its table. ARNs, shard ids and iterators differ from target to
target, so a step's answer fills in the requests that follow it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..harness import Case, Expectation, Fails, Json, Step, case, invalid
from ..tables import table

Image = Json
#: What a record must say: its event, and the images it carries.
Change = tuple[str, Json]
PREFIX = "1 validation error detected: Value "


class Reader:
    """The requests of one walk through a stream, each completed by the answer before it.

    `start` and `page` hold members that a case sets itself, over those that the answers give.
    """

    def __init__(
        self, name: str, kind: str = "TRIM_HORIZON", *, start: Json | None = None, page: Json | None = None
    ) -> None:
        self._name = name
        self._start_changes = start or {}
        self._page_changes = page or {}
        self.shards: Json = {}
        self.start: Json = {"ShardIteratorType": kind}
        self.page: Json = {}

    def located(self) -> tuple[Step, ...]:
        """Up to a shard; `start` is then ready to be sent."""
        return (
            Step("DescribeTable", {"TableName": self._name}, self._locate),
            Step("DescribeStream", self.shards, self._choose),
        )

    def opened(self) -> tuple[Step, ...]:
        """Up to an iterator; `page` is then ready to be sent."""
        return (*self.located(), Step("GetShardIterator", self.start, self._iterate))

    def _locate(self, reply: Json) -> None:
        self.shards["StreamArn"] = self.start["StreamArn"] = reply["Table"]["LatestStreamArn"]

    def _choose(self, reply: Json) -> None:
        shard = reply["StreamDescription"]["Shards"][0]
        self.start.update({"ShardId": shard["ShardId"]} | self._start_changes)

    def _iterate(self, reply: Json) -> None:
        self.page.update({"ShardIterator": reply["ShardIterator"]} | self._page_changes)


def text(value: str) -> Json:
    return {"S": value}


def keyed(**attributes: Json) -> Json:
    return {"pk": text("1"), "sk": text("1"), **attributes}


def put(name: str = "Streamed", **attributes: Json) -> Step:
    return Step("PutItem", {"TableName": name, "Item": keyed(**attributes)})


def update(expression: str, name: str = "Streamed", **values: Json) -> Step:
    request = {"TableName": name, "Key": keyed(), "UpdateExpression": expression}
    if values:
        request["ExpressionAttributeValues"] = {f":{name_}": value for name_, value in values.items()}
    return Step("UpdateItem", request)


def delete(name: str = "Streamed") -> Step:
    return Step("DeleteItem", {"TableName": name, "Key": keyed()})


def change(event: str, *, new: Image | None = None, old: Image | None = None) -> Change:
    images: Json = {}
    if new is not None:
        images["NewImage"] = new
    if old is not None:
        images["OldImage"] = old
    return event, images


def records(*changes: Change, keys: Json | None = None) -> Callable[[Json], None]:
    """Exactly these changes in order."""

    def expect(reply: Json) -> None:
        got = [
            (
                one["eventName"],
                {name: one["dynamodb"][name] for name in ("NewImage", "OldImage") if name in one["dynamodb"]},
            )
            for one in reply["Records"]
        ]
        assert got == list(changes), got
        assert all(one["dynamodb"]["Keys"] == (keys or keyed()) for one in reply["Records"])

    return expect


def recorded(name: str, *writes: Step, changes: tuple[Change, ...], local: str = "") -> Case:
    """A case of writes to `Streamed` and the changes they leave."""
    reader = Reader("Streamed")
    steps = (*writes, *reader.opened(), Step("GetRecords", reader.page, records(*changes)))
    return case(name, *steps, tables="Streamed", local=local)


def viewed(kind: str, *changes: Change) -> Case:
    reader = Reader("Viewed")
    specification = {"StreamEnabled": True, "StreamViewType": kind}
    return case(
        f"{kind} shows what it promises",
        Step("CreateTable", table("Viewed", "pk:S", "sk:S", StreamSpecification=specification)),
        put("Viewed", a=text("x")),
        put("Viewed", a=text("y")),
        delete("Viewed"),
        *reader.opened(),
        Step("GetRecords", reader.page, records(*changes)),
    )


def unopened(name: str, expect: Expectation, local: str = "", **members: Any) -> Case:
    """A case of a GetShardIterator with these members."""
    reader = Reader("Streamed", start=members)
    step = Step("GetShardIterator", reader.start, expect)
    return case(name, *reader.located(), step, tables="Streamed", local=local)


def unread(name: str, expect: Expectation, **members: Any) -> Case:
    """A case of a GetRecords with these members."""
    reader = Reader("Streamed", page=members)
    return case(name, *reader.opened(), Step("GetRecords", reader.page, expect), tables="Streamed")


def continued() -> Case:
    reader = Reader("Streamed", page={"Limit": 1})
    following: Json = {}

    def first(reply: Json) -> None:
        assert [one["eventName"] for one in reply["Records"]] == ["INSERT"]
        following["ShardIterator"] = reply["NextShardIterator"]

    def rest(reply: Json) -> None:
        assert [one["eventName"] for one in reply["Records"]] == ["MODIFY", "REMOVE"]

    return case(
        "the next iterator continues after the last record",
        put(a=text("x")),
        put(a=text("y")),
        delete(),
        *reader.opened(),
        Step("GetRecords", reader.page, first),
        Step("GetRecords", following, rest),
        tables="Streamed",
    )


def described() -> Case:
    reader = Reader("Streamed")
    step = Step("DescribeStream", reader.shards, stream_description)
    return case("an open stream is described", *reader.located(), step, tables="Streamed")


def from_sequence(kind: str, events: list[str]) -> Case:
    """Read all, then again by the sequence number of the second record."""
    whole, part = Reader("Streamed"), Reader("Streamed", kind)

    def remember(reply: Json) -> None:
        part.start["SequenceNumber"] = reply["Records"][1]["dynamodb"]["SequenceNumber"]

    def expect(reply: Json) -> None:
        assert [one["eventName"] for one in reply["Records"]] == events

    return case(
        f"{kind} starts {'with' if kind.startswith('AT') else 'after'} the record of that number",
        put(a=text("x")),
        put(a=text("y")),
        delete(),
        *whole.opened(),
        Step("GetRecords", whole.page, remember),
        *part.opened(),
        Step("GetRecords", part.page, expect),
        tables="Streamed",
    )


def latest() -> Case:
    reader = Reader("Streamed", "LATEST")
    return case(
        "LATEST starts after everything written so far",
        put(a=text("x")),
        *reader.opened(),
        put(a=text("y")),
        Step(
            "GetRecords",
            reader.page,
            records(change("MODIFY", new=keyed(a=text("y")), old=keyed(a=text("x")))),
        ),
        tables="Streamed",
    )


def record_members(reply: Json) -> None:
    (record,) = reply["Records"]
    assert set(record) == {"eventID", "eventName", "eventVersion", "eventSource", "awsRegion", "dynamodb"}
    assert record["eventVersion"] == "1.1"
    assert record["eventSource"] == "aws:dynamodb"
    body = record["dynamodb"]
    assert body["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    assert re.fullmatch(r"\d{21,40}", body["SequenceNumber"])
    assert isinstance(body["ApproximateCreationDateTime"], (int, float))
    # The keys take 6 bytes and the image 8.
    assert body["SizeBytes"] == 14
    assert reply["NextShardIterator"]


def rising(reply: Json) -> None:
    numbers = [int(one["dynamodb"]["SequenceNumber"]) for one in reply["Records"]]
    assert len(numbers) == 3
    assert numbers == sorted(set(numbers))
    assert len({one["eventID"] for one in reply["Records"]}) == 3


def stream_description(reply: Json) -> None:
    got = reply["StreamDescription"]
    assert got["StreamStatus"] == "ENABLED"
    assert got["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    assert got["TableName"] == "Streamed"
    assert [one["KeyType"] for one in got["KeySchema"]] == ["HASH", "RANGE"]
    assert got["StreamArn"].endswith("/stream/" + got["StreamLabel"])
    (shard,) = got["Shards"]
    assert re.fullmatch(r"\S{28,65}", shard["ShardId"])
    assert shard["SequenceNumberRange"]["StartingSequenceNumber"].isdecimal()
    assert "EndingSequenceNumber" not in shard["SequenceNumberRange"]


def one_stream(reply: Json) -> None:
    assert "LastEvaluatedStreamArn" not in reply
    newest = reply["Streams"][0]
    assert set(newest) == {"StreamArn", "TableName", "StreamLabel"}
    assert newest["TableName"] == "Listed"


def disabled_story() -> Case:
    reader = Reader("Streamed")

    def closed(reply: Json) -> None:
        assert reply["StreamDescription"]["StreamStatus"] in ("DISABLING", "DISABLED")

    return case(
        "a disabled stream can still be read",
        put(a=text("x")),
        Step("UpdateTable", {"TableName": "Streamed", "StreamSpecification": {"StreamEnabled": False}}),
        put(a=text("y")),
        *reader.opened(),
        Step("DescribeStream", reader.shards, closed),
        Step("GetRecords", reader.page, records(change("INSERT", new=keyed(a=text("x"))))),
        tables="Streamed",
    )


def transaction_story() -> Case:
    reader = Reader("Streamed")
    actions = [
        {"Put": {"TableName": "Streamed", "Item": keyed(a=text("x"))}},
        {
            "ConditionCheck": {
                "TableName": "Streamed",
                "Key": {"pk": text("2"), "sk": text("2")},
                "ConditionExpression": "attribute_not_exists(pk)",
            }
        },
    ]
    return case(
        "a transaction leaves a record for each item it changes, none for a check",
        Step("TransactWriteItems", {"TransactItems": actions}),
        *reader.opened(),
        Step("GetRecords", reader.page, records(change("INSERT", new=keyed(a=text("x"))))),
        tables="Streamed",
    )


def simple(name: str, expect: Callable[[Json], None], *writes: Step) -> Case:
    reader = Reader("Streamed")
    return case(name, *writes, *reader.opened(), Step("GetRecords", reader.page, expect), tables="Streamed")


X, Y = keyed(a=text("x")), keyed(a=text("y"))
INSERTED = change("INSERT", new=X)
GONE = "arn:aws:dynamodb:us-east-1:000000000000:table/Nowhere/stream/2020-01-01T00:00:00.000"
SHARD = "shardId-00000000000000000000-00000000"

CASES: list[Case] = [
    recorded("a new item is an INSERT", put(a=text("x")), changes=(INSERTED,)),
    recorded(
        "a replaced item is a MODIFY",
        put(a=text("x")),
        put(a=text("y")),
        changes=(INSERTED, change("MODIFY", new=Y, old=X)),
    ),
    recorded(
        "a deleted item is a REMOVE", put(a=text("x")), delete(), changes=(INSERTED, change("REMOVE", old=X))
    ),
    recorded("an update that creates is an INSERT", update("SET a = :a", a=text("x")), changes=(INSERTED,)),
    recorded(
        "an update that changes is a MODIFY",
        put(a=text("x")),
        update("SET a = :a", a=text("y")),
        changes=(INSERTED, change("MODIFY", new=Y, old=X)),
    ),
    recorded(
        "the same item put again leaves nothing", put(a=text("x")), put(a=text("x")), changes=(INSERTED,)
    ),
    recorded(
        "an update to the same value leaves nothing",
        put(a=text("x")),
        update("SET a = :a", a=text("x")),
        changes=(INSERTED,),
    ),
    recorded(
        "an update that removes what is not there leaves nothing",
        put(a=text("x")),
        update("REMOVE z"),
        changes=(INSERTED,),
    ),
    recorded(
        "a number written another way is not a change",
        put(a={"N": "10"}),
        put(a={"N": "1e1"}),
        changes=(change("INSERT", new=keyed(a={"N": "10"})),),
    ),
    recorded(
        "a set in another order is not a change",
        put(a={"NS": ["1", "2"]}),
        put(a={"NS": ["2", "1"]}),
        changes=(change("INSERT", new=keyed(a={"NS": ["1", "2"]})),),
    ),
    recorded("a delete of nothing leaves nothing", delete(), changes=()),
    recorded(
        "a failed condition leaves nothing",
        Step(
            "PutItem",
            {"TableName": "Streamed", "Item": X, "ConditionExpression": "attribute_exists(pk)"},
            Fails("ConditionalCheckFailedException"),
        ),
        changes=(),
    ),
    recorded(
        "a batch leaves a record for each item it changes",
        Step("BatchWriteItem", {"RequestItems": {"Streamed": [{"PutRequest": {"Item": X}}]}}),
        Step("BatchWriteItem", {"RequestItems": {"Streamed": [{"DeleteRequest": {"Key": keyed()}}]}}),
        changes=(INSERTED, change("REMOVE", old=X)),
    ),
    recorded(
        "a PartiQL statement leaves a record",
        Step(
            "ExecuteStatement",
            {"Statement": "INSERT INTO \"Streamed\" VALUE {'pk': '1', 'sk': '1', 'a': 'x'}"},
        ),
        changes=(INSERTED,),
    ),
    transaction_story(),
    viewed("KEYS_ONLY", change("INSERT"), change("MODIFY"), change("REMOVE")),
    viewed("NEW_IMAGE", change("INSERT", new=X), change("MODIFY", new=Y), change("REMOVE")),
    viewed("OLD_IMAGE", change("INSERT"), change("MODIFY", old=X), change("REMOVE", old=Y)),
    viewed("NEW_AND_OLD_IMAGES", INSERTED, change("MODIFY", new=Y, old=X), change("REMOVE", old=Y)),
    simple("a record has its members and its size", record_members, put(a=text("x"))),
    simple(
        "sequence numbers rise and events are different", rising, put(a=text("x")), put(a=text("y")), delete()
    ),
    latest(),
    from_sequence("AT_SEQUENCE_NUMBER", ["MODIFY", "REMOVE"]),
    from_sequence("AFTER_SEQUENCE_NUMBER", ["REMOVE"]),
    continued(),
    disabled_story(),
    described(),
    case(
        "a table's streams are listed",
        Step(
            "CreateTable",
            table(
                "Listed", "pk:S", StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
            ),
        ),
        Step("ListStreams", {"TableName": "Listed"}, one_stream),
    ),
    case(
        "a table without a stream has none to list",
        Step("ListStreams", {"TableName": "Pair"}, {"Streams": []}),
        tables="Pair",
    ),
    case(
        "a missing table has no streams to list",
        Step("ListStreams", {"TableName": "Nowhere"}, {"Streams": []}),
    ),
    case(
        "a list of no streams is too small",
        Step(
            "ListStreams",
            {"Limit": 0},
            invalid(
                f"{PREFIX}'0' at 'limit' failed to satisfy constraint: "
                "Member must have value greater than or equal to 1"
            ),
        ),
    ),
    case("a list of 101 streams is too large", Step("ListStreams", {"Limit": 101}, invalid(None))),
    unopened(
        "a shard that does not exist has no iterator",
        Fails("ResourceNotFoundException"),
        ShardId=SHARD,
    ),
    unopened(
        "TRIM_HORIZON takes no sequence number",
        invalid(None),
        SequenceNumber="1" * 21,
    ),
    unopened(
        "AT_SEQUENCE_NUMBER needs one",
        invalid(None),
        ShardIteratorType="AT_SEQUENCE_NUMBER",
    ),
    unopened(
        "a sequence number has a least length",
        invalid(
            f"{PREFIX}'0' at 'sequenceNumber' failed to satisfy constraint: "
            "Member must have length greater than or equal to 21"
        ),
        ShardIteratorType="AT_SEQUENCE_NUMBER",
        SequenceNumber="0",
    ),
    unopened(
        "an unknown iterator type breaks its enum",
        Fails("ValidationException"),
        local="fails with an internal error",
        ShardIteratorType="NEWEST",
    ),
    unread(
        "a page of no records is too small",
        invalid(
            f"{PREFIX}'0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1"
        ),
        Limit=0,
    ),
    unread("a page of 1001 records is too large", invalid(None), Limit=1001),
    unread("an iterator of nothing is invalid", invalid("Invalid ShardIterator"), ShardIterator="x"),
    case(
        "a stream that does not exist cannot be described",
        Step(
            "DescribeStream",
            {"StreamArn": GONE},
            Fails("ResourceNotFoundException"),
        ),
    ),
    case(
        "a text that is not an ARN cannot be described",
        Step("DescribeStream", {"StreamArn": "x" * 40}, Fails("ValidationException")),
        local="looks up the stream first",
    ),
    case(
        "a list of streams does not continue behind a text that is not an ARN",
        Step("ListStreams", {"ExclusiveStartStreamArn": "x" * 40}, Fails("ValidationException")),
        local="accepts any text",
    ),
    case(
        "a list of streams continues behind a stream that is gone",
        Step("ListStreams", {"TableName": "Nowhere", "ExclusiveStartStreamArn": GONE}, {"Streams": []}),
    ),
    *(
        case(
            f"a shard filter needs {needed}",
            Step("DescribeStream", {"StreamArn": GONE, "ShardFilter": filter_}, Fails("ValidationException")),
            local=local,
        )
        for needed, filter_, local in (
            ("a type and a shard", {}, ""),
            ("a type", {"ShardId": SHARD}, ""),
            ("a shard", {"Type": "CHILD_SHARDS"}, "looks up the stream first"),
            ("a known type", {"Type": "PARENTS", "ShardId": SHARD}, ""),
        )
    ),
]
