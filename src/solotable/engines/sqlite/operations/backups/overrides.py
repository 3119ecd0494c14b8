"""The settings that a restore may override: billing, throughput, indexes, encryption."""

from __future__ import annotations

from typing import Any

from solotable.engines.sqlite.operations.tables import key_schemas
from solotable.engines.sqlite.operations.tables.create_table import (
    NO_UNITS,
    check_encryption,
    encryption_description,
    global_index,
)
from solotable.engines.sqlite.tables.catalog import Definition, indexes_of
from solotable.errors import invalid, invalid_parameter

_NEW_INDEX = (
    "Index {name} does not match a secondary index that existed in the source table and cannot be created "
    "during the restore operation"
)


def apply_overrides(definition: Definition, members: dict[str, Any]) -> None:
    """Change the definition of a restored table as the request asks."""
    _apply_billing(definition, members)
    _apply_indexes(definition, members)
    if "SSESpecificationOverride" in members:
        encryption = members["SSESpecificationOverride"]
        check_encryption(encryption)
        description = encryption_description(encryption)
        definition.pop("SSEDescription", None)
        if description is not None:
            definition["SSEDescription"] = description


def _apply_billing(definition: Definition, members: dict[str, Any]) -> None:
    summary = definition.get("BillingModeSummary", {"BillingMode": "PROVISIONED"})
    before = summary["BillingMode"]
    after = members.get("BillingModeOverride", before)
    throughput = members.get("ProvisionedThroughputOverride")
    if throughput is not None and after != "PROVISIONED":
        raise invalid("Cannot override ProvisionedThroughput unless BillingMode is PROVISIONED")
    if "BillingModeOverride" in members and after == "PROVISIONED" and throughput is None:
        raise invalid("Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED")
    if throughput is not None:
        key_schemas.check_units(throughput)
        definition["ProvisionedThroughput"] = NO_UNITS | throughput
    maximum = members.get("OnDemandThroughputOverride")
    key_schemas.check_on_demand(maximum, "table", on_demand=after == "PAY_PER_REQUEST", new=True)
    if maximum is not None:
        definition["OnDemandThroughput"] = maximum
    if after == "PROVISIONED":
        definition.pop("OnDemandThroughput", None)
        definition.pop("BillingModeSummary", None)
    elif after != before:
        definition["BillingModeSummary"] = {
            "BillingMode": after,
            "LastUpdateToPayPerRequestDateTime": definition["CreationDateTime"],
        }
        definition["ProvisionedThroughput"] = dict(NO_UNITS)
        for index in definition.get("GlobalSecondaryIndexes", ()):
            index["ProvisionedThroughput"] = dict(NO_UNITS)


def _apply_indexes(definition: Definition, members: dict[str, Any]) -> None:
    for member, override in (
        ("GlobalSecondaryIndexes", "GlobalSecondaryIndexOverride"),
        ("LocalSecondaryIndexes", "LocalSecondaryIndexOverride"),
    ):
        if override not in members:
            continue
        # DynamoDB: an empty list restores no index; without the member, all are restored.
        found = [_match(index, definition.get(member, [])) for index in members[override]]
        definition.pop(member, None)
        if found:
            definition[member] = found
    names = [index["IndexName"] for index in indexes_of(definition)]
    for name in names:
        if names.count(name) > 1:
            raise invalid_parameter(f"Duplicate index name: {name}")
    used = {element["AttributeName"] for element in definition["KeySchema"]}
    for index in indexes_of(definition):
        used.update(element["AttributeName"] for element in index["KeySchema"])
    definition["AttributeDefinitions"] = [
        each for each in definition["AttributeDefinitions"] if each["AttributeName"] in used
    ]


def _match(index: dict[str, Any], sources: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an index of the source with the name and throughput of the request."""
    for source in sources:
        if source["KeySchema"] != index["KeySchema"] or _projection(source) != _projection(index):
            continue
        if "IndexStatus" not in source:
            return source | {"IndexName": index["IndexName"]}
        asked = {"ProvisionedThroughput": source["ProvisionedThroughput"]} | index
        return global_index(asked, status="ACTIVE")
    raise invalid(_NEW_INDEX.format(name=index["IndexName"]))


def _projection(index: dict[str, Any]) -> tuple[Any, ...]:
    projection = index["Projection"]
    return (projection.get("ProjectionType"), sorted(projection.get("NonKeyAttributes", ())))
