"""Texts that people type: control characters are removed, lines and tabs stay (C4.14)."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field

#: C0 and C1 controls but tab and newline, and marks that only change how other text is displayed: overrides
#: of the direction make a report show a text backwards.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")


def clean(text: str) -> str:
    r"""Return a text without control characters; a carriage return becomes a newline.

    >>> clean("Damp\x00 patch\r\n\tsee photo")
    'Damp patch\n\tsee photo'
    """
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _clean(value: object) -> object:
    return clean(value) if isinstance(value, str) else value


def _clean_line(value: object) -> object:
    return " ".join(clean(value).split()) if isinstance(value, str) else value


#: S4.41. The limits come first: they apply to the cleaned text, and errors count its characters.
Title = Annotated[str, Field(min_length=1, max_length=200), BeforeValidator(_clean_line)]
Address = Annotated[str, Field(max_length=500), BeforeValidator(_clean)]
ClientName = Annotated[str, Field(max_length=100), BeforeValidator(_clean_line)]
Name = Annotated[str, Field(min_length=1, max_length=100), BeforeValidator(_clean_line)]
Notes = Annotated[str, Field(max_length=5000), BeforeValidator(_clean)]
ShortText = Annotated[str, Field(max_length=200), BeforeValidator(_clean_line)]
PhraseText = Annotated[str, Field(max_length=5000), BeforeValidator(_clean)]
