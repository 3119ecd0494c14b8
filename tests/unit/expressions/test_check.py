"""The check of a tree against DynamoDB's limits, beside the parser's check of its text."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from solotable._expressions.ast import (
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
    Same,
    Size,
    TypeIs,
)
from solotable._expressions.check import check_condition
from solotable._expressions.render import Placeholders, render_condition
from solotable._expressions.syntax.compile import compile_expressions
from solotable._values import TYPES
from solotable.errors import SolotableError

from .strategies import CONDITIONS

Path = tuple[str | int, ...]


def by_the_parser(condition: Condition) -> None:
    """Check a condition as it was checked before trees were: print it and compile the text."""
    members: dict[str, Any] = {}
    placeholders = Placeholders()
    text = render_condition(condition, placeholders)
    placeholders.add_to(members)
    compile_expressions(
        condition=text,
        names=members.get("ExpressionAttributeNames"),
        values=members.get("ExpressionAttributeValues"),
    )


def outcome(check: Callable[[Condition], None], condition: Condition) -> tuple[type, str] | None:
    try:
        check(condition)
    except SolotableError as error:
        return type(error), str(error)
    return None


def assert_same(condition: Condition) -> None:
    assert outcome(check_condition, condition) == outcome(by_the_parser, condition)


class Trees:
    """Random trees; `faults` is the share of operands and values that DynamoDB may reject."""

    def __init__(self, seed: int, faults: float) -> None:
        self.random = random.Random(seed)
        self.faults = faults

    def faulty(self) -> bool:
        return self.random.random() < self.faults

    def value(self) -> dict[str, Any]:
        if self.faulty():
            deep: dict[str, Any] = {"S": "x"}
            for _ in range(self.random.randint(29, 34)):
                deep = {"L": [deep]}
            return self.random.choice(
                [
                    {"N": "1e200"},
                    {"N": "one"},
                    {"N": "1.50"},
                    {"SS": []},
                    {"SS": ["a", "a"]},
                    {"NULL": True},
                    {"BOOL": True},
                    {"L": [{"N": "1"}]},
                    {"M": {"": {"S": "x"}}},
                    {"B": "AA=="},
                    deep,
                ]
            )
        return {"N": str(self.random.randint(0, 9999))}

    def path(self) -> Path:
        length = self.random.choice([1, 1, 1, 2, 3])
        if self.faulty():
            length = self.random.randint(29, 35)
        path: list[str | int] = [self.name()]
        path.extend(self.name() if self.random.random() < 0.7 else self.index() for _ in range(length - 1))
        return tuple(path)

    def name(self) -> str:
        if self.faulty():
            return self.random.choice(
                ["", "é", "a b", "size", "\udc00", "x" * 65_535, "x" * 65_536, "é" * 32_768]
            )
        return f"name{self.random.randint(0, 1500)}"

    def index(self) -> int:
        if self.faulty():
            return self.random.choice([2**31 - 1, 2**31, -1, 10**12])
        return self.random.randint(0, 200)

    def operand(self) -> Operand:
        kind = self.random.choice("aacs")
        if kind == "c":
            return Const(self.value())
        attribute = Attr(self.path())
        return Size(attribute) if kind == "s" else attribute

    def pair(self) -> tuple[Operand, Operand]:
        first = self.operand()
        return first, first if self.faulty() else self.operand()

    def range(self) -> tuple[Operand, Operand]:
        low, high = sorted(self.random.randint(0, 9999) for _ in range(2))
        return Const({"N": str(low)}), Const({"N": str(high)})

    def test(self) -> Condition:
        match self.random.randint(0, 6):
            case 0:
                return Compare(self.random.choice(["=", "<>", "<", "<=", ">", ">="]), *self.pair())
            case 1:
                return Between(self.operand(), *(self.pair() if self.faulty() else self.range()))
            case 2:
                most = 103 if self.faulty() else 3
                return In(self.operand(), tuple(self.operand() for _ in range(self.random.randint(1, most))))
            case 3:
                return Exists(self.path())
            case 4:
                return TypeIs(self.operand(), "X" if self.faulty() else self.random.choice(TYPES))
            case 5:
                prefix = self.operand() if self.faulty() else Const({"S": "x"})
                return BeginsWith(Attr(self.path()), prefix)
            case _:
                return Contains(*self.pair())

    def tree(self, tests: int) -> Condition:
        """Return a condition of so many tests, joined at random."""
        condition: Condition
        if tests == 1:
            condition = self.test()
        else:
            parts = self.random.randint(2, min(tests, 40))
            share, rest = divmod(tests, parts)
            terms = tuple(self.tree(share + (part < rest)) for part in range(parts))
            condition = And(terms) if self.random.random() < 0.5 else Or(terms)
        while self.random.random() < 0.1:
            condition = Not(condition)
        if self.faults and self.random.random() < 0.01:
            odd: list[Condition] = [
                And((condition,)),
                Or((condition,)),
                And(()),
                Or((condition, Or(()))),
                Same(condition, condition),
            ]
            condition = self.random.choice(odd)
        return condition


SEEDS = st.integers(0, 2**32)


@given(CONDITIONS)
@settings(max_examples=600)
def test_a_small_tree_is_accepted_and_rejected_as_its_text_is(condition: Condition) -> None:
    assert_same(condition)


@given(seed=SEEDS, tests=st.integers(1, 12), faults=st.sampled_from([0.02, 0.1, 0.3]))
@settings(max_examples=1000, deadline=None)
def test_a_tree_with_faults_is_rejected_with_the_parsers_words(seed: int, tests: int, faults: float) -> None:
    assert_same(Trees(seed, faults).tree(tests))


@given(seed=SEEDS, tests=st.integers(1, 250))
@settings(max_examples=500, deadline=None)
def test_trees_of_every_size_are_accepted_as_their_text_is(seed: int, tests: int) -> None:
    assert_same(Trees(seed, 0.0).tree(tests))


@given(tests=st.integers(140, 160), joined=st.sampled_from([And, Or]), nots=st.integers(0, 12))
@settings(max_examples=100, deadline=None)
def test_the_number_of_operators(tests: int, joined: type[And | Or], nots: int) -> None:
    terms: list[Condition] = [Compare("=", Attr(("a",)), Const({"N": "1"})) for _ in range(tests)]
    for at in range(nots):
        terms[at] = Not(terms[at])
    assert_same(joined(tuple(terms)))


@given(options=st.integers(95, 105), lists=st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_the_operands_of_in(options: int, lists: int) -> None:
    def one_of(start: int) -> Condition:
        return In(Attr(("a",)), tuple(Const({"N": str(start + at)}) for at in range(options)))

    assert_same(And(tuple(one_of(1000 * at) for at in range(lists))))


@given(names=st.integers(180, 420), kind=st.sampled_from(["exists", "compare", "size"]))
@settings(max_examples=200, deadline=None)
@example(names=1, kind="exists")
def test_the_bytes_of_the_text(names: int, kind: str) -> None:
    # Few operators and many names, so that only the size decides.
    paths: list[Path] = [
        tuple(f"n{at}" for at in range(start, min(start + 30, names))) for start in range(0, names, 30)
    ]
    match kind:
        case "exists":
            terms: list[Condition] = [Exists(path) for path in paths]
        case "compare":
            terms = [Compare("<", Attr(path), Const({"S": "x"})) for path in paths]
        case _:
            terms = [Between(Size(Attr(path)), Const({"N": "1"}), Const({"N": "2"})) for path in paths]
    long = And(tuple(terms * 3))
    assert_same(long)
    assert_same(And(tuple(terms)))


@pytest.mark.parametrize("depth", range(30, 35))
def test_the_depth_of_a_path(depth: int) -> None:
    assert_same(Exists(tuple("a" for _ in range(depth))))
    assert_same(Compare("=", Attr(("a", *[0] * (depth - 1))), Const({"N": "1"})))


def test_nested_negations_and_groups() -> None:
    condition: Condition = Exists(("a",))
    for depth in range(320):
        condition = Not(condition) if depth % 3 else Or((condition, Exists(("b",))))
        assert_same(condition)
