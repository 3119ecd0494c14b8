"""The embedded engine by example: DynamoDB's requests on one file, and their capacity units.

Run it: python examples/engine_tour.py. It needs no AWS account and no server, and removes its file.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from solotable.engines import sqlite
from solotable.errors import ConditionFailed, TransactionCancelled

IN_LIBRARY: dict[str, Any] = {"TableName": "library"}
PARTITION, SORT, READER = ({"AttributeName": name} for name in ("pk", "sk", "reader"))
HASH, RANGE, TEXT = {"KeyType": "HASH"}, {"KeyType": "RANGE"}, {"AttributeType": "S"}
BY_READER = {"IndexName": "by_reader", "KeySchema": [READER | HASH], "Projection": {"ProjectionType": "ALL"}}
TABLE = IN_LIBRARY | {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [PARTITION | TEXT, SORT | TEXT, READER | TEXT],
    "KeySchema": [PARTITION | HASH, SORT | RANGE],
    "GlobalSecondaryIndexes": [BY_READER],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}
PRICED: dict[str, Any] = {"ReturnConsumedCapacity": "TOTAL"}
LENDING: dict[str, Any] = {
    "UpdateExpression": "SET reader = :ana ADD copies :less",
    "ConditionExpression": "copies >= :one",
    "ExpressionAttributeValues": {":ana": {"S": "ana"}, ":less": {"N": "-1"}, ":one": {"N": "1"}},
}


def book(name: str, part: str = "book") -> dict[str, Any]:
    return {"pk": {"S": name}, "sk": {"S": part}}


def say(what: str, reply: dict[str, Any] | None = None) -> None:
    capacity = (reply or {}).get("ConsumedCapacity", [])
    units = sum(entry["CapacityUnits"] for entry in (capacity if isinstance(capacity, list) else [capacity]))
    print(f"  {what:<66}{units} units" if capacity else f"  {what}")


def write_and_read(engine: sqlite.SqliteEngine) -> None:
    print("Create a table, write, fail a condition, query an index")
    engine.call("CreateTable", TABLE)
    for name in ("dune", "emma"):
        item = book(name) | {"copies": {"N": "1"}}
        say(f"put {name}", engine.call("PutItem", IN_LIBRARY | PRICED | {"Item": item}))
    lend = IN_LIBRARY | PRICED | LENDING | {"Key": book("dune")}
    say("lend dune to ana: table and index are written", engine.call("UpdateItem", lend))
    try:
        engine.call("UpdateItem", lend | {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"})
    except ConditionFailed as error:
        say(f"lend dune again: {error.message}; copies are {(error.item or {})['copies']['N']}")
    query = {"KeyConditionExpression": "reader = :ana", "ExpressionAttributeValues": {":ana": {"S": "ana"}}}
    found = engine.call("Query", IN_LIBRARY | PRICED | query | {"IndexName": "by_reader"})
    say(f"ana has {[item['pk']['S'] for item in found['Items']]}", found)


def transact(engine: sqlite.SqliteEngine, until: float) -> None:
    print("Send a transaction twice")
    loan = book("emma", "loan") | {"until": {"N": f"{until:.0f}"}}
    actions = [{"Update": IN_LIBRARY | LENDING | {"Key": book("emma")}}, {"Put": IN_LIBRARY | {"Item": loan}}]
    request = PRICED | {"TransactItems": actions}
    say("lend emma and record the loan: twice the units", engine.call("TransactWriteItems", request))
    try:
        engine.call("TransactWriteItems", request)
    except TransactionCancelled as error:
        say(f"again: nothing written, {[reason['Code'] for reason in error.reasons]}")


def read_stream(engine: sqlite.SqliteEngine) -> None:
    print("Read the stream")
    arn = {"StreamArn": engine.call("ListStreams", IN_LIBRARY)["Streams"][0]["StreamArn"]}
    shard = engine.call("DescribeStream", arn)["StreamDescription"]["Shards"][0]["ShardId"]
    start = arn | {"ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
    for record in engine.call("GetRecords", engine.call("GetShardIterator", start))["Records"]:
        key, by = record["dynamodb"]["Keys"], record.get("userIdentity", {}).get("PrincipalId", "a caller")
        say(f"{record['eventName']} {key['pk']['S']} {key['sk']['S']}, by {by}")


def tour(path: Path) -> None:
    now = time.time()
    with sqlite.open(path, clock=lambda: now) as engine:
        write_and_read(engine)
        transact(engine, until=now + 60)
        print("Expire items; the example sets the clock")
        expiry = {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": "until"}}
        engine.call("UpdateTimeToLive", IN_LIBRARY | expiry)
        say(f"now: {engine.sweep()} items expired")
        now += 120
        say(f"two minutes later: {engine.sweep()} item expired")
        read_stream(engine)
        print("Use the same file with boto3")
        try:
            from solotable.boto3 import resource

            table = resource(engine).Table("library")
            say(f"dune: {table.get_item(Key={'pk': 'dune', 'sk': 'book'})['Item']}")
        except ImportError:
            say("skipped: boto3 is not installed (pip install '.[aws]')")
    print(f"The file was temporary; it had {path.stat().st_size // 1024} KiB.")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        tour(Path(folder) / "library.db")
