"""Split expression text into tokens, and describe a token in DynamoDB's syntax errors.

Never raises: a character outside the grammar becomes a token that no rule accepts.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

KEYWORDS: Final = frozenset({"AND", "OR", "NOT", "BETWEEN", "IN", "SET", "REMOVE", "ADD", "DELETE"})

# DynamoDB: a bare name starts with a letter; any letter, digit or _ may follow # or :.
_TOKEN = re.compile(
    r"[ \t\r\n]*(?:"
    r"(?P<name>[A-Za-z][A-Za-z0-9_]*)"
    r"|(?P<alias>#[A-Za-z0-9_]+)"
    r"|(?P<value>:[A-Za-z0-9_]+)"
    r"|(?P<index>0|[1-9][0-9]*)"
    r"|(?P<sign><>|<=|>=|[=<>()\[\],.+-])"
    r"|(?P<other>.)"
    r"|(?P<end>\Z))",
    re.DOTALL,
)


class Token(NamedTuple):
    """`kind` is name, alias, value, index, other or end; a sign or a keyword is its own kind."""

    kind: str
    text: str
    start: int
    end: int


def split_tokens(text: str) -> list[Token]:
    """Return the tokens of an expression; the last one is the end."""
    found = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "end"
        word = match[kind]
        start = match.start(kind)
        if kind == "sign":
            kind = word
        elif kind == "name" and word.upper() in KEYWORDS:
            kind = word.upper()
        found.append(Token(kind, word, start, start + len(word)))
        if kind == "end":
            break
    return found


def describe_unexpected(text: str, found: list[Token], at: int) -> str:
    """Return DynamoDB's description of an unexpected token: the token and its neighbours."""
    token = found[at]
    start = found[at - 1].start if at else 0
    if token.kind == "end":
        return f'Syntax error; token: "<EOF>", near: "{text[start:]}"'
    # DynamoDB: shows the spaces at either end of the text.
    after = found[at + 1]
    end = len(text) if after.kind == "end" else after.end
    return f'Syntax error; token: "{token.text}", near: "{text[start:end]}"'
