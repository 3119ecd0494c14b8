"""Checks of keys, indexes, projections and throughput in CreateTable and UpdateTable.

Each function raises DynamoDB's error or returns nothing. The order of the checks is AWS's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from solotable._values.limits import (
    MOST_GLOBAL_INDEXES,
    MOST_INDEX_KEY_PARTS,
    MOST_LOCAL_INDEXES,
    MOST_PROJECTED_ATTRIBUTES,
    MOST_PROVISIONED_UNITS,
)
from solotable.errors import invalid, invalid_parameter

KeySchema = list[dict[str, str]]


def names(key_schema: KeySchema) -> list[str]:
    """Return the attributes of a key schema in order."""
    return [element["AttributeName"] for element in key_schema]


def first_repeated(texts: Iterable[str]) -> str | None:
    """Return the first text that occurs twice, or None."""
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            return text
        seen.add(text)
    return None


def check_table_keys(members: dict[str, Any]) -> None:
    """Check a table's own key schema and its attribute definitions."""
    defined = [entry["AttributeName"] for entry in members["AttributeDefinitions"]]
    key_schema: KeySchema = members["KeySchema"]
    if len(key_schema) > len(defined):
        raise invalid("Invalid KeySchema: Some index key attribute have no definition")
    _check_defined(key_schema, defined)
    _check_pair(key_schema)
    twice = first_repeated(defined)
    if twice is not None:
        raise invalid(f"Attribute Name is duplicated: {twice}")
    has_indexes = "LocalSecondaryIndexes" in members or "GlobalSecondaryIndexes" in members
    if not has_indexes and len(key_schema) != len(defined):
        raise invalid_parameter(
            "Number of attributes in KeySchema does not exactly match number of attributes "
            "defined in AttributeDefinitions"
        )


def check_local_indexes(members: dict[str, Any]) -> None:
    """Check local indexes: they share the table's partition key and need a sort key."""
    indexes: list[dict[str, Any]] = members["LocalSecondaryIndexes"]
    table: KeySchema = members["KeySchema"]
    defined = _defined(members)
    if not indexes:
        raise invalid_parameter("List of LocalSecondaryIndexes is empty")
    if len(table) != 2:
        raise invalid_parameter(
            "Table KeySchema does not have a range key, "
            "which is required when specifying a LocalSecondaryIndex"
        )
    taken: set[str] = set()
    for index in indexes:
        key_schema: KeySchema = index["KeySchema"]
        _check_defined(key_schema, defined)
        _check_pair(key_schema)
        name = index["IndexName"]
        if len(key_schema) != 2:
            raise invalid_parameter(f"Index KeySchema does not have a range key for index: {name}")
        own, shared = key_schema[0]["AttributeName"], table[0]["AttributeName"]
        if own != shared:
            raise invalid_parameter(
                "Index KeySchema does not have the same leading hash key as table KeySchema "
                f"for index: {name}. index hash key: {own}, table hash key: {shared}"
            )
        check_projection(index["Projection"])
        _take(name, taken)
    if len(indexes) > MOST_LOCAL_INDEXES:
        raise invalid_parameter(
            f"Number of LocalSecondaryIndexes exceeds per-table limit of {MOST_LOCAL_INDEXES}"
        )


def check_global_indexes(members: dict[str, Any]) -> None:
    """Check global indexes of a new table."""
    indexes: list[dict[str, Any]] = members["GlobalSecondaryIndexes"]
    defined = _defined(members)
    on_demand = members.get("BillingMode") == "PAY_PER_REQUEST"
    if not indexes:
        raise invalid_parameter("List of GlobalSecondaryIndexes is empty")
    taken = {index["IndexName"] for index in members.get("LocalSecondaryIndexes", ())}
    for index in indexes:
        name = index["IndexName"]
        _check_defined(index["KeySchema"], defined)
        check_index_keys(index["KeySchema"])
        check_projection(index["Projection"])
        throughput = index.get("ProvisionedThroughput")
        if on_demand and throughput is not None:
            raise invalid_parameter(
                f"ProvisionedThroughput should not be specified for index: {name} "
                "when BillingMode is PAY_PER_REQUEST"
            )
        if not on_demand and throughput is None:
            raise invalid_parameter(f"ProvisionedThroughput is not specified for index: {name}")
        if throughput is not None:
            check_units(throughput, f" for index {name}")
        check_on_demand(index.get("OnDemandThroughput"), f"index : {name}", on_demand=on_demand, new=True)
        _take(name, taken)
    if len(indexes) > MOST_GLOBAL_INDEXES:
        raise invalid_parameter(
            f"GlobalSecondaryIndex count exceeds the per-table limit of {MOST_GLOBAL_INDEXES}"
        )


def check_definitions_used(members: dict[str, Any]) -> None:
    """Reject definitions that neither the table nor an index uses."""
    defined = [entry["AttributeName"] for entry in members["AttributeDefinitions"]]
    schemas: list[KeySchema] = [
        members["KeySchema"],
        *(index["KeySchema"] for index in members.get("LocalSecondaryIndexes", ())),
        *(index["KeySchema"] for index in members.get("GlobalSecondaryIndexes", ())),
    ]
    used = list(dict.fromkeys(name for schema in schemas for name in names(schema)))
    if len(used) != len(defined):
        raise invalid_parameter(
            "Some AttributeDefinitions are not used. "
            f"AttributeDefinitions: {_listed(defined)}, keys used: {_listed(used)}"
        )


