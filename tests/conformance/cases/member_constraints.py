"""Members that AWS's newer validator reports otherwise since mid-2026, and when it reports nothing else.

The older validator lists every member that breaks a constraint, with its value. A request that lacks a
required member is still reported so.
"""

from __future__ import annotations

from typing import Any

from ..evidence import CONDITIONAL_OPERATOR, EMPTY_TABLE, INFERRED, RETURN_ENUM
from ..harness import Case, Fails, Json, Step, case, invalid, reworded

OWN_WORDS = "has a different text"
KEY: Json = {"pk": {"S": "1"}}
WRITES: dict[str, Json] = {"PutItem": {"Item": KEY}, "DeleteItem": {"Key": KEY}, "UpdateItem": {"Key": KEY}}
EXPECTED: Json = {"a": {"Exists": False}, "b": {"Exists": False}}
IS_NULL: Json = {"ComparisonOperator": "NULL"}
BY_KEY: Json = {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "1"}]}}


def constraint(value: str, member: str, rule: str) -> str:
    return f"Value {value} at '{member}' failed to satisfy constraint: Member must {rule}"


def report(*failures: str) -> str:
    plural = "s" if len(failures) > 1 else ""
    return f"{len(failures)} validation error{plural} detected: {'; '.join(failures)}"


def ask(operation: str, expect: Fails, **members: Any) -> Step:
    return Step(operation, {"TableName": "Hash", **members}, expect)


CAPACITY = constraint("'hi'", "returnConsumedCapacity", "satisfy enum value set: [INDEXES, TOTAL, NONE]")
METRICS = constraint("'hi'", "returnItemCollectionMetrics", "satisfy enum value set: [SIZE, NONE]")
RETURNS = constraint(
    "'hi'", "returnValues", "satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"
)
# It lists a value that there is not.
NEWER_RETURNS = (
    "Failed to satisfy constraint: Member must satisfy enum value set: "
    "[ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"
)
TABLE = constraint("''", "tableName", "have length greater than or equal to 1")
NEWER_TABLE = report(
    "Value at 'TableName' failed to satisfy constraint: Member must have length greater than or equal to 1"
)
NO_KEY = constraint("null", "key", "not be null")
OPERATOR = constraint("'XOR'", "conditionalOperator", "satisfy enum value set: [OR, AND]")
NEWER_OPERATOR = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"
SELECT = constraint(
    "'hi'",
    "select",
    "satisfy enum value set: [SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]",
)

TABLES = [
    *(
        case(
            f"{operation}: an empty table name",
            ask(operation, reworded(report(TABLE), NEWER_TABLE, EMPTY_TABLE), **{**members, "TableName": ""}),
            local=OWN_WORDS,
        )
        for operation, members in WRITES.items()
    ),
    case(
        "PutItem: an empty table name is reported alone",
        ask(
            "PutItem",
            reworded(report(RETURNS, TABLE), NEWER_TABLE, EMPTY_TABLE),
            TableName="",
            Item=KEY,
            ReturnValues="hi",
        ),
        local=OWN_WORDS,
    ),
    case(
        "GetItem: an empty table name",
        ask("GetItem", invalid(report(TABLE)), TableName="", Key=KEY),
        local=OWN_WORDS,
    ),
    case(
        "UpdateItem: an empty table name and no key",
        ask("UpdateItem", invalid(report(TABLE, NO_KEY)), TableName=""),
        local=OWN_WORDS,
    ),
    case(
        "UpdateItem: no key and everything else wrong",
        ask(
            "UpdateItem",
            invalid(report(CAPACITY, TABLE, RETURNS, NO_KEY)),
            TableName="",
            ReturnConsumedCapacity="hi",
            ReturnValues="hi",
        ),
        local=OWN_WORDS,
    ),
]

ENUMS = [
    *(
        case(
            f"{operation}: an unknown ReturnValues",
            ask(
                operation,
                reworded(report(RETURNS), report(NEWER_RETURNS), RETURN_ENUM),
                ReturnValues="hi",
                **members,
            ),
            tables="Hash",
            local=OWN_WORDS,
        )
        for operation, members in WRITES.items()
    ),
    case(
        "PutItem: three unknown values",
        ask(
            "PutItem",
            reworded(
                report(CAPACITY, RETURNS, METRICS), report(CAPACITY, NEWER_RETURNS, METRICS), RETURN_ENUM
            ),
            Item=KEY,
            ReturnValues="hi",
            ReturnConsumedCapacity="hi",
            ReturnItemCollectionMetrics="hi",
        ),
        tables="Hash",
        local=OWN_WORDS,
    ),
    case(
        "DeleteItem: two unknown values",
        ask(
            "DeleteItem",
            reworded(report(CAPACITY, RETURNS), report(CAPACITY, NEWER_RETURNS), RETURN_ENUM),
            Key=KEY,
            ReturnValues="hi",
            ReturnConsumedCapacity="hi",
        ),
        tables="Hash",
        local=OWN_WORDS,
    ),
    case(
        "UpdateItem: of two unknown values, ReturnValues is reported alone",
        ask(
            "UpdateItem",
            reworded(report(CAPACITY, RETURNS), report(NEWER_RETURNS), RETURN_ENUM),
            Key=KEY,
            ReturnValues="hi",
            ReturnConsumedCapacity="hi",
        ),
        tables="Hash",
        local=OWN_WORDS,
    ),
]

OPERATORS = [
    *(
        case(
            f"{operation}: an unknown ConditionalOperator",
            ask(
                operation,
                reworded(report(OPERATOR), report(NEWER_OPERATOR), INFERRED),
                ConditionalOperator="XOR",
                Expected=EXPECTED,
                **members,
            ),
            tables="Hash",
            local="fails with an internal error",
        )
        for operation, members in WRITES.items()
    ),
    case(
        "UpdateItem: an unknown ConditionalOperator and no key",
        ask(
            "UpdateItem",
            invalid(report(OPERATOR, NO_KEY)),
            AttributeUpdates={"x": {"Action": "PUT", "Value": {"S": "1"}}},
            Expected=EXPECTED,
            ConditionalOperator="XOR",
        ),
        tables="Hash",
        local="fails with an internal error",
    ),
    case(
        "Query: an unknown ConditionalOperator is reported without a count, and alone",
        ask(
            "Query",
            reworded(report(SELECT, OPERATOR), NEWER_OPERATOR, CONDITIONAL_OPERATOR),
            KeyConditions=BY_KEY,
            QueryFilter={"b": IS_NULL, "c": IS_NULL},
            ConditionalOperator="XOR",
            Select="hi",
        ),
        tables="Hash",
        local=OWN_WORDS,
    ),
    case(
        "Scan: an unknown ConditionalOperator",
        ask(
            "Scan",
            invalid(report(OPERATOR)),
            ScanFilter={"b": IS_NULL, "c": IS_NULL},
            ConditionalOperator="XOR",
        ),
        tables="Hash",
        local=OWN_WORDS,
    ),
]

CASES: list[Case] = [*TABLES, *ENUMS, *OPERATORS]
