"""Parse expression text to unbound trees; raise all errors that depend on the text alone.

Reads nesting of any depth in linear time, without recursion. Caches the trees of short texts. `bind` looks up
the placeholders.
"""

from __future__ import annotations

from typing import Literal, cast

from solotable._expressions.ast import Comparator

from .grammar import MISUSED, REDUNDANT, Label, Reader, invalid_expression
from .lex import Token
from .parse_cache import cache_trees
from .unbound import (
    Call,
    Comparison,
    Conjunction,
    Disjunction,
    Negation,
    OneOf,
    ParsedCondition,
    ParsedProjection,
    ParsedUpdate,
    Range,
    Removal,
    SetChange,
    Setting,
    Sum,
    UnboundAction,
    UnboundCondition,
    UnboundOperand,
    Value,
)

_PREDICATES = frozenset(
    {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains"}
)
_CONDITION_FUNCTIONS = _PREDICATES | {"size"}
_UPDATE_FUNCTIONS = frozenset({"if_not_exists", "list_append"})
_COMPARATORS = frozenset({"=", "<>", "<", "<=", ">", ">="})


@cache_trees
def parse_condition(text: str, label: Label) -> ParsedCondition:
    """Return the tree of a condition, filter or key condition."""
    reader = _Conditions(text, label)
    tree = reader.read_condition()
    reader.finish()
    return ParsedCondition(tree, reader.find_placeholders())


@cache_trees
def parse_update(text: str) -> ParsedUpdate:
    """Return the actions of an update expression, in written order."""
    reader = _Updates(text, "UpdateExpression")
    actions = reader.read_actions()
    reader.finish()
    reader.check_sections()
    return ParsedUpdate(actions, reader.find_placeholders())


@cache_trees
def parse_projection(text: str) -> ParsedProjection:
    """Return the paths of a projection expression, in written order."""
    reader = Reader(text, "ProjectionExpression")
    paths = [reader.read_path()]
    while reader.accept(","):
        paths.append(reader.read_path())
    reader.expect("end")
    reader.finish()
    return ParsedProjection(tuple(paths), reader.find_placeholders())


class _Group:
    """An open parenthesis, or the whole condition: the terms read so far."""

    __slots__ = ("all_of", "any_of", "negated", "wraps")

    def __init__(self) -> None:
        self.any_of: list[UnboundCondition] = []
        self.all_of: list[UnboundCondition] = []
        self.negated = 0
        # Whether it contains only one other group.
        self.wraps = False

    @property
    def fresh(self) -> bool:
        return not (self.all_of or self.any_of or self.negated)

    def add(self, term: UnboundCondition, *, grouped: bool = False) -> None:
        self.wraps = grouped and self.fresh
        # One or two NOTs mean the same as any number of them, and nest less.
        for _ in range(2 - self.negated % 2 if self.negated else 0):
            term = Negation(term)
        self.all_of.append(term)
        self.negated = 0

    def either(self) -> None:
        terms = self.all_of
        self.any_of.append(terms[0] if len(terms) == 1 else Conjunction(tuple(terms)))
        self.all_of = []

    def tree(self) -> UnboundCondition:
        self.either()
        terms = self.any_of
        return terms[0] if len(terms) == 1 else Disjunction(tuple(terms))


class _Conditions(Reader):
    """Conditions, filters and key conditions: comparisons and tests joined by NOT, AND and OR."""

    def read_condition(self) -> UnboundCondition:
        """Read the whole condition, in groups of any depth."""
        groups = [_Group()]
        while True:
            self._read_openings(groups)
            self._read_term(groups)
            while self.kind == ")" and len(groups) > 1:
                self.at += 1
                inner = groups.pop()
                if inner.wraps:
                    raise invalid_expression(self.label, REDUNDANT)
                groups[-1].add(inner.tree(), grouped=True)
            if self.accept("AND"):
                self.operators += 1
            elif self.accept("OR"):
                self.operators += 1
                groups[-1].either()
            elif len(groups) == 1 and self.accept("end"):
                return groups[0].tree()
            else:
                self.raise_unexpected()

    def _read_openings(self, groups: list[_Group]) -> None:
        while True:
            if self.accept("NOT"):
                groups[-1].negated += 1
                self.operators += 1
            elif self.accept("("):
                groups.append(_Group())
            else:
                return

    def _read_term(self, groups: list[_Group]) -> None:
        """Read one comparison or test; parentheses before it may belong to its operand."""
        first = self.tokens[self.at]
        left = self.read_operand()
        closed = 0
        while self.kind == ")" and len(groups) > 1 and groups[-1].fresh:
            self.at += 1
            groups.pop()
            closed += 1
        if self.kind in _COMPARATORS or self.kind in ("BETWEEN", "IN"):
            term = self._read_comparison(first, left)
        elif isinstance(left, Call):
            if left.function == "size":
                self.report_misuse(first)
            term = left
        else:
            self.raise_unexpected()
        if closed > 1:
            raise invalid_expression(self.label, REDUNDANT)
        groups[-1].add(term, grouped=closed == 1 and term is left)

    def _read_comparison(self, first: Token, left: UnboundOperand) -> UnboundCondition:
        self._check_operand(first, left)
        self.operators += 1
        token = self.tokens[self.at]
        self.at += 1
        if token.kind == "BETWEEN":
            low = self._read_compared()
            self.expect("AND")
            return Range(left, low, self._read_compared())
        if token.kind == "IN":
            self.expect("(")
            options = [self._read_compared()]
            while self.accept(","):
                options.append(self._read_compared())
            self.expect(")")
            return OneOf(left, tuple(options))
        return Comparison(cast(Comparator, token.kind), left, self._read_compared())

    def _read_compared(self) -> UnboundOperand:
        first = self.tokens[self.at]
        node = self.read_operand()
        self._check_operand(first, node)
        return node

    def _check_operand(self, first: Token, node: UnboundOperand) -> None:
        if isinstance(node, Call) and node.function in _PREDICATES:
            self.faults.append((first.start, MISUSED + node.function))

    def check_call(self, function: Token, *, inside: bool) -> None:
        name = function.text
        if name in _UPDATE_FUNCTIONS:
            message = f"The function is not allowed in a condition expression; function: {name}"
            self.faults.append((function.start, message))
        elif name not in _CONDITION_FUNCTIONS:
            self.faults.append((function.start, f"Invalid function name; function: {name}"))
        elif inside and name in _PREDICATES:
            self.report_misuse(function)


class _Updates(Reader):
    """Update expressions: sections that each begin with a keyword and list their actions."""

    def __init__(self, text: str, label: Label) -> None:
        super().__init__(text, label)
        self.sections: list[str] = []

    def read_actions(self) -> tuple[UnboundAction, ...]:
        found: list[UnboundAction] = []
        while True:
            section = self.kind
            if section not in ("SET", "REMOVE", "ADD", "DELETE"):
                self.raise_unexpected()
            self.at += 1
            self.sections.append(section)
            found.append(self._read_action(section))
            while self.accept(","):
                found.append(self._read_action(section))
            if self.accept("end"):
                return tuple(found)

    def check_sections(self) -> None:
        for at, section in enumerate(self.sections):
            if section in self.sections[:at]:
                message = f'The "{section}" section can only be used once in an update expression;'
                raise invalid_expression(self.label, message)

    def _read_action(self, section: str) -> UnboundAction:
        path = self.read_path()
        if section == "SET":
            self.expect("=")
            return Setting(path, self._read_setting())
        if section == "REMOVE":
            return Removal(path)
        keyword: Literal["ADD", "DELETE"] = "ADD" if section == "ADD" else "DELETE"
        return SetChange(keyword, path, Value(self.read_value()))

    def _read_setting(self) -> UnboundOperand | Sum:
        opened = 0
        while self.accept("("):
            opened += 1
        left = self._read_summand()
        closed = 0
        while opened and self.accept(")"):
            opened -= 1
            closed += 1
            if closed > 1:
                raise invalid_expression(self.label, REDUNDANT)
        if self.kind not in ("+", "-"):
            if opened:
                self.raise_unexpected()
            return left
        operator: Literal["+", "-"] = "+" if self.kind == "+" else "-"
        self.at += 1
        self.operators += 1
        self._check_summand(left)
        right = self._read_summand()
        self._check_summand(right)
        self.close(opened)
        return Sum(operator, left, right)

    def _read_summand(self) -> UnboundOperand:
        self.first = self.tokens[self.at]
        return self.read_operand()

    def _check_summand(self, node: UnboundOperand) -> None:
        if isinstance(node, Call) and node.function == "list_append":
            self.faults.append((self.first.start, MISUSED + node.function))

    def check_call(self, function: Token, *, inside: bool) -> None:
        name = function.text
        if name in _CONDITION_FUNCTIONS:
            message = f"The function is not allowed in an update expression; function: {name}"
            self.faults.append((function.start, message))
        elif name not in _UPDATE_FUNCTIONS:
            self.faults.append((function.start, f"Invalid function name; function: {name}"))
        elif inside and name == "list_append":
            # DynamoDB: if_not_exists may be an operand of any function, list_append of none.
            self.report_misuse(function)
