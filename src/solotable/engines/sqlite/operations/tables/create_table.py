"""CreateTable: the checks in AWS's order, then the definition; the table is ACTIVE at once."""

from __future__ import annotations

import sqlite3
import uuid
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from solotable._protocol.constraints.resource_policies import parse_policy
from solotable.engines.sqlite.items import streams
from solotable.engines.sqlite.operations.settings import tags
from solotable.engines.sqlite.operations.settings.resource_policies import new_policy
from solotable.engines.sqlite.tables import catalog
from solotable.engines.sqlite.tables.catalog import Catalog, Definition, Table
from solotable.engines.sqlite.tables.definitions import ACCOUNT, REGION
from solotable.engines.sqlite.tables.descriptions import describe
from solotable.errors import ServiceError, invalid, invalid_parameter

from . import key_schemas

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

NO_UNITS = {"NumberOfDecreasesToday": 0, "ReadCapacityUnits": 0, "WriteCapacityUnits": 0}
_CLASSES = ("STANDARD", "STANDARD_INFREQUENT_ACCESS")


def create_table(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Create a table."""
    check_new_table(members)
    name = members["TableName"]

    def run(connection: sqlite3.Connection) -> Table:
        existing = Catalog().load(connection, name)
        if existing is not None and not existing.is_ready:
            raise ServiceError("ResourceInUseException", f"Table is being used: {name}")
        if existing is not None:
            raise ServiceError("ResourceInUseException", f"Table already exists: {name}")
        now = engine.now_micros()
        definition = new_definition(members, now)
        if definition.get("StreamSpecification"):
            streams.enable(connection, definition, now)
        return catalog.add(connection, name, definition)

    try:
        table = engine.database.write(run)
    finally:
        engine.catalog.forget(name)
    description = describe(engine, table)
    indexes = "GlobalSecondaryIndexes"
    pairs = zip(description.get(indexes, ()), members.get(indexes, ()), strict=True)
    for described, asked in ((description, members), *pairs):
        # DynamoDB: warm throughput shows in DescribeTable, and here only where the request asks for it.
        if "WarmThroughput" not in asked:
            del described["WarmThroughput"]
    return {"TableDescription": description}


def check_new_table(members: dict[str, Any]) -> None:
    """Check the members of CreateTable in AWS's order."""
    on_demand = members.get("BillingMode") == "PAY_PER_REQUEST"
    throughput = members.get("ProvisionedThroughput")
    if on_demand and throughput is not None:
        raise invalid_parameter(
            "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified "
            "when BillingMode is PAY_PER_REQUEST"
        )
    if not on_demand and throughput is None:
        raise invalid_parameter(
            "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"
        )
    if throughput is not None:
        key_schemas.check_units(throughput)
    key_schemas.check_on_demand(members.get("OnDemandThroughput"), "table", on_demand=on_demand, new=True)
    key_schemas.check_table_keys(members)
    if "LocalSecondaryIndexes" in members:
        key_schemas.check_local_indexes(members)
    if "GlobalSecondaryIndexes" in members:
        key_schemas.check_global_indexes(members)
    key_schemas.check_definitions_used(members)
    key_schemas.check_projected(
        [*members.get("LocalSecondaryIndexes", ()), *members.get("GlobalSecondaryIndexes", ())]
    )
    check_class(members.get("TableClass"))
    _check_stream(members.get("StreamSpecification"))
    check_encryption(members.get("SSESpecification"))
    tags.check_tags(members.get("Tags", []))
    if "ResourcePolicy" in members:
        parse_policy(members["ResourcePolicy"])


def _check_stream(stream: dict[str, Any] | None) -> None:
    if stream is None:
        return
    if stream["StreamEnabled"] and "StreamViewType" not in stream:
        raise invalid_parameter("Table is being created with a stream enabled, UpdateViewType is required")
    if not stream["StreamEnabled"] and "StreamViewType" in stream:
        raise invalid_parameter(
            "Table is being created with a stream disabled, UpdateViewType should not be specified"
        )


def check_class(table_class: str | None) -> None:
    """Reject an unknown table class."""
    if table_class is not None and table_class not in _CLASSES:
        # DynamoDB: this error differs from that of other enums.
        raise invalid(
            "Invalid table-class parameter provided. Please try again with a valid table-class value: "
            f"[{', '.join(_CLASSES)}]."
        )


def check_encryption(encryption: dict[str, Any] | None) -> None:
    """Reject a key or a type without customer-managed encryption."""
    if encryption is None:
        return
    if not encryption.get("Enabled", "SSEType" in encryption):
        for member in ("SSEType", "KMSMasterKeyId"):
            if member in encryption:
                raise invalid_parameter(f"{member} can not be specified if Enabled is false")
    if encryption.get("SSEType") == "AES256":
        raise invalid_parameter("SSEType AES256 is not supported")


def encryption_description(encryption: dict[str, Any] | None) -> dict[str, Any] | None:
    """Describe encryption with a customer's key; None for AWS's default. This engine does not encrypt."""
    if not (encryption or {}).get("Enabled", "SSEType" in (encryption or {})):
        return None
    key = (encryption or {}).get("KMSMasterKeyId", "alias/aws/dynamodb")
    arn = key if key.startswith("arn:") else f"arn:aws:kms:{REGION}:{ACCOUNT}:{_key_path(key)}"
    return {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": arn}


def _key_path(key: str) -> str:
    return key if "/" in key else f"key/{key}"


def new_definition(members: dict[str, Any], now_micros: int) -> Definition:
    """Return the definition of a new table."""
    now = now_micros // 1000 / 1000
    definition: Definition = {
        "TableName": members["TableName"],
        "TableId": str(uuid.uuid4()),
        "CreationDateTime": now,
        "AttributeDefinitions": by_name(members["AttributeDefinitions"]),
        "KeySchema": members["KeySchema"],
        "ProvisionedThroughput": NO_UNITS | members.get("ProvisionedThroughput", {}),
        "DeletionProtectionEnabled": members.get("DeletionProtectionEnabled", False),
        "Tags": members.get("Tags", []),
    }
    if members.get("BillingMode") == "PAY_PER_REQUEST":
        definition["BillingModeSummary"] = {
            "BillingMode": "PAY_PER_REQUEST",
            "LastUpdateToPayPerRequestDateTime": now,
        }
    if "LocalSecondaryIndexes" in members:
        definition["LocalSecondaryIndexes"] = [
            index | {"Projection": _projection(index["Projection"])}
            for index in members["LocalSecondaryIndexes"]
        ]
    if "GlobalSecondaryIndexes" in members:
        definition["GlobalSecondaryIndexes"] = [
            global_index(index, status="ACTIVE") for index in members["GlobalSecondaryIndexes"]
        ]
    if members.get("StreamSpecification", {}).get("StreamEnabled"):
        definition["StreamSpecification"] = members["StreamSpecification"]
    encryption = encryption_description(members.get("SSESpecification"))
    if encryption is not None:
        definition["SSEDescription"] = encryption
    if "TableClass" in members:
        definition["TableClassSummary"] = {"TableClass": members["TableClass"]}
    for member in ("OnDemandThroughput", "WarmThroughput"):
        if member in members:
            definition[member] = members[member]
    if "ResourcePolicy" in members:
        definition["ResourcePolicies"] = {"": new_policy(now_micros, parse_policy(members["ResourcePolicy"]))}
    return definition


def by_name(definitions: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return attribute definitions in the order of DynamoDB's descriptions."""
    return sorted(definitions, key=itemgetter("AttributeName"))


def _projection(projection: dict[str, Any]) -> dict[str, Any]:
    # DynamoDB: described in the order of their names, not of the request.
    if "NonKeyAttributes" not in projection:
        return projection
    return projection | {"NonKeyAttributes": sorted(projection["NonKeyAttributes"])}


def global_index(index: dict[str, Any], *, status: str) -> dict[str, Any]:
    """Return the definition of a global index of a request."""
    entry = {
        "IndexName": index["IndexName"],
        "KeySchema": index["KeySchema"],
        "Projection": _projection(index["Projection"]),
        "IndexStatus": status,
        "ProvisionedThroughput": NO_UNITS | index.get("ProvisionedThroughput", {}),
    }
    for member in ("OnDemandThroughput", "WarmThroughput"):
        if member in index:
            entry[member] = index[member]
    return entry
