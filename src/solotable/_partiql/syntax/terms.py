"""Parse PartiQL expressions by precedence climbing.

The parser limits the depth and the number of operators, so that its time is linear in the text and no input
exhausts the stack. `conditions` and `updates` check the meaning of expressions.
"""

from __future__ import annotations

from typing import Final

from solotable._partiql.ast import (
    Call,
    Expr,
    Members,
    Missing,
    Operation,
    Parameter,
    Reference,
    Scalar,
    Steps,
    Struct,
    TypeTest,
    height_of,
)
from solotable._values.limits import MOST_OPERATORS
from solotable.errors import ServiceError, invalid

from .lex import Spot, Token, not_well_formed
from .reserved_words import TYPE_NAMES, UNSUPPORTED_TYPE_NAMES

#: Levels of nesting: three times DynamoDB's limit for values.
DEEPEST: Final = 100

_NAMES = ("name", "quoted")
_BINDING: Final = {
    "or": 1,
    "and": 2,
    "=": 4,
    "<>": 4,
    "is": 5,
    "in": 6,
    "between": 6,
    "like": 6,
    "<": 6,
    "<=": 6,
    ">": 6,
    ">=": 6,
    "||": 7,
    "+": 8,
    "-": 8,
    "*": 9,
    "/": 9,
    "%": 9,
}
_NOT_BINDING = 3
_LONGEST_INDEX = 9
_SIGN_BINDING = 10
#: Reserved words that are names of functions; a later check rejects all but `size`.
_CALLABLE: Final = frozenset(
    {
        "size",
        "exists",
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "upper",
        "lower",
        "char_length",
        "character_length",
    }
)
_TWO_WORD_TYPES: Final = {"double": "precision", "character": "varying"}


