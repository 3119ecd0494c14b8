"""What is compared: a request, the items before it, and the answers of both targets."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from tests.conformance.harness import Json, Target

#: The items of every table.
State = dict[str, list[Json]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a target answered: "ok" or the code of a refusal. The text is not compared."""

    code: str
    text: str = field(default="", compare=False)
    body: Any = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, the items before it, and both answers."""

    operation: str
    payload: Json
    before: State
    ours: Answer
    theirs: Answer


class Respelled:
    """DynamoDB Local, which keeps -0 and small powers of ten as they were written, with AWS's spelling."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def call(self, operation: str, request: Any) -> Json:
        reply: Json = respelled(self._target.call(operation, request))
        return reply


def respelled(value: Any) -> Any:
    """Return the value with its numbers as AWS spells them."""
    if isinstance(value, list):
        return [respelled(member) for member in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"N"} and isinstance(value["N"], str):
        return {"N": _plain(value["N"])}
    if set(value) == {"NS"} and isinstance(value["NS"], list):
        return {"NS": sorted(map(_plain, value["NS"]))}
    return {name: respelled(member) for name, member in value.items()}


def _plain(number: str) -> str:
    try:
        return f"{_DIGITS.normalize(Decimal(number)):f}" if Decimal(number) else "0"
    except InvalidOperation:
        return number


_DIGITS = Context(prec=40)
