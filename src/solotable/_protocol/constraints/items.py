"""Constraints of operations on items: single ones, pages, batches, transactions, statements.

The order of members is the order in which DynamoDB reports their constraints.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from solotable._values.limits import (
    LONGEST_STATEMENT,
    LONGEST_TABLE_ARN,
    LONGEST_TABLE_NAME,
    LONGEST_TOKEN,
    MOST_BATCH_GETS,
    MOST_BATCH_STATEMENTS,
    MOST_BATCH_WRITES,
    MOST_SEGMENTS,
    MOST_TRANSACTION_ACTIONS,
    SHORTEST_TABLE_NAME,
)

from .kinds import NAME_PATTERN, Attributes, Constraint, Flag, ListOf, MapOf, Struct, Text, Value, Whole

# DynamoDB: the table may be an ARN; the name is checked later.
TABLE: Final = Text(required=True, shortest=1, longest=LONGEST_TABLE_ARN)
# paritysuite/dynamodb-conformance, captures o_put_empty_table_bad_rv, o_del_empty_table, o_upd_empty_table.
_WRITTEN_TABLE = replace(TABLE, terse=True, alone=True)
INDEX: Final = Text(pattern=NAME_PATTERN, shortest=SHORTEST_TABLE_NAME, longest=LONGEST_TABLE_NAME)
CAPACITY: Final = Text(enum=("INDEXES", "TOTAL", "NONE"))
_COLLECTION = Text(enum=("SIZE", "NONE"))
# DynamoDB: the newer list has a value that does not exist (UPDATE_NEW). UpdateItem reports it alone; captures
# o_put_three_bad_enums, o_del_two_bad_enums, o_upd_two_bad_enums.
_RETURNS = Text(
    enum=("ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"),
    listed=("ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATE_NEW", "NONE"),
)
_ON_FAILURE = Text(enum=("ALL_OLD", "NONE"))
_OPERATOR = Text(enum=("OR", "AND"))
# paritysuite/dynamodb-conformance, tier3 query and deepRequests, 2026-10-09; so it says ALL, not AND.
_NEWER_OPERATOR = replace(_OPERATOR, listed=("ALL", "OR"), alone=True)
_SELECT = Text(enum=("SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"))
_COMPARISONS = (
    "IN",
    "NULL",
    "BETWEEN",
    "LT",
    "NOT_CONTAINS",
    "EQ",
    "GT",
    "NOT_NULL",
    "NE",
    "LE",
    "BEGINS_WITH",
    "GE",
    "CONTAINS",
)
_TEXT = Text()
_FLAG = Flag()
_KEY = Attributes(required=True)
_ITEM = Attributes(required=True, measured=True)
_VALUES = Attributes()
_NAMES = MapOf(member=_TEXT)
_LIMIT = Whole(least=1)
_ATTRIBUTES_TO_GET = ListOf(member=_TEXT, shortest=1, longest=255)
_TOKEN = Text(shortest=1, longest=LONGEST_TOKEN)

_EXPECTED = MapOf(
    member=Struct(
        java="ExpectedAttributeValue",
        members={
            "AttributeValueList": ListOf(member=Value()),
            "ComparisonOperator": Text(enum=_COMPARISONS),
            "Exists": _FLAG,
            "Value": Value(),
        },
    )
)
_UPDATES = MapOf(
    member=Struct(
        java="AttributeValueUpdate",
        members={"Action": Text(enum=("ADD", "DELETE", "PUT")), "Value": Value()},
    )
)
_CONDITIONS = MapOf(
    member=Struct(
        java="Condition",
        members={
            "AttributeValueList": ListOf(member=Value()),
            "ComparisonOperator": Text(required=True, enum=_COMPARISONS),
        },
    )
)

_CONDITIONAL: dict[str, Constraint] = {
    "ConditionExpression": _TEXT,
    "ExpressionAttributeValues": _VALUES,
    "ExpressionAttributeNames": _NAMES,
    "ReturnValuesOnConditionCheckFailure": _ON_FAILURE,
}
_PROJECTED: dict[str, Constraint] = {"ProjectionExpression": _TEXT, "ExpressionAttributeNames": _NAMES}

GET_ITEM = Struct(
    java="GetItemInput",
    members={
        "ReturnConsumedCapacity": CAPACITY,
        "AttributesToGet": _ATTRIBUTES_TO_GET,
        "TableName": TABLE,
        "Key": _KEY,
        "ConsistentRead": _FLAG,
        **_PROJECTED,
    },
)
PUT_ITEM = Struct(
    java="PutItemInput",
    members={
        "ReturnConsumedCapacity": CAPACITY,
        "Item": _ITEM,
        "ConditionalOperator": _NEWER_OPERATOR,
        "Expected": _EXPECTED,
        "ReturnValues": _RETURNS,
        "TableName": _WRITTEN_TABLE,
        "ReturnItemCollectionMetrics": _COLLECTION,
        **_CONDITIONAL,
    },
)
UPDATE_ITEM = Struct(
    java="UpdateItemInput",
    members={
        "ReturnConsumedCapacity": CAPACITY,
        "TableName": _WRITTEN_TABLE,
        "ReturnItemCollectionMetrics": _COLLECTION,
        "ReturnValues": replace(_RETURNS, alone=True),
        "ConditionalOperator": _NEWER_OPERATOR,
        "Key": _KEY,
        "Expected": _EXPECTED,
        "AttributeUpdates": _UPDATES,
        "UpdateExpression": _TEXT,
        **_CONDITIONAL,
    },
)
DELETE_ITEM = Struct(
    java="DeleteItemInput",
    members={
        "ReturnConsumedCapacity": CAPACITY,
        "TableName": _WRITTEN_TABLE,
        "ReturnValues": _RETURNS,
        "ReturnItemCollectionMetrics": _COLLECTION,
        "Key": _KEY,
        "ConditionalOperator": _NEWER_OPERATOR,
        "Expected": _EXPECTED,
        **_CONDITIONAL,
    },
)

_PAGED: dict[str, Constraint] = {
    "Limit": _LIMIT,
    "AttributesToGet": _ATTRIBUTES_TO_GET,
    "ExclusiveStartKey": _VALUES,
    "ConsistentRead": _FLAG,
    "FilterExpression": _TEXT,
    "ExpressionAttributeValues": _VALUES,
    **_PROJECTED,
}
QUERY = Struct(
    java="QueryInput",
    members={
        "Select": _SELECT,
        "IndexName": INDEX,
        "ReturnConsumedCapacity": CAPACITY,
        "QueryFilter": _CONDITIONS,
        "TableName": TABLE,
        "ConditionalOperator": _NEWER_OPERATOR,
        "KeyConditions": _CONDITIONS,
        "ScanIndexForward": _FLAG,
        "KeyConditionExpression": _TEXT,
        **_PAGED,
        # DynamoDB: not so in a Scan; paritysuite/dynamodb-conformance, tier3 query and scan.
        "Limit": Whole(least=1, terse=True),
    },
)
SCAN = Struct(
    java="ScanInput",
    members={
        "Select": _SELECT,
        "IndexName": INDEX,
        "TotalSegments": Whole(least=1, most=MOST_SEGMENTS),
        "ReturnConsumedCapacity": CAPACITY,
        "TableName": TABLE,
        "ConditionalOperator": _OPERATOR,
        "ScanFilter": _CONDITIONS,
        "Segment": Whole(least=0, most=MOST_SEGMENTS - 1),
        **_PAGED,
    },
)

_TABLES = Text(shortest=1, longest=LONGEST_TABLE_ARN)
BATCH_GET_ITEM = Struct(
    java="BatchGetItemInput",
    members={
        "ReturnConsumedCapacity": CAPACITY,
        "RequestItems": MapOf(
            required=True,
            keys=_TABLES,
            member=Struct(
                java="KeysAndAttributes",
                members={
                    "Keys": ListOf(
                        member=Attributes(), required=True, shortest=1, longest=MOST_BATCH_GETS, terse=True
                    ),
                    "AttributesToGet": _ATTRIBUTES_TO_GET,
                    "ConsistentRead": _FLAG,
                    **_PROJECTED,
                },
            ),
        ),
    },
)
BATCH_WRITE_ITEM = Struct(
    java="BatchWriteItemInput",
    members={
        "ReturnConsumedCapacity": CAPACITY,
        "ReturnItemCollectionMetrics": _COLLECTION,
        "RequestItems": MapOf(
            required=True,
            keys=_TABLES,
            values=(1, MOST_BATCH_WRITES),
            member=ListOf(
                member=Struct(
                    java="WriteRequest",
                    members={
                        "DeleteRequest": Struct(java="DeleteRequest", members={"Key": _KEY}),
                        "PutRequest": Struct(java="PutRequest", members={"Item": _ITEM}),
                    },
                )
            ),
        ),
    },
)

TRANSACT_GET_ITEMS = Struct(
    java="TransactGetItemsInput",
    members={
        "ReturnConsumedCapacity": CAPACITY,
        "TransactItems": ListOf(
            required=True,
            shortest=1,
            longest=MOST_TRANSACTION_ACTIONS,
            member=Struct(
                java="TransactGetItem",
                members={
                    "Get": Struct(
                        java="Get",
                        required=True,
                        members={"Key": _KEY, "TableName": TABLE, **_PROJECTED},
                    )
                },
            ),
        ),
    },
)
TRANSACT_WRITE_ITEMS = Struct(
    java="TransactWriteItemsInput",
    members={
        "ClientRequestToken": _TOKEN,
        "ReturnConsumedCapacity": CAPACITY,
        "ReturnItemCollectionMetrics": _COLLECTION,
        "TransactItems": ListOf(
            required=True,
            shortest=1,
            longest=MOST_TRANSACTION_ACTIONS,
            member=Struct(
                java="TransactWriteItem",
                members={
                    "ConditionCheck": Struct(
                        java="ConditionCheck",
                        members={
                            "Key": _KEY,
                            "TableName": TABLE,
                            **_CONDITIONAL,
                            "ConditionExpression": Text(required=True),
                        },
                    ),
                    "Put": Struct(java="Put", members={"Item": _ITEM, "TableName": TABLE, **_CONDITIONAL}),
                    "Delete": Struct(
                        java="Delete", members={"Key": _KEY, "TableName": TABLE, **_CONDITIONAL}
                    ),
                    "Update": Struct(
                        java="Update",
                        members={
                            "Key": _KEY,
                            "UpdateExpression": Text(required=True),
                            "TableName": TABLE,
                            **_CONDITIONAL,
                        },
                    ),
                },
            ),
        ),
    },
)

_STATEMENT: dict[str, Constraint] = {
    "Statement": Text(required=True, shortest=1, longest=LONGEST_STATEMENT),
    "Parameters": ListOf(member=Value(), shortest=1),
    "ReturnValuesOnConditionCheckFailure": _ON_FAILURE,
}
EXECUTE_STATEMENT = Struct(
    java="ExecuteStatementInput",
    members={
        **_STATEMENT,
        "ConsistentRead": _FLAG,
        "NextToken": Text(shortest=1, longest=32_768),
        "ReturnConsumedCapacity": CAPACITY,
        "Limit": _LIMIT,
    },
)
BATCH_EXECUTE_STATEMENT = Struct(
    java="BatchExecuteStatementInput",
    members={
        "ReturnConsumedCapacity": CAPACITY,
        "Statements": ListOf(
            required=True,
            shortest=1,
            longest=MOST_BATCH_STATEMENTS,
            member=Struct(java="BatchStatementRequest", members={**_STATEMENT, "ConsistentRead": _FLAG}),
        ),
    },
)
EXECUTE_TRANSACTION = Struct(
    java="ExecuteTransactionInput",
    members={
        "ReturnConsumedCapacity": CAPACITY,
        "ClientRequestToken": _TOKEN,
        "TransactStatements": ListOf(
            required=True,
            shortest=1,
            longest=MOST_TRANSACTION_ACTIONS,
            member=Struct(java="ParameterizedStatement", members=_STATEMENT),
        ),
    },
)
