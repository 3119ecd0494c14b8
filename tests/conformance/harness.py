"""What a conformance case is, and how it is played.

A case is data: steps of (operation, request, expectation) in DynamoDB's own wire form. It knows no
engine; a `Target` plays it. Cases state what Amazon DynamoDB does. Where DynamoDB Local answers
otherwise, the case carries `local=` with the reason, and is expected to fail there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Union

Json = dict[str, Any]
#: The year of AWS's error texts that a case is played in.
Year = Literal["2025", "2026"]


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
    #: The text of 2025, where AWS has changed it since (a pattern where it shows addresses of objects),
    #: and who captured the newer one.
    older: str | re.Pattern[str] | None = None
    evidence: str = ""

    def allows(self, text: str, year: Year) -> bool:
        """Whether the text is that of a year."""
        wanted = self.older if year == "2025" and self.older is not None else self.message
        if isinstance(wanted, re.Pattern):
            return wanted.fullmatch(text) is not None
        return wanted is None or text == wanted


def invalid(message: str | None) -> Fails:
    """A ValidationException with exactly this text, in every year."""
    return Fails("ValidationException", message)


def reworded(older: str | re.Pattern[str], message: str, evidence: str) -> Fails:
    """A ValidationException that had another text in 2025."""
    return Fails("ValidationException", message, older=older, evidence=evidence)


def counted(message: str, evidence: str, *, older: str | None = None) -> Fails:
    """A ValidationException whose text has a count of errors since mid-2026, and `older` before."""
    return reworded(message if older is None else older, f"1 validation error detected: {message}", evidence)


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
    #: What DynamoDB Local does differently, as a verb phrase; empty if it agrees with AWS.
    local: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def reworded(self) -> bool:
        """Whether AWS has changed a text of it since 2025."""
        return any(isinstance(step.expect, Fails) and step.expect.older is not None for step in self.steps)


def case(name: str, *steps: Step, tables: str = "", local: str = "") -> Case:
    """Declare a case; `tables` is a space-separated list of standard tables."""
    return Case(name, steps, tuple(tables.split()), local)


def play(target: Target, case_: Case, year: Year = "2026") -> None:
    """Send every step and assert on every answer, texts as they were in a year."""
    for number, step in enumerate(case_.steps, 1):
        where = f"{case_.name}, step {number} ({step.operation})"
        try:
            reply = target.call(step.operation, step.request)
        except Refused as refused:
            assert isinstance(step.expect, Fails), f"{where}: refused with {refused}"
            assert refused.code == step.expect.code, f"{where}: {refused} instead of {step.expect}"
            assert step.expect.allows(refused.message, year), f"{where}: {refused} instead of {step.expect}"
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
