"""Compile a template into one Python function of an item and the values.

The source has fixed fragments and numbers alone: attribute names and fixed values are arguments of the
factory around it, so templates that differ in these share one compiled factory. The function covers flat
attributes: comparisons of numbers and strings, equality, existence, SET, arithmetic on whole numbers, ADD of
a number, REMOVE. Anything else (`_Uncovered` here; KeyError, ValueError or a None result there) is left to
`evaluate` and `apply_update`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, Literal

from solotable._expressions.ast import (
    Action,
    Add,
    And,
    Arithmetic,
    Assign,
    Attr,
    Between,
    Compare,
    Condition,
    Const,
    Exists,
    IfNotExists,
    In,
    Not,
    Operand,
    Or,
    Path,
    Remove,
    SetOperand,
    Update,
)
from solotable._values import AttributeValue, Item, value_size
from solotable._values.number import number_size
from solotable._values.size import text_size

from .slots import Slot

#: The item after the update and the bytes that it gained; False if the condition does not hold; None if
#: the function does not cover the item.
Result = tuple[Item, int] | Literal[False] | None
#: Takes the stored item, {} for a missing one; the values; and the item to copy: the stored item, or the key.
Apply = Callable[[Item, Sequence[AttributeValue], Item], Result]

_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
#: A template with more names and values than this is not compiled.
_MOST_OPERANDS: Final = 64
#: A whole number of up to this many characters has its canonical text from `str`.
_LONGEST_NUMBER: Final = 37
#: Whether two whole numbers may differ in size; `text != before` is the cheapest answer for equal ones.
_MAY_DIFFER: Final = (
    "text != before and (len(text) != len(before) or text[0] == '-' or before[0] == '-'"
    " or len(text.rstrip('0')) != len(before.rstrip('0'))"
)
_GAIN_NUMBER: Final = "        gained += number_size(text) - number_size(before)"


class _Uncovered(Exception):
    """The template has a part that is not compiled."""


def compile_function(
    update: Update, condition: Condition | None, values: Sequence[AttributeValue]
) -> Apply | None:
    """Return the function of a template, None if it is not covered; `values` show the slots' types."""
    source = _Source(values)
    try:
        text = source.function(update, condition)
    except _Uncovered:
        return None
    return _factory(text, len(source.names), len(source.fixed))(*source.names, *source.fixed)


@lru_cache(maxsize=256)
def _factory(function: str, names: int, fixed: int) -> Callable[..., Apply]:
    arguments = [f"n{number}" for number in range(names)] + [f"f{number}" for number in range(fixed)]
    sizes = "".join(f"    z{number} = text_size(n{number})\n" for number in range(names))
    namespace: dict[str, Any] = {
        "number_size": number_size,
        "text_size": text_size,
        "value_size": value_size,
    }
    source = f"def factory({', '.join(arguments)}):\n{sizes}{function}    return apply\n"
    exec(source, namespace)  # noqa: S102 - made of this module's fragments and numbers alone
    made: Callable[..., Apply] = namespace["factory"]
    return made


