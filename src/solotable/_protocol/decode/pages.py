"""Decode Query and Scan. The order of checks is DynamoDB's."""

from __future__ import annotations

from typing import Any

from solotable._expressions.ast import Condition, KeyCondition, Projection
from solotable._expressions.legacy import (
    filter_from_conditions,
    key_from_conditions,
    projection_from_attributes,
)
from solotable._expressions.syntax.compile import compile_expressions, compile_key_alone
from solotable._protocol import errors
from solotable._protocol.decode.table_names import table_name
from solotable._protocol.requests import Query, Scan
from solotable._values import Item, canonical
from solotable.errors import ServiceError, invalid

from .parameters import Members, check_attributes_to_get, check_operator, expression_check

_check_query = expression_check(
    "ProjectionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    legacy=("AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions"),
)
_check_scan = expression_check(
    "ProjectionExpression",
    "FilterExpression",
    legacy=("AttributesToGet", "ScanFilter", "ConditionalOperator"),
)
#: Members of a Query that most queries lack: five calls less.
_UNCOMMON = frozenset({"QueryFilter", "ConditionalOperator", "AttributesToGet", "ExclusiveStartKey"})
_OTHER_EXPRESSIONS = frozenset({"FilterExpression", "ProjectionExpression"})
#: Errors for values whose text DynamoDB does not prefix in a starting key.
_UNPREFIXED = ("contains duplicates", "number set", "numeric value", "significant digits", "with magnitude")


def query(members: Members) -> Query:
    """Decode Query."""
    table = table_name(members["TableName"])
    _check_query(members)
    legacy_filter = start = None
    if not _UNCOMMON.isdisjoint(members):
        check_operator(members, "QueryFilter")
        legacy_filter = _legacy_filter(members, "QueryFilter")
        check_attributes_to_get(members)
        start = _decode_start(members)
    if "KeyConditions" not in members and "KeyConditionExpression" not in members:
        raise invalid(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."
        )
    _check_select(members)
    key, condition, projection = _compile_expressions(members)
    legacy = "KeyConditionExpression" not in members
    if legacy:
        conditions = members["KeyConditions"]
        key = key_from_conditions(conditions)
        # DynamoDB: only an index may have more than two key attributes; the engine checks it.
        if not conditions or (len(conditions) > 2 and "IndexName" not in members):
            raise errors.too_many_conditions()
    return Query(
        table=table,
        key=key or (),
        filter=legacy_filter or condition,
        projection=projection,
        start=start,
        forward=members.get("ScanIndexForward", True),
        legacy=legacy,
        **_page_members(members),
    )


def scan(members: Members) -> Scan:
    """Decode Scan."""
    table = table_name(members["TableName"])
    _check_scan(members)
    check_attributes_to_get(members)
    check_operator(members, "ScanFilter")
    legacy_filter = _legacy_filter(members, "ScanFilter")
    start = _decode_start(members)
    _check_segments(members)
    _check_select(members)
    _, condition, projection = _compile_expressions(members)
    return Scan(
        table=table,
        filter=legacy_filter or condition,
        projection=projection,
        start=start,
        segment=members.get("Segment"),
        segments=members.get("TotalSegments"),
        legacy="ScanFilter" in members,
        **_page_members(members),
    )


def _page_members(members: Members) -> dict[str, Any]:
    return {
        "index": members.get("IndexName"),
        "select": members.get("Select"),
        "limit": members.get("Limit"),
        "consistent": members.get("ConsistentRead", False),
        "capacity": members.get("ReturnConsumedCapacity", "NONE"),
    }


def _compile_expressions(members: Members) -> tuple[KeyCondition | None, Condition | None, Projection | None]:
    projection = None
    if "AttributesToGet" in members:
        projection = projection_from_attributes(members["AttributesToGet"])
    names, values = members.get("ExpressionAttributeNames"), members.get("ExpressionAttributeValues")
    if _OTHER_EXPRESSIONS.isdisjoint(members):
        text = members.get("KeyConditionExpression")
        return None if text is None else compile_key_alone(text, names, values), None, projection
    compiled = compile_expressions(
        key=members.get("KeyConditionExpression"),
        filter=members.get("FilterExpression"),
        projection=members.get("ProjectionExpression"),
        names=names,
        values=values,
    )
    if compiled.projection is not None:
        projection = compiled.projection
    return compiled.key, compiled.filter, projection


def _legacy_filter(members: Members, parameter: str) -> Condition | None:
    conditions = members.get(parameter)
    if not conditions:
        return None
    return filter_from_conditions(conditions, members.get("ConditionalOperator"))


def _decode_start(members: Members) -> Item | None:
    key = members.get("ExclusiveStartKey")
    if key is None:
        return None
    try:
        return {name: canonical(value) for name, value in key.items()}
    except ServiceError as rejected:
        if any(part in rejected.message for part in _UNPREFIXED):
            raise
        raise invalid(f"The provided starting key is invalid: {rejected.message}") from None


def _check_segments(members: Members) -> None:
    segment, total = members.get("Segment"), members.get("TotalSegments")
    if segment is not None and total is None:
        raise invalid(
            "The TotalSegments parameter is required but was not present in the request "
            "when Segment parameter is present"
        )
    if total is None:
        return
    if segment is None:
        raise invalid(
            "The Segment parameter is required but was not present in the request "
            "when parameter TotalSegments is present"
        )
    if segment >= total:
        raise invalid(
            "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
            f"Segment: {segment} is not less than TotalSegments: {total}"
        )


def _check_select(members: Members) -> None:
    select = members.get("Select")
    if select is None:
        return
    given = next((name for name in ("AttributesToGet", "ProjectionExpression") if name in members), None)
    if select == "SPECIFIC_ATTRIBUTES":
        if given is None:
            raise invalid(
                "Must specify the AttributesToGet or ProjectionExpression when choosing to get "
                "SPECIFIC_ATTRIBUTES",
                family="select",
            )
        return
    if given is not None:
        wanted = "only the Count" if select == "COUNT" else select
        raise invalid(f"Cannot specify the {given} when choosing to get {wanted}", family="select")
    if select == "ALL_PROJECTED_ATTRIBUTES" and "IndexName" not in members:
        raise invalid(
            "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName", family="select"
        )
