"""UpdateTable's changes of global indexes: create, delete, and throughput."""

from __future__ import annotations

from typing import Any

from solotable._values.limits import MOST_GLOBAL_INDEXES, MOST_PROVISIONED_UNITS
from solotable.engines.sqlite.operations.settings.contributor_insights import forget_index
from solotable.engines.sqlite.tables.catalog import Definition, indexes_of
from solotable.errors import ServiceError, TableNotFound, invalid, invalid_parameter

from . import key_schemas
from .create_table import by_name, global_index

_ACTIONS = ("Update", "Create", "Delete")


def check(members: dict[str, Any]) -> None:
    """Reject updates that are invalid for any table."""
    seen: set[str] = set()
    for update in members.get("GlobalSecondaryIndexUpdates", ()):
        actions = [action for action in _ACTIONS if action in update]
        if not actions:
            raise invalid_parameter(
                "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
                "GlobalSecondaryIndexUpdate.Delete must not be null"
            )
        if len(actions) > 1:
            raise invalid_parameter(
                "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object"
            )
        name = update[actions[0]]["IndexName"]
        if name in seen:
            raise invalid_parameter(
                f"Only one global secondary index update per index is allowed simultaneously. Index: {name}"
            )
        seen.add(name)
        if update.get("Update", {}).get("WarmThroughput") == {}:
            raise invalid_parameter(
                "WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond "
                f"specified for index: {name}"
            )


def apply(definition: Definition, members: dict[str, Any]) -> None:
    """Add or drop an index, with the definitions of attributes that only its key uses."""
    updates = [one for one in members.get("GlobalSecondaryIndexUpdates", ()) if "Update" not in one]
    if len(updates) > 1:
        raise _busy()
    for update in updates:
        if "Create" in update:
            _create(definition, update["Create"], members.get("AttributeDefinitions"))
        else:
            _drop(definition, update["Delete"]["IndexName"])


def apply_throughput(
    definition: Definition, members: dict[str, Any], *, before: str, after: str, now_micros: int
) -> None:
    """Change the throughput of indexes; a table that becomes provisioned needs it for all."""
    indexes = {index["IndexName"]: index for index in definition.get("GlobalSecondaryIndexes", ())}
    waiting = dict.fromkeys(indexes)
    for update in members.get("GlobalSecondaryIndexUpdates", ()):
        wanted = update.get("Update")
        if wanted is None:
            waiting.pop(update.get("Delete", {}).get("IndexName"), None)
            continue
        name = wanted["IndexName"]
        if name not in indexes:
            raise _missing(definition, name, "update")
        waiting.pop(name)
        on_demand = after == "PAY_PER_REQUEST"
        _check_update(wanted, on_demand=on_demand, billing_mode_given="BillingMode" in members)
        _update(indexes[name], wanted, on_demand=on_demand, now_micros=now_micros)
    if after == "PROVISIONED" and before != after and waiting:
        raise invalid_parameter(f"ProvisionedThroughput must be specified for index: {','.join(waiting)}")


def apply_units(current: dict[str, Any], wanted: dict[str, int], whose: str, now_micros: int) -> None:
    """Change throughput, and store the time of an increase or decrease."""
    members = ("ReadCapacityUnits", "WriteCapacityUnits")
    if all(current[member] == wanted[member] for member in members):
        # DynamoDB: an index has no article here, a table has one.
        counted = whose if whose.startswith("index") else f"the {whose}"
        compared = " ".join(
            f"Current {member} provisioned for {counted}: {current[member]}. "
            f"Requested {member}: {wanted[member]}."
            for member in members
        )
        raise invalid(
            f"The provisioned throughput for the {whose} will not change. "
            f"The requested value equals the current value. {compared} Refer to the Amazon DynamoDB "
            "Developer Guide for current limits and how to request higher limits."
        )
    now = now_micros // 1000 / 1000
    if any(wanted[member] > current[member] for member in members):
        current["LastIncreaseDateTime"] = now
    if any(wanted[member] < current[member] for member in members):
        current["LastDecreaseDateTime"] = now
        current["NumberOfDecreasesToday"] += 1
    current.update({member: wanted[member] for member in members})


def _check_update(wanted: dict[str, Any], *, on_demand: bool, billing_mode_given: bool) -> None:
    """Reject a change of an index that is invalid for an on-demand table."""
    if on_demand and billing_mode_given and "ProvisionedThroughput" in wanted:
        raise invalid_parameter(
            "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified "
            f"for index: {wanted['IndexName']} when BillingMode is PAY_PER_REQUEST"
        )
    if on_demand and not (wanted.get("OnDemandThroughput") or wanted.get("WarmThroughput")):
        raise invalid_parameter(
            f"The only Updates for index: {wanted['IndexName']} when TableThroughputMode is "
            "PAY_PER_REQUEST can be to OnDemandThroughput, WarmThroughput"
        )


