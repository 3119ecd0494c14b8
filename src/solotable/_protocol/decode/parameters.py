"""Checks of parameters that exclude or need each other, and the trees of conditions and projections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from solotable._expressions.ast import Condition, Projection
from solotable._expressions.legacy import condition_from_expected, projection_from_attributes
from solotable._expressions.syntax.compile import compile_expressions
from solotable.errors import invalid

Members = dict[str, Any]


def expression_check(*expressions: str, legacy: tuple[str, ...]) -> Callable[[Members], None]:
    """Return the check for mixed expressions and legacy parameters, and for unused placeholders.

    `expressions` are in the order in which DynamoDB lists them.
    """
    # A projection uses no values.
    valued = [name for name in expressions if name != "ProjectionExpression"]
    takers = frozenset(valued)
    newer = frozenset(expressions)
    outdated = frozenset(legacy)
    absent = f"{' and '.join(valued)} {'are' if len(valued) > 1 else 'is'} null"
    # paritysuite/dynamodb-conformance, tier3 putItem and deleteItem, 2026-10-09; no read was captured.
    is_write = "ConditionExpression" in expressions

    def check(members: Members) -> None:
        if newer.isdisjoint(members):
            if "ExpressionAttributeNames" in members:
                raise invalid("ExpressionAttributeNames can only be specified when using expressions")
        elif not outdated.isdisjoint(members):
            present = [name for name in expressions if name in members]
            mixed = [name for name in legacy if name in members]
            # DynamoDB: allows KeyConditions with expressions, except with a KeyConditionExpression.
            if "KeyConditions" in mixed and "KeyConditionExpression" not in present:
                mixed.remove("KeyConditions")
            if mixed:
                raise invalid(
                    "Can not use both expression and non-expression parameters in the same request: "
                    f"Non-expression parameters: {{{', '.join(mixed)}}} "
                    f"Expression parameters: {{{', '.join(present)}}}"
                )
        if "ExpressionAttributeValues" in members and takers.isdisjoint(members):
            fault = "ExpressionAttributeValues can only be specified when using expressions"
            raise invalid(f"{fault}: {absent}", newer=fault if is_write else None)

    return check


def check_operator(members: Members, conditions: str) -> None:
    """Reject a ConditionalOperator for fewer than two conditions."""
    if "ConditionalOperator" in members:
        count = len(members.get(conditions, ()))
        if count == 0:
            raise invalid("ConditionalOperator cannot be used without Filter or Expected")
        if count == 1:
            raise invalid(
                "ConditionalOperator can only be used when Filter or Expected has two or more elements"
            )


def condition_of(members: Members) -> Condition | None:
    """Return the condition of a single write, from Expected or from the expression."""
    expected = members.get("Expected")
    check_operator(members, "Expected")
    if expected is not None:
        return condition_from_expected(expected, members.get("ConditionalOperator"))
    if "ConditionExpression" not in members:
        return None
    return compile_expressions(
        condition=members["ConditionExpression"],
        names=members.get("ExpressionAttributeNames"),
        values=members.get("ExpressionAttributeValues"),
    ).condition


def check_attributes_to_get(members: Members) -> None:
    """Reject an invalid or duplicate name in AttributesToGet."""
    if "AttributesToGet" in members:
        projection_from_attributes(members["AttributesToGet"])


def projection_of(members: Members) -> Projection | None:
    """Return the projection of a read of single items, from AttributesToGet or from the expression."""
    if "AttributesToGet" in members:
        return projection_from_attributes(members["AttributesToGet"])
    if "ProjectionExpression" not in members:
        return None
    return compile_expressions(
        projection=members["ProjectionExpression"], names=members.get("ExpressionAttributeNames")
    ).projection
