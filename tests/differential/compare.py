"""Send the same requests to two targets and tell where the answers differ.

Compared are: success or refusal, the whole reply, and the code of a refusal. Its text is not:
DynamoDB Local words many refusals otherwise than AWS, and the conformance cases hold AWS's words.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.conformance.harness import Json, Refused, Target, canonical

from .generate import Dice, tables
from .known import excuse

#: After this many requests both start from empty tables, so that one difference cannot hide others.
_ROUND = 150


@dataclass(frozen=True, slots=True)
class Difference:
    """One request that was answered in two ways."""

    seed: int
    place: int
    operation: str
    payload: Json
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return (
            f"seed {self.seed}, request {self.place}: {self.operation} {self.payload}\n"
            f"  ours:   {self.ours}\n  theirs: {self.theirs}"
        )


def differences(ours: Target, theirs: Target, *, seed: int, count: int) -> Iterator[Difference]:
    """Yield every unexcused difference; both targets are started afresh after each."""
    dice = Dice(seed)
    fresh = False
    for place in range(count):
        if not fresh or place % _ROUND == 0:
            _start(ours)
            _start(theirs)
            fresh = True
        operation, payload = dice.request()
        answers = [_answer(target, operation, copy.deepcopy(payload)) for target in (ours, theirs)]
        if answers[0] == answers[1]:
            continue
        # Where one of them may have written what the other has not, they must not go on together.
        fresh = "ok" not in (answers[0][0], answers[1][0])
        if excuse(operation, payload, *answers) is None:
            yield Difference(seed, place, operation, payload, *answers)


def _answer(target: Target, operation: str, payload: Json) -> tuple[str, Any]:
    """Return the kind of answer, and what of it is compared."""
    try:
        reply = target.call(operation, payload)
    except Refused as refused:
        return refused.code, _reasons(refused)
    return "ok", _comparable(operation, canonical(reply))


def _reasons(refused: Refused) -> Any:
    if "CancellationReasons" in refused.body:
        return [reason.get("Code") for reason in refused.body["CancellationReasons"]]
    return Text(refused.message)


class Text(str):
    """A refusal's text: shown, but equal to every other."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text)

    def __hash__(self) -> int:
        return 0


def _comparable(operation: str, reply: Json) -> Json:
    """Take out what has no promised order."""
    comparable: Json = _sorted_members(reply)
    if operation == "Scan" and "Items" in comparable:
        comparable["Items"].sort(key=repr)
    if operation == "BatchGetItem":
        for found in comparable["Responses"].values():
            found.sort(key=repr)
    return comparable


def _sorted_members(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted_members(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_sorted_members(member) for member in value]
    return value


def _start(target: Target) -> None:
    for name in target.call("ListTables", {})["TableNames"]:
        target.call("DeleteTable", {"TableName": name})
    for request in tables():
        target.call("CreateTable", request)
