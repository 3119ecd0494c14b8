"""Export tables to CloudFormation, Terraform and DynamoDB requests, as JSON.

The export contains keys, indexes, time to live, the stream and on-demand billing. Add backups, encryption and
tags in the template that includes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from solotable._entities.declare.table import Table

_NOT_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]")
_NOT_IDENTIFIER = re.compile(r"[^A-Za-z0-9_-]")


def requests(tables: Iterable[tuple[Table, str]]) -> dict[str, Any]:
    """Return the requests that create these tables, each under its name in the engine."""
    exported = []
    for table, name in tables:
        entry: dict[str, Any] = {"CreateTable": table.definition(name)}
        if table.ttl is not None:
            entry["UpdateTimeToLive"] = {
                "TableName": name,
                "TimeToLiveSpecification": {"AttributeName": table.ttl, "Enabled": True},
            }
        exported.append(entry)
    return {"Tables": exported}


def cloudformation(tables: Iterable[tuple[Table, str]]) -> dict[str, Any]:
    """Return a CloudFormation template; deleting the stack keeps the tables."""
    resources = {}
    for table, name in tables:
        properties = table.definition(name)
        if stream := properties.get("StreamSpecification"):
            # CloudFormation has no StreamEnabled: a stream that is specified is enabled.
            properties["StreamSpecification"] = {"StreamViewType": stream["StreamViewType"]}
        if table.ttl is not None:
            properties["TimeToLiveSpecification"] = {"AttributeName": table.ttl, "Enabled": True}
        if stream := properties.get("StreamSpecification"):
            # CloudFormation: a stream is enabled by its view type alone.
            properties["StreamSpecification"] = {"StreamViewType": stream["StreamViewType"]}
        resources[_NOT_ALPHANUMERIC.sub("", name) or "Table"] = {
            "Type": "AWS::DynamoDB::Table",
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
            "Properties": properties,
        }
    return {"AWSTemplateFormatVersion": "2010-09-09", "Resources": resources}


def terraform(tables: Iterable[tuple[Table, str]]) -> dict[str, Any]:
    """Return Terraform's JSON syntax for `aws_dynamodb_table`.

    An index with several partition or sort attributes needs `key_schema`, which the AWS provider supports
    from 6.29 on; every other index uses `hash_key` and `range_key`, which every version accepts.
    """
    exported = {}
    for table, name in tables:
        label = _NOT_IDENTIFIER.sub("_", name)
        exported[label if label[:1].isalpha() else f"table_{label}"] = _terraform_table(table, name)
    return {"resource": {"aws_dynamodb_table": exported}}


def needs_key_schema(tables: Iterable[Table]) -> list[str]:
    """Return the names of the indexes that need a recent Terraform provider."""
    return [
        index.name
        for table in tables
        for index in table.indexes.values()
        if len(index.partition) > 1 or len(index.sort) > 1
    ]


def _terraform_table(table: Table, name: str) -> dict[str, Any]:
    wanted = table.definition(name)
    exported: dict[str, Any] = {
        "name": name,
        "billing_mode": wanted["BillingMode"],
        **_keys(wanted["KeySchema"]),
        "attribute": [
            {"name": each["AttributeName"], "type": each["AttributeType"]}
            for each in wanted["AttributeDefinitions"]
        ],
    }
    if indexes := wanted.get("GlobalSecondaryIndexes"):
        exported["global_secondary_index"] = [_index(each, _keys(each["KeySchema"])) for each in indexes]
    if indexes := wanted.get("LocalSecondaryIndexes"):
        exported["local_secondary_index"] = [
            _index(each, {"range_key": _keys(each["KeySchema"])["range_key"]}) for each in indexes
        ]
    if stream := wanted.get("StreamSpecification"):
        exported["stream_enabled"] = True
        exported["stream_view_type"] = stream["StreamViewType"]
    if table.ttl is not None:
        exported["ttl"] = {"attribute_name": table.ttl, "enabled": True}
    return exported


def _keys(schema: list[Mapping[str, str]]) -> dict[str, Any]:
    names_by_role = {
        role: [each["AttributeName"] for each in schema if each["KeyType"] == role]
        for role in ("HASH", "RANGE")
    }
    if any(len(names) > 1 for names in names_by_role.values()):
        return {
            "key_schema": [
                {"attribute_name": each["AttributeName"], "key_type": each["KeyType"]} for each in schema
            ]
        }
    keys = {"hash_key": names_by_role["HASH"][0]}
    return keys | {"range_key": names_by_role["RANGE"][0]} if names_by_role["RANGE"] else keys


def _index(index: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    projection = index["Projection"]
    exported = {"name": index["IndexName"], **keys, "projection_type": projection["ProjectionType"]}
    if "NonKeyAttributes" in projection:
        exported["non_key_attributes"] = projection["NonKeyAttributes"]
    return exported
