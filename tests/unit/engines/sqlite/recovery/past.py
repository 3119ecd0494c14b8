"""A table with random writes beside a model that remembers every state."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.recovery.scopes import Scope
from solotable.engines.sqlite.tables import windows
from tests.conformance.tables import index, table
from tests.unit.engines.sqlite.clocked import HOUR, Clock

Json = dict[str, Any]
Key = tuple[str, str]
State = dict[Key, Json]

TENANTS = ("acme", "acme2", "zeta")
TABLE = table(
    "Shop",
    "pk:S",
    "sk:S",
    types={"g": "S"},
    gsi=[index("by-g", "g"), index("names", "g", projection="KEYS_ONLY")],
    lsi=[index("local", "pk", "g")],
)


def recovery(name: str = "Shop", *, on: bool = True, **more: Any) -> Json:
    return {
        "TableName": name,
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": on, **more},
    }


def scan(engine: SqliteEngine, name: str, **members: Any) -> State:
    """Read all items, by key."""
    found: State = {}
    start: Json = {}
    while True:
        page = engine.call("Scan", {"TableName": name, **members, **start})
        found |= {(item["pk"]["S"], item["sk"]["S"]): item for item in page["Items"]}
        if "LastEvaluatedKey" not in page:
            return found
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def newest(engine: SqliteEngine) -> int:
    with engine.database.read() as connection:
        return windows.newest_sequence(connection)


class Past:
    """Random writes, and the state of the table after each of them."""

    def __init__(self, engine: SqliteEngine, clock: Clock, seed: int) -> None:
        self.engine, self.clock = engine, clock
        self.random = random.Random(seed)
        self.items: State = {}
        #: The newest sequence number and time after each write, with the items.
        self.states: list[tuple[int, int, State]] = []
        engine.call("CreateTable", TABLE)
        engine.call("CreateTable", table("Other", "pk:S", "sk:S"))
        for _ in range(10):
            self._put()
        engine.call("UpdateContinuousBackups", recovery())
        engine.call("UpdateContinuousBackups", recovery("Other"))
        self.note()

    def note(self) -> None:
        with self.engine.database.read() as connection:
            sequence = windows.newest_sequence(connection)
            micros = windows.newest_micros(connection)
        # The first states have no change yet: the window begins with the clock's time.
        micros = max(micros, self.states[-1][1] if self.states else self.engine.now_micros())
        self.states.append((sequence, micros, dict(self.items)))

    def run(self, writes: int) -> None:
        weighted: list[tuple[Callable[[], None], int]] = [
            (self._put, 8),
            (self._update, 4),
            (self._delete, 4),
            (self._batch, 2),
            (self._transact, 4),
            (self._expire, 1),
            (self._change_settings, 1),
            (self._move_clock, 3),
        ]
        actions = [action for action, weight in weighted for _ in range(weight)]
        for _ in range(writes):
            self.random.choice(actions)()
            self.note()

    def key(self) -> Key:
        tenant = self.random.choice(TENANTS)
        suffix = self.random.choice(["", "#ORDER#1", "#ORDER#2"])
        return f"TENANT#{tenant}{suffix}", self.random.choice("abcde")

    def item(self, key: Key) -> Json:
        tenant = key[0].split("#")[1]
        made: Json = {"pk": {"S": key[0]}, "sk": {"S": key[1]}, "tenant_id": {"S": tenant}}
        made["n"] = {"N": str(self.random.randrange(1_000))}
        if self.random.random() < 0.6:
            made["g"] = {"S": self.random.choice("xyz")}
        return made

    def _put(self) -> None:
        item = self.item(self.key())
        self.engine.call("PutItem", {"TableName": "Shop", "Item": item})
        self.items[item["pk"]["S"], item["sk"]["S"]] = item

    def _update(self) -> None:
        key, value = self.key(), {"N": str(self.random.randrange(1_000))}
        wire = {"pk": {"S": key[0]}, "sk": {"S": key[1]}}
        self.engine.call(
            "UpdateItem",
            {
                "TableName": "Shop",
                "Key": wire,
                "UpdateExpression": "SET m = :m",
                "ExpressionAttributeValues": {":m": value},
            },
        )
        self.items[key] = {**self.items.get(key, wire), "m": value}

    def _delete(self) -> None:
        key = self.key()
        self.engine.call(
            "DeleteItem", {"TableName": "Shop", "Key": {"pk": {"S": key[0]}, "sk": {"S": key[1]}}}
        )
        self.items.pop(key, None)

    def _batch(self) -> None:
        found = {key: self.item(key) for key in {self.key() for _ in range(5)}}
        requests = [{"PutRequest": {"Item": item}} for item in found.values()]
        self.engine.call("BatchWriteItem", {"RequestItems": {"Shop": requests}})
        self.items |= found

    def _transact(self) -> None:
        found = {key: self.item(key) for key in {self.key() for _ in range(4)}}
        puts = [
            {"Put": {"TableName": name, "Item": item}}
            for item in found.values()
            for name in ("Shop", "Other")
        ]
        self.engine.call("TransactWriteItems", {"TransactItems": puts})
        self.items |= found

    def _expire(self) -> None:
        """Put items that expire, and let the sweeper remove them."""
        key = self.key()
        item = self.item(key) | {"expires": {"N": str(int(self.clock()) - 10)}}
        setting = {"AttributeName": "expires", "Enabled": True}
        self.engine.call("UpdateTimeToLive", {"TableName": "Shop", "TimeToLiveSpecification": setting})
        self.engine.call("PutItem", {"TableName": "Shop", "Item": item})
        self.items[key] = item
        self.note()
        self.engine.sweep()
        self.items = {
            each: value
            for each, value in self.items.items()
            if "expires" not in value or int(value["expires"]["N"]) >= self.clock()
        }
        self.engine.call(
            "UpdateTimeToLive", {"TableName": "Shop", "TimeToLiveSpecification": setting | {"Enabled": False}}
        )

    def _change_settings(self) -> None:
        described = self.engine.call("DescribeTable", {"TableName": "Shop"})["Table"]
        on = "StreamSpecification" not in described
        stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"} if on else {"StreamEnabled": False}
        self.engine.call("UpdateTable", {"TableName": "Shop", "StreamSpecification": stream})

    def _move_clock(self) -> None:
        # The clock also leaps backwards.
        self.clock.move(self.random.choice([1, 0.5, 30, -20, HOUR]))

    def state_at(self, *, sequence: int | None = None, micros: int | None = None) -> State:
        """Return the newest state at or before a sequence number or a time."""
        found = [
            items
            for number, at, items in self.states
            if (sequence is None or number <= sequence) and (micros is None or at <= micros)
        ]
        return found[-1]


def part_of(state: State, scope: Scope) -> State:
    """Return the items of a scope, by the definition of a tenant and of a collection."""
    if scope.key is not None:
        pk, sk = scope.key["pk"]["S"], scope.key.get("sk", {}).get("S")
        return {key: item for key, item in state.items() if key[0] == pk and sk in (None, key[1])}
    if scope.attribute is not None:
        return {key: item for key, item in state.items() if key[0].split("#")[1] == scope.attribute[1]}
    return state


SCOPES = (
    Scope(),
    Scope.of_tenant("acme"),
    Scope(key={"pk": {"S": "TENANT#zeta"}}),
    Scope(key={"pk": {"S": "TENANT#acme#ORDER#1"}, "sk": {"S": "b"}}),
)
