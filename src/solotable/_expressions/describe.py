"""Conditions as text for messages: with values instead of placeholders. Nothing parses this text."""

from __future__ import annotations

from .ast import (
    And,
    Attr,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Const,
    Contains,
    Exists,
    In,
    Not,
    Operand,
    Or,
    Path,
    Same,
    Size,
    TypeIs,
)

_LONGEST_VALUE = 60


def describe(condition: Condition) -> str:
    """Return a condition as one line.

    >>> describe(And((Exists(("PK",)), Compare("<>", Attr(("status",)), Const({"S": "archived"})))))
    "PK exists and status <> 'archived'"
    """
    match condition:
        case Compare():
            return f"{_operand(condition.left)} {condition.comparator} {_operand(condition.right)}"
        case Between():
            low, high = _operand(condition.low), _operand(condition.high)
            return f"{_operand(condition.operand)} between {low} and {high}"
        case In():
            options = ", ".join(_operand(option) for option in condition.options)
            return f"{_operand(condition.operand)} in ({options})"
        case Exists():
            return f"{_path(condition.path)} exists"
        case Not(condition=Exists(path=path)):
            return f"{_path(path)} is absent"
        case TypeIs():
            return f"{_operand(condition.operand)} is of type {condition.kind}"
        case BeginsWith():
            return f"{_operand(condition.operand)} starts with {_operand(condition.prefix)}"
        case Contains():
            return f"{_operand(condition.operand)} contains {_operand(condition.member)}"
        case Not():
            return f"not ({describe(condition.condition)})"
        case And():
            return " and ".join(_term(term) for term in condition.terms)
        case Or():
            return " or ".join(_term(term) for term in condition.terms)
        case Same():
            return f"({describe(condition.left)}) = ({describe(condition.right)})"


def _term(condition: Condition) -> str:
    text = describe(condition)
    return f"({text})" if isinstance(condition, (And, Or)) else text


def _operand(operand: Operand) -> str:
    match operand:
        case Attr():
            return _path(operand.path)
        case Size():
            return f"size of {_path(operand.operand.path)}"
        case Const():
            ((kind, content),) = operand.value.items()
            text = str(content) if kind == "N" else repr(content)
            return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


def _path(path: Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)[1:]