def check_projected(indexes: Iterable[dict[str, Any]]) -> None:
    """Reject indexes that project too many attributes in total."""
    total = sum(len(index["Projection"].get("NonKeyAttributes", ())) for index in indexes)
    if total > MOST_PROJECTED_ATTRIBUTES:
        raise invalid_parameter(
            "Number of NonKeyAttributes across all indexes exceeds the per-table limit of "
            f"{MOST_PROJECTED_ATTRIBUTES}"
        )


def check_new_index(index: dict[str, Any], defined: list[str] | None) -> None:
    """Check an index that is added to a table; the request defines these attributes."""
    if defined is None:
        raise invalid_parameter(f"AttributeDefinitions is not specified for index: {index['IndexName']}")
    if len(index["KeySchema"]) > len(defined):
        raise invalid("Invalid KeySchema: Some index key attribute have no definition")
    _check_defined(index["KeySchema"], defined)
    check_index_keys(index["KeySchema"])
    check_projection(index["Projection"])


def check_index_keys(key_schema: KeySchema) -> None:
    """Check the keys of a global index: up to four partition, then up to four sort attributes."""
    kinds = [element["KeyType"] for element in key_schema]
    if len(key_schema) == 2 and kinds == ["HASH", "RANGE"]:
        _check_pair(key_schema)
        return
    if len(set(names(key_schema))) != len(key_schema):
        raise invalid("The KeySchema contains multiple key attributes with the same name")
    if kinds[0] != "HASH":
        raise invalid("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
    if kinds != sorted(kinds):
        raise invalid_parameter("All HASH key attributes must precede RANGE key attributes in the KeySchema")
    for kind in ("HASH", "RANGE"):
        if kinds.count(kind) > MOST_INDEX_KEY_PARTS:
            raise invalid_parameter(
                f"The KeySchema exceeds the maximum allowed number of {kind} key attributes"
            )


def check_projection(projection: dict[str, Any]) -> None:
    """Reject a projection whose attributes do not match its type."""
    kind = projection.get("ProjectionType")
    included = projection.get("NonKeyAttributes")
    if kind is None:
        raise invalid_parameter("Unknown ProjectionType: null")
    if included is not None and kind != "INCLUDE":
        raise invalid_parameter(f"ProjectionType is {kind}, but NonKeyAttributes is specified")
    if included is None and kind == "INCLUDE":
        raise invalid_parameter("ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
    twice = first_repeated(included or ())
    if twice is not None:
        raise invalid_parameter(f"Duplicate element in NonKeyAttributes: {twice}")


def check_units(throughput: dict[str, int], whose: str = "") -> None:
    """Reject more capacity than the maximum."""
    for member in ("ReadCapacityUnits", "WriteCapacityUnits"):
        if throughput[member] > MOST_PROVISIONED_UNITS:
            raise invalid(f"Given value {throughput[member]} for {member} is out of bounds{whose}")


_PROVISIONED = "the table BillingMode is PROVISIONED"


def check_on_demand(
    maximum: dict[str, int] | None, whose: str, *, on_demand: bool, new: bool = False
) -> None:
    """Reject invalid limits of on-demand capacity, and limits of a provisioned table."""
    for member in ("MaxReadRequestUnits", "MaxWriteRequestUnits"):
        value = (maximum or {}).get(member)
        if value is None:
            continue
        if not on_demand:
            whose_index = "" if whose == "table" else f" for {whose}"
            # DynamoDB: CreateTable has another text for a table; nubo-db/dynoxide 159.
            mode = "table BillingMode is PROVISIONED." if new and not whose_index else _PROVISIONED
            raise invalid_parameter(
                f"{member} for OnDemandThroughput{whose_index} cannot be specified when {mode}"
            )
        # DynamoDB: -1 removes a limit, so it is invalid for a new table.
        if value < 1 and (new or value != -1):
            raise invalid_parameter(
                f"Requested {member} for OnDemandThroughput for {whose} is outside of valid range"
            )


def _defined(members: dict[str, Any]) -> dict[str, None]:
    """Return the defined names in order; a dict for fast look-ups."""
    return dict.fromkeys(entry["AttributeName"] for entry in members["AttributeDefinitions"])


def _check_defined(key_schema: KeySchema, defined: Collection[str]) -> None:
    keys = names(key_schema)
    if not all(key in defined for key in keys):
        raise invalid_parameter(
            "Some index key attributes are not defined in AttributeDefinitions. "
            f"Keys: {_listed(keys)}, AttributeDefinitions: {_listed(defined)}"
        )


def _check_pair(key_schema: KeySchema) -> None:
    keys = names(key_schema)
    if len(keys) > 1 and keys[0] == keys[1]:
        raise invalid("Both the Hash Key and the Range Key element in the KeySchema have the same name")
    if key_schema[0]["KeyType"] != "HASH":
        raise invalid("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
    if len(keys) > 1 and key_schema[1]["KeyType"] != "RANGE":
        raise invalid("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")


def _take(name: str, taken: set[str]) -> None:
    if name in taken:
        raise invalid_parameter(f"Duplicate index name: {name}")
    taken.add(name)


def _listed(texts: Iterable[str]) -> str:
    return f"[{', '.join(texts)}]"
