"""The grammar that all expressions share: a place in the tokens, paths, values and function calls.

Reads nesting of any depth without recursion. What a kind of expression does not take is noted, and
told once the whole text has proved to be well formed.
"""

from __future__ import annotations

from typing import Final, Literal, NoReturn

from solotable._expressions.ast import Attr
from solotable._values.limits import DEEPEST_PATH, LARGEST_EXPRESSION, LARGEST_LIST_INDEX, MOST_OPERATORS
from solotable.errors import ServiceError, invalid

from .lex import Token, complaint, tokens
from .reserved_words import RESERVED
from .unbound import Alias, Call, NamedPath, UnboundOperand, UnboundPath, UsedPlaceholders, Value

Label = Literal[
    "ConditionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    "ProjectionExpression",
    "UpdateExpression",
]

#: Calls inside calls; far beyond any use, and short of Python's own limit for the rooms that recurse.
DEEPEST_CALL: Final = 100
REDUNDANT: Final = "The expression has redundant parentheses;"
MISUSED: Final = "The function is not allowed to be used this way in an expression; function: "

_TOO_MANY = f"The expression contains too many operators; operator count: {MOST_OPERATORS + 1}"


def refuse(label: str, message: str) -> ServiceError:
    """Return the ValidationException that names the expression at fault."""
    return invalid(f"Invalid {label}: {message}")


def utf8_size(text: str) -> int:
    """Return the length in UTF-8; JSON can carry half a surrogate pair, which counts like a whole letter."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class Reader:
    """A place in the tokens, and what was noticed on the way there."""

    def __init__(self, text: str, label: Label) -> None:
        self.text = text
        self.label = label
        self._check_size()
        self.tokens = tokens(text)
        self.at = 0
        self.operators = 0
        self.deep = False
        # Faults that are told only once the whole text has proved to be well formed, by position.
        self.faults: list[tuple[int, str]] = []

    def _check_size(self) -> None:
        if not self.text:
            raise refuse(self.label, "The expression can not be empty;")
        size = utf8_size(self.text)
        if size > LARGEST_EXPRESSION:
            # DynamoDB: only conditions are told how long they are.
            told = self.label not in ("UpdateExpression", "ProjectionExpression")
            tail = f" expression size: {size}" if told else ""
            raise refuse(self.label, f"Expression size has exceeded the maximum allowed size;{tail}")

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
            self.unexpected()
        self.at += 1
        return token

    def unexpected(self) -> NoReturn:
        raise refuse(self.label, complaint(self.text, self.tokens, self.at))

    def close(self, opened: int) -> None:
        """Read the closing parentheses of what was opened so many times in a row."""
        for closed in range(opened):
            self.expect(")")
            if closed:
                raise refuse(self.label, REDUNDANT)

    def finish(self) -> None:
        # DynamoDB: misused functions and reserved words are told in one pass, the leftmost first.
        if self.faults:
            raise refuse(self.label, min(self.faults)[1])
        if self.operators > MOST_OPERATORS or self.deep:
            raise refuse(self.label, _TOO_MANY)

    def used(self) -> UsedPlaceholders:
        return UsedPlaceholders(
            frozenset(token.text for token in self.tokens if token.kind == "alias"),
            frozenset(token.text for token in self.tokens if token.kind == "value"),
        )

    def path(self) -> UnboundPath:
        if self.kind not in ("name", "alias"):
            self.unexpected()
        parts: list[str | int] = [self._name()]
        while True:
            if self.accept("."):
                # DynamoDB: the grammar takes a value's placeholder here, and then finds no such name.
                if self.kind not in ("name", "alias", "value"):
                    self.unexpected()
                parts.append(self._name())
            elif self.accept("["):
                token = self.expect("index")
                self.expect("]")
                parts.append(self._index(token))
            else:
                break
        if len(parts) > DEEPEST_PATH or any(type(part) is Alias for part in parts):
            return NamedPath(tuple(parts))
        return Attr(tuple(parts))

    def _name(self) -> str:
        token = self.tokens[self.at]
        self.at += 1
        if token.kind != "name":
            return Alias(token.text)
        if token.text.upper() in RESERVED:
            message = f"Attribute name is a reserved keyword; reserved keyword: {token.text}"
            self.faults.append((token.start, message))
        return token.text

    def _index(self, token: Token) -> int:
        # Ten digits are enough to know that an index is too large.
        index = int(token.text[:11])
        if index > LARGEST_LIST_INDEX:
            message = f"List index is not within the allowable range; index: [{token.text}]"
            self.faults.append((token.start, message))
        return index

    def operand(self) -> UnboundOperand:
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
            node: UnboundOperand = Value(self.value()) if self.kind == "value" else self.path()
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

    def value(self) -> str:
        return self.expect("value").text

    def check_call(self, function: Token, *, inside: bool) -> None:
        """Note a call that this kind of expression does not take."""

    def misused(self, function: Token) -> None:
        self.faults.append((function.start, MISUSED + function.text))
