"""The engine beside a plain dict: whatever is done in whatever order, both must hold the same.

The dict knows DynamoDB's promises in their simplest form and nothing of how the engine keeps them.
"""

from __future__ import annotations

import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from solotable.engines import sqlite
from solotable.errors import ConditionFailed, TransactionCancelled
from tests.conformance.tables import index, table

Json = dict[str, Any]

# Few keys, so that operations meet; among them those that sort, escape and pad badly.
PARTITIONS = ["a", "b", "a\x00", "é"]
SORTS = ["", "1", "10", "2", "a", "a\x00b", "a\x00", "aé", "b#", "\U0001f600", "\uffff"]
TABLE = table(
    "model",
    "pk:S",
    "sk:N",
    types={"gp": "S", "gs": "B"},
    gsi=[index("global", "gp", "gs"), index("keys", "gp", projection="KEYS_ONLY")],
    lsi=[index("local", "pk", "gp")],
    StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
)
keys = st.builds(
    lambda pk, sk: (pk, sk),
    st.sampled_from(PARTITIONS),
    st.sampled_from(["-10", "-2", "-0.5", "0", "0.5", "3", "20", "1" + "0" * 30]),
)
attributes = st.fixed_dictionaries(
    {},
    optional={
        "gp": st.sampled_from([text for text in SORTS if text]).map(lambda text: {"S": text}),
        "gs": st.binary(min_size=1, max_size=3).map(lambda raw: {"B": b64encode(raw).decode()}),
        "n": st.integers(-5, 5).map(lambda number: {"N": str(number)}),
        "text": st.text(max_size=3).map(lambda text: {"S": text}),
    },
)


def wire_key(key: tuple[str, str]) -> Json:
    return {"pk": {"S": key[0]}, "sk": {"N": key[1]}}


def number(item: Json, name: str) -> float:
    return float(item[name]["N"])


