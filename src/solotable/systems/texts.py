"""Texts that people type: control characters are removed, lines and tabs stay."""

from __future__ import annotations

import re

from pydantic import ValidationInfo

from solotable import is_stored

#: C0 and C1 controls but tab and newline, and marks that only change how other text is displayed: overrides
#: of the direction make a page show a text backwards.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")


def clean(text: str) -> str:
    r"""Return a text without control characters; a carriage return becomes a newline.

    >>> clean("Damp\x00 patch\r\n\tsee photo")
    'Damp patch\n\tsee photo'
    """
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def clean_value(value: object, info: ValidationInfo) -> object:
    """Clean a text, for a validator before a field's own; return anything else as it is.

    A stored text was clean when it was written.
    """
    return clean(value) if isinstance(value, str) and not is_stored(info) else value


def clean_line(value: object) -> object:
    """Clean a text of one line, with single spaces; return anything else as it is."""
    if not isinstance(value, str):
        return value
    # Nearly every line is clean. This test takes a third of the time of cleaning it.
    if value.isprintable() and "  " not in value and value[:1] != " " and value[-1:] != " ":
        return value
    return " ".join(clean(value).split())
