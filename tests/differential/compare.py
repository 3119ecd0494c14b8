"""Send the same requests to two targets and tell where the answers differ.

Compared are: success or refusal, the whole reply, the code of a refusal, the items after every write
and, before the tables are dropped, the records of the stream. The text of a refusal is not: DynamoDB
Local words many refusals otherwise than AWS, and the conformance cases hold AWS's words.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.conformance.harness import Json, Refused, Target, canonical

from .answers import Answer, Exchange, Respelled, State
from .generate import Dice
from .known import excuse
from .values import TABLE_NAMES, tables

#: After this many requests both start from empty tables, so that one difference cannot hide others.
_ROUND = 150
_READS = {"GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"}
_CONTROLS = {"CreateTable", "UpdateTable"}
#: What differs for every table, and what DynamoDB fills in later.
_PASSING = {
    *("CreationDateTime", "TableId", "TableArn", "IndexArn", "LatestStreamArn", "LatestStreamLabel"),
    *("TableStatus", "IndexStatus", "ItemCount", "IndexSizeBytes", "TableSizeBytes", "Backfilling"),
    "WarmThroughput",
    *("LastIncreaseDateTime", "LastDecreaseDateTime", "LastUpdateToPayPerRequestDateTime"),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One request that was answered in two ways."""

    seed: int
    place: int
    exchange: Exchange

    def __str__(self) -> str:
        found = self.exchange
        return (
            f"seed {self.seed}, request {self.place}: {found.operation} {found.payload}\n"
            f"  ours:   {found.ours}\n  theirs: {found.theirs}"
        )


def differences(ours: Target, theirs: Target, *, seed: int, count: int) -> Iterator[Difference]:
    """Yield every unexcused difference. Their items are made ours again once they differ."""
    theirs = Respelled(theirs)
    dice = Dice(seed)
    state: State = {}
    streams_differ = True
    for place in range(count):
        if place % _ROUND == 0:
            if not streams_differ:
                changes = Exchange("the stream", {}, state, _changes(ours), _changes(theirs))
                if changes.ours != changes.theirs and excuse(changes) is None:
                    yield Difference(seed, place, changes)
            _start(ours)
            _start(theirs)
            for request in dice.first_items():
                _exchange(ours, theirs, request, {})
            state = _state(ours)
            streams_differ = _repair(theirs, state, _state(theirs))
        exchange = _exchange(ours, theirs, dice.request(), state)
        if exchange.operation == "Query" and exchange.ours.code == "ok":
            dice.saw(exchange.payload, exchange.ours.body)
        if exchange.ours != exchange.theirs and excuse(exchange) is None:
            yield Difference(seed, place, exchange)
        if exchange.operation in _READS:
            continue
        if exchange.operation in _CONTROLS:
            if exchange.ours.code != exchange.theirs.code:
                _drop(ours, theirs, exchange.payload)
            continue
        after, other = _state(ours), _state(theirs)
        if after != other and exchange.ours == exchange.theirs:
            answer = exchange.ours.code
            left = replace(exchange, ours=Answer("left", answer, after), theirs=Answer("left", answer, other))
            if excuse(left) is None:
                yield Difference(seed, place, left)
        state = after
        streams_differ |= _repair(theirs, state, other)


def _exchange(ours: Target, theirs: Target, request: tuple[str, Json], before: State) -> Exchange:
    operation, payload = request
    answers = [_answer(target, operation, copy.deepcopy(payload)) for target in (ours, theirs)]
    return Exchange(operation, payload, before, *answers)


def _answer(target: Target, operation: str, payload: Json) -> Answer:
    try:
        if operation == "Scan" and (payload.get("Limit") or payload.get("TotalSegments")):
            return Answer("ok", body=_whole_scan(target, payload))
        reply = target.call(operation, payload)
    except Refused as refused:
        reasons = refused.body.get("CancellationReasons")
        if reasons is None:
            return Answer(refused.code, refused.message)
        text = "; ".join(reason.get("Message") or "" for reason in reasons)
        return Answer(refused.code, text, [reason.get("Code") for reason in reasons])
    return Answer("ok", body=_comparable(operation, payload, canonical(reply)))


