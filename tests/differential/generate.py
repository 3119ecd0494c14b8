"""Random requests, most of them valid and some of them broken, from one seed.

They meet in a few keys of a few tables, so that conditions, updates and pages have something to find.
"""

from __future__ import annotations

import random
from typing import Any

from tests.conformance.harness import Json

from .definitions import Definitions
from .expressions import Scope
from .statements import Statements
from .values import ATTRIBUTES, TABLE_NAMES, Values

_INDEXES = {"Indexed": ("gall", "gkeys", "ginc", "lall", "lkeys", "linc"), "Multi": ("multi", "pair")}
_OPERATORS = [
    *("EQ", "NE", "LT", "LE", "GT", "GE", "CONTAINS", "NOT_CONTAINS", "BEGINS_WITH"),
    *("NULL", "NOT_NULL", "IN", "BETWEEN"),
]


class Dice:
    """Makes one request after another; the same seed and answers make the same requests."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._values = Values(self._random)
        self._statements = Statements(self._values)
        self._definitions = Definitions(self._values)
        self._next_page: Json | None = None

    def request(self) -> tuple[str, Json]:
        """Return an operation and its payload."""
        if self._next_page is not None and self._random.random() < 0.8:
            payload, self._next_page = self._next_page, None
            return "Query", payload
        make = self._random.choices(
            [
                self._put,
                self._update,
                self._delete,
                self._get,
                self._query,
                self._scan,
                self._batch_get,
                self._batch_write,
                self._transact_write,
                self._transact_get,
                self._legacy_update,
                self._legacy_query,
                self._legacy_scan,
                self._legacy_write,
                self._execute,
                self._execute_many,
                self._definitions.create,
                self._definitions.update,
            ],
            weights=[7, 9, 3, 3, 8, 4, 1, 2, 3, 1, 3, 2, 1, 2, 4, 2, 1, 1],
        )[0]
        operation, payload = make()
        if self._random.random() < 0.12:
            self._break(payload)
        return operation, payload

    def first_items(self) -> list[tuple[str, Json]]:
        """Return writes that fill the tables."""
        return [
            ("PutItem", {"TableName": table, "Item": self._values.item(table)}) for table in TABLE_NAMES * 4
        ]

    def saw(self, payload: Json, reply: Any) -> None:
        """Learn the answer to a Query, to ask for its next page."""
        if "LastEvaluatedKey" in reply:
            start = dict(reply["LastEvaluatedKey"])
            if self._random.random() < 0.1:
                start[self._random.choice(list(start))] = self._values.value(0)
            self._next_page = payload | {"ExclusiveStartKey": start}

    def _options(self, payload: Json, returns: list[str]) -> None:
        if self._random.random() < 0.5:
            payload["ReturnValues"] = self._random.choice(returns)
        self._counted(payload)
        if "ConditionExpression" in payload and self._random.random() < 0.4:
            payload["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"

    def _counted(self, payload: Json) -> None:
        if self._random.random() < 0.3:
            payload["ReturnConsumedCapacity"] = self._random.choice(["TOTAL", "INDEXES"])
        if self._random.random() < 0.1:
            payload["ReturnItemCollectionMetrics"] = "SIZE"

    def _put(self) -> tuple[str, Json]:
        table = self._values.table()
        payload: Json = {"TableName": table, "Item": self._values.item(table)}
        self._condition(payload, chance=0.4)
        self._options(payload, ["NONE", "ALL_OLD"])
        return "PutItem", payload

    def _delete(self) -> tuple[str, Json]:
        table = self._values.table()
        payload: Json = {"TableName": table, "Key": self._values.key(table)}
        self._condition(payload, chance=0.5)
        self._options(payload, ["NONE", "ALL_OLD"])
        return "DeleteItem", payload

    def _update(self) -> tuple[str, Json]:
        table = self._values.table()
        payload: Json = {"TableName": table, "Key": self._values.key(table)}
        scope = Scope(self._values)
        payload["UpdateExpression"] = scope.update()
        if self._random.random() < 0.4:
            payload["ConditionExpression"] = scope.condition()
        scope.into(payload)
        self._options(payload, ["NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"])
        return "UpdateItem", payload

    def _get(self) -> tuple[str, Json]:
        table = self._values.table()
        payload: Json = {"TableName": table, "Key": self._values.key(table)}
        if self._random.random() < 0.5:
            scope = Scope(self._values)
            payload["ProjectionExpression"] = scope.projection()
            scope.into(payload)
        if self._random.random() < 0.3:
            payload["ConsistentRead"] = True
            payload["ReturnConsumedCapacity"] = "TOTAL"
        return "GetItem", payload

    def _query(self) -> tuple[str, Json]:
        table = self._values.table()
        source = self._random.choice([table, *_INDEXES.get(table, ())])
        scope = Scope(self._values)
        payload: Json = {"TableName": table, "KeyConditionExpression": scope.key_condition(source)}
        if source != table:
            payload["IndexName"] = source
        self._reading(payload, scope)
        if self._random.random() < 0.4:
            payload["Limit"] = self._random.randint(1, 4)
        if self._random.random() < 0.4:
            payload["ScanIndexForward"] = False
        return "Query", payload

    def _scan(self) -> tuple[str, Json]:
        table = self._values.table()
        source = self._random.choice([table, table, *_INDEXES.get(table, ())])
        payload: Json = {"TableName": table}
        if source != table:
            payload["IndexName"] = source
        self._reading(payload, Scope(self._values))
        if self._random.random() < 0.3:
            payload["Limit"] = self._random.randint(1, 4)
        if self._random.random() < 0.2:
            payload["Segment"] = 0
            payload["TotalSegments"] = self._random.randint(1, 4)
        return "Scan", payload

    def _reading(self, payload: Json, scope: Scope) -> None:
        if self._random.random() < 0.4:
            payload["FilterExpression"] = scope.condition()
        if self._random.random() < 0.3:
            payload["ProjectionExpression"] = scope.projection()
        elif self._random.random() < 0.3:
            payload["Select"] = self._random.choice(
                ["COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "SPECIFIC_ATTRIBUTES"]
            )
        if self._random.random() < 0.2:
            payload["ConsistentRead"] = True
        if self._random.random() < 0.3:
            payload["ReturnConsumedCapacity"] = self._random.choice(["TOTAL", "INDEXES"])
        scope.into(payload)

    def _batch_get(self) -> tuple[str, Json]:
        wanted: Json = {}
        for name in self._random.sample(TABLE_NAMES, self._random.randint(1, 2)):
            wanted[name] = {"Keys": [self._values.key(name) for _ in range(self._random.randint(1, 3))]}
            if self._random.random() < 0.4:
                scope = Scope(self._values)
                wanted[name]["ProjectionExpression"] = scope.projection()
                scope.into(wanted[name])
            if self._random.random() < 0.1:
                self._break(wanted[name])
        payload: Json = {"RequestItems": wanted}
        if self._random.random() < 0.3:
            payload["ReturnConsumedCapacity"] = self._random.choice(["TOTAL", "INDEXES"])
        return "BatchGetItem", payload

    def _batch_write(self) -> tuple[str, Json]:
        requests: Json = {}
        for name in self._random.sample(TABLE_NAMES, self._random.randint(1, 2)):
            requests[name] = [self._batch_entry(name) for _ in range(self._random.randint(1, 3))]
        payload: Json = {"RequestItems": requests}
        self._counted(payload)
        return "BatchWriteItem", payload

    def _batch_entry(self, table: str) -> Json:
        entry: Json = (
            {"PutRequest": {"Item": self._values.item(table)}}
            if self._random.random() < 0.7
            else {"DeleteRequest": {"Key": self._values.key(table)}}
        )
        if self._random.random() < 0.03:
            self._break(entry)
        return entry

    def _transact_write(self) -> tuple[str, Json]:
        actions = []
        for _ in range(self._random.randint(1, 3)):
            kind = self._random.choice(["Put", "Update", "Delete", "ConditionCheck"])
            if kind == "ConditionCheck":
                payload: Json = {"TableName": "Indexed", "Key": self._values.key("Indexed")}
                self._condition(payload, chance=1)
            else:
                _, payload = {"Put": self._put, "Update": self._update, "Delete": self._delete}[kind]()
                for member in ("ReturnValues", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics"):
                    payload.pop(member, None)
            actions.append({kind: payload})
        whole: Json = {"TransactItems": actions}
        self._counted(whole)
        return "TransactWriteItems", whole

    def _transact_get(self) -> tuple[str, Json]:
        tables = [self._values.table() for _ in range(self._random.randint(1, 3))]
        gets = [{"Get": {"TableName": table, "Key": self._values.key(table)}} for table in tables]
        return "TransactGetItems", {"TransactItems": gets}

    def _legacy_update(self) -> tuple[str, Json]:
        table = self._values.table()
        payload: Json = {"TableName": table, "Key": self._values.key(table)}
        updates: Json = {}
        for name in self._random.sample(ATTRIBUTES, self._random.randint(1, 3)):
            action = self._random.choice(["PUT", "ADD", "DELETE"])
            updates[name] = {"Action": action}
            if action != "DELETE" or self._random.random() < 0.5:
                updates[name]["Value"] = self._values.fitting(name)
        payload["AttributeUpdates"] = updates
        if self._random.random() < 0.4:
            payload["Expected"] = self._conditions()
            self._either(payload)
        self._options(payload, ["NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"])
        return "UpdateItem", payload

    def _legacy_query(self) -> tuple[str, Json]:
        table = self._random.choice(["Indexed", "NumberSort"])
        key = self._values.key(table)
        conditions: Json = {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [key["pk"]]}}
        if self._random.random() < 0.5:
            operator = self._random.choice(["EQ", "LT", "LE", "GT", "GE", "BEGINS_WITH"])
            conditions["sk"] = {"ComparisonOperator": operator, "AttributeValueList": [key["sk"]]}
        payload: Json = {"TableName": table, "KeyConditions": conditions}
        if self._random.random() < 0.5:
            payload["QueryFilter"] = self._conditions()
            self._either(payload)
        if self._random.random() < 0.2:
            payload["AttributesToGet"] = self._random.sample(ATTRIBUTES, 2)
        return "Query", payload

    def _legacy_scan(self) -> tuple[str, Json]:
        payload: Json = {"TableName": self._values.table(), "ScanFilter": self._conditions()}
        self._either(payload)
        return "Scan", payload

    def _legacy_write(self) -> tuple[str, Json]:
        operation, payload = (self._put if self._random.random() < 0.5 else self._delete)()
        for member in list(payload):
            if member.startswith(("Expression", "Condition")):
                del payload[member]
        payload.pop("ReturnValuesOnConditionCheckFailure", None)
        payload["Expected"] = self._conditions()
        if self._random.random() < 0.3:
            name = self._random.choice(ATTRIBUTES)
            payload["Expected"][name] = self._random.choice(
                [{"Exists": False}, {"Value": self._values.fitting(name)}, {"Exists": True}, {}]
            )
        self._either(payload)
        return operation, payload

    def _either(self, payload: Json) -> None:
        if self._random.random() < 0.3:
            payload["ConditionalOperator"] = self._random.choice(["AND", "OR"])

    def _execute(self) -> tuple[str, Json]:
        statement = self._statements.any()
        self._counted(statement)
        statement.pop("ReturnItemCollectionMetrics", None)
        return "ExecuteStatement", statement

    def _execute_many(self) -> tuple[str, Json]:
        writes = [self._statements.insert, self._statements.update, self._statements.delete]
        kinds = self._random.choices(
            [[self._statements.get], writes, [self._statements.any]], weights=[3, 5, 1]
        )[0]
        statements = [self._random.choice(kinds)() for _ in range(self._random.randint(1, 3))]
        if self._random.random() < 0.5:
            return "BatchExecuteStatement", {"Statements": statements}
        return "ExecuteTransaction", {"TransactStatements": statements}

    def _conditions(self) -> Json:
        conditions: Json = {}
        for name in self._random.sample(ATTRIBUTES, self._random.randint(1, 2)):
            operator = self._random.choice(_OPERATORS)
            count = {"NULL": 0, "NOT_NULL": 0, "BETWEEN": 2, "IN": 2}.get(operator, 1)
            conditions[name] = {"ComparisonOperator": operator}
            if count:
                conditions[name]["AttributeValueList"] = [self._values.fitting(name) for _ in range(count)]
        return conditions

    def _condition(self, payload: Json, *, chance: float) -> None:
        if self._random.random() < chance:
            scope = Scope(self._values)
            payload["ConditionExpression"] = scope.condition()
            scope.into(payload)

    def _break(self, payload: Json) -> None:
        """Damage one member of the request."""
        name = self._random.choice(list(payload))
        match self._random.randrange(5):
            case 0:
                del payload[name]
            case 1:
                payload[name] = self._random.choice([{}, [], "", "x", 0, True, None])
            case 2 if isinstance(payload[name], str):
                place = self._random.randint(0, len(payload[name]))
                payload[name] = (
                    payload[name][:place] + self._random.choice("()=#:., a1") + payload[name][place:]
                )
            case 3 if isinstance(payload[name], dict) and payload[name]:
                inner = self._random.choice(list(payload[name]))
                payload[name][inner] = self._random.choice(
                    [{}, {"S": 1}, {"N": "x"}, {"S": ""}, {"NULL": False}]
                )
            case _:
                payload["ExpressionAttributeValues"] = {":unused": {"S": "a"}}