class Terms:
    """Reads expressions from a list of tokens."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._position = 0
        self._depth = 0
        self._operators = 0
        self.parameters = 0
        #: The first error for an unsupported expression; grammar errors take precedence over it.
        self.rejection: ServiceError | None = None

    @property
    def token(self) -> Token:
        return self._tokens[self._position]

    def advance(self) -> Token:
        token = self.token
        if token.kind != "end":
            self._position += 1
        return token

    def at(self, kind: str, *texts: str) -> bool:
        token = self.token
        return token.kind == kind and (not texts or token.text in texts)

    def take(self, kind: str, *texts: str) -> bool:
        if self.at(kind, *texts):
            self.advance()
            return True
        return False

    def expect(self, kind: str, text: str, detail: str) -> None:
        if not self.take(kind, text):
            raise not_well_formed(detail)

    def reject(self, message: str) -> None:
        if self.rejection is None:
            self.rejection = invalid(message)

    def expression(self, binding: int = 0) -> Expr:
        """Read an expression whose operators bind tighter than `binding`."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise not_well_formed("Expression is nested too deeply")
        left = self._prefix()
        while True:
            negated = self._negates()
            token = self._tokens[self._position + negated]
            power = _BINDING.get(token.text, 0) if token.kind in ("operator", "symbol") else 0
            if power <= binding:
                break
            self._position += negated + 1
            left = self._infix(left, token, power)
            if negated:
                left = self._operation("not", (left,), token.spot)
        self._depth -= 1
        return left

    def _negates(self) -> bool:
        """Return whether the token is the NOT of `x NOT IN`, `x NOT BETWEEN` or `x NOT LIKE`."""
        following = self._tokens[min(self._position + 1, len(self._tokens) - 1)]
        return (
            self.at("operator", "not")
            and following.kind == "operator"
            and (following.text in ("in", "between", "like"))
        )

    def _prefix(self) -> Expr:
        token = self.token
        if token.kind == "operator" and token.text == "not":
            self.advance()
            return self._operation("not", (self.expression(_NOT_BINDING - 1),), token.spot)
        if token.kind == "symbol" and token.text in "+-":
            self.advance()
            operand = self.expression(_SIGN_BINDING)
            if isinstance(operand, Scalar) and "N" in operand.value:
                return _apply_sign(token, operand)
            return self._operation(token.text, (operand,), token.spot)
        return self._term()

    def _infix(self, left: Expr, token: Token, power: int) -> Expr:
        match token.text:
            case "is":
                return self._type_test(left, token)
            case "between":
                low = self._right_side(power)
                self.expect("operator", "and", "Expected AND after BETWEEN")
                return self._operation("between", (left, low, self._right_side(power)), token.spot)
            case "and" | "or":
                return self._logical(left, token, power)
            case "in" if self.at("symbol", "("):
                # The `(1)` of `x IN (1)` is a list with one member; elsewhere `(1)` is the number 1.
                opening = self.advance()
                options = self._list(")")
                members = Members("Seq", options, opening.spot, self._over(*options))
                return self._operation("in", (left, members), token.spot)
            case operator:
                return self._operation(operator, (left, self._right_side(power)), token.spot)

    def _right_side(self, power: int) -> Expr:
        if self.at("end"):
            raise not_well_formed("Missing right-hand side expression of infix operator")
        return self.expression(power)

    def _logical(self, left: Expr, token: Token, power: int) -> Expr:
        # A chain of the same operator becomes one node, so that long conditions are not deep.
        operands = [left, self._right_side(power)]
        while self.take("operator", token.text):
            self._count()
            operands.append(self._right_side(power))
        return self._operation(token.text, tuple(operands), token.spot)

    def _type_test(self, operand: Expr, token: Token) -> Expr:
        negated = self.take("operator", "not")
        name = self.advance()
        word = name.text.lower()
        if name.kind in ("keyword", "name") and self.at("keyword", _TWO_WORD_TYPES.get(word, "")):
            word += " " + self.advance().text
        if name.kind not in ("keyword", "name") or not (word in TYPE_NAMES or word in UNSUPPORTED_TYPE_NAMES):
            raise not_well_formed("Expected type name")
        self._count()
        test = TypeTest(operand, word, token.spot, self._over(operand))
        return self._operation("not", (test,), token.spot) if negated else test

    def _operation(self, operator: str, operands: tuple[Expr, ...], spot: Spot) -> Operation:
        self._count()
        return Operation(operator, operands, spot, self._over(*operands))

    def _count(self) -> None:
        self._operators += 1
        if self._operators > MOST_OPERATORS:
            self.reject(f"The expression contains too many operators; operator count: {MOST_OPERATORS + 1}")

    def _over(self, *operands: Expr) -> int:
        height = 1 + max(map(height_of, operands), default=0)
        if height > DEEPEST:
            raise not_well_formed("Expression is nested too deeply")
        return height

    def _term(self) -> Expr:
        token = self.token
        match token.kind:
            case "string":
                self.advance()
                return Scalar({"S": token.text}, token.spot)
            case "number":
                self.advance()
                return Scalar({"N": token.text}, token.spot)
            case "ion":
                self.advance()
                self.reject(f"Ion Literals are not supported at {token.spot}")
                return Scalar({"S": token.text}, token.spot)
            case "name" | "quoted":
                return self._reference_or_call()
            case "keyword":
                return self._keyword_term()
            case "symbol":
                return self._symbol_term()
            case "operator":
                raise not_well_formed("Unexpected operator")
            case _:
                raise not_well_formed("Unexpected term")

    def _reference_or_call(self) -> Expr:
        token = self.advance()
        if token.kind == "name" and self.at("symbol", "("):
            return self._call(token)
        return self._path(token)

    def _keyword_term(self) -> Expr:
        token = self.advance()
        match token.text:
            case "true" | "false":
                return Scalar({"BOOL": token.text == "true"}, token.spot)
            case "null":
                return Scalar({"NULL": True}, token.spot)
            case "missing":
                return Missing(token.spot)
            case "select":
                self.nested_select()
                self.reject(f"Unsupported token in expression: SELECT at {token.spot}")
                return Missing(token.spot)
            case "case" | "cast":
                raise invalid(f"Unsupported token in expression: {token.text.upper()} at {token.spot}")
            case "from":
                raise self.from_in_expression()
            case word if word in _CALLABLE and self.at("symbol", "("):
                return self._call(token)
            case _:
                raise not_well_formed("Unexpected keyword")

    def nested_select(self) -> None:
        """Read the rest of a SELECT in the middle of an expression."""
        raise not_well_formed("Unexpected keyword")

    def from_in_expression(self) -> ServiceError:
        """Return the error for a FROM in the middle of an expression."""
        return not_well_formed("Expected data manipulation")

    def _symbol_term(self) -> Expr:
        token = self.advance()
        match token.text:
            case "?":
                self.parameters += 1
                return Parameter(self.parameters - 1, token.spot)
            case "@":
                return self._path(self.identifier("Expected identifier for simple path"))
            case "[":
                return self._members("List", "]", token)
            case "<<":
                return self._members("Bag", ">>", token)
            case "{":
                return self._struct(token)
            case "(":
                return self._parenthesis(token)
            case "=" | "<" | ">" | "<=" | ">=" | "<>" | "*" | "/" | "%" | "||":
                raise not_well_formed("Unexpected operator")
            case _:
                raise not_well_formed("Unexpected term")

    def _parenthesis(self, token: Token) -> Expr:
        first = self.expression()
        if not self.at("symbol", ","):
            self.expect("symbol", ")", "Expected closing parenthesis")
            return first
        members = [first]
        while self.take("symbol", ","):
            members.append(self.expression())
        self.expect("symbol", ")", "Expected closing parenthesis")
        return Members("Seq", tuple(members), token.spot, self._over(*members))

    def _list(self, closing: str) -> tuple[Expr, ...]:
        if self.take("symbol", closing):
            return ()
        members = [self.expression()]
        while self.take("symbol", ","):
            members.append(self.expression())
        self.expect("symbol", closing, "Expected closing token")
        return tuple(members)

    def _members(self, kind: str, closing: str, token: Token) -> Expr:
        members = self._list(closing)
        return Members("List" if kind == "List" else "Bag", members, token.spot, self._over(*members))

    def _struct(self, token: Token) -> Expr:
        pairs: list[tuple[Expr, Expr]] = []
        if not self.take("symbol", "}"):
            pairs.append(self._pair())
            while self.take("symbol", ","):
                pairs.append(self._pair())
            self.expect("symbol", "}", "Expected closing token")
        return Struct(tuple(pairs), token.spot, self._over(*(value for _, value in pairs)))

    def _pair(self) -> tuple[Expr, Expr]:
        key = self.expression()
        self.expect("symbol", ":", "Expected : after the key of a tuple")
        return key, self.expression()

    def _call(self, name: Token) -> Expr:
        self.advance()
        self._count()
        if self.at("symbol", "*"):
            # COUNT(*); a later check rejects it.
            self.advance()
            self.expect("symbol", ")", "Expected closing parenthesis")
            return Call(name.text.lower(), (), name.spot, 1)
        operands = self._list(")")
        return Call(name.text.lower(), operands, name.spot, self._over(*operands))

    def identifier(self, detail: str) -> Token:
        """Read a plain or quoted name."""
        if self.token.kind not in _NAMES:
            raise not_well_formed(detail)
        return self.advance()

    def _path(self, head: Token) -> Reference:
        steps: list[str | int] = [self._check_name(head)]
        spot = head.spot
        while True:
            if self.take("symbol", "."):
                if self.at("symbol", "*"):
                    star = self.advance()
                    self.reject(f"Unpivot path component like a.*.b are not supported at {star.spot}")
                    continue
                step = self.identifier("Invalid path dot component")
                steps.append(self._check_name(step))
            elif self.take("symbol", "["):
                self._bracket(steps)
            else:
                return Reference(tuple(steps), spot)

    def _check_name(self, token: Token) -> str:
        if not token.text:
            self.reject("Path component cannot be an empty string")
        return token.text

    def _bracket(self, steps: list[str | int]) -> None:
        if self.at("symbol", "*"):
            star = self.advance()
            self.reject(f"Wildcard path component like a[*].b are not supported at {star.spot}")
        else:
            inside = self.expression()
            match inside:
                case Scalar({"S": str(name)}):
                    steps.append(name)
                case Scalar({"N": str(text)}) if text.isdecimal() and len(text) <= _LONGEST_INDEX:
                    steps.append(int(text))
                case Scalar({"N": str(text)}) if text.lstrip("-").isdecimal():
                    self.reject(
                        f"List index is not within the allowable range; index: [{text}] at {inside.spot}"
                    )
                case _:
                    self.reject(f"Unexpected path component at {inside.spot}")
        self.expect("symbol", "]", "Expected closing token")

    def simple_path(self) -> Steps:
        """Read the path of a SET, a REMOVE, or an INSERT, UPDATE or DELETE."""
        return self._path(self.identifier("Expected identifier for simple path")).steps


def _apply_sign(sign: Token, operand: Scalar) -> Scalar:
    text = operand.value["N"]
    if sign.text == "-":
        text = text[1:] if text.startswith("-") else "-" + text
    return Scalar({"N": text}, operand.spot)
