"""Single items are linearizable and transactions are atomic, and the checks of that find faults."""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest

from solotable.engines.sqlite import SqliteEngine
from solotable.errors import ConditionFailed, SolotableError

from . import shop
from .history import NOTHING, Operation, Transaction, atomic, linearizable
from .mutants import MUTANTS
from .size import LIMIT_SECONDS, SEED, amount, report

THREADS = 6
OPERATIONS = amount(500, 10_000)
#: Of each client in the history of a mutant.
MUTANT_OPERATIONS = 250
#: The most histories of a mutant. In one of them, the clients may not meet at the fault.
MUTANT_HISTORIES = 30
#: Operations on one register; the search grows with them.
ON_ONE_REGISTER = 60
LISTS = ("list-a", "list-b")

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


class Clients:
    """Threads that use one engine, and what they saw."""

    def __init__(self, engine: SqliteEngine, operations: int, seed: object) -> None:
        self.registers: dict[str, list[Operation]] = defaultdict(list)
        self.transactions: list[Transaction] = []
        self._engine = engine
        self._operations = operations
        self._seed = seed
        self._values = iter(range(1, 10_000_000))

    def run(self) -> None:
        threads = [threading.Thread(target=self._client, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def problems(self) -> list[str]:
        """Return what no order in time can explain."""
        wrong = [key for key, operations in self.registers.items() if not linearizable(operations)]
        final = self._read_lists()
        return [f"{key} is not linearizable" for key in wrong] + atomic(self.transactions, final)

    def _client(self, number: int) -> None:
        chance = random.Random(f"{self._seed} {number}")
        last: dict[str, int] = defaultdict(lambda: NOTHING)
        for place in range(self._operations):
            # Clients move from register to register together, so that they meet on each.
            key = f"register-{place * THREADS // ON_ONE_REGISTER}"
            kind = chance.choices(("read", "write", "change", "append", "lists"), (30, 15, 40, 5, 10))[0]
            if kind in {"append", "lists"}:
                self._transact(kind)
            else:
                self._operate(kind, key, last)

    def _operate(self, kind: str, key: str, last: dict[str, int]) -> None:
        value, expected, granted = next(self._values), last[key], True
        ended = float("inf")
        begun = time.monotonic()
        try:
            match kind:
                case "read":
                    value = shop.number(self._engine, key)
                case "write":
                    shop.put(self._engine, {"pk": {"S": key}, "n": {"N": str(value)}})
                case _:
                    shop.set_from(self._engine, key, expected, value)
            ended = time.monotonic()
        except ConditionFailed:
            granted, ended = False, time.monotonic()
        except SolotableError:
            # Whether it was done is not known.
            pass
        if kind == "read" and ended == float("inf"):
            return
        if kind != "change" or granted:
            last[key] = value
        if kind == "change" and not granted:
            last[key] = shop.number(self._engine, key)
        self.registers[key].append(
            Operation(
                kind=kind,
                value=value,
                expected=expected if kind == "change" else None,
                granted=granted,
                begun=begun,
                ended=ended,
            )
        )

    def _transact(self, kind: str) -> None:
        value = next(self._values)
        begun = time.monotonic()
        try:
            if kind == "lists":
                lists = self._read_lists()
                self.transactions.append(Transaction(lists=lists, begun=begun, ended=time.monotonic()))
            else:
                self._append(value)
                self.transactions.append(Transaction(value=value, begun=begun, ended=time.monotonic()))
        except SolotableError:
            if kind == "append":
                self.transactions.append(Transaction(value=value, begun=begun))

    def _append(self, value: int) -> None:
        update = {
            "TableName": "Shop",
            "UpdateExpression": "SET l = list_append(if_not_exists(l, :none), :new)",
            "ExpressionAttributeValues": {":none": {"L": []}, ":new": {"L": [{"N": str(value)}]}},
        }
        actions = [{"Update": {**update, "Key": {"pk": {"S": key}}}} for key in LISTS]
        self._engine.call("TransactWriteItems", {"TransactItems": actions})

    def _read_lists(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        gets = [{"Get": {"TableName": "Shop", "Key": {"pk": {"S": key}}}} for key in LISTS]
        replies = self._engine.call("TransactGetItems", {"TransactItems": gets})["Responses"]
        first, second = (
            tuple(int(value["N"]) for value in reply["Item"]["l"]["L"]) if reply.get("Item") else ()
            for reply in replies
        )
        return first, second


@pytest.mark.parametrize("where", ["file", "memory"])
def test_every_history_can_be_explained(tmp_path: Path, where: str) -> None:
    path = str(tmp_path / "shop.db") if where == "file" else ":memory:"
    with SqliteEngine(path) as engine:
        engine.call("CreateTable", shop.SHOP)
        clients = Clients(engine, OPERATIONS, SEED)
        clients.run()
        assert clients.problems() == [], f"seed {SEED}"
    operations = sum(map(len, clients.registers.values()))
    report(
        f"history ({where}): {operations} operations on {len(clients.registers)} registers and "
        f"{len(clients.transactions)} transactions of {THREADS} threads: 0 unexplained (seed {SEED})"
    )


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_is_found(tmp_path: Path, name: str) -> None:
    for number in range(MUTANT_HISTORIES):
        with MUTANTS[name](str(tmp_path / f"shop-{number}.db")) as engine:
            engine.call("CreateTable", shop.SHOP)
            clients = Clients(engine, MUTANT_OPERATIONS, f"{SEED} {number}")
            clients.run()
            if clients.problems():
                return
    pytest.fail(f"{name} was not noticed in {MUTANT_HISTORIES} histories (seed {SEED})")


def operation(kind: str, value: int, begun: float, ended: float, expected: int | None = None) -> Operation:
    return Operation(kind=kind, value=value, begun=begun, ended=ended, expected=expected)


def test_the_check_of_registers_finds_faults() -> None:
    write = operation("write", 1, 0, 2)
    assert linearizable([write, operation("read", 0, 1, 3)])
    assert linearizable([write, operation("read", 1, 1, 3)])
    assert not linearizable([write, operation("read", 0, 3, 4)]), "a stale read"
    assert not linearizable([operation("read", 1, 0, 1), operation("write", 1, 2, 3)]), "from the future"
    changes = [operation("change", new, 3, 5, expected=1) for new in (2, 3)]
    assert not linearizable([write, *changes]), "a lost update"
    lost = operation("write", 9, 0, float("inf"))
    assert linearizable([lost, operation("read", 0, 1, 2), operation("read", 9, 3, 4)])
    assert linearizable([lost, operation("read", 0, 1, 2)])


def test_the_check_of_transactions_finds_faults() -> None:
    append = Transaction(value=1, begun=0, ended=1)
    assert atomic([append], ((1,), (1,))) == []
    assert atomic([append], ((), ())) == ["lost: 1"]
    assert atomic([append], ((1,), ())) != []
    assert atomic([append], ((1, 1), (1, 1))) != []
    assert atomic([append, Transaction(lists=((1,), ()), begun=0, ended=1)], ((1,), (1,))) != []
    assert atomic([append, Transaction(lists=((), ()), begun=2, ended=3)], ((1,), (1,))) != []
    assert atomic([append, Transaction(lists=((2,), (2,)), begun=0, ended=3)], ((1,), (1,))) != []
