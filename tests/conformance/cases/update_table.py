"""UpdateTable: indexes added and dropped, billing, throughput, streams and deletion protection.

A change of AWS's may take minutes; an engine that is done at once answers ACTIVE, and both are right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..harness import Case, Expectation, Fails, Json, Step, case, invalid
from ..tables import index, table

INVALID = "One or more parameter values were invalid: "
OWN_WORDS = "has a different text"
BACKGROUND = "builds and drops an index in the background"
UNITS = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
NOTHING = (
    "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, "
    "SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, "
    "MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass "
    "is required"
)
ONE_AT_A_TIME = Fails(
    "LimitExceededException",
    "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table",
)


def update(name: str = "Hash", expect: Expectation | None = None, **members: Any) -> Step:
    return Step("UpdateTable", {"TableName": name, **members}, expect)


def indexes(*updates: Json, name: str = "Hash", expect: Expectation | None = None, **types: str) -> Step:
    """Update global indexes; the keywords are attribute definitions."""
    members: Json = {"GlobalSecondaryIndexUpdates": list(updates)}
    if types:
        members["AttributeDefinitions"] = [
            {"AttributeName": attribute, "AttributeType": type_} for attribute, type_ in types.items()
        ]
    return update(name, expect, **members)


def described(check: Callable[[Json], bool], name: str = "Hash") -> Step:
    def expect(reply: Json) -> None:
        assert check(reply["Table"]), reply

    return Step("DescribeTable", {"TableName": name}, expect)


def put(expect: Expectation | None = None, **item: Json) -> Step:
    return Step("PutItem", {"TableName": "Hash", "Item": item}, expect)


def scan_index(expect: Expectation) -> Step:
    return Step("Scan", {"TableName": "Hash", "IndexName": "byx"}, expect)


def stream(expect: Expectation | None = None, **specification: Any) -> Step:
    return update(expect=expect, StreamSpecification=specification)


def creating_reply(reply: Json) -> None:
    (got,) = reply["TableDescription"]["GlobalSecondaryIndexes"]
    assert got["IndexName"] == "byx"
    assert got["IndexStatus"] in ("CREATING", "ACTIVE")
    assert got["KeySchema"] == [{"AttributeName": "x", "KeyType": "HASH"}]
    defined = {entry["AttributeName"] for entry in reply["TableDescription"]["AttributeDefinitions"]}
    assert defined == {"pk", "x"}


def bounds(read: int | None, write: int) -> Callable[[Json], None]:
    """The reply shows these bounds of on-demand capacity."""
    wanted = {"MaxWriteRequestUnits": write} | ({} if read is None else {"MaxReadRequestUnits": read})

    def expect(reply: Json) -> None:
        assert reply["TableDescription"]["OnDemandThroughput"] == wanted, reply

    return expect


def only_a(reply: Json) -> None:
    assert reply["Items"] == [{"pk": {"S": "1"}, "x": {"S": "a"}}], reply


CREATE = {"Create": index("byx", "x")}
PROVISIONED = table("Paid", "pk:S") | {"BillingMode": "PROVISIONED", "ProvisionedThroughput": UNITS}
PAID_INDEX = PROVISIONED | {
    "AttributeDefinitions": table("Paid", "pk:S", types={"x": "S"})["AttributeDefinitions"],
    "GlobalSecondaryIndexes": [index("byx", "x") | {"ProvisionedThroughput": UNITS}],
}
NO_BOUNDS: tuple[Json, ...] = ({}, {"OnDemandThroughput": {}}, {"ProvisionedThroughput": UNITS})
INDEXED = table("Typed", "pk:S", types={"x": "S"}, gsi=[index("byx", "x")])

CASES: list[Case] = [
    case(
        "TableName is required",
        Step(
            "UpdateTable",
            {},
            invalid("The parameter 'TableName' is required but was not present in the request"),
        ),
        local=OWN_WORDS,
    ),
    case("an update must change something", update(expect=invalid(NOTHING)), tables="Hash", local=OWN_WORDS),
    case(
        "an empty list of index updates changes nothing",
        indexes(expect=invalid(NOTHING)),
        tables="Hash",
        local=OWN_WORDS,
    ),
    case(
        "an empty list of index updates cannot accompany another change",
        update(
            expect=invalid(INVALID + "List of GlobalSecondaryIndexUpdates is empty"),
            GlobalSecondaryIndexUpdates=[],
            DeletionProtectionEnabled=True,
        ),
        described(lambda got: got["DeletionProtectionEnabled"] is False),
        tables="Hash",
        local="ignores the empty list",
    ),
    *(
        case(
            f"a missing index is named: {action}",
            Step("CreateTable", INDEXED),
            update(
                "Typed",
                Fails(
                    "ResourceNotFoundException", "Requested resource not found: Index ghost for table Typed"
                ),
                GlobalSecondaryIndexUpdates=[{action: {"IndexName": "ghost", **members}}],
            ),
            local="does not name the index",
        )
        for action, members in (
            ("Delete", {}),
            ("Update", {"OnDemandThroughput": {"MaxReadRequestUnits": 5}}),
        )
    ),
    *(
        case(
            f"an index of an on-demand table takes bounds only: {sorted(members)}",
            Step("CreateTable", INDEXED),
            update(
                "Typed",
                invalid(
                    INVALID + "The only Updates for index: byx when TableThroughputMode is PAY_PER_REQUEST "
                    "can be to OnDemandThroughput, WarmThroughput"
                ),
                GlobalSecondaryIndexUpdates=[{"Update": {"IndexName": "byx", **members}}],
            ),
            local=OWN_WORDS,
        )
        for members in NO_BOUNDS
    ),
    case(
        "an index's warm throughput cannot be empty",
        update(
            "Nowhere",
            invalid(
                INVALID + "WarmThroughput must have at least one of ReadUnitsPerSecond or "
                "WriteUnitsPerSecond specified for index: byx"
            ),
            GlobalSecondaryIndexUpdates=[{"Update": {"IndexName": "byx", "WarmThroughput": {}}}],
        ),
        local="looks up the table first",
    ),
    case(
        "an unknown table class is rejected",
        update(
            expect=invalid(
                "Invalid table-class parameter provided. Please try again with a valid table-class value: "
                "[STANDARD, STANDARD_INFREQUENT_ACCESS]."
            ),
            TableClass="COLD",
        ),
        tables="Hash",
        local="does not support table classes",
    ),
    case(
        "a missing table is named",
        update(
            "Nowhere",
            Fails("ResourceNotFoundException", "Requested resource not found: Table: Nowhere not found"),
            BillingMode="PAY_PER_REQUEST",
        ),
        local=OWN_WORDS,
    ),
    case(
        "the request is checked before the table is looked up",
        update("Nowhere", invalid(NOTHING)),
        local="looks up the table first",
    ),
    case(
        "an index update needs an action",
        indexes(
            {},
            expect=invalid(
                INVALID + "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
                "GlobalSecondaryIndexUpdate.Delete must not be null"
            ),
        ),
        tables="Hash",
        local=OWN_WORDS,
    ),
    case(
        "one index takes one update at a time",
        indexes(
            *[{"Delete": {"IndexName": "byx"}}] * 2,
            expect=invalid(
                INVALID
                + "Only one global secondary index update per index is allowed simultaneously. Index: byx"
            ),
        ),
        tables="Hash",
        local=OWN_WORDS,
    ),
    case(
        "two indexes cannot be created at once",
        indexes(CREATE, {"Create": index("alsox", "x")}, expect=ONE_AT_A_TIME, x="S"),
        tables="Hash",
    ),
    case(
        "two indexes cannot be dropped at once",
        indexes(
            {"Delete": {"IndexName": "gall"}},
            {"Delete": {"IndexName": "gkeys"}},
            name="Indexed",
            expect=ONE_AT_A_TIME,
        ),
        tables="Indexed",
    ),
    case(
        "an index cannot be created while another is dropped",
        indexes(
            {"Create": index("byx", "x")},
            {"Delete": {"IndexName": "gkeys"}},
            name="Indexed",
            expect=ONE_AT_A_TIME,
            x="S",
        ),
        tables="Indexed",
    ),
    case(
        "a new index must have its keys defined, even keys the table knows",
        indexes({"Create": index("byls", "ls")}, name="Indexed", expect=invalid(None)),
        tables="Indexed",
    ),
    case("a new index is described at once", indexes(CREATE, expect=creating_reply, x="S"), tables="Hash"),
    case(
        "a definition that the new index does not use is ignored",
        indexes(CREATE, expect=creating_reply, x="S", unused="S"),
        tables="Hash",
        local="keeps the unused definition",
    ),
    case(
        "a new index is filled with the items that fit it",
        put(pk={"S": "1"}, x={"S": "a"}),
        put(pk={"S": "2"}, x={"N": "1"}),
        put(pk={"S": "3"}, x={"S": ""}),
        put(pk={"S": "4"}, x={"NULL": True}),
        put(pk={"S": "5"}),
        indexes(CREATE, x="S"),
        scan_index(only_a),
        tables="Hash",
        local=BACKGROUND,
    ),
    case(
        "a key too long for the new index is left out of it",
        put(pk={"S": "1"}, x={"S": "a"}),
        put(pk={"S": "2"}, x={"S": "a" * 2049}),
        indexes(CREATE, x="S"),
        scan_index(only_a),
        tables="Hash",
        local=BACKGROUND,
    ),
    case(
        "a new index checks later writes",
        indexes(CREATE, x="S"),
        put(
            invalid(INVALID + "Type mismatch for Index Key x Expected: S Actual: N IndexName: byx"),
            pk={"S": "1"},
            x={"N": "1"},
        ),
        tables="Hash",
        local=OWN_WORDS,
    ),
    case(
        "an index name that exists cannot be created again",
        indexes(
            {"Create": index("gall", "x")},
            name="Indexed",
            expect=invalid("Attempting to create an index which already exists"),
            x="S",
        ),
        tables="Indexed",
    ),
    case(
        "a global index cannot take a local index's name",
        indexes(
            {"Create": index("lall", "x")},
            name="Indexed",
            expect=invalid("Attempting to create an index which already exists"),
            x="S",
        ),
        tables="Indexed",
    ),
    case(
        "an attribute cannot be redefined with another type",
        Step("CreateTable", INDEXED),
        indexes(
            {"Create": index("alsox", "x")},
            name="Typed",
            expect=invalid(
                INVALID
                + "Attributes cannot be redefined. Please check that your attribute has the same type as "
                "previously defined. Existing schema: Schema:[SchemaElement: key{x:S:HASH}] "
                "New schema: Schema:[SchemaElement: key{x:N:HASH}]"
            ),
            x="N",
        ),
        local=OWN_WORDS,
    ),
    case(
        "an index that does not exist cannot be dropped",
        indexes({"Delete": {"IndexName": "nope"}}, expect=Fails("ResourceNotFoundException")),
        tables="Hash",
    ),
    case(
        "a dropped index is gone",
        Step("CreateTable", INDEXED),
        indexes({"Delete": {"IndexName": "byx"}}, name="Typed"),
        described(lambda got: "GlobalSecondaryIndexes" not in got, "Typed"),
        local=BACKGROUND,
    ),
    case(
        "a dropped index takes its key's definition with it",
        Step("CreateTable", INDEXED),
        indexes({"Delete": {"IndexName": "byx"}}, name="Typed"),
        described(
            lambda got: [one["AttributeName"] for one in got["AttributeDefinitions"]] == ["pk"], "Typed"
        ),
    ),
    case(
        "a dropped index no longer checks writes",
        Step("CreateTable", INDEXED),
        indexes({"Delete": {"IndexName": "byx"}}, name="Typed"),
        Step("PutItem", {"TableName": "Typed", "Item": {"pk": {"S": "1"}, "x": {"N": "1"}}}, {}),
        local=BACKGROUND,
    ),
    case(
        "a dropped index cannot be queried",
        Step("CreateTable", INDEXED),
        indexes({"Delete": {"IndexName": "byx"}}, name="Typed"),
        Step(
            "Scan",
            {"TableName": "Typed", "IndexName": "byx"},
            invalid("The table does not have the specified index: byx"),
        ),
        local=BACKGROUND,
    ),
    case(
        "PROVISIONED needs throughput",
        update(
            expect=invalid(
                INVALID + "ProvisionedThroughput must be specified when BillingMode is PROVISIONED"
            ),
            BillingMode="PROVISIONED",
        ),
        tables="Hash",
        local=OWN_WORDS,
    ),
    case(
        "an on-demand table takes no throughput",
        update(
            expect=invalid(
                INVALID + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified "
                "when BillingMode is PAY_PER_REQUEST"
            ),
            ProvisionedThroughput=UNITS,
        ),
        tables="Hash",
        local="ignores the throughput",
    ),
    case(
        "a table becomes provisioned",
        update(BillingMode="PROVISIONED", ProvisionedThroughput=UNITS),
        described(lambda got: bool(got["ProvisionedThroughput"]["ReadCapacityUnits"] == 1)),
        tables="Hash",
    ),
    case(
        "a table that was on demand keeps a billing summary",
        update(BillingMode="PROVISIONED", ProvisionedThroughput=UNITS),
        described(lambda got: bool(got["BillingModeSummary"]["BillingMode"] == "PROVISIONED")),
        tables="Hash",
    ),
    case(
        "a table becomes on demand, with its capacity at zero",
        Step("CreateTable", PROVISIONED),
        update("Paid", BillingMode="PAY_PER_REQUEST"),
        described(
            lambda got: (
                got["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
                and got["ProvisionedThroughput"]["ReadCapacityUnits"] == 0
            ),
            "Paid",
        ),
    ),
    case(
        "every index needs throughput when the table becomes provisioned",
        Step("CreateTable", INDEXED),
        update(
            "Typed",
            invalid(INVALID + "ProvisionedThroughput must be specified for index: byx"),
            BillingMode="PROVISIONED",
            ProvisionedThroughput=UNITS,
        ),
        local=OWN_WORDS,
    ),
    case(
        "throughput changes",
        Step("CreateTable", PROVISIONED),
        update("Paid", ProvisionedThroughput={"ReadCapacityUnits": 3, "WriteCapacityUnits": 2}),
        described(
            lambda got: (
                got["ProvisionedThroughput"]["ReadCapacityUnits"] == 3
                and got["ProvisionedThroughput"]["WriteCapacityUnits"] == 2
            ),
            "Paid",
        ),
    ),
    case(
        "throughput must change",
        Step("CreateTable", PROVISIONED),
        update(
            "Paid",
            invalid(
                "The provisioned throughput for the table will not change. The requested value equals the current "
                "value. Current ReadCapacityUnits provisioned for the table: 1. Requested ReadCapacityUnits: 1. "
                "Current WriteCapacityUnits provisioned for the table: 1. Requested WriteCapacityUnits: 1. "
                "Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits."
            ),
            ProvisionedThroughput=UNITS,
        ),
        local=OWN_WORDS,
    ),
    case(
        "throughput has an upper bound, checked before the table is looked up",
        update(
            "Nowhere",
            invalid("Given value 1000000000001 for ReadCapacityUnits is out of bounds"),
            ProvisionedThroughput=dict.fromkeys(UNITS, 1000000000001),
        ),
        local="looks up the table first",
    ),
    case(
        "an index's throughput changes",
        Step("CreateTable", PAID_INDEX),
        indexes(
            {
                "Update": {
                    "IndexName": "byx",
                    "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 1},
                }
            },
            name="Paid",
        ),
        described(
            lambda got: bool(
                got["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"]["ReadCapacityUnits"] == 5
            ),
            "Paid",
        ),
    ),
    case(
        "a stream is enabled",
        stream(StreamEnabled=True, StreamViewType="NEW_IMAGE"),
        described(
            lambda got: (
                got["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
                and got["LatestStreamArn"].startswith(got["TableArn"] + "/stream/")
            )
        ),
        tables="Hash",
    ),
    case(
        "an enabled stream cannot change its view type",
        stream(StreamEnabled=True, StreamViewType="NEW_IMAGE"),
        stream(
            invalid("Table already has an enabled stream: TableName: Hash"),
            StreamEnabled=True,
            StreamViewType="OLD_IMAGE",
        ),
        tables="Hash",
        local="omits the table's name",
    ),
    case(
        "a stream that is not there cannot be disabled",
        stream(invalid(None), StreamEnabled=False),
        tables="Hash",
    ),
    case("an enabled stream needs a view type", stream(invalid(None), StreamEnabled=True), tables="Hash"),
    case(
        "a disabled stream leaves its ARN behind",
        update("Streamed", StreamSpecification={"StreamEnabled": False}),
        described(lambda got: "StreamSpecification" not in got and "LatestStreamArn" in got, "Streamed"),
        tables="Streamed",
    ),
    case(
        "deletion protection is switched on and off",
        update(DeletionProtectionEnabled=True),
        described(lambda got: got["DeletionProtectionEnabled"] is True),
        update(DeletionProtectionEnabled=False),
        described(lambda got: got["DeletionProtectionEnabled"] is False),
        tables="Hash",
    ),
    # nubo-db/dynoxide 159, 161: captured on 2026-07-24.
    case(
        "on-demand bounds are changed one by one, and lifted with -1",
        update(
            expect=bounds(20, 15), OnDemandThroughput={"MaxReadRequestUnits": 20, "MaxWriteRequestUnits": 15}
        ),
        update(expect=bounds(40, 15), OnDemandThroughput={"MaxReadRequestUnits": 40}),
        update(expect=bounds(-1, 15), OnDemandThroughput={"MaxReadRequestUnits": -1}),
        described(lambda got: bool(got["OnDemandThroughput"] == {"MaxWriteRequestUnits": 15})),
        update(
            expect=invalid(
                f"{INVALID}Requested MaxWriteRequestUnits for OnDemandThroughput for table "
                "is outside of valid range"
            ),
            OnDemandThroughput={"MaxWriteRequestUnits": 0},
        ),
        update(expect=bounds(None, -1), OnDemandThroughput={"MaxWriteRequestUnits": -1}),
        described(lambda got: "OnDemandThroughput" not in got),
        tables="Hash",
        local="does not support on-demand limits",
    ),
    case(
        "a table with provisioned capacity has no on-demand bounds",
        update(OnDemandThroughput={"MaxReadRequestUnits": 20}),
        update(BillingMode="PROVISIONED", ProvisionedThroughput=UNITS),
        described(lambda got: "OnDemandThroughput" not in got),
        update(
            expect=invalid(
                f"{INVALID}MaxReadRequestUnits for OnDemandThroughput cannot be specified when the table "
                "BillingMode is PROVISIONED"
            ),
            OnDemandThroughput={"MaxReadRequestUnits": 0},
        ),
        tables="Hash",
        local="does not support on-demand limits",
    ),
    # ack-api-quirks DDB-TABLE-030, verified on 2026-10-08: the text has not changed. moto has another one,
    # in a test that was not verified on AWS.
    case(
        "a protected table cannot be deleted",
        update(DeletionProtectionEnabled=True),
        Step(
            "DeleteTable",
            {"TableName": "Hash"},
            invalid(
                "Resource cannot be deleted as it is currently protected against deletion. "
                "Disable deletion protection first."
            ),
        ),
        update(DeletionProtectionEnabled=False),
        Step("DeleteTable", {"TableName": "Hash"}),
        tables="Hash",
    ),
    case(
        "a table class changes",
        update(TableClass="STANDARD_INFREQUENT_ACCESS"),
        described(lambda got: bool(got["TableClassSummary"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS")),
        tables="Hash",
        local="does not support table classes",
    ),
]