def _update(index: dict[str, Any], wanted: dict[str, Any], *, on_demand: bool, now_micros: int) -> None:
    name = wanted["IndexName"]
    throughput = wanted.get("ProvisionedThroughput")
    if throughput is not None:
        if max(throughput.values()) > MOST_PROVISIONED_UNITS:
            raise invalid(
                "This operation cannot be performed with given input values. "
                "Please contact DynamoDB service team for more info: Action Blocked: IndexUpdate"
            )
        apply_units(index["ProvisionedThroughput"], throughput, f"index {name}", now_micros)
    if "OnDemandThroughput" in wanted:
        key_schemas.check_on_demand(wanted["OnDemandThroughput"], f"index : {name}", on_demand=on_demand)
        index["OnDemandThroughput"] = wanted["OnDemandThroughput"]
    if "WarmThroughput" in wanted:
        index["WarmThroughput"] = index.get("WarmThroughput", {}) | wanted["WarmThroughput"]


def _create(definition: Definition, wanted: dict[str, Any], defined: list[dict[str, str]] | None) -> None:
    indexes = definition.setdefault("GlobalSecondaryIndexes", [])
    name = wanted["IndexName"]
    # DynamoDB: the name is checked before the keys.
    if name in _index_names(definition):
        raise invalid("Attempting to create an index which already exists")
    key_schemas.check_new_index(
        wanted, None if defined is None else [entry["AttributeName"] for entry in defined]
    )
    _check_throughput(definition, wanted)
    if any(index["IndexStatus"] == "CREATING" for index in indexes):
        raise _busy()
    if len(indexes) >= MOST_GLOBAL_INDEXES:
        raise ServiceError(
            "LimitExceededException",
            "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of "
            f"{MOST_GLOBAL_INDEXES}",
        )
    kinds = {entry["AttributeName"]: entry["AttributeType"] for entry in defined or ()}
    _check_types(definition, wanted, kinds)
    known = {entry["AttributeName"] for entry in definition["AttributeDefinitions"]}
    # DynamoDB: definitions that the new index does not use are ignored.
    added = [
        {"AttributeName": attribute, "AttributeType": kinds[attribute]}
        for attribute in dict.fromkeys(key_schemas.names(wanted["KeySchema"]))
        if attribute not in known
    ]
    definition["AttributeDefinitions"] = by_name([*definition["AttributeDefinitions"], *added])
    indexes.append(global_index(wanted, status="CREATING") | {"Backfilling": True})
    key_schemas.check_projected([*indexes, *definition.get("LocalSecondaryIndexes", ())])


def _check_throughput(definition: Definition, wanted: dict[str, Any]) -> None:
    name = wanted["IndexName"]
    on_demand = definition.get("BillingModeSummary", {}).get("BillingMode") == "PAY_PER_REQUEST"
    throughput = wanted.get("ProvisionedThroughput")
    if on_demand and throughput is not None:
        raise invalid_parameter(
            "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified "
            f"for index: {name} when BillingMode is PAY_PER_REQUEST"
        )
    if not on_demand and throughput is None:
        raise invalid_parameter(
            f"Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: {name}"
        )
    key_schemas.check_on_demand(wanted.get("OnDemandThroughput"), f"index : {name}", on_demand=on_demand)


def _check_types(definition: Definition, wanted: dict[str, Any], kinds: dict[str, str]) -> None:
    """Reject another type for a key attribute of the table or of an index."""
    known = {entry["AttributeName"]: entry["AttributeType"] for entry in definition["AttributeDefinitions"]}
    for attribute in key_schemas.names(wanted["KeySchema"]):
        if known.get(attribute, kinds[attribute]) == kinds[attribute]:
            continue
        schemas = [definition["KeySchema"], *(index["KeySchema"] for index in indexes_of(definition))]
        existing = next(schema for schema in schemas if attribute in key_schemas.names(schema))
        raise invalid_parameter(
            "Attributes cannot be redefined. "
            "Please check that your attribute has the same type as previously defined. "
            f"Existing schema: {_schema(existing, known)} New schema: {_schema(wanted['KeySchema'], kinds)}"
        )


def _schema(key_schema: key_schemas.KeySchema, kinds: dict[str, str]) -> str:
    elements: list[str] = []
    for element in key_schema:
        name = element["AttributeName"]
        elements.append(f"SchemaElement: key{{{name}:{kinds[name]}:{element['KeyType']}}}")
    return f"Schema:[{', '.join(elements)}]"


def _drop(definition: Definition, name: str) -> None:
    indexes = definition.get("GlobalSecondaryIndexes", [])
    remaining = [index for index in indexes if index["IndexName"] != name]
    if len(remaining) == len(indexes):
        raise _missing(definition, name, "delete")
    definition["GlobalSecondaryIndexes"] = remaining
    if not remaining:
        del definition["GlobalSecondaryIndexes"]
    forget_index(definition, name)
    used = set(key_schemas.names(definition["KeySchema"]))
    for index in indexes_of(definition):
        used.update(key_schemas.names(index["KeySchema"]))
    definition["AttributeDefinitions"] = [
        entry for entry in definition["AttributeDefinitions"] if entry["AttributeName"] in used
    ]


def _index_names(definition: Definition) -> set[str]:
    return {index["IndexName"] for index in indexes_of(definition)}


def _missing(definition: Definition, name: str, verb: str) -> ServiceError:
    if name in _index_names(definition):
        return invalid(f"Cannot {verb} an index that is not a GlobalSecondaryIndex: {name}")
    return TableNotFound(f"Requested resource not found: Index {name} for table {definition['TableName']}")


def _busy() -> ServiceError:
    return ServiceError(
        "LimitExceededException",
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table",
        retryable=True,
    )
