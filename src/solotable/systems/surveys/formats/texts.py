"""Texts that people type: control characters are removed, lines and tabs stay (C4.14)."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo

from solotable import is_stored

#: C0 and C1 controls but tab and newline, and marks that only change how other text is displayed: overrides
#: of the direction make a report show a text backwards.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")


def clean(text: str) -> str:
    r"""Return a text without control characters; a carriage return becomes a newline.

    >>> clean("Damp\x00 patch\r\n\tsee photo")
    'Damp patch\n\tsee photo'
    """
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _clean(value: object, info: ValidationInfo) -> object:
    # A stored text was clean when it was written.
    return clean(value) if isinstance(value, str) and not is_stored(info) else value


def _clean_line(value: object) -> object:
    if not isinstance(value, str):
        return value
    # Nearly every line is clean. This test takes a third of the time of cleaning it.
    if value.isprintable() and "  " not in value and value[:1] != " " and value[-1:] != " ":
        return value
    return " ".join(clean(value).split())


# The cleaning comes last here: Pydantic runs it first, and checks the length of its result without Python. So
# limits apply to the cleaned text, and errors count its characters.
#: S4.41
Title = Annotated[str, Field(min_length=1, max_length=200), BeforeValidator(_clean_line)]
Address = Annotated[str, Field(max_length=500), BeforeValidator(_clean)]
ClientName = Annotated[str, Field(max_length=100), BeforeValidator(_clean_line)]
Name = Annotated[str, Field(min_length=1, max_length=100), BeforeValidator(_clean_line)]
Notes = Annotated[str, Field(max_length=5000), BeforeValidator(_clean)]
ShortText = Annotated[str, Field(max_length=200), BeforeValidator(_clean_line)]
PhraseText = Annotated[str, Field(max_length=5000), BeforeValidator(_clean)]