def _whole_scan(target: Target, payload: Json) -> Json:
    """Scan every segment to its end: items have no order between partitions, so pages do not compare."""
    items: list[Json] = []
    counts = [0, 0]
    for segment in range(payload.get("TotalSegments") or 1):
        asked = payload | {"Segment": segment} if "Segment" in payload else payload
        while True:
            reply = target.call("Scan", asked)
            items += reply.get("Items", [])
            counts = [counts[0] + reply["Count"], counts[1] + reply["ScannedCount"]]
            if "LastEvaluatedKey" not in reply:
                break
            asked = asked | {"ExclusiveStartKey": reply["LastEvaluatedKey"]}
    whole: Json = _sorted_members(canonical({"Items": items, "Counts": counts}))
    whole["Items"].sort(key=repr)
    return whole


def _comparable(operation: str, payload: Json, reply: Json) -> Json:
    """Take out what has no promised order, and what no two tables have in common."""
    comparable: Json = _sorted_members(reply)
    if isinstance(comparable.get("ConsumedCapacity"), list):
        comparable["ConsumedCapacity"].sort(key=lambda report: report["TableName"])
    match operation:
        case "Scan" if "Items" in comparable:
            comparable["Items"].sort(key=repr)
        case "BatchGetItem":
            for found in comparable["Responses"].values():
                found.sort(key=repr)
        case "ExecuteStatement" if "Items" in comparable and "ORDER BY" not in payload["Statement"]:
            comparable["Items"].sort(key=repr)
        case "BatchExecuteStatement":
            for response in comparable["Responses"]:
                response.get("Error", {}).pop("Message", None)
        case "CreateTable":
            comparable = _lasting(comparable)
        case "UpdateTable":
            comparable = {}
    return comparable


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _lasting(member) for name, member in value.items() if name not in _PASSING}
    if isinstance(value, list):
        return sorted((_lasting(member) for member in value), key=repr)
    return value


def _sorted_members(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted_members(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_sorted_members(member) for member in value]
    return value


def _state(target: Target) -> State:
    """Return every item of every table."""
    return {
        name: _comparable("Scan", {}, canonical(target.call("Scan", {"TableName": name})))["Items"]
        for name in TABLE_NAMES
    }


def _changes(target: Target) -> Answer:
    """Return the records of the stream, in order for each item: that is all that is promised."""
    arn = target.call("DescribeTable", {"TableName": "Streamed"})["Table"]["LatestStreamArn"]
    shards = target.call("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]
    changes = []
    for shard in shards:
        asked = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        iterator = target.call("GetShardIterator", asked)["ShardIterator"]
        while iterator is not None:
            reply = target.call("GetRecords", {"ShardIterator": iterator})
            for record in reply["Records"]:
                images = {name: record["dynamodb"].get(name) for name in ("Keys", "OldImage", "NewImage")}
                changes.append({"event": record["eventName"]} | images)
            iterator = reply.get("NextShardIterator") if reply["Records"] else None
    found = _sorted_members(canonical(changes))
    return Answer("stream", body=sorted(found, key=lambda change: repr(change["Keys"])))


def _start(target: Target) -> None:
    for name in target.call("ListTables", {})["TableNames"]:
        target.call("DeleteTable", {"TableName": name})
    for request in tables():
        target.call("CreateTable", request)


def _drop(ours: Target, theirs: Target, payload: Json) -> None:
    """Forget a table that now differs in both."""
    for target in (ours, theirs):
        with contextlib.suppress(Refused):
            target.call("DeleteTable", {"TableName": payload["TableName"]})


def _repair(theirs: Target, state: State, other: State) -> bool:
    """Make their items as ours are; say whether that left a trace in the stream."""
    for table, items in state.items():
        for item in other[table]:
            if item not in items:
                key = {name: item[name] for name in ("pk", "sk", "id") if name in item}
                theirs.call("DeleteItem", {"TableName": table, "Key": key})
        for item in items:
            if item not in other[table]:
                theirs.call("PutItem", {"TableName": table, "Item": item})
    return state["Streamed"] != other["Streamed"]
