"""Split PartiQL text into tokens with their positions.

The lexer drops comments and white space, and rejects characters that cannot start a token.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from solotable.errors import ServiceError, invalid

from .reserved_words import OPERATORS, RESERVED

_NOT_WELL_FORMED: Final = "Statement wasn't well formed, can't be processed: "
_LARGEST_INT = 2**31 - 1

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n\f\v]+|--[^\n]*|/\*.*?\*/)
    |(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
    |(?P<quoted>"(?:[^"]|"")*")
    |(?P<string>'(?:[^']|'')*')
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_$]))
    |(?P<ion>`[^`]*`)
    |(?P<symbol><<|>>|<=|>=|<>|!=|\|\||/(?!\*)|[-+*%=<>()\[\]{},.:;?@])""",
    re.VERBOSE | re.DOTALL,
)


class Spot(NamedTuple):
    """A position in the text in DynamoDB's format: line and column from 1, and length."""

    line: int
    column: int
    length: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}:{self.length}"


class Token(NamedTuple):
    """`kind` is name, quoted, keyword, operator, string, number, ion, symbol or end.

    Keywords and word operators are in lower case. Strings and quoted names are without their quotes.
    """

    kind: str
    text: str
    spot: Spot


def not_well_formed(detail: str = "") -> ServiceError:
    """Return DynamoDB's error for a text that is not a statement."""
    return invalid(_NOT_WELL_FORMED + detail)


def split_tokens(text: str) -> list[Token]:
    """Split the text into tokens; the last one is the end."""
    found: list[Token] = []
    position = 0
    line, line_start = 1, 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            # DynamoDB: the message ends after the colon if the text cannot be split into tokens.
            raise not_well_formed()
        raw = match[0]
        if match.lastgroup != "blank":
            spot = Spot(line, position - line_start + 1, len(raw))
            found.append(_token(str(match.lastgroup), raw, spot))
        position = match.end()
        breaks = raw.count("\n")
        if breaks:
            line += breaks
            line_start = match.start() + raw.rindex("\n") + 1
    found.append(Token("end", "", Spot(line, position - line_start + 1, 0)))
    return found


def _token(kind: str, raw: str, spot: Spot) -> Token:
    match kind:
        case "name":
            word = raw.lower()
            if word in OPERATORS:
                return Token("operator", word, spot)
            return Token("keyword", word, spot) if word in RESERVED else Token("name", raw, spot)
        case "quoted":
            return Token(kind, raw[1:-1].replace('""', '"'), spot)
        case "string":
            return Token(kind, raw[1:-1].replace("''", "'"), spot)
        case "number":
            _check_scale(raw)
            return Token(kind, raw, spot)
        case _:
            return Token(kind, "<>" if raw == "!=" else raw, spot)


def _check_scale(number: str) -> None:
    # DynamoDB: exponent and scale (digits after the point less the exponent) must fit 32 bits.
    mantissa, mark, exponent = number.lower().partition("e")
    if not mark:
        return
    digits = exponent.lstrip("+-0") or "0"
    power = int(digits) if len(digits) < 12 else 10**12
    if exponent.startswith("-"):
        power = -power
    scale = len(mantissa.partition(".")[2]) - power
    if abs(power) > _LARGEST_INT or abs(scale) > _LARGEST_INT:
        raise not_well_formed()
