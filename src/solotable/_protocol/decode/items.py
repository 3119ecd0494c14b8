"""Decode GetItem, PutItem, UpdateItem and DeleteItem. The order of checks is DynamoDB's."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from solotable._expressions.ast import Condition, Update
from solotable._expressions.legacy import condition_from_expected, update_from_attribute_updates
from solotable._expressions.prepared.text_cache import TextCache, key_of
from solotable._expressions.syntax.compile import canonical_values, compile_expressions
from solotable._protocol.constraints.attribute_values import canonical_and_size
from solotable._protocol.decode.table_names import table_name
from solotable._protocol.requests import (
    NO_UPDATE,
    DeleteItem,
    GetItem,
    PreparedUpdateItem,
    PutItem,
    UpdateItem,
)
from solotable._values import canonical_item
from solotable.errors import invalid

from .parameters import Members, check_operator, condition_of, expression_check, projection_of

_check_get = expression_check("ProjectionExpression", legacy=("AttributesToGet",))
_check_write = expression_check("ConditionExpression", legacy=("Expected", "ConditionalOperator"))
_LEGACY: Final = ("AttributeUpdates", "Expected", "ConditionalOperator")
_check_update = expression_check("UpdateExpression", "ConditionExpression", legacy=_LEGACY)
_OUTDATED: Final = frozenset(_LEGACY)
#: How many members a request has that needs no further checks: TableName, and Key or Item.
_PLAIN: Final = 2
_templates: Final = TextCache()


def get_item(members: Members) -> GetItem:
    """Decode GetItem."""
    table = table_name(members["TableName"])
    if len(members) == _PLAIN:
        return GetItem(table=table, key=canonical_item(members["Key"]))
    _check_get(members)
    return GetItem(
        table=table,
        key=canonical_item(members["Key"]),
        consistent=members.get("ConsistentRead", False),
        projection=projection_of(members),
        capacity=members.get("ReturnConsumedCapacity", "NONE"),
    )


def put_item(members: Members) -> PutItem:
    """Decode PutItem."""
    table = table_name(members["TableName"])
    if len(members) > _PLAIN:
        _check_write(members)
    item, size = canonical_and_size(members["Item"])
    if len(members) == _PLAIN:
        return PutItem(table=table, item=item, size=size)
    _check_returns(members)
    return PutItem(
        table=table, item=item, size=size, condition=condition_of(members), **_report_members(members)
    )


def delete_item(members: Members) -> DeleteItem:
    """Decode DeleteItem."""
    table = table_name(members["TableName"])
    _check_write(members)
    key = canonical_item(members["Key"])
    _check_returns(members)
    return DeleteItem(table=table, key=key, condition=condition_of(members), **_report_members(members))


def update_item(members: Members) -> UpdateItem:
    """Decode UpdateItem; one whose texts have come often gets the template that is cached for them."""
    table = table_name(members["TableName"])
    _check_update(members)
    key = canonical_item(members["Key"])
    if _OUTDATED.isdisjoint(members):
        values = members.get("ExpressionAttributeValues")
        texts = key_of(
            members.get("UpdateExpression"),
            members.get("ConditionExpression"),
            members.get("ExpressionAttributeNames"),
            values,
        )
        template = _templates.find(texts)
        if template:
            return PreparedUpdateItem(
                table=table,
                key=key,
                template=template,
                values=() if values is None else tuple(canonical_values(values).values()),
                **_report_members(members),
            )
        update, condition = _decode_expressions(members, texts if template is None else None)
    else:
        update, condition = _decode_legacy(members)
    return UpdateItem(table=table, key=key, update=update, condition=condition, **_report_members(members))


def _decode_legacy(members: Members) -> tuple[Update, Condition | None]:
    check_operator(members, "Expected")
    update = update_from_attribute_updates(members.get("AttributeUpdates", {}))
    expected = members.get("Expected")
    if expected is None:
        return update, None
    return update, condition_from_expected(expected, members.get("ConditionalOperator"))


def _decode_expressions(members: Members, texts: Hashable) -> tuple[Update, Condition | None]:
    if "UpdateExpression" not in members and "ConditionExpression" not in members:
        return NO_UPDATE, None
    compiled = compile_expressions(
        update=members.get("UpdateExpression"),
        condition=members.get("ConditionExpression"),
        names=members.get("ExpressionAttributeNames"),
        values=members.get("ExpressionAttributeValues"),
    )
    update = compiled.update or NO_UPDATE
    if texts is not None:
        _templates.note(texts, update, compiled.condition, compiled.values)
    return update, compiled.condition


def _check_returns(members: Members) -> None:
    if members.get("ReturnValues", "NONE") not in ("NONE", "ALL_OLD"):
        raise invalid("ReturnValues can only be ALL_OLD or NONE")


def _report_members(members: Members) -> dict[str, Any]:
    return {
        "returns": members.get("ReturnValues", "NONE"),
        "returns_on_failure": members.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD",
        "capacity": members.get("ReturnConsumedCapacity", "NONE"),
        "collection": members.get("ReturnItemCollectionMetrics", "NONE"),
    }
