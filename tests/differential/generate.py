"""Random requests, most of them valid and some of them broken, from one seed.

They meet in a few keys of two tables, so that conditions, updates and pages have something to find.
"""

from __future__ import annotations

import random
from typing import Any

from tests.conformance.tables import TABLES

Json = dict[str, Any]

TABLE_NAMES = ("Indexed", "NumberSort")
_ATTRIBUTES = ["x", "y", "z", "gp", "gs", "ls", "ln", "m", "l", "ss", "ns", "missing", "name", "status"]
_FUNCTIONS = ["attribute_exists", "attribute_not_exists"]
_COMPARATORS = ["=", "<>", "<", "<=", ">", ">="]
_ADDED: list[Json] = [{"N": "1"}, {"N": "-0.5"}, {"SS": ["b", "c"]}, {"NS": ["2", "3"]}]
_DELETED: list[Json] = [{"SS": ["a"]}, {"NS": ["1", "2"]}]
_TYPES = ["S", "N", "B", "SS", "NS", "BS", "M", "L", "NULL", "BOOL"]


class Dice:
    """Makes one request after another; the same seed makes the same requests."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def request(self) -> tuple[str, Json]:
        """Return an operation and its payload."""
        make = self.random.choices(
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
            ],
            weights=[6, 8, 3, 3, 7, 3, 1, 1, 3, 1, 3, 2],
        )[0]
        operation, payload = make()
        if self.random.random() < 0.12:
            self._break(payload)
        return operation, payload

    # Values -------------------------------------------------------------------------------------

    def value(self, depth: int = 2) -> Json:
        kinds = ["S", "N", "S", "N", "B", "BOOL", "NULL", "SS", "NS"] + (["M", "L"] if depth else [])
        kind = self.random.choice(kinds)
        match kind:
            case "S":
                return {"S": self.text()}
            case "N":
                return {"N": self.number()}
            case "B":
                return {"B": self.random.choice(["", "YQ==", "YWI=", "/w==", "AAA="])}
            case "BOOL":
                return {"BOOL": self.random.random() < 0.5}
            case "NULL":
                return {"NULL": True}
            case "SS":
                return {"SS": self.random.sample(["a", "b", "ab", "", "é"], self.random.randint(1, 3))}
            case "NS":
                return {"NS": self.random.sample(["1", "2", "10", "-1", "0.5"], self.random.randint(1, 3))}
            case "L":
                return {"L": [self.value(depth - 1) for _ in range(self.random.randint(0, 3))]}
            case _:
                names = self.random.sample(["a", "b", "c"], self.random.randint(0, 3))
                return {"M": {name: self.value(depth - 1) for name in names}}

    def text(self) -> str:
        return self.random.choice(["", "a", "b", "ab", "abc", "B", "é", "1", "10", "a%", "a_"])

    def number(self) -> str:
        return self.random.choice(
            ["0", "1", "-1", "2", "10", "0.5", "1e2", "-0", "007", "1E-130", "9" * 38, "1E125"]
        )

    # Keys and items -----------------------------------------------------------------------------

    def table(self) -> str:
        return self.random.choice(TABLE_NAMES)

    def key(self, table: str) -> Json:
        sort = {"S": self.random.choice(["a", "ab", "b", "c"])}
        if table == "NumberSort":
            sort = {"N": self.random.choice(["-1", "0", "1", "1.0", "10", "2"])}
        return {"pk": {"S": self.random.choice(["p", "q"])}, "sk": sort}

    def item(self, table: str) -> Json:
        item = self.key(table)
        for name in self.random.sample(_ATTRIBUTES, self.random.randint(0, 5)):
            item[name] = self._fitting(name)
        return item

    def _fitting(self, name: str) -> Json:
        """Usually the type that the attribute's name promises."""
        if self.random.random() < 0.1:
            return self.value()
        match name:
            case "gp" | "ls" | "x":
                return {"S": self.text() if name == "x" else self.text() or "g"}
            case "gs" | "ln" | "y":
                return {"N": self.number()}
            case "m":
                return {"M": {"a": self.value(1), "b": {"N": "1"}, "c": {"M": {"d": self.value(0)}}}}
            case "l":
                return {"L": [self.value(1) for _ in range(self.random.randint(0, 4))]}
            case "ss":
                return {"SS": ["a", "b"]}
            case "ns":
                return {"NS": ["1", "2"]}
            case _:
                return self.value()

    # Operations ---------------------------------------------------------------------------------

    def _options(self, payload: Json, returns: list[str]) -> None:
        if self.random.random() < 0.5:
            payload["ReturnValues"] = self.random.choice(returns)
        if self.random.random() < 0.3:
            payload["ReturnConsumedCapacity"] = self.random.choice(["TOTAL", "INDEXES"])
        if "ConditionExpression" in payload and self.random.random() < 0.4:
            payload["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"

    def _put(self) -> tuple[str, Json]:
        table = self.table()
        payload: Json = {"TableName": table, "Item": self.item(table)}
        self._condition(payload, chance=0.4)
        self._options(payload, ["NONE", "ALL_OLD"])
        return "PutItem", payload

    def _delete(self) -> tuple[str, Json]:
        table = self.table()
        payload: Json = {"TableName": table, "Key": self.key(table)}
        self._condition(payload, chance=0.5)
        self._options(payload, ["NONE", "ALL_OLD"])
        return "DeleteItem", payload

    def _update(self) -> tuple[str, Json]:
        table = self.table()
        payload: Json = {"TableName": table, "Key": self.key(table)}
        scope = Scope(self)
        payload["UpdateExpression"] = scope.update()
        if self.random.random() < 0.4:
            payload["ConditionExpression"] = scope.condition()
        scope.into(payload)
        self._options(payload, ["NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"])
        return "UpdateItem", payload

    def _get(self) -> tuple[str, Json]:
        table = self.table()
        payload: Json = {"TableName": table, "Key": self.key(table)}
        if self.random.random() < 0.5:
            scope = Scope(self)
            payload["ProjectionExpression"] = scope.projection()
            scope.into(payload)
        if self.random.random() < 0.3:
            payload["ConsistentRead"] = True
            payload["ReturnConsumedCapacity"] = "TOTAL"
        return "GetItem", payload

    def _query(self) -> tuple[str, Json]:
        index = self.random.choice([None, "gall", "gkeys", "ginc", "lall", "lkeys", "linc"])
        table = "Indexed" if index else self.table()
        scope = Scope(self)
        payload: Json = {"TableName": table, "KeyConditionExpression": scope.key_condition(table, index)}
        if index:
            payload["IndexName"] = index
        self._reading(payload, scope)
        if self.random.random() < 0.4:
            payload["ScanIndexForward"] = False
        return "Query", payload

    def _scan(self) -> tuple[str, Json]:
        index = self.random.choice([None, None, "gall", "gkeys", "ginc", "lall"])
        payload: Json = {"TableName": "Indexed" if index else self.table()}
        if index:
            payload["IndexName"] = index
        self._reading(payload, Scope(self), limits=False)
        return "Scan", payload

    def _reading(self, payload: Json, scope: Scope, *, limits: bool = True) -> None:
        if self.random.random() < 0.4:
            payload["FilterExpression"] = scope.condition()
        if self.random.random() < 0.3:
            payload["ProjectionExpression"] = scope.projection()
        elif self.random.random() < 0.3:
            payload["Select"] = self.random.choice(
                ["COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "SPECIFIC_ATTRIBUTES"]
            )
        if limits and self.random.random() < 0.4:
            payload["Limit"] = self.random.randint(1, 4)
        if self.random.random() < 0.2:
            payload["ConsistentRead"] = True
        if self.random.random() < 0.3:
            payload["ReturnConsumedCapacity"] = self.random.choice(["TOTAL", "INDEXES"])
        scope.into(payload)

    def _batch_get(self) -> tuple[str, Json]:
        keys = {
            name: {"Keys": [self.key(name) for _ in range(self.random.randint(1, 3))]} for name in TABLE_NAMES
        }
        return "BatchGetItem", {"RequestItems": keys}

    def _batch_write(self) -> tuple[str, Json]:
        entries = [
            {"PutRequest": {"Item": self.item("Indexed")}}
            if self.random.random() < 0.7
            else {"DeleteRequest": {"Key": self.key("Indexed")}}
            for _ in range(self.random.randint(1, 3))
        ]
        return "BatchWriteItem", {"RequestItems": {"Indexed": entries}}

    def _transact_write(self) -> tuple[str, Json]:
        actions = []
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.choice(["Put", "Update", "Delete", "ConditionCheck"])
            if kind == "ConditionCheck":
                payload: Json = {"TableName": "Indexed", "Key": self.key("Indexed")}
                self._condition(payload, chance=1)
            else:
                _, payload = {"Put": self._put, "Update": self._update, "Delete": self._delete}[kind]()
                payload.pop("ReturnValues", None)
                payload.pop("ReturnConsumedCapacity", None)
            actions.append({kind: payload})
        return "TransactWriteItems", {"TransactItems": actions}

    def _transact_get(self) -> tuple[str, Json]:
        gets = [{"Get": {"TableName": t, "Key": self.key(t)}} for t in TABLE_NAMES]
        return "TransactGetItems", {"TransactItems": gets}

    def _legacy_update(self) -> tuple[str, Json]:
        table = self.table()
        payload: Json = {"TableName": table, "Key": self.key(table)}
        updates: Json = {}
        for name in self.random.sample(_ATTRIBUTES, self.random.randint(1, 3)):
            action = self.random.choice(["PUT", "ADD", "DELETE"])
            updates[name] = {"Action": action}
            if action != "DELETE" or self.random.random() < 0.5:
                updates[name]["Value"] = self._fitting(name)
        payload["AttributeUpdates"] = updates
        if self.random.random() < 0.4:
            payload["Expected"] = self._conditions()
            if self.random.random() < 0.3:
                payload["ConditionalOperator"] = "OR"
        self._options(payload, ["NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"])
        return "UpdateItem", payload

    def _legacy_query(self) -> tuple[str, Json]:
        table = self.table()
        key = self.key(table)
        conditions: Json = {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [key["pk"]]}}
        if self.random.random() < 0.5:
            operator = self.random.choice(["EQ", "LT", "LE", "GT", "GE", "BEGINS_WITH"])
            conditions["sk"] = {"ComparisonOperator": operator, "AttributeValueList": [key["sk"]]}
        payload: Json = {"TableName": table, "KeyConditions": conditions}
        if self.random.random() < 0.5:
            payload["QueryFilter"] = self._conditions()
        return "Query", payload

    def _conditions(self) -> Json:
        conditions: Json = {}
        for name in self.random.sample(_ATTRIBUTES, self.random.randint(1, 2)):
            operator = self.random.choice(
                [
                    "EQ",
                    "NE",
                    "LT",
                    "GE",
                    "CONTAINS",
                    "NOT_CONTAINS",
                    "BEGINS_WITH",
                    "NULL",
                    "NOT_NULL",
                    "IN",
                    "BETWEEN",
                ]
            )
            count = {"NULL": 0, "NOT_NULL": 0, "BETWEEN": 2, "IN": 2}.get(operator, 1)
            conditions[name] = {"ComparisonOperator": operator}
            if count:
                conditions[name]["AttributeValueList"] = [self._fitting(name) for _ in range(count)]
        return conditions

    def _condition(self, payload: Json, *, chance: float) -> None:
        if self.random.random() < chance:
            scope = Scope(self)
            payload["ConditionExpression"] = scope.condition()
            scope.into(payload)

    def _break(self, payload: Json) -> None:
        """Damage one member of the request."""
        name = self.random.choice(list(payload))
        match self.random.randrange(5):
            case 0:
                del payload[name]
            case 1:
                payload[name] = self.random.choice([{}, [], "", "x", 0, True, None])
            case 2 if isinstance(payload[name], str):
                place = self.random.randint(0, len(payload[name]))
                payload[name] = (
                    payload[name][:place] + self.random.choice("()=#:., a1") + payload[name][place:]
                )
            case 3 if isinstance(payload[name], dict) and payload[name]:
                inner = self.random.choice(list(payload[name]))
                payload[name][inner] = self.random.choice(
                    [{}, {"S": 1}, {"N": "x"}, {"S": ""}, {"NULL": False}]
                )
            case _:
                payload["ExpressionAttributeValues"] = {":unused": {"S": "a"}}


class Scope:
    """The placeholders of one request."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._random = dice.random
        self._names: dict[str, str] = {}
        self._values: Json = {}

    def into(self, payload: Json) -> None:
        if self._names:
            payload["ExpressionAttributeNames"] = self._names
        if self._values:
            payload["ExpressionAttributeValues"] = self._values

    def name(self, name: str) -> str:
        placeholder = f"#n{len(self._names)}"
        self._names[placeholder] = name
        return placeholder

    def put(self, value: Json) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = value
        return placeholder

    def path(self) -> str:
        head = self._random.choice(_ATTRIBUTES)
        text = self.name(head) if head in ("name", "status") or self._random.random() < 0.4 else head
        if head == "m" and self._random.random() < 0.7:
            text += self._random.choice([".a", ".b", ".c.d", ".q", "[0]"])
        if head == "l" and self._random.random() < 0.7:
            text += self._random.choice(["[0]", "[1]", "[9]", ".a"])
        return text

    def operand(self) -> str:
        roll = self._random.random()
        if roll < 0.5:
            return self.path()
        if roll < 0.6:
            return f"size({self.path()})"
        return self.put(self._dice.value(1))

    def condition(self, depth: int = 2) -> str:
        roll = self._random.random()
        if depth and roll < 0.25:
            operator = self._random.choice(["AND", "OR"])
            return f"{self.condition(depth - 1)} {operator} {self.condition(depth - 1)}"
        if depth and roll < 0.32:
            return f"NOT {self.condition(depth - 1)}"
        if depth and roll < 0.4:
            return f"({self.condition(depth - 1)})"
        match self._random.randrange(7):
            case 0:
                return f"{self._random.choice(_FUNCTIONS)}({self.path()})"
            case 1:
                return f"attribute_type({self.path()}, {self.put({'S': self._random.choice(_TYPES)})})"
            case 2:
                return f"begins_with({self.path()}, {self.put({'S': self._dice.text()})})"
            case 3:
                return f"contains({self.path()}, {self.operand()})"
            case 4:
                return f"{self.operand()} BETWEEN {self.put({'N': '1'})} AND {self.put({'N': '5'})}"
            case 5:
                return f"{self.path()} IN ({self.operand()}, {self.operand()})"
            case _:
                return f"{self.path()} {self._random.choice(_COMPARATORS)} {self.operand()}"

    def projection(self) -> str:
        return ", ".join(self.path() for _ in range(self._random.randint(1, 3)))

    def update(self) -> str:
        clauses = []
        for clause in self._random.sample(["SET", "REMOVE", "ADD", "DELETE"], self._random.randint(1, 2)):
            actions = [self._action(clause) for _ in range(self._random.randint(1, 2))]
            clauses.append(f"{clause} {', '.join(actions)}")
        return " ".join(clauses)

    def _action(self, clause: str) -> str:
        match clause:
            case "SET":
                return f"{self.path()} = {self._set_value()}"
            case "REMOVE":
                return self.path()
            case "ADD":
                return f"{self.path()} {self.put(self._random.choice(_ADDED))}"
            case _:
                return f"{self.path()} {self.put(self._random.choice(_DELETED))}"

    def _set_value(self) -> str:
        match self._random.randrange(6):
            case 0:
                return f"{self.path()} {self._random.choice('+-')} {self.put({'N': self._dice.number()})}"
            case 1:
                return f"if_not_exists({self.path()}, {self.put(self._dice.value(1))})"
            case 2:
                return f"list_append({self.path()}, {self.put({'L': [self._dice.value(0)]})})"
            case 3:
                return self.path()
            case _:
                return self.put(self._dice.value(1))

    def key_condition(self, table: str, index: str | None) -> str:
        partition, sort, kind = {
            None: ("pk", "sk", "N" if table == "NumberSort" else "S"),
            "gall": ("gp", "gs", "N"),
            "gkeys": ("gp", None, ""),
            "ginc": ("gp", "sk", "S"),
            "lall": ("pk", "ls", "S"),
            "lkeys": ("pk", "ln", "N"),
            "linc": ("pk", "ls", "S"),
        }[index]
        first = self._random.choice(["p", "q"]) if partition == "pk" else self._dice.text() or "a"
        text = f"{partition} = {self.put({'S': first})}"
        if sort is None or self._random.random() < 0.3:
            return text
        return f"{text} AND {self._sort_condition(sort, kind)}"

    def _sort_condition(self, sort: str, kind: str) -> str:
        def value() -> str:
            return self.put({kind: self._dice.number() if kind == "N" else self._dice.text() or "a"})

        match self._random.randrange(4):
            case 0:
                return f"{sort} BETWEEN {value()} AND {value()}"
            case 1 if kind == "S":
                return f"begins_with({sort}, {value()})"
            case _:
                return f"{sort} {self._random.choice(['=', '<', '<=', '>', '>='])} {value()}"


def tables() -> list[Json]:
    """Return the CreateTable requests that the generated requests need."""
    return [TABLES[name] for name in TABLE_NAMES]
