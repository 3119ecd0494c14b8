"""Record conditions from lambdas: `lambda s: (s.order > 3) & s.name.startswith("R")`.

Type checkers see a lambda over the entity. It runs once, with a recorder that builds the expression tree. A
recorded condition has no truth value: `and`, `or`, `not` and `in` raise an error that says what to write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from solotable._entities.keys.ranges import SortRange, Verb, rounded
from solotable._expressions.ast import (
    And,
    Attr,
    BeginsWith,
    Between,
    Comparator,
    Compare,
    Condition,
    Const,
    Contains,
    Exists,
    In,
    Not,
    Operand,
    Or,
    Size,
)
from solotable._expressions.check import check_condition, is_large
from solotable._values.limits import MOST_IN_OPERANDS
from solotable.errors import DataError, DeclarationError, ServiceError

from .paths import FieldPath, field_path

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Plan

ValueT = TypeVar("ValueT")
_RANGES: dict[Comparator, Verb] = {">=": "since", ">": "after", "<=": "until", "<": "before"}
_COMPARATORS: dict[Verb, Comparator] = {verb: comparator for comparator, verb in _RANGES.items()}

_ADVICE = "write missing(...) or == None instead of `is None`, which Python evaluates itself."


class Recorded:
    """A recorded condition."""

    __slots__ = ("condition",)
    __hash__ = None  # type: ignore[assignment]  # == records a condition instead of comparing

    def __init__(self, condition: Condition) -> None:
        self.condition = condition

    def __and__(self, other: Any) -> Recorded:
        return Recorded(And((*_terms(And, self.condition), *_terms(And, _condition(other)))))

    def __or__(self, other: Any) -> Recorded:
        return Recorded(Or((*_terms(Or, self.condition), *_terms(Or, _condition(other)))))

    __rand__ = __and__
    __ror__ = __or__

    def __invert__(self) -> Recorded:
        return Recorded(Not(self.condition))

    def __bool__(self) -> NoReturn:
        raise DeclarationError(
            "DynamoDB evaluates a condition, not Python: write & for and, | for or, ~ for not, with "
            "parentheses around each comparison, and contains(...) or one_of(...) for `in`."
        )


class Recorder:
    """The recorder of one value in the entity."""

    __slots__ = ("_path", "_size")
    __hash__ = None  # type: ignore[assignment]  # see Recorded

    def __init__(self, path: FieldPath, *, size: bool = False) -> None:
        self._path = path
        self._size = size

    def __getattr__(self, name: str) -> Recorder:
        if name.startswith("__"):
            raise AttributeError(name)
        return Recorder(self._path.member(name))

    def __getitem__(self, step: int | str) -> Recorder:
        return Recorder(self._path.element(step) if isinstance(step, int) else self._path.member(step))

    def __eq__(self, other: object) -> Recorded:  # type: ignore[override]  # returns a condition, not a bool
        if other is None:
            return Recorded(self._is_none())
        return self._compare("=", other)

    def __ne__(self, other: object) -> Recorded:  # type: ignore[override]  # returns a condition, not a bool
        if other is None:
            return Recorded(Not(self._is_none()))
        return self._compare("<>", other)

    def __lt__(self, other: Any) -> Recorded:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Recorded:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Recorded:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Recorded:
        return self._compare(">=", other)

    def startswith(self, prefix: str) -> Recorded:
        """Record `begins_with`."""
        return Recorded(BeginsWith(self._operand(), self._value(prefix)))

    def __and__(self, other: Any) -> Recorded:
        return Recorded(_condition(self)).__and__(other)

    def __or__(self, other: Any) -> Recorded:
        return Recorded(_condition(self)).__or__(other)

    __rand__ = __and__
    __ror__ = __or__

    def __invert__(self) -> Recorded:
        return ~Recorded(_condition(self))

    def __bool__(self) -> NoReturn:
        raise DeclarationError(
            f"{self._path.owner} has no value in a recorded condition: compare it, "
            f"and write & | ~ instead of and, or, not."
        )

    def __contains__(self, member: Any) -> NoReturn:
        raise DeclarationError(f"Use contains({self._path.owner}, {member!r}) instead of `in`.")

    def __iter__(self) -> NoReturn:
        raise DeclarationError(f"A condition cannot iterate over {self._path.owner}.")

    def __len__(self) -> NoReturn:
        raise DeclarationError(f"Use size({self._path.owner}) instead of len(...), which Python evaluates.")

    def _compare(self, comparator: Comparator, other: Any) -> Recorded:
        step = self._path.attribute.step
        if step > 1 and comparator in _RANGES and not isinstance(other, Recorder):
            exact = rounded(SortRange(_RANGES[comparator], "", (other,)), step)
            assert exact is not None  # only a range with two ends can be empty
            comparator, other = _COMPARATORS[exact.verb], exact.values[0]
        return Recorded(Compare(comparator, self._operand(), self._value(other)))

    def _is_none(self) -> Condition:
        """Return the condition that the value is None: absent, or NULL if the field stores None as NULL."""
        attribute = self._path.attribute
        encoded = attribute.encode(None) if attribute.optional else None
        if encoded is None:
            return Not(Exists(self._path.path))
        return Compare("=", Attr(self._path.path), Const(encoded))

    def _operand(self) -> Operand:
        self._path.check_comparable()
        attr = Attr(self._path.path)
        return Size(attr) if self._size else attr

    def _value(self, value: Any) -> Operand:
        if isinstance(value, Recorder):
            return value._operand()
        if self._size:
            if not isinstance(value, int) or isinstance(value, bool):
                raise DeclarationError(
                    f"Compare size({self._path.owner}) with a whole number, not {value!r}."
                )
            return Const({"N": str(value)})
        return Const(self._path.encode(value))


class _Root:
    """The recorder of the entity itself."""

    __slots__ = ("_plan",)

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def __getattr__(self, name: str) -> Recorder:
        path = field_path(self._plan, name)
        path.check_stored()
        return Recorder(path)


def record(plan: Plan, written: Callable[[Any], Any]) -> Condition:
    """Call a lambda with a recorder of the entity, and return the recorded condition."""
    result = written(_Root(plan))
    if not isinstance(result, (Recorded, Recorder)):
        raise DeclarationError(
            f"The condition on {plan.name} returned {result!r} instead of a comparison of its fields; "
            f"{_ADVICE}"
        )
    return _check(_condition(result), f"the condition on {plan.name}")


def check_joined(plan: Plan, given: Condition, joined: Condition | None) -> None:
    """Raise DataError if DynamoDB rejects a caller's condition joined with the terms of the store.

    Those terms are few, so only a large condition is checked again.
    """
    if joined is not None and is_large(given):
        _check(joined, f"the condition on {plan.name} with the terms that the store adds")


def _check(condition: Condition, title: str) -> Condition:
    """Raise DataError for a condition that DynamoDB rejects; an embedded engine would not parse its text."""
    try:
        check_condition(condition)
    except ServiceError as error:
        reason = error.message.removeprefix("Invalid ConditionExpression: ").rstrip(";.")
        raise DataError(f"DynamoDB rejects {title}: {reason}.") from error
    return condition


def exists(value: Any) -> bool:
    """Return whether the attribute exists; use it only in a condition."""
    return cast(bool, Recorded(Exists(_recorder(value, "exists")._path.path)))


def missing(value: Any) -> bool:
    """Return whether the attribute is absent; use it only in a condition."""
    return cast(bool, Recorded(Not(Exists(_recorder(value, "missing")._path.path))))


def contains(value: Any, member: Any) -> bool:
    """Return whether a list or set has a member, or a str a substring; use it only in a condition."""
    found = _recorder(value, "contains")
    found._path.check_comparable()
    wanted = Recorder(found._path.contents())._value(member)
    return cast(bool, Recorded(Contains(found._operand(), wanted)))


def between(value: ValueT, low: ValueT, high: ValueT) -> bool:
    """Return whether a value is between two others, both included; use it only in a condition."""
    found = _recorder(value, "between")
    step = found._path.attribute.step
    if step > 1 and not isinstance(low, Recorder) and not isinstance(high, Recorder):
        # Two comparisons round each bound; the bounds of an empty range would be in the wrong order.
        return cast(bool, (found >= low) & (found <= high))
    return cast(bool, Recorded(Between(found._operand(), found._value(low), found._value(high))))


def one_of(value: ValueT, options: Iterable[ValueT]) -> bool:
    """Return whether a value is one of up to 100 options; use it only in a condition."""
    found = _recorder(value, "one_of")
    operands = tuple(found._value(option) for option in options)
    if isinstance(options, Set):
        # A cursor is bound to its condition, and every process has another order of sets.
        operands = tuple(sorted(operands, key=repr))
    if not 0 < len(operands) <= MOST_IN_OPERANDS:
        raise DeclarationError(f"one_of() takes 1 to {MOST_IN_OPERANDS} options, got {len(operands)}.")
    return cast(bool, Recorded(In(found._operand(), operands)))


def size(value: Any) -> int:
    """Return the length of a str or bytes, or the number of members; use it only in a condition."""
    return cast(int, Recorder(_recorder(value, "size")._path, size=True))


def some(value: ValueT | None) -> ValueT:
    """Return an optional value with the type of a present one; use it only in a condition."""
    return cast(ValueT, _recorder(value, "some"))


def _recorder(value: Any, verb: str) -> Recorder:
    if not isinstance(value, Recorder):
        raise DeclarationError(
            f"{verb}() takes a field of the entity and works only in a condition, got {value!r}."
        )
    return value


def _condition(value: Any) -> Condition:
    if isinstance(value, Recorded):
        return value.condition
    if isinstance(value, Recorder):
        # A boolean field used as a condition.
        return Compare("=", value._operand(), Const({"BOOL": True}))
    raise DeclarationError(f"{value!r} is not a condition; compare a field of the entity, and {_ADVICE}")


def _terms(kind: type[And] | type[Or], condition: Condition) -> tuple[Condition, ...]:
    return condition.terms if isinstance(condition, kind) else (condition,)
