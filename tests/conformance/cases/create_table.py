"""CreateTable: what a new table's description holds, and every request that is rejected.

Only the request and its reply; what the table then does with items is reported elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .. import evidence
from ..harness import Case, Fails, Json, Step, case, invalid, reworded
from ..tables import index, table

NAME_PATTERN = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
INVALID = "One or more parameter values were invalid: "
OWN_WORDS = "has a different text"
WARM = {"ReadUnitsPerSecond": 13_000, "WriteUnitsPerSecond": 5_000}
UNITS = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}


def request(**changes: Any) -> Json:
    """A CreateTable request for one string key `a`; None takes a member away."""
    members = table("Fresh", "a:S") | changes
    return {name: value for name, value in members.items() if value is not None}


def pair(**changes: Any) -> Json:
    """The same with a sort key `b`, and `c` defined for an index."""
    return (
        request(AttributeDefinitions=definitions("a", "b", "c"), KeySchema=keys("a HASH", "b RANGE"))
        | changes
    )


def composite(partition: str, sort: str, order: str = "") -> Json:
    """A request with one index of several key attributes, each letter one."""
    schema = (
        keys(*order.split(","))
        if order
        else keys(*(f"{one} HASH" for one in partition)) + keys(*(f"{one} RANGE" for one in sort))
    )
    return request(
        AttributeDefinitions=definitions("a", *partition, *sort),
        GlobalSecondaryIndexes=[index("idx", *partition) | {"KeySchema": schema}],
    )


def definitions(*names: str, type_: str = "S") -> list[Json]:
    return [{"AttributeName": name, "AttributeType": type_} for name in names]


def keys(*elements: str) -> list[Json]:
    return [dict(zip(("AttributeName", "KeyType"), element.split(), strict=True)) for element in elements]


def constraint(value: str, member: str, rule: str) -> str:
    return f"1 validation error detected: Value {value} at '{member}' failed to satisfy constraint: {rule}"


def short_name(name: str) -> str:
    at = f"Value '{name}' at 'tableName' failed to satisfy constraint: "
    return f"2 validation errors detected: {at}Member must have length greater than or equal to 3; {at}{NAME_PATTERN}"


def creates(**changes: Any) -> Step:
    return Step("CreateTable", request(**changes))


def describes(name: str, check: Callable[[Json], bool]) -> Step:
    def expect(reply: Json) -> None:
        assert check(reply["Table"]), reply

    return Step("DescribeTable", {"TableName": name}, expect)


def on_demand_reply(reply: Json) -> None:
    got = reply["TableDescription"]
    assert got["TableName"] == "Fresh"
    assert got["TableStatus"] in ("CREATING", "ACTIVE")
    assert got["AttributeDefinitions"] == definitions("a")
    assert got["KeySchema"] == keys("a HASH")
    assert (got["ItemCount"], got["TableSizeBytes"]) == (0, 0)
    assert got["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert got["ProvisionedThroughput"]["ReadCapacityUnits"] == 0
    assert got["ProvisionedThroughput"]["WriteCapacityUnits"] == 0
    assert got["ProvisionedThroughput"]["NumberOfDecreasesToday"] == 0
    assert got["DeletionProtectionEnabled"] is False
    assert isinstance(got["CreationDateTime"], (int, float))
    assert re.fullmatch(r"arn:aws:dynamodb:[^:]+:\d{12}:table/Fresh", got["TableArn"])
    assert "StreamSpecification" not in got


def provisioned_reply(reply: Json) -> None:
    got = reply["TableDescription"]
    assert got["ProvisionedThroughput"]["ReadCapacityUnits"] == 1
    assert got["ProvisionedThroughput"]["WriteCapacityUnits"] == 1
    assert "BillingModeSummary" not in got


def cold_reply(reply: Json) -> None:
    got = reply["TableDescription"]
    assert "WarmThroughput" not in got
    assert "WarmThroughput" not in got["GlobalSecondaryIndexes"][0]


def warm_reply(reply: Json) -> None:
    warm = reply["TableDescription"]["WarmThroughput"]
    assert {name: warm[name] for name in WARM} == WARM


def table_id_reply(reply: Json) -> None:
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", reply["TableDescription"]["TableId"])


def index_reply(reply: Json) -> None:
    got = reply["TableDescription"]
    (everywhere,) = got["GlobalSecondaryIndexes"]
    assert everywhere["IndexStatus"] in ("CREATING", "ACTIVE")
    assert everywhere["IndexArn"] == got["TableArn"] + "/index/everywhere"
    assert everywhere["Projection"] == {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"]}
    assert (everywhere["IndexSizeBytes"], everywhere["ItemCount"]) == (0, 0)
    (nearby,) = got["LocalSecondaryIndexes"]
    assert nearby["IndexArn"] == got["TableArn"] + "/index/nearby"
    assert nearby["KeySchema"] == keys("a HASH", "c RANGE")
    assert "IndexStatus" not in nearby


def eight_keys(reply: Json) -> None:
    (got,) = reply["TableDescription"]["GlobalSecondaryIndexes"]
    assert [one["KeyType"] for one in got["KeySchema"]] == ["HASH"] * 4 + ["RANGE"] * 4
    assert "".join(one["AttributeName"] for one in got["KeySchema"]) == "bcdefghi"


def stream_reply(reply: Json) -> None:
    got = reply["TableDescription"]
    assert got["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    assert got["LatestStreamArn"] == f"{got['TableArn']}/stream/{got['LatestStreamLabel']}"


REFUSED: list[tuple[str, Json, str | None]] = [
    (
        "a missing TableName is named",
        {},
        "The parameter 'TableName' is required but was not present in the request",
    ),
    ("an empty TableName is too short", {"TableName": ""}, short_name("")),
    ("length and characters of the name are checked together", {"TableName": "a;"}, short_name("a;")),
    (
        "256 characters are too long a TableName",
        {"TableName": "a" * 256},
        constraint(f"'{'a' * 256}'", "tableName", "Member must have length less than or equal to 255"),
    ),
    (
        "a semicolon in TableName breaks its pattern",
        request(TableName="abc;"),
        constraint("'abc;'", "tableName", "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"),
    ),
    (
        "a missing KeySchema is a null member",
        request(KeySchema=None),
        constraint("null", "keySchema", "Member must not be null"),
    ),
    (
        "a missing AttributeDefinitions is a null member",
        request(AttributeDefinitions=None),
        constraint("null", "attributeDefinitions", "Member must not be null"),
    ),
    (
        "an empty KeySchema is too short",
        request(KeySchema=[]),
        constraint("'[]'", "keySchema", "Member must have length greater than or equal to 1"),
    ),
    (
        "SS is not a key type",
        request(AttributeDefinitions=definitions("a", type_="SS")),
        constraint(
            "'SS'",
            "attributeDefinitions.1.member.attributeType",
            "Member must satisfy enum value set: [B, N, S]",
        ),
    ),
    (
        "the type of a definition is checked before its name",
        request(AttributeDefinitions=[{}]),
        "2 validation errors detected: "
        "Value null at 'attributeDefinitions.1.member.attributeType' failed to satisfy constraint: "
        "Member must not be null; "
        "Value null at 'attributeDefinitions.1.member.attributeName' failed to satisfy constraint: "
        "Member must not be null",
    ),
    (
        "global indexes are checked before local ones",
        request(
            LocalSecondaryIndexes=[index("l1", "a", "c")],
            GlobalSecondaryIndexes=[index("g1", "b")],
        ),
        "2 validation errors detected: "
        "Value 'g1' at 'globalSecondaryIndexes.1.member.indexName' failed to satisfy constraint: "
        "Member must have length greater than or equal to 3; "
        "Value 'l1' at 'localSecondaryIndexes.1.member.indexName' failed to satisfy constraint: "
        "Member must have length greater than or equal to 3",
    ),
    (
        "a table class is one of two",
        request(TableClass="COLD"),
        "Invalid table-class parameter provided. Please try again with a valid table-class value: "
        "[STANDARD, STANDARD_INFREQUENT_ACCESS].",
    ),
    # nubo-db/dynoxide 159, 161: captured on 2026-07-24.
    *(
        (
            f"an on-demand bound of {units} is outside the range of a new table",
            request(OnDemandThroughput={"MaxWriteRequestUnits": units}),
            f"{INVALID}Requested MaxWriteRequestUnits for OnDemandThroughput for table "
            "is outside of valid range",
        )
        for units in (0, -1, -2)
    ),
    (
        "an on-demand bound is not for provisioned capacity",
        request(
            BillingMode="PROVISIONED",
            ProvisionedThroughput=UNITS,
            OnDemandThroughput={"MaxReadRequestUnits": 0, "MaxWriteRequestUnits": 1},
        ),
        f"{INVALID}MaxReadRequestUnits for OnDemandThroughput cannot be specified when table BillingMode "
        "is PROVISIONED.",
    ),
    (
        "a new index has no bound to lift",
        request(
            AttributeDefinitions=definitions("a", "b"),
            GlobalSecondaryIndexes=[index("byb", "b") | {"OnDemandThroughput": {"MaxReadRequestUnits": -1}}],
        ),
        f"{INVALID}Requested MaxReadRequestUnits for OnDemandThroughput for index : byb "
        "is outside of valid range",
    ),
    (
        "a definition without a name is a null member",
        request(AttributeDefinitions=[{"AttributeType": "S"}]),
        constraint("null", "attributeDefinitions.1.member.attributeName", "Member must not be null"),
    ),
    (
        "an unknown KeyType breaks its enum",
        request(KeySchema=keys("a Woop")),
        constraint(
            "'Woop'", "keySchema.1.member.keyType", "Member must satisfy enum value set: [HASH, RANGE]"
        ),
    ),
    (
        "zero capacity units are too few",
        request(BillingMode=None, ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 0}),
        constraint(
            "'0'",
            "provisionedThroughput.writeCapacityUnits",
            "Member must have value greater than or equal to 1",
        ),
    ),
    (
        "a missing capacity unit is a null member",
        request(BillingMode=None, ProvisionedThroughput={"WriteCapacityUnits": 1}),
        constraint("null", "provisionedThroughput.readCapacityUnits", "Member must not be null"),
    ),
    (
        "the default billing mode needs throughput",
        request(BillingMode=None),
        INVALID
        + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
    ),
    (
        "PAY_PER_REQUEST takes no throughput",
        request(ProvisionedThroughput=UNITS),
        INVALID
        + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST",
    ),
    (
        "ReadCapacityUnits have an upper bound",
        request(BillingMode=None, ProvisionedThroughput=dict.fromkeys(UNITS, 1000000000001)),
        "Given value 1000000000001 for ReadCapacityUnits is out of bounds",
    ),
    (
        "WriteCapacityUnits have an upper bound",
        request(BillingMode=None, ProvisionedThroughput=UNITS | {"WriteCapacityUnits": 1000000000001}),
        "Given value 1000000000001 for WriteCapacityUnits is out of bounds",
    ),
    (
        "more keys than definitions lack a definition",
        request(KeySchema=keys("a HASH", "b RANGE")),
        "Invalid KeySchema: Some index key attribute have no definition",
    ),
    (
        "an undefined key is listed beside the definitions",
        request(AttributeDefinitions=definitions("b")),
        INVALID + "Some index key attributes are not defined in AttributeDefinitions. "
        "Keys: [a], AttributeDefinitions: [b]",
    ),
    (
        "both keys cannot have one name",
        request(AttributeDefinitions=definitions("a", "b"), KeySchema=keys("a HASH", "a RANGE")),
        "Both the Hash Key and the Range Key element in the KeySchema have the same name",
    ),
    (
        "the first key must be a partition key",
        request(KeySchema=keys("a RANGE")),
        "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
    ),
    (
        "the second key must be a sort key",
        request(AttributeDefinitions=definitions("a", "b"), KeySchema=keys("a HASH", "b HASH")),
        "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
    ),
    (
        "a definition that no key uses is rejected",
        request(AttributeDefinitions=definitions("a", "b")),
        INVALID + "Number of attributes in KeySchema does not exactly match number of attributes "
        "defined in AttributeDefinitions",
    ),
    (
        "two definitions of one attribute are rejected",
        request(AttributeDefinitions=definitions("a") + definitions("a", type_="N")),
        None,
    ),
    (
        "an empty list of local indexes is rejected",
        request(LocalSecondaryIndexes=[]),
        INVALID + "List of LocalSecondaryIndexes is empty",
    ),
    (
        "an empty list of global indexes is rejected",
        request(GlobalSecondaryIndexes=[]),
        INVALID + "List of GlobalSecondaryIndexes is empty",
    ),
    (
        "a local index needs a table with a sort key",
        request(AttributeDefinitions=definitions("a", "b"), LocalSecondaryIndexes=[index("idx", "a", "b")]),
        INVALID
        + "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex",
    ),
    (
        "a local index needs a sort key",
        pair(LocalSecondaryIndexes=[index("idx", "a")]),
        INVALID + "Index KeySchema does not have a range key for index: idx",
    ),
    (
        "a local index shares the table's partition key",
        pair(LocalSecondaryIndexes=[index("idx", "c", "b")]),
        INVALID
        + "Index KeySchema does not have the same leading hash key as table KeySchema for index: idx. "
        "index hash key: c, table hash key: a",
    ),
    (
        "a projection needs a type",
        pair(GlobalSecondaryIndexes=[index("idx", "c") | {"Projection": {}}]),
        INVALID + "Unknown ProjectionType: null",
    ),
    (
        "an unknown ProjectionType breaks its enum",
        pair(GlobalSecondaryIndexes=[index("idx", "c", projection="SOME")]),
        constraint(
            "'SOME'",
            "globalSecondaryIndexes.1.member.projection.projectionType",
            "Member must satisfy enum value set: [ALL, INCLUDE, KEYS_ONLY]",
        ),
    ),
    (
        "NonKeyAttributes go with INCLUDE only",
        pair(LocalSecondaryIndexes=[index("idx", "a", "c", include=["x"])]),
        INVALID + "ProjectionType is ALL, but NonKeyAttributes is specified",
    ),
    (
        "KEYS_ONLY takes no NonKeyAttributes",
        pair(GlobalSecondaryIndexes=[index("idx", "c", projection="KEYS_ONLY", include=["x"])]),
        INVALID + "ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified",
    ),
    (
        "INCLUDE needs NonKeyAttributes",
        pair(GlobalSecondaryIndexes=[index("idx", "c", projection="INCLUDE")]),
        INVALID + "ProjectionType is INCLUDE, but NonKeyAttributes is not specified",
    ),
    (
        "two local indexes cannot share a name",
        pair(LocalSecondaryIndexes=[index("idx", "a", "c")] * 2),
        INVALID + "Duplicate index name: idx",
    ),
    (
        "a local and a global index cannot share a name",
        pair(
            LocalSecondaryIndexes=[index("idx", "a", "c")],
            GlobalSecondaryIndexes=[index("idx", "c")],
        ),
        INVALID + "Duplicate index name: idx",
    ),
    (
        "six local indexes are too many",
        pair(LocalSecondaryIndexes=[index(f"idx{place}", "a", "c") for place in range(6)]),
        INVALID + "Number of LocalSecondaryIndexes exceeds per-table limit of 5",
    ),
    (
        "twenty-one global indexes are too many",
        pair(GlobalSecondaryIndexes=[index(f"idx{place}", "c") for place in range(21)]),
        INVALID + "GlobalSecondaryIndex count exceeds the per-table limit of 20",
    ),
    (
        "an undefined index key is listed beside the definitions",
        request(GlobalSecondaryIndexes=[index("idx", "d")]),
        INVALID + "Some index key attributes are not defined in AttributeDefinitions. "
        "Keys: [d], AttributeDefinitions: [a]",
    ),
    (
        "two characters are too short an index name",
        pair(GlobalSecondaryIndexes=[index("id", "c")]),
        constraint(
            "'id'",
            "globalSecondaryIndexes.1.member.indexName",
            "Member must have length greater than or equal to 3",
        ),
    ),
    (
        "a semicolon in an index name breaks its pattern",
        pair(GlobalSecondaryIndexes=[index("idx;", "c")]),
        constraint(
            "'idx;'",
            "globalSecondaryIndexes.1.member.indexName",
            "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
        ),
    ),
    (
        "a PAY_PER_REQUEST table's index takes no throughput",
        pair(GlobalSecondaryIndexes=[index("idx", "c") | {"ProvisionedThroughput": UNITS}]),
        INVALID + "ProvisionedThroughput should not be specified for index: idx "
        "when BillingMode is PAY_PER_REQUEST",
    ),
    (
        "five partition attributes of an index are too many",
        composite("bcdef", ""),
        None,
    ),
    (
        "five sort attributes of an index are too many",
        composite("b", "cdefg"),
        None,
    ),
    (
        "an index's partition attributes come before its sort attributes",
        composite("bc", "d", order="b HASH,d RANGE,c HASH"),
        None,
    ),
    (
        "an index cannot use one attribute twice",
        composite("bc", "", order="b HASH,b HASH"),
        None,
    ),
    (
        "a local index has one sort attribute",
        pair(
            AttributeDefinitions=definitions("a", "b", "c", "d"),
            LocalSecondaryIndexes=[index("idx", "a", "c", "d")],
        ),
        None,
    ),
    (
        "a table has two keys at most",
        pair(KeySchema=keys("a HASH", "b RANGE", "c RANGE")),
        None,
    ),
    (
        "a stream needs a view type",
        request(StreamSpecification={"StreamEnabled": True}),
        f"{INVALID}Table is being created with a stream enabled, UpdateViewType is required",
    ),
    # nubo-db/dynoxide 115; ack-api-quirks DDB-TABLE-035, verified on 2026-10-08.
    (
        "a disabled stream takes no view type",
        request(StreamSpecification={"StreamEnabled": False, "StreamViewType": "KEYS_ONLY"}),
        f"{INVALID}Table is being created with a stream disabled, UpdateViewType should not be specified",
    ),
]

#: The refusals above that DynamoDB Local words (or leaves unworded) as AWS does.
AGREED = {
    "five partition attributes of an index are too many",
    "five sort attributes of an index are too many",
    "an index's partition attributes come before its sort attributes",
    "an index cannot use one attribute twice",
    "a local index has one sort attribute",
    "a table has two keys at most",
    "two definitions of one attribute are rejected",
}

THREE_KEYS = request(
    AttributeDefinitions=definitions("pk", "sk", "extra"),
    KeySchema=keys("pk HASH", "sk RANGE", "extra RANGE"),
)

CASES: list[Case] = [
    case(
        "a third key is rejected, and the keys are shown",
        Step(
            "CreateTable",
            THREE_KEYS,
            reworded(
                re.compile(
                    constraint(
                        r"'\[(com\.amazonaws\.dynamodb\.v20120810\.KeySchemaElement@[0-9a-f]+(, )?){3}\]'",
                        "keySchema",
                        "Member must have length less than or equal to 2",
                    )
                ),
                constraint(
                    "'[KeySchemaElement(attributeName=pk, keyType=HASH), "
                    "KeySchemaElement(attributeName=sk, keyType=RANGE), "
                    "KeySchemaElement(attributeName=extra, keyType=RANGE)]'",
                    "keySchema",
                    "Member must have length less than or equal to 2",
                ),
                evidence.KEY_SCHEMA,
            ),
        ),
        local="prints the addresses of objects",
    ),
    *(
        case(name, Step("CreateTable", body, invalid(message)), local="" if name in AGREED else OWN_WORDS)
        for name, body, message in REFUSED
    ),
    case(
        "an unknown BillingMode breaks its enum",
        Step(
            "CreateTable",
            request(BillingMode="SOMETIMES"),
            invalid(
                constraint(
                    "'SOMETIMES'",
                    "billingMode",
                    "Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]",
                )
            ),
        ),
        local="fails with an internal error",
    ),
    case("an on-demand table is described without capacity", Step("CreateTable", request(), on_demand_reply)),
    case(
        "warm throughput is described, and not in the reply of CreateTable",
        Step(
            "CreateTable",
            request(
                AttributeDefinitions=definitions("a", "b"),
                GlobalSecondaryIndexes=[index("byb", "b")],
            ),
            cold_reply,
        ),
        describes("Fresh", lambda got: got["WarmThroughput"]["ReadUnitsPerSecond"] == 12_000),
        local="does not support warm throughput",
    ),
    case(
        "warm throughput that CreateTable asks for is in its reply",
        Step("CreateTable", request(WarmThroughput=WARM), warm_reply),
        local="does not support warm throughput",
    ),
    case("a new table has an id", Step("CreateTable", request(), table_id_reply), local="has no TableId"),
    case(
        "throughput without a BillingMode makes a provisioned table",
        Step("CreateTable", request(BillingMode=None, ProvisionedThroughput=UNITS), provisioned_reply),
    ),
    case(
        "indexes are described with their own ARNs",
        Step(
            "CreateTable",
            pair(
                GlobalSecondaryIndexes=[index("everywhere", "c", projection="INCLUDE", include=["x"])],
                LocalSecondaryIndexes=[index("nearby", "a", "c")],
            ),
            index_reply,
        ),
    ),
    case(
        "an index may have four partition and four sort attributes",
        Step("CreateTable", composite("bcde", "fghi"), eight_keys),
    ),
    case(
        "a stream is described by its view type, label and ARN",
        Step(
            "CreateTable",
            request(StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}),
            stream_reply,
        ),
    ),
    case(
        "a disabled stream is not a stream",
        creates(StreamSpecification={"StreamEnabled": False}),
        describes("Fresh", lambda got: "StreamSpecification" not in got),
    ),
    case(
        "a table name that exists is in use",
        creates(),
        Step("CreateTable", request(), Fails("ResourceInUseException", "Table already exists: Fresh")),
        local=OWN_WORDS,
    ),
    case(
        "table names differ by case",
        creates(),
        creates(TableName="FRESH"),
        describes("FRESH", lambda got: bool(got["TableName"] == "FRESH")),
        local="fails with an internal error if two names differ only in case",
    ),
    case(
        "255 characters make a table name",
        creates(TableName="n" * 255),
        describes("n" * 255, lambda got: bool(got["TableName"] == "n" * 255)),
    ),
    case(
        "a name may be of dots, dashes and underscores",
        creates(TableName="._-"),
        describes("._-", lambda got: got["TableArn"].endswith(":table/._-")),
    ),
    case(
        "deletion protection is described",
        creates(DeletionProtectionEnabled=True),
        describes("Fresh", lambda got: got["DeletionProtectionEnabled"] is True),
        Step("UpdateTable", {"TableName": "Fresh", "DeletionProtectionEnabled": False}),
    ),
    case(
        "a table class is described",
        creates(TableClass="STANDARD_INFREQUENT_ACCESS"),
        describes(
            "Fresh", lambda got: bool(got["TableClassSummary"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS")
        ),
        local="does not support table classes",
    ),
    case(
        "definitions and projected attributes are described by name",
        creates(
            AttributeDefinitions=definitions("z", "b", "a"),
            GlobalSecondaryIndexes=[
                index("byz", "z", "b")
                | {"Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["y", "x"]}}
            ],
        ),
        describes(
            "Fresh",
            lambda got: (
                [entry["AttributeName"] for entry in got["AttributeDefinitions"]] == ["a", "b", "z"]
                and got["GlobalSecondaryIndexes"][0]["Projection"]["NonKeyAttributes"] == ["x", "y"]
            ),
        ),
        local="describes them in the order of the request",
    ),
    case(
        "a rejected table does not exist",
        Step(
            "CreateTable", request(AttributeDefinitions=definitions("a", "b")), Fails("ValidationException")
        ),
        Step("DescribeTable", {"TableName": "Fresh"}, Fails("ResourceNotFoundException")),
    ),
    case(
        "an unknown member is ignored",
        creates(Colour="blue"),
        describes("Fresh", lambda got: "Colour" not in got),
    ),
]
