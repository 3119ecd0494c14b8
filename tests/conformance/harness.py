"""What a conformance case is, and how it is played.

A case is data: steps of (operation, request, expectation) in DynamoDB's own wire form. It knows no
engine; a `Target` plays it. Cases state what Amazon DynamoDB does. Where DynamoDB Local answers
otherwise, the case carries `local=` with the reason, and is expected to fail there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Union

Json = dict[str, Any]


class Refused(Exception):
    """A target's error answer: the code without its namespace, the text, and the whole body."""

    def __init__(self, code: str, message: str, body: Json) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.body = body


class Target(Protocol):
    """Something that answers DynamoDB requests."""

    def call(self, operation: str, request: Any) -> Json: ...


@dataclass(frozen=True, slots=True)
class Fails:
    """The step must be refused with this code and exactly this text (None: any text)."""

    code: str
    message: str | None = None
    #: Further members that the error body must carry, for instance CancellationReasons or Item.
    body: Json | None = None


def invalid(message: str | None) -> Fails:
    """A ValidationException with exactly this text."""
    return Fails("ValidationException", message)


#: A dict is the whole reply, sets compared without order; a callable asserts on the reply itself.
Expectation = Union[Json, Fails, Callable[[Json], None]]


@dataclass(frozen=True, slots=True)
class Step:
    operation: str
    request: Any
    expect: Expectation | None = None  # None: any success


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    steps: tuple[Step, ...]
    #: Names of standard tables (tables.py), created empty for this case.
    tables: tuple[str, ...] = ()
    #: Why DynamoDB Local differs from AWS here; empty when it agrees.
    local: str = ""

    def __str__(self) -> str:
        return self.name


def case(name: str, *steps: Step, tables: str = "", local: str = "") -> Case:
    """Declare a case; `tables` is a space-separated list of standard tables."""
    return Case(name, steps, tuple(tables.split()), local)


def play(target: Target, case_: Case) -> None:
    """Send every step and assert on every answer."""
    for number, step in enumerate(case_.steps, 1):
        where = f"{case_.name}, step {number} ({step.operation})"
        try:
            reply = target.call(step.operation, step.request)
        except Refused as refused:
            assert isinstance(step.expect, Fails), f"{where}: refused with {refused}"
            assert refused.code == step.expect.code, f"{where}: {refused} instead of {step.expect}"
            if step.expect.message is not None:
                assert refused.message == step.expect.message, where
            for member, value in (step.expect.body or {}).items():
                assert canonical(refused.body.get(member)) == canonical(value), f"{where}: {member}"
            continue
        assert not isinstance(step.expect, Fails), f"{where}: accepted, reply {reply}"
        if callable(step.expect):
            step.expect(reply)
        elif step.expect is not None:
            assert canonical(reply) == canonical(step.expect), where


def canonical(value: Any) -> Any:
    """The value with every DynamoDB set in one order, so that replies compare by meaning."""
    if isinstance(value, dict):
        if len(value) == 1:
            (tag, content), *_ = value.items()
            if tag in ("SS", "NS", "BS") and isinstance(content, list):
                return {tag: sorted(content)}
        return {name: canonical(member) for name, member in value.items()}
    if isinstance(value, list):
        return [canonical(member) for member in value]
    return value
