"""Valid requests of every operation, and ways to spoil them; the tests beside this judge the answers.

Everything follows from a seed: the same seed plays the same requests, in any process.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from typing import Any

from solotable._protocol import wire
from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from tests.conformance.tables import index, table

Json = dict[str, Any]

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

NOW = 1_800_000_000.0
KEY: Json = {"pk": {"S": "a"}, "sk": {"N": "1"}}
ITEM: Json = {
    **KEY,
    "gp": {"S": "g"},
    "gs": {"B": "AQ=="},
    "n": {"N": "1"},
    "l": {"L": [{"S": "x"}, {"M": {"y": {"N": "2"}}}]},
    "m": {"M": {"a": {"L": [{"N": "0"}]}, "b": {"BOOL": True}, "c": {"NULL": True}}},
    "ss": {"SS": ["a", "b"]},
    "ns": {"NS": ["1", "2"]},
    "bs": {"BS": ["AQ==", "Ag=="]},
    "ttl": {"N": "1"},
}
MUSIC = table(
    "Music",
    "pk:S",
    "sk:N",
    types={"gp": "S", "gs": "B", "lk": "S"},
    gsi=[index("global", "gp", "gs"), index("keys", "gp", projection="KEYS_ONLY")],
    lsi=[index("local", "pk", "lk")],
    StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
)

IMPORT: Json = {
    "S3BucketSource": {"S3Bucket": "vault", "S3KeyPrefix": "daily"},
    "InputFormat": "DYNAMODB_JSON",
    "TableCreationParameters": table("Fifth", "pk:S"),
}

POLICY = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "Read",
                "Effect": "Allow",
                "Principal": {"AWS": ["000000000000", "arn:aws:iam::000000000000:user/reader"]},
                "Action": ["dynamodb:GetItem"],
                "Resource": "*",
                "Condition": {"StringEquals": {"aws:PrincipalAccount": ["000000000000"]}},
            }
        ],
    }
)


def opened() -> SqliteEngine:
    """Open an engine with a table that has items, indexes, a stream, a policy and a time to live."""
    engine = sqlite.open(":memory:", clock=lambda: NOW)
    engine.call("CreateTable", {**MUSIC, "ResourcePolicy": POLICY})
    engine.call("CreateTable", table("Other", "id:B"))
    engine.call("PutItem", {"TableName": "Music", "Item": ITEM})
    for number in range(2, 6):
        engine.call("PutItem", {"TableName": "Music", "Item": {**ITEM, "sk": {"N": str(number)}}})
    engine.call("PutItem", {"TableName": "Other", "Item": {"id": {"B": "AA=="}}})
    recovery = {"PointInTimeRecoveryEnabled": True}
    engine.call(
        "UpdateContinuousBackups", {"TableName": "Other", "PointInTimeRecoverySpecification": recovery}
    )
    engine.call("CreateBackup", {"TableName": "Other", "BackupName": "first"})
    arn = engine.call("DescribeTable", {"TableName": "Other"})["Table"]["TableArn"]
    for token in ("a", "b"):
        # Without buckets, both end as FAILED.
        engine.call("ExportTableToPointInTime", {"TableArn": arn, "S3Bucket": "vault", "ClientToken": token})
        engine.call("ImportTable", {**IMPORT, "ClientToken": token})
    return engine


def valid_requests(engine: SqliteEngine) -> list[tuple[str, Json]]:
    """Return requests of every operation that this engine grants."""
    arn = engine.call("DescribeTable", {"TableName": "Music"})["Table"]["TableArn"]
    stream = engine.call("ListStreams", {})["Streams"][0]["StreamArn"]
    described = engine.call("DescribeStream", {"StreamArn": stream})["StreamDescription"]
    shard: Json = {"StreamArn": stream, "ShardId": described["Shards"][0]["ShardId"]}
    records = engine.call("GetShardIterator", {**shard, "ShardIteratorType": "TRIM_HORIZON"})
    first = described["Shards"][0]["SequenceNumberRange"]["StartingSequenceNumber"]
    page = {"Statement": 'SELECT * FROM "Music" WHERE pk = ?', "Parameters": [{"S": "a"}], "Limit": 2}
    token = engine.call("ExecuteStatement", page)["NextToken"]
    return [
        *_items(),
        *_legacy(),
        *_reads(),
        *_batches(),
        *_statements(),
        ("ExecuteStatement", {**page, "NextToken": token}),
        *_tables(arn),
        *_backups(engine.call("ListBackups", {})["BackupSummaries"][0]["BackupArn"]),
        *_transfers(engine),
        ("ListStreams", {"TableName": "Music", "Limit": 1}),
        ("DescribeStream", {"StreamArn": stream, "Limit": 10}),
        ("GetShardIterator", {**shard, "ShardIteratorType": "AT_SEQUENCE_NUMBER", "SequenceNumber": first}),
        ("GetRecords", {**records, "Limit": 2}),
    ]


def _items() -> Iterator[tuple[str, Json]]:
    condition = {
        "ConditionExpression": "#n = :one AND (attribute_exists(m.a[0]) OR size(l) BETWEEN :one AND :nine) "
        "AND NOT contains(ss, :x) AND pk IN (:a, :x)",
        "ExpressionAttributeNames": {"#n": "n"},
        "ExpressionAttributeValues": {
            ":one": {"N": "1"},
            ":nine": {"N": "9"},
            ":x": {"S": "x"},
            ":a": {"S": "a"},
        },
    }
    reported = {"ReturnConsumedCapacity": "INDEXES", "ReturnItemCollectionMetrics": "SIZE"}
    music = {"TableName": "Music", **reported}
    yield "PutItem", {**music, "Item": ITEM, "ReturnValues": "ALL_OLD", **condition}
    yield "DeleteItem", {**music, "Key": KEY, "ReturnValues": "ALL_OLD", **condition}
    yield (
        "GetItem",
        {
            "TableName": "Music",
            "Key": KEY,
            "ConsistentRead": True,
            "ProjectionExpression": "#n, l[0], m.a[0]",
            "ExpressionAttributeNames": {"#n": "n"},
        },
    )
    yield (
        "UpdateItem",
        {
            **music,
            "Key": KEY,
            "UpdateExpression": "SET n = n + :one, l[5] = if_not_exists(q, :x), m.a = list_append(m.a, :l) "
            "REMOVE gs, l[0] ADD ns :ns DELETE ss :ss",
            "ConditionExpression": "attribute_type(m, :kind)",
            "ExpressionAttributeValues": {
                ":one": {"N": "1"},
                ":x": {"S": "x"},
                ":l": {"L": [{"N": "1"}]},
                ":ns": {"NS": ["3"]},
                ":ss": {"SS": ["a"]},
                ":kind": {"S": "M"},
            },
            "ReturnValues": "UPDATED_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        },
    )


def _legacy() -> Iterator[tuple[str, Json]]:
    yield (
        "UpdateItem",
        {
            "TableName": "Music",
            "Key": KEY,
            "AttributeUpdates": {
                "n": {"Action": "ADD", "Value": {"N": "1"}},
                "gp": {"Action": "DELETE"},
                "ss": {"Action": "DELETE", "Value": {"SS": ["a"]}},
                "new": {"Value": {"S": "x"}},
            },
            "Expected": {
                "n": {"ComparisonOperator": "BETWEEN", "AttributeValueList": [{"N": "0"}, {"N": "9"}]},
                "zz": {"Exists": False},
                "pk": {"Value": {"S": "a"}},
            },
            "ConditionalOperator": "AND",
        },
    )
    yield (
        "Query",
        {
            "TableName": "Music",
            "KeyConditions": {
                "pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]},
                "sk": {"ComparisonOperator": "GE", "AttributeValueList": [{"N": "1"}]},
            },
            "QueryFilter": {"n": {"ComparisonOperator": "NOT_NULL"}},
            "AttributesToGet": ["pk", "n"],
        },
    )
    yield (
        "Scan",
        {
            "TableName": "Music",
            "ScanFilter": {"gp": {"ComparisonOperator": "IN", "AttributeValueList": [{"S": "g"}]}},
            "AttributesToGet": ["pk"],
        },
    )


def _reads() -> Iterator[tuple[str, Json]]:
    yield (
        "Query",
        {
            "TableName": "Music",
            "KeyConditionExpression": "pk = :a AND sk BETWEEN :one AND :nine",
            "FilterExpression": "begins_with(gp, :g)",
            "ProjectionExpression": "pk, l[1].y",
            "ExpressionAttributeValues": {
                ":a": {"S": "a"},
                ":one": {"N": "1"},
                ":nine": {"N": "9"},
                ":g": {"S": "g"},
            },
            "ExclusiveStartKey": KEY,
            "Limit": 2,
            "ScanIndexForward": True,
            "ReturnConsumedCapacity": "INDEXES",
        },
    )
    yield (
        "Query",
        {
            "TableName": "Music",
            "IndexName": "global",
            "KeyConditionExpression": "gp = :g AND gs >= :b",
            "ExpressionAttributeValues": {":g": {"S": "g"}, ":b": {"B": "AQ=="}},
            "ExclusiveStartKey": {**KEY, "gp": {"S": "g"}, "gs": {"B": "AQ=="}},
            "Select": "ALL_ATTRIBUTES",
        },
    )
    yield (
        "Scan",
        {
            "TableName": "Music",
            "FilterExpression": "n < :n",
            "ExpressionAttributeValues": {":n": {"N": "5"}},
            "ExclusiveStartKey": KEY,
            "Segment": 0,
            "TotalSegments": 1,
            "Limit": 3,
            "Select": "COUNT",
        },
    )
    yield "Scan", {"TableName": "Music", "IndexName": "keys", "ReturnConsumedCapacity": "TOTAL"}


def _batches() -> Iterator[tuple[str, Json]]:
    yield (
        "BatchGetItem",
        {
            "RequestItems": {
                "Music": {"Keys": [KEY, {**KEY, "sk": {"N": "2"}}], "ProjectionExpression": "pk"},
                "Other": {"Keys": [{"id": {"B": "AA=="}}], "ConsistentRead": True},
            },
            "ReturnConsumedCapacity": "TOTAL",
        },
    )
    yield (
        "BatchWriteItem",
        {
            "RequestItems": {
                "Music": [{"PutRequest": {"Item": ITEM}}],
                "Other": [{"DeleteRequest": {"Key": {"id": {"B": "AA=="}}}}],
            },
            "ReturnItemCollectionMetrics": "SIZE",
        },
    )
    get = {"TableName": "Music", "Key": KEY, "ProjectionExpression": "l[0]"}
    yield (
        "TransactGetItems",
        {"TransactItems": [{"Get": get}, {"Get": {**get, "Key": {**KEY, "sk": {"N": "2"}}}}]},
    )
    yield (
        "TransactWriteItems",
        {
            "ClientRequestToken": "token",
            "TransactItems": [
                {"Put": {"TableName": "Music", "Item": {**ITEM, "pk": {"S": "new"}}}},
                {
                    "Update": {
                        "TableName": "Music",
                        "Key": KEY,
                        "UpdateExpression": "SET n = :one",
                        "ExpressionAttributeValues": {":one": {"N": "1"}},
                    }
                },
                {"Delete": {"TableName": "Other", "Key": {"id": {"B": "AA=="}}}},
                {
                    "ConditionCheck": {
                        "TableName": "Music",
                        "Key": {**KEY, "sk": {"N": "2"}},
                        "ConditionExpression": "attribute_exists(pk)",
                        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                    }
                },
            ],
            "ReturnConsumedCapacity": "TOTAL",
        },
    )


def _statements() -> Iterator[tuple[str, Json]]:
    key = "WHERE pk = 'a' AND sk = 1"
    select = {
        "Statement": f'SELECT n, m.a FROM "Music" {key} AND begins_with(gp, ?)',
        "Parameters": [{"S": "g"}],
    }
    update = {
        "Statement": f'UPDATE "Music" SET n = n + ? SET l[0] = ? REMOVE gs {key} RETURNING ALL NEW *',
        "Parameters": [{"N": "1"}, {"L": [{"S": "x"}]}],
    }
    insert = {
        "Statement": "INSERT INTO Music VALUE {'pk': ?, 'sk': 1, 'x': <<'a', 'b'>>, 'y': [1, {'z': null}]}",
        "Parameters": [{"S": "partiql"}],
    }
    delete = {"Statement": f'DELETE FROM "Music" {key}'}
    yield "ExecuteStatement", {**select, "Limit": 1, "ReturnConsumedCapacity": "TOTAL"}
    yield "ExecuteStatement", update
    yield "ExecuteStatement", insert
    yield "ExecuteStatement", delete
    yield (
        "ExecuteStatement",
        {"Statement": "SELECT * FROM Music.keys WHERE gp IN ('g', ?) OR size(pk) > 1"}
        | {"Parameters": [{"S": "h"}]},
    )
    yield "BatchExecuteStatement", {"Statements": [insert, delete], "ReturnConsumedCapacity": "TOTAL"}
    yield (
        "BatchExecuteStatement",
        {"Statements": [{"Statement": f"SELECT * FROM Music {key}", "ConsistentRead": True}]},
    )
    exists = {"Statement": 'EXISTS(SELECT * FROM "Music" WHERE pk = ? AND sk = 2 AND n = 1)'}
    yield (
        "ExecuteTransaction",
        {
            "TransactStatements": [insert, delete, {**exists, "Parameters": [{"S": "a"}]}],
            "ClientRequestToken": "statements",
        },
    )
    yield "ExecuteTransaction", {"TransactStatements": [{"Statement": f"SELECT * FROM Music {key}"}]}


def _tables(arn: str) -> Iterator[tuple[str, Json]]:
    units = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    yield "CreateTable", {**MUSIC, "TableName": "New", "Tags": [{"Key": "k", "Value": "v"}]}
    yield (
        "CreateTable",
        {
            "TableName": "Provisioned",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "BillingMode": "PROVISIONED",
            "ProvisionedThroughput": units,
            "SSESpecification": {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "alias/x"},
            "TableClass": "STANDARD",
            "DeletionProtectionEnabled": True,
        },
    )
    yield (
        "UpdateTable",
        {
            "TableName": "Music",
            "AttributeDefinitions": [{"AttributeName": "n", "AttributeType": "N"}],
            "GlobalSecondaryIndexUpdates": [
                {
                    "Create": {
                        **index("added", "n", projection="INCLUDE"),
                        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["l"]},
                    }
                }
            ],
        },
    )
    delete = {"Delete": {"IndexName": "keys"}}
    yield "UpdateTable", {"TableName": "Music", "GlobalSecondaryIndexUpdates": [delete]}
    yield (
        "UpdateTable",
        {"TableName": "Music", "BillingMode": "PROVISIONED", "ProvisionedThroughput": units}
        | {
            "GlobalSecondaryIndexUpdates": [
                {"Update": {"IndexName": name, "ProvisionedThroughput": units}} for name in ("global", "keys")
            ]
        },
    )
    yield "UpdateTable", {"TableName": "Music", "StreamSpecification": {"StreamEnabled": False}}
    yield "UpdateTable", {"TableName": "Music", "OnDemandThroughput": {"MaxReadRequestUnits": 5}}
    yield "UpdateTable", {"TableName": "Music", "WarmThroughput": {"ReadUnitsPerSecond": 12000}}
    yield "DescribeTable", {"TableName": "Music"}
    yield "DeleteTable", {"TableName": "Other"}
    yield "ListTables", {"Limit": 1, "ExclusiveStartTableName": "Aaa"}
    yield "TagResource", {"ResourceArn": arn, "Tags": [{"Key": "k", "Value": "v"}]}
    yield "UntagResource", {"ResourceArn": arn, "TagKeys": ["k"]}
    yield "ListTagsOfResource", {"ResourceArn": arn}
    yield "PutResourcePolicy", {"ResourceArn": arn, "Policy": POLICY.replace("Read", "Second")}
    yield "GetResourcePolicy", {"ResourceArn": arn}
    yield "DeleteResourcePolicy", {"ResourceArn": arn}
    yield "DescribeContributorInsights", {"TableName": "Music", "IndexName": "global"}
    enabled = {"ContributorInsightsAction": "ENABLE", "ContributorInsightsMode": "THROTTLED_KEYS"}
    yield "UpdateContributorInsights", {"TableName": "Music", "IndexName": "global", **enabled}
    yield "ListContributorInsights", {"TableName": "Music", "MaxResults": 1}
    yield "DescribeLimits", {}
    yield "DescribeEndpoints", {}
    yield "DescribeTimeToLive", {"TableName": "Music"}
    specification = {"Enabled": True, "AttributeName": "ttl"}
    yield "UpdateTimeToLive", {"TableName": "Music", "TimeToLiveSpecification": specification}
    yield "DescribeContinuousBackups", {"TableName": "Music"}
    recovery = {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": 7}
    yield "UpdateContinuousBackups", {"TableName": "Music", "PointInTimeRecoverySpecification": recovery}


def _backups(arn: str) -> Iterator[tuple[str, Json]]:
    yield "CreateBackup", {"TableName": "Music", "BackupName": "second"}
    yield "DescribeBackup", {"BackupArn": arn}
    yield "DeleteBackup", {"BackupArn": arn}
    bounds = {"TimeRangeLowerBound": 0, "TimeRangeUpperBound": 4_000_000_000}
    yield "ListBackups", {"TableName": "Other", "Limit": 1, "BackupType": "ALL", **bounds}
    throughput = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    billing: Json = {"BillingModeOverride": "PROVISIONED", "ProvisionedThroughputOverride": throughput}
    yield "RestoreTableFromBackup", {"BackupArn": arn, "TargetTableName": "Third", **billing}
    times: Json = {"UseLatestRestorableTime": True, "GlobalSecondaryIndexOverride": []}
    yield "RestoreTableToPointInTime", {"SourceTableName": "Other", "TargetTableName": "Fourth", **times}


def _transfers(engine: SqliteEngine) -> Iterator[tuple[str, Json]]:
    table = engine.call("DescribeTable", {"TableName": "Other"})["Table"]["TableArn"]
    where = {"S3Bucket": "vault", "S3Prefix": "daily", "S3BucketOwner": "000000000000"}
    yield "ExportTableToPointInTime", {"TableArn": table, "ClientToken": "t", **where, "ExportTime": NOW}
    exports = engine.call("ListExports", {"MaxResults": 1})
    yield "DescribeExport", {"ExportArn": exports["ExportSummaries"][0]["ExportArn"]}
    yield "ListExports", {"TableArn": table, "MaxResults": 1, "NextToken": exports["NextToken"]}
    imports = engine.call("ListImports", {"PageSize": 1})
    yield "DescribeImport", {"ImportArn": imports["ImportSummaryList"][0]["ImportArn"]}
    yield "ListImports", {"TableArn": table, "PageSize": 1, "NextToken": imports["NextToken"]}
    options = {"Csv": {"Delimiter": ";", "HeaderList": ["pk"]}}
    asked: Json = {**IMPORT, "InputFormat": "CSV", "InputFormatOptions": options, "ClientToken": "i"}
    yield "ImportTable", {**asked, "InputCompressionType": "GZIP"}


TEXTS = [
    "",
    " ",
    "a",
    "pk",
    "sk",
    "\x00",
    "'",
    '"',
    "`",
    "; DROP TABLE catalog; --",
    "' OR '1'='1",
    "\u202e\u0631\u062a\u0644",
    "\U0001f600",
    "e\u0301",
    "\uffff",
    "x" * 255,
    "x" * 256,
    "x" * 70_000,
    "arn:",
    "arn:aws:dynamodb:us-east-1:000000000000:table/Music",
    "Music",
    "global",
    "#n",
    ":one",
    "NaN",
    "Infinity",
    "1E999",
    "-1E-999",
    "1" * 39,
    "9" * 5000,
    "1e99999999999999999999",
    "\u0663",
    "0x10",
    "1_000",
    "AA=",
    "====",
    "AB==",
    "\u00e9\u00e9\u00e9\u00e9",
    "true",
    "ALL_OLD",
    "SIZE",
    "a[0]",
    "a[4294967296]",
    "l[1000000000]",
    "a" + ".a" * 40,
    "(" * 2000,
    "NOT " * 900 + "a = a",
    "((a)) = b",
    "SET a = b",
    "SET a[99999999999999999999] = :one",
    "attribute_exists(a) AND",
    "size(size(size(a)))",
    "__class__",
    "{0.__class__}",
    "%s%n",
    "../../etc/passwd",
    "SELECT * FROM Music WHERE " + "(" * 500,
    'SELECT * FROM "Music"."global" WHERE gp = ? ORDER BY gs DESC',
    "DELETE FROM Music WHERE pk = 'a' AND sk = 1 AND a[99999999999999999999] = 1",
    "INSERT INTO Music VALUE " + "{'a':" * 300,
    "SELECT * FROM Music WHERE pk = 1e99999",
    "SELECT `2007-01-01T` FROM Music",
    "/* " * 50,
]
NUMBERS: list[Any] = [
    0, 1, -1, 2, 1.5, -0.0, 1e-300, 1e18, 1e300, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63,
    -(2**63), 2**64 - 1,
]  # fmt: skip
STRUCTURES: list[Any] = [
    None, True, False, [], {}, [[]], [None], {"": None}, {"": {}}, [{}], [""], {"a": 1},
]  # fmt: skip
VALUES: list[Json] = [
    {"S": ""}, {"N": ""}, {"N": "NaN"}, {"N": "1E999"}, {"N": "1" * 100_000}, {"B": "AA="}, {"B": ""},
    {"S": "x" * 2049}, {"S": "\u00e9" * 1025}, {"SS": []}, {"SS": ["a", "a"]}, {"NS": ["1", "1.0"]},
    {"BS": []},
    {"BS": [""]}, {"SS": [""]}, {"NULL": False}, {"NULL": "yes"}, {"BOOL": "no"}, {"BOOL": 1}, {"X": 1}, {},
    {"S": "a", "N": "1"}, {"S": None}, {"M": {"": {"S": "a"}}}, {"L": [None]}, {"L": [{"L": [{}]}]},
    {"S": "x" * 409_601}, {"M": {}}, {"L": []}, {"SS": ["b", "\u00e9", "a"]}, {"N": "-0"}, {"N": "0.10"},
]  # fmt: skip


def nested(kind: str, levels: int) -> Json:
    """Return a value of lists or maps in one another."""
    value: Json = {"S": "x"}
    for _ in range(levels):
        value = {"L": [value]} if kind == "L" else {"M": {"a": value}}
    return value


def spoiled(chance: random.Random, payload: Json) -> Any:
    """Return a copy of the payload with one to three places changed for the worse."""
    root: list[Any] = [copy.deepcopy(payload)]
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        _spoil(chance, root)
    return root[0]


def _spoil(chance: random.Random, root: list[Any]) -> None:
    places = list(_places(root))
    # The deeper, the more of them there are; the payload itself is worth a try now and then.
    holder, place = places[0] if chance.random() < 0.01 else chance.choice(places)
    match chance.randrange(8):
        case 0 if isinstance(holder, dict) or (isinstance(holder, list) and holder is not root):
            del holder[place]
        case 1 if isinstance(holder, dict):
            holder[chance.choice(TEXTS)] = holder.pop(place)
        case 2 if isinstance(holder[place], list):
            holder[place] = holder[place] * chance.choice((2, 30, 120))
        case 3 if isinstance(holder[place], dict):
            holder[place][chance.choice(TEXTS)] = copy.deepcopy(chance.choice(VALUES))
        case 4 if isinstance(holder[place], str):
            holder[place] = _spoiled_text(chance, holder[place])
        case 5:
            donor, other = chance.choice(places)
            holder[place] = copy.deepcopy(donor[other])
        case _:
            holder[place] = copy.deepcopy(_hostile(chance))


def _places(holder: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(holder) if isinstance(holder, dict) else range(len(holder))
    for key in keys:
        yield holder, key
        if isinstance(holder[key], dict | list):
            yield from _places(holder[key])


def _hostile(chance: random.Random) -> Any:
    if chance.random() < 0.05:
        return nested(chance.choice("LM"), chance.choice((30, 31, 32, 33, 60)))
    return chance.choice(chance.choice((TEXTS, NUMBERS, STRUCTURES, VALUES)))


def _spoiled_text(chance: random.Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    match chance.randrange(4):
        case 0:
            return text[:at] + text[at + 1 :]
        case 1:
            return text[:at] + chance.choice("()[]{}.,:#?'\"`=<>+-*/ \x00\u00e90aZ") + text[at:]
        case 2:
            return text[:at] + chance.choice(TEXTS) + text[at:]
        case _:
            return text[at:] + text[:at]


def spoiled_bytes(chance: random.Random, raw: bytes) -> bytes:
    """Return the body of a request with its bytes changed for the worse."""
    at = chance.randrange(len(raw) + 1)
    match chance.randrange(8):
        case 0:
            return raw[:at]
        case 1:
            return raw[:at] + bytes((chance.randrange(256),)) + raw[at + 1 :]
        case 2:
            return b"\xef\xbb\xbf" + raw
        case 3:
            return (
                raw[:at]
                + chance.choice((b"NaN", b"-Infinity", b"1e999", b"\\ud800", b"\xed\xa0\x80"))
                + raw[at:]
            )
        case 4:
            return raw + chance.choice((b"x", b"\x00", b"{}", b" "))
        case 5:
            # Duplicate members: the last wins.
            return raw[:-1] + b"," + raw[1:] if len(raw) > 2 else raw
        case 6:
            return raw.replace(b'"', b"'") if at % 2 else raw.decode().encode("utf-16")
        case _:
            return raw[:at] + chance.choice((b"[", b"{", b'{"a":')) * 5_000 + raw[at:]


def target(operation: str) -> str:
    """Return the X-Amz-Target header of an operation."""
    streams = ("ListStreams", "DescribeStream", "GetShardIterator", "GetRecords")
    return f"DynamoDB{'Streams' if operation in streams else ''}_20120810.{operation}"


def requests(seed: int, engine: SqliteEngine, *, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield targets and bodies: spoiled requests, and now and then a good one."""
    chance = random.Random(seed)
    valid = valid_requests(engine)
    for _ in range(count):
        operation, payload = chance.choice(valid)
        if chance.random() < 0.9:
            payload = spoiled(chance, payload)
        raw = json.dumps(payload, ensure_ascii=False).encode()
        if chance.random() < 0.1:
            raw = spoiled_bytes(chance, raw)
        yield target(operation), raw


def play(seed: int, *, count: int) -> Iterator[tuple[str, int, str]]:
    """Yield the target, the status and the answer of each request, without what chance decides."""
    with opened() as engine:
        for operation, raw in requests(seed, engine, count=count):
            status, body = wire.answer(engine, operation, raw)
            yield operation, status, _UUID.sub("uuid", body.decode())
