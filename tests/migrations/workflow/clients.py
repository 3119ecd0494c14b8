"""Clients of a migration's tables, which route their writes as a router does, and engines that die."""

from __future__ import annotations

from typing import Any

from solotable import flow
from solotable._protocol.engine import Engine
from solotable._protocol.requests import (
    Control,
    DeleteItem,
    PutItem,
    Request,
    TransactWriteItems,
    WriteAction,
)
from solotable._values import dump_item
from solotable.errors import TransactionCancelled
from solotable.migrations.switching.switch import ROUTER_LEASE_SECONDS
from solotable.testing.engines.wrapper import EngineWrapper

from .lab import Email, Lab, User


class Killed(BaseException):
    """The process was killed."""


class MortalEngine(EngineWrapper):
    """An engine of a process that is killed at one of its requests, before or after it is executed."""

    def __init__(self, engine: Engine, life: list[int], *, executed: bool) -> None:
        super().__init__(engine)
        #: The number of requests that are left, shared by the engines of a process.
        self._life = life
        self._executed = executed

    def handle(self, request: Request[Any], /) -> Any:
        if self._life[0] <= 0:
            raise Killed
        self._life[0] -= 1
        if self._life[0] == 0 and not self._executed:
            raise Killed
        reply = self.inner.handle(request)
        if self._life[0] == 0:
            raise Killed
        return reply


class LateStream(EngineWrapper):
    """An engine whose stream shows no records while it `hides` them."""

    hides = False

    def handle(self, request: Request[Any], /) -> Any:
        if self.hides and isinstance(request, Control) and request.operation == "GetRecords":
            return {"Records": [], "NextShardIterator": request.members["ShardIterator"]}
        return self.inner.handle(request)


class Client:
    """Writes users on the side that takes writes, and knows what it has written."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        #: The name of each user as it was acknowledged; None for a deleted one.
        self.users: dict[str, str | None] = {}
        #: Writes that wait for the other side.
        self.held: list[tuple[str, str | None]] = []
        self._read_at = float("-inf")
        self._known = lab.migration.record
        self._record = lab.migration.record()

    def write(self, user: str, name: str | None) -> bool:
        """Write or delete a user; hold the write back if no side takes it. Return whether it was executed."""
        if not self._try(user, name):
            self.held.append((user, name))
            return False
        return True

    def flush(self) -> None:
        """Write what was held back."""
        held, self.held = self.held, []
        for user, name in held:
            assert self.write(user, name), "the write was held back again"

    def check(self) -> None:
        """Assert that the side which takes writes has every acknowledged write."""
        record = self._lab.migration.record()
        for user, name in self.users.items():
            if record.writes == "target":
                found = self._lab.new.get(User, user_id=user, consistent=True)
                assert (None if found is None else found.name) == name, (user, record.state)
            else:
                stored = {each["id"]["S"]: each["name"]["S"] for each in self._lab.sources()["Users"]}
                assert stored.get(user) == name, (user, record.state)

    def _try(self, user: str, name: str | None) -> bool:
        now = self._lab.clock()
        if now - self._read_at >= ROUTER_LEASE_SECONDS:
            self._record, self._read_at = self._lab.migration.record(), now
        record = self._record
        side = self._lab.migration.side(record.writes)
        actions = self.actions(record.writes, user, name)
        if record.state == "SwitchingWrites":
            actions += self._lab.migration.guard(record.writes, actions)
        try:
            side.engine.handle(TransactWriteItems(actions=tuple(actions)))
        except TransactionCancelled:
            # Its side is closed: read the record before the next write.
            self._read_at = float("-inf")
            return False
        self.users[user] = name
        return True

    def actions(self, side: str, user: str, name: str | None) -> list[WriteAction]:
        """Return the actions of a write on a side."""
        email = f"{user}@x.example"
        if side == "source":
            table = self._lab.prefix + "Users"
            if name is None:
                return [DeleteItem(table=table, key={"id": {"S": user}})]
            return [PutItem(table=table, item=dump_item({"id": user, "name": name, "email": email}))]
        scope = self._lab.new.scope
        table = self._lab.target_table
        if name is None:
            keys = flow.key_of(scope, User, user_id=user), flow.key_of(scope, Email, email=email)
            return [DeleteItem(table=table, key=key) for key in keys]
        entities = User(user_id=user, name=name, email=email), Email(email=email, user_id=user)
        return [PutItem(table=table, item=flow.encode_entity(scope, each)) for each in entities]
