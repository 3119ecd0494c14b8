"""Parts of AWS's API that solotable lacks: each is rejected by its name, never dropped without a word.

These cases state what solotable does; AWS has all of it. DynamoDB Local knows none of the operations.
"""

from __future__ import annotations

from solotable._protocol.operations import UNSUPPORTED

from ..harness import Case, Fails, Json, Step, case, invalid

LOCAL = "has a different text"


def text(what: str) -> str:
    return f"{what} is not supported by solotable; docs/reference/differences.md lists what is."


HASH: Json = {
    "TableName": "Fresh",
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
}
MEMBERS: list[tuple[str, str, object]] = [
    ("CreateTable", "GlobalTableSourceArn", "arn:aws:dynamodb:us-east-1:000000000000:table/Source"),
    ("CreateTable", "GlobalTableSettingsReplicationMode", "ENABLED"),
    ("CreateTable", "VectorIndexes", []),
    ("UpdateTable", "ReplicaUpdates", [{"Create": {"RegionName": "eu-west-1"}}]),
    ("UpdateTable", "MultiRegionConsistency", "STRONG"),
    ("UpdateTable", "GlobalTableWitnessUpdates", [{"Create": {"RegionName": "eu-west-1"}}]),
    ("UpdateTable", "GlobalTableSettingsReplicationMode", "ENABLED"),
    ("UpdateTable", "DisassociationProtectionEnabled", True),
    ("UpdateTable", "VectorIndexUpdates", []),
]

CASES: list[Case] = [
    *(
        case(
            f"{operation} is not supported",
            Step(operation, {}, Fails("UnknownOperationException", text(operation))),
            local=LOCAL,
        )
        for operation in sorted(UNSUPPORTED)
    ),
    *(
        case(
            f"{member} of {operation} is not supported",
            Step(
                operation,
                {**(HASH if operation == "CreateTable" else {"TableName": "Hash"}), member: value},
                invalid(text(member)),
            ),
            tables="Hash",
            local=LOCAL,
        )
        for operation, member, value in MEMBERS
    ),
]