class _Source:
    """The source of one function: which attributes and values it reads, and what it does with them."""

    def __init__(self, values: Sequence[AttributeValue]) -> None:
        self._kinds = [next(iter(value)) for value in values]
        self.names: list[str] = []
        self.fixed: list[AttributeValue] = []
        #: Lines that read the values and attributes, by what they define.
        self._reads: dict[str, str] = {}

    def function(self, update: Update, condition: Condition | None) -> str:
        if update.legacy:
            raise _Uncovered
        # The condition and the actions first: they say what is read.
        terms = condition.terms if isinstance(condition, And) else () if condition is None else (condition,)
        checks = [f"if not ({self._condition(term)}): return False" for term in terms]
        actions = [line for action in update.actions for line in self._action(action)]
        if len(self.names) + len(self.fixed) + len(self._kinds) > _MOST_OPERANDS:
            raise _Uncovered
        slots = "".join(f"v{number}, " for number in range(len(self._kinds)))
        if slots:
            self._reads = {"slots": f"{slots}= values", **self._reads}
        body = [*self._reads.values(), *checks, "new = start.copy()", "gained = 0", *actions]
        lines = "".join(f"            {line}\n" for text in body for line in text.split("\n"))
        return (
            "    def apply(item, values, start):\n"
            "        get = item.get\n"
            "        try:\n"
            f"{lines}"
            "            return new, gained\n"
            "        except (KeyError, ValueError):\n"
            "            return None\n"
        )

    def _condition(self, node: Condition) -> str:
        match node:
            case And(terms):
                return " and ".join(f"({self._condition(term)})" for term in terms) or "True"
            case Or(terms):
                return " or ".join(f"({self._condition(term)})" for term in terms) or "False"
            case Not(term):
                return f"not ({self._condition(term)})"
            case Exists(path):
                return f"a{self._attribute(path)} is not None"
            case Compare(comparator, left, right):
                return self._compare(comparator, left, right)
            case Between(Attr(path), low, high):
                lowest = self._compare(">=", Attr(path), low)
                return f"({lowest}) and ({self._compare('<=', Attr(path), high)})"
            case In(Attr(path), options):
                number = self._attribute(path)
                return " or ".join(f"a{number} == {self._value(option)}" for option in options)
            case _:
                raise _Uncovered

    def _compare(self, comparator: str, left: Operand, right: Operand) -> str:
        if isinstance(right, Attr):
            left, right, comparator = right, left, _FLIPPED.get(comparator, comparator)
        if not isinstance(left, Attr) or not isinstance(right, Const):
            raise _Uncovered
        number = self._attribute(left.path)
        if comparator == "=":
            return f"a{number} == {self._value(right)}"
        if comparator == "<>":
            return f"a{number} != {self._value(right)}"
        match self._kind(right):
            case "N":
                return (
                    f"a{number} is not None and {self._whole(left.path)} {comparator} {self._number(right)}"
                )
            case "S":
                # As with numbers, an attribute of another type is a KeyError.
                value = self._value(right)
                return f"a{number} is not None and a{number}['S'] {comparator} {value}['S']"
            case _:
                raise _Uncovered

    def _action(self, action: Action) -> list[str]:
        number = self._attribute(action.path)
        match action:
            case Remove():
                return [
                    f"if a{number} is not None:",
                    f"    del new[n{number}]; gained -= z{number} + value_size(a{number})",
                ]
            case Add(_, value, to_list=False) if self._kind(Const(value)) == "N":
                constant = Const(value)
                added = f"{self._whole(action.path)} + {self._number(constant)}"
                return [
                    f"if a{number} is None:",
                    f"    new[n{number}] = {self._value(constant)}",
                    f"    gained += z{number} + number_size({self._value(constant)}['N'])",
                    "else:",
                    *_store_number(number, added),
                ]
            case Assign(_, operand):
                return self._assign(number, action.path, operand)
            case _:
                raise _Uncovered

    def _assign(self, number: int, path: Path, operand: SetOperand) -> list[str]:
        match operand:
            case Const():
                return self._store(number, operand)
            case IfNotExists(other, Const() as default) if other == path:
                return [f"if a{number} is None:", *_indent(self._store_new(number, default))]
            case Arithmetic(operator, left, right):
                result = f"{self._addend(left)} {operator} {self._addend(right)}"
                return [
                    f"if a{number} is None:",
                    f"    text = str({result})",
                    f"    if len(text) > {_LONGEST_NUMBER}: return None",
                    f"    new[n{number}] = {{'N': text}}; gained += z{number} + number_size(text)",
                    "else:",
                    # The size of a value of another type is not known here: a KeyError.
                    f"    t{number} = a{number}['N']",
                    *_store_number(number, result),
                ]
            case _:
                raise _Uncovered

    def _addend(self, operand: SetOperand) -> str:
        match operand:
            case Const() if self._kind(operand) == "N":
                return self._number(operand)
            case Attr(path):
                number = self._attribute(path)
                self._whole(path)
                # DynamoDB rejects a missing attribute; `apply_update` has the error.
                self._reads[f"needs{number}"] = f"if a{number} is None: return None"
                return f"x{number}"
            case IfNotExists(path, Const() as default) if self._kind(default) == "N":
                number = self._attribute(path)
                return f"({self._number(default)} if a{number} is None else {self._whole(path)})"
            case _:
                raise _Uncovered

    def _store(self, number: int, constant: Const) -> list[str]:
        """Return the lines that set an attribute to a value."""
        value = self._value(constant)
        match self._kind(constant):
            case "N":
                grown = [
                    f"    text, before = {value}['N'], a{number}['N']",
                    f"    if {_MAY_DIFFER} or '.' in text or '.' in before):",
                    _GAIN_NUMBER,
                ]
            case "S":
                grown = [
                    f"    if a{number} != {value}:",
                    f"        gained += text_size({value}['S']) - value_size(a{number})",
                ]
            case _:
                grown = [f"    gained += value_size({value}) - value_size(a{number})"]
        return [
            f"if a{number} is None:",
            *_indent(self._store_new(number, constant)),
            "else:",
            f"    new[n{number}] = {value}",
            *grown,
        ]

    def _store_new(self, number: int, constant: Const) -> list[str]:
        value = self._value(constant)
        return [f"new[n{number}] = {value}; gained += z{number} + value_size({value})"]

    def _attribute(self, path: Path) -> int:
        """Return the number of a top-level attribute, and read it."""
        if len(path) != 1:
            raise _Uncovered
        name = str(path[0])
        if name not in self.names:
            self.names.append(name)
            number = len(self.names) - 1
            self._reads[f"a{number}"] = f"a{number} = get(n{number})"
        return self.names.index(name)

    def _whole(self, path: Path) -> str:
        """Return the variable of an attribute's whole number; it is not set if the attribute is missing."""
        number = self._attribute(path)
        self._reads[f"x{number}"] = (
            f"if a{number} is not None:\n    t{number} = a{number}['N']\n    x{number} = int(t{number})"
        )
        return f"x{number}"

    def _value(self, constant: Operand) -> str:
        """Return the variable of a value, in wire form."""
        if not isinstance(constant, Const):
            raise _Uncovered
        value = constant.value
        if type(value) is Slot:
            return f"v{value.number}"
        # By identity: equal values of different types, as 1 and True, are different constants.
        for number, each in enumerate(self.fixed):
            if each is value:
                return f"f{number}"
        self.fixed.append(value)
        return f"f{len(self.fixed) - 1}"

    def _number(self, constant: Const) -> str:
        """Return the variable of a value's whole number."""
        value = self._value(constant)
        self._reads[f"i{value}"] = f"i{value} = int({value}['N'])"
        return f"i{value}"

    def _kind(self, constant: Const) -> str:
        value = constant.value
        return self._kinds[value.number] if type(value) is Slot else next(iter(value))


def _store_number(number: int, result: str) -> list[str]:
    """Return the lines that replace a number with another; `t` has the text of the one before."""
    return [
        f"    text, before = str({result}), t{number}",
        f"    if len(text) > {_LONGEST_NUMBER}: return None",
        f"    new[n{number}] = {{'N': text}}",
        f"    if {_MAY_DIFFER}):",
        _GAIN_NUMBER,
    ]


def _indent(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
