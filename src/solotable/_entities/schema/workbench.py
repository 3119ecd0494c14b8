"""Export tables as a data model of NoSQL Workbench, with entities as facets.

A facet is an entity, with its key templates as the aliases of the key. The format has one partition and one
sort attribute for each index, and no local indexes: other indexes are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._entities.keys.access_path import AccessPath

#: The version of the format.
_VERSION = "3.0"
_SERVICE = "Amazon DynamoDB"


def workbench(tables: Iterable[tuple[Table, str]], *, date: str = "") -> dict[str, Any]:
    """Return a data model of these tables; `date` is shown as its time of creation."""
    chosen = list(tables)
    return {
        "ModelName": ", ".join(name for _, name in chosen),
        "ModelMetadata": {
            "Author": "solotable",
            "DateCreated": date,
            "DateLastModified": date,
            "Description": "",
            "AWSService": _SERVICE,
            "Version": _VERSION,
        },
        "DataModel": [_table(table, name) for table, name in chosen],
    }


def left_out(tables: Iterable[Table]) -> list[str]:
    """Return the names of the indexes that the format cannot describe."""
    return [
        index.name
        for table in tables
        for index in table.indexes.values()
        if index.local or len(index.partition) > 1 or len(index.sort) > 1
    ]


def _table(table: Table, name: str) -> dict[str, Any]:
    definition = table.definition(name)
    kinds = {each["AttributeName"]: each["AttributeType"] for each in definition["AttributeDefinitions"]}
    excluded = set(left_out([table]))
    keys = set(table.key_names)
    exported: dict[str, Any] = {
        "TableName": name,
        "KeyAttributes": _key(definition["KeySchema"], kinds),
        "NonKeyAttributes": [
            {"AttributeName": each, "AttributeType": kind}
            for each, kind in _attributes(table, kinds).items()
            if each not in keys
        ],
        "TableFacets": [_facet(plan) for plan in table.plans.values() if not plan.abstract],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": each["IndexName"],
                "KeyAttributes": _key(each["KeySchema"], kinds),
                "Projection": each["Projection"],
            }
            for each in definition.get("GlobalSecondaryIndexes", ())
            if each["IndexName"] not in excluded
        ],
        "TableData": [],
        "DataAccess": {"MySql": {}},
        "BillingMode": definition["BillingMode"],
    }
    return exported


def _key(schema: Iterable[Mapping[str, str]], kinds: Mapping[str, str]) -> dict[str, Any]:
    roles = {"HASH": "PartitionKey", "RANGE": "SortKey"}
    return {
        roles[each["KeyType"]]: {
            "AttributeName": each["AttributeName"],
            "AttributeType": kinds[each["AttributeName"]],
        }
        for each in schema
    }


def _attributes(table: Table, kinds: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes of all items with their types: the tag, fields, index keys, time to live."""
    found: dict[str, str] = {table.tag: "S"} if table.tag is not None else {}
    for plan in table.plans.values():
        for each in plan.attributes.values():
            if each.stored:
                found.setdefault(each.wire, each.kind or "S")
    found |= {name: kind for name, kind in kinds.items() if name not in found}
    if table.ttl is not None:
        found.setdefault(table.ttl, "N")
    return found


def _facet(plan: Plan) -> dict[str, Any]:
    alias = {"PartitionKeyAlias": _template(plan.primary, partition=True)}
    if plan.primary.sort is not None:
        alias["SortKeyAlias"] = _template(plan.primary, partition=False)
    keys = set(plan.table.key_names)
    tag = [] if plan.table.tag is None else [plan.table.tag]
    names = [*tag, *(each.wire for each in plan.attributes.values() if each.stored)]
    names += [name for path in plan.indexes for name in path.derived]
    return {
        "FacetName": plan.name,
        "KeyAttributeAlias": alias,
        "TableData": [],
        "NonKeyAttributes": [each for each in dict.fromkeys(names) if each not in keys],
        "DataAccess": {"MySql": {}},
    }


def _template(path: AccessPath, *, partition: bool) -> str:
    layout = path.partition if partition else path.sort
    assert layout is not None
    return getattr(layout, "shown", None) or "+".join(layout.fields)