class AgainstADict(RuleBasedStateMachine):
    """Every write goes to both; every read must give the same from both."""

    known = Bundle("known")

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "model.db"
        self.engine = sqlite.open(self.path, durability="relaxed")
        self.engine.call("CreateTable", TABLE)
        self.items: dict[tuple[str, str], Json] = {}
        self.changes: list[tuple[Json | None, Json | None]] = []

    def teardown(self) -> None:
        self.engine.close()
        self.folder.cleanup()

    def change(self, key: tuple[str, str], new: Json | None) -> None:
        old = self.items.get(key)
        if new is None:
            self.items.pop(key, None)
        else:
            self.items[key] = new
        if old != new:
            self.changes.append((old, new))

    @rule(target=known, key=keys, rest=attributes)
    def put(self, key: tuple[str, str], rest: Json) -> Any:
        item = {**wire_key(key), **rest}
        reply = self.engine.call("PutItem", {"TableName": "model", "Item": item, "ReturnValues": "ALL_OLD"})
        assert reply.get("Attributes") == self.items.get(key)
        self.change(key, item)
        return multiple(key)

    @rule(key=known | keys, rest=attributes)
    def create(self, key: tuple[str, str], rest: Json) -> None:
        item = {**wire_key(key), **rest}
        request = {"TableName": "model", "Item": item, "ConditionExpression": "attribute_not_exists(pk)"}
        if key in self.items:
            with pytest.raises(ConditionFailed) as refused:
                self.engine.call("PutItem", {**request, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"})
            assert refused.value.item == self.items[key]
        else:
            self.engine.call("PutItem", request)
            self.change(key, item)

    @rule(key=known | keys)
    def delete(self, key: tuple[str, str]) -> None:
        request = {"TableName": "model", "Key": wire_key(key), "ReturnValues": "ALL_OLD"}
        assert self.engine.call("DeleteItem", request).get("Attributes") == self.items.get(key)
        self.change(key, None)

    @rule(key=known | keys, amount=st.integers(-3, 3), group=st.sampled_from(SORTS[1:]) | st.none())
    def update(self, key: tuple[str, str], amount: int, group: str | None) -> None:
        values = {":n": {"N": str(amount)}} | ({} if group is None else {":g": {"S": group}})
        reply = self.engine.call(
            "UpdateItem",
            {
                "TableName": "model",
                "Key": wire_key(key),
                "UpdateExpression": "ADD n :n " + ("REMOVE gp" if group is None else "SET gp = :g"),
                "ExpressionAttributeValues": values,
                "ReturnValues": "ALL_NEW",
            },
        )
        old = self.items.get(key, wire_key(key))
        new = {**old, "n": {"N": str(int(old.get("n", {"N": "0"})["N"]) + amount)}}
        if group is None:
            new.pop("gp", None)
        else:
            new["gp"] = {"S": group}
        assert reply["Attributes"] == new
        self.change(key, new)

    @rule(first=known | keys, second=known | keys, wanted=st.booleans())
    def move(self, first: tuple[str, str], second: tuple[str, str], wanted: bool) -> None:
        if first == second:
            return
        item = {**wire_key(second), "n": {"N": "1"}}
        check = "attribute_exists(pk)" if wanted else "attribute_not_exists(pk)"
        request = {
            "TransactItems": [
                {
                    "Delete": {
                        "TableName": "model",
                        "Key": wire_key(first),
                        "ConditionExpression": check,
                    }
                },
                {"Put": {"TableName": "model", "Item": item}},
            ]
        }
        if (first in self.items) == wanted:
            self.engine.call("TransactWriteItems", request)
            self.change(first, None)
            self.change(second, item)
        else:
            with pytest.raises(TransactionCancelled) as refused:
                self.engine.call("TransactWriteItems", request)
            assert [reason["Code"] for reason in refused.value.reasons] == ["ConditionalCheckFailed", "None"]

    @rule()
    def reopen(self) -> None:
        self.engine.close()
        self.engine = sqlite.open(self.path, durability="relaxed")

    @rule(partition=st.sampled_from(PARTITIONS), low=st.integers(-11, 21), forward=st.booleans())
    def query(self, partition: str, low: int, forward: bool) -> None:
        found = self.pages(
            "Query",
            KeyConditionExpression="pk = :pk AND sk >= :low",
            ExpressionAttributeValues={":pk": {"S": partition}, ":low": {"N": str(low)}},
            ScanIndexForward=forward,
        )
        expected = [i for (pk, _), i in self.items.items() if pk == partition and number(i, "sk") >= low]
        assert found == sorted(expected, key=lambda item: number(item, "sk"), reverse=not forward)

    @rule(group=st.sampled_from(SORTS[1:]))
    def query_global_index(self, group: str) -> None:
        found = self.pages(
            "Query",
            IndexName="global",
            KeyConditionExpression="gp = :gp",
            ExpressionAttributeValues={":gp": {"S": group}},
        )
        expected = [i for i in self.items.values() if i.get("gp") == {"S": group} and "gs" in i]
        assert sorted(map(repr, found)) == sorted(map(repr, expected))

    @rule(partition=st.sampled_from(PARTITIONS), prefix=st.sampled_from(SORTS[1:]))
    def query_local_index(self, partition: str, prefix: str) -> None:
        found = self.pages(
            "Query",
            IndexName="local",
            KeyConditionExpression="pk = :pk AND begins_with(gp, :gp)",
            ExpressionAttributeValues={":pk": {"S": partition}, ":gp": {"S": prefix}},
        )
        expected = [
            item
            for (pk, _), item in self.items.items()
            if pk == partition and item.get("gp", {"S": ""})["S"].startswith(prefix)
        ]
        assert [item["gp"]["S"].encode() for item in found] == sorted(
            item["gp"]["S"].encode() for item in expected
        )
        assert sorted(map(repr, found)) == sorted(map(repr, expected))

    @rule(segments=st.integers(1, 5))
    def scan(self, segments: int) -> None:
        found = [
            item
            for segment in range(segments)
            for item in self.pages("Scan", Segment=segment, TotalSegments=segments)
        ]
        assert sorted(map(repr, found)) == sorted(map(repr, self.items.values()))

    def pages(self, operation: str, **request: Any) -> list[Json]:
        """Read everything in pages of two."""
        found: list[Json] = []
        start: Json = {}
        while True:
            reply = self.engine.call(operation, {"TableName": "model", "Limit": 2, **request, **start})
            found += reply["Items"]
            assert reply["Count"] == reply["ScannedCount"] == len(reply["Items"])
            if "LastEvaluatedKey" not in reply:
                return found
            assert reply["Count"] == 2
            start = {"ExclusiveStartKey": reply["LastEvaluatedKey"]}

    @invariant()
    def the_stream_tells_every_change_once_and_in_order(self) -> None:
        if not hasattr(self, "engine"):
            return
        (stream,) = self.engine.call("ListStreams", {"TableName": "model"})["Streams"]
        described = self.engine.call("DescribeStream", {"StreamArn": stream["StreamArn"]})
        (shard,) = described["StreamDescription"]["Shards"]
        iterator = self.engine.call(
            "GetShardIterator",
            {
                "StreamArn": stream["StreamArn"],
                "ShardId": shard["ShardId"],
                "ShardIteratorType": "TRIM_HORIZON",
            },
        )["ShardIterator"]
        records = self.engine.call("GetRecords", {"ShardIterator": iterator})["Records"]
        told = [(r["dynamodb"].get("OldImage"), r["dynamodb"].get("NewImage")) for r in records]
        assert told == self.changes


AgainstADict.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestAgainstADict = AgainstADict.TestCase
