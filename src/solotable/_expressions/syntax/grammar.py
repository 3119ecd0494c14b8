"""The part of the grammar that all expressions share: paths, values and function calls.

Reads nesting of any depth without recursion. Collects misused functions and names, and reports them only
when the whole text is well formed.
"""

from __future__ import annotations

from typing import Final, Literal, NoReturn

from solotable._expressions.ast import Attr
from solotable._values.limits import DEEPEST_PATH, LARGEST_EXPRESSION, LARGEST_LIST_INDEX, MOST_OPERATORS
from solotable.errors import ServiceError, invalid

from .lex import Token, describe_unexpected, split_tokens
from .reserved_words import RESERVED
from .unbound import Alias, Call, NamedPath, UnboundOperand, UnboundPath, UsedPlaceholders, Value

Label = Literal[
    "ConditionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    "ProjectionExpression",
    "UpdateExpression",
]

#: Calls inside calls: more than any use needs, less than Python's recursion limit allows.
DEEPEST_CALL: Final = 100
REDUNDANT: Final = "The expression has redundant parentheses;"
MISUSED: Final = "The function is not allowed to be used this way in an expression; function: "

_TOO_MANY = f"The expression contains too many operators; operator count: {MOST_OPERATORS + 1}"


def invalid_expression(label: str, message: str) -> ServiceError:
    """Return the ValidationException that names the kind of expression."""
    return invalid(f"Invalid {label}: {message}")


def utf8_size(text: str) -> int:
    """Return the length in UTF-8; a lone surrogate, which JSON can carry, counts three bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class Reader:
    """A cursor in the tokens, with the faults found before it."""

    def __init__(self, text: str, label: Label) -> None:
        self.text = text
        self.label = label
        self._check_size()
        self.tokens = split_tokens(text)
        self.at = 0
        self.operators = 0
        self.deep = False
        # Faults by position, reported only when the whole text is well formed.
        self.faults: list[tuple[int, str]] = []

    def _check_size(self) -> None:
        if not self.text:
            raise invalid_expression(self.label, "The expression can not be empty;")
        size = utf8_size(self.text)
        if size > LARGEST_EXPRESSION:
            # DynamoDB: the error for conditions shows the size, others do not.
            is_condition = self.label not in ("UpdateExpression", "ProjectionExpression")
            tail = f" expression size: {size}" if is_condition else ""
            raise invalid_expression(
                self.label, f"Expression size has exceeded the maximum allowed size;{tail}"
            )

    @property
    def kind(self) -> str:
        return self.tokens[self.at].kind

    def accept(self, kind: str) -> bool:
        if self.tokens[self.at].kind == kind:
            self.at += 1
            return True
        return False

    def expect(self, kind: str) -> Token:
        token = self.tokens[self.at]
        if token.kind != kind:
            self.raise_unexpected()
        self.at += 1
        return token

    def raise_unexpected(self) -> NoReturn:
        raise invalid_expression(self.label, describe_unexpected(self.text, self.tokens, self.at))

    def close(self, opened: int) -> None:
        """Read as many closing parentheses as were opened in a row."""
        for closed in range(opened):
            self.expect(")")
            if closed:
                raise invalid_expression(self.label, REDUNDANT)

    def finish(self) -> None:
        # DynamoDB: reports misused functions and reserved words in one pass, the leftmost first.
        if self.faults:
            raise invalid_expression(self.label, min(self.faults)[1])
        if self.operators > MOST_OPERATORS or self.deep:
            raise invalid_expression(self.label, _TOO_MANY)

    def find_placeholders(self) -> UsedPlaceholders:
        return UsedPlaceholders(
            frozenset(token.text for token in self.tokens if token.kind == "alias"),
            frozenset(token.text for token in self.tokens if token.kind == "value"),
        )

    def read_path(self) -> UnboundPath:
        if self.kind not in ("name", "alias"):
            self.raise_unexpected()
        parts: list[str | int] = [self._read_name()]
        while True:
            if self.accept("."):
                # DynamoDB: the grammar accepts a value's placeholder here, and then finds no such name.
                if self.kind not in ("name", "alias", "value"):
                    self.raise_unexpected()
                parts.append(self._read_name())
            elif self.accept("["):
                token = self.expect("index")
                self.expect("]")
                parts.append(self._read_index(token))
            else:
                break
        if len(parts) > DEEPEST_PATH or any(type(part) is Alias for part in parts):
            return NamedPath(tuple(parts))
        return Attr(tuple(parts))

    def _read_name(self) -> str:
        token = self.tokens[self.at]
        self.at += 1
        if token.kind != "name":
            return Alias(token.text)
        if token.text.upper() in RESERVED:
            message = f"Attribute name is a reserved keyword; reserved keyword: {token.text}"
            self.faults.append((token.start, message))
        return token.text

    def _read_index(self, token: Token) -> int:
        # Eleven digits are enough to know that an index is too large.
        index = int(token.text[:11])
        if index > LARGEST_LIST_INDEX:
            message = f"List index is not within the allowable range; index: [{token.text}]"
            self.faults.append((token.start, message))
        return index

    def read_operand(self) -> UnboundOperand:
        """Read a path, a value or a call, with or without parentheses around it."""
        calls: list[tuple[Token, list[UnboundOperand], int]] = []
        while True:
            opened = 0
            while self.accept("("):
                opened += 1
            if self.kind == "name" and self.tokens[self.at + 1].kind == "(":
                calls.append((self.tokens[self.at], [], opened))
                self.deep = self.deep or len(calls) > DEEPEST_CALL
                self.at += 2
                continue
            node: UnboundOperand = Value(self.read_value()) if self.kind == "value" else self.read_path()
            while True:
                self.close(opened)
                if not calls:
                    return node
                function, arguments, opened = calls[-1]
                arguments.append(node)
                if self.accept(","):
                    break
                self.expect(")")
                calls.pop()
                self.operators += 1
                self.check_call(function, inside=bool(calls))
                node = Call(function.text, tuple(arguments))

    def read_value(self) -> str:
        return self.expect("value").text

    def check_call(self, function: Token, *, inside: bool) -> None:
        """Record a call that this kind of expression does not allow."""

    def report_misuse(self, function: Token) -> None:
        self.faults.append((function.start, MISUSED + function.text))
