"""Texts that people type: control characters are removed, lines and tabs stay."""

from __future__ import annotations

import re

#: C0 and C1 controls but tab and newline, and marks that only change how other text is displayed.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")


def clean(text: str) -> str:
    r"""Return a text without control characters; a carriage return becomes a newline.

    >>> clean("Damp\x00 patch\r\n\tsee photo")
    'Damp patch\n\tsee photo'
    """
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def clean_value(value: object) -> object:
    """Clean a text, for a validator before a field's own; return anything else as it is."""
    return clean(value) if isinstance(value, str) else value


def clean_line(value: object) -> object:
    """Clean a text of one line, with single spaces; return anything else as it is."""
    return " ".join(clean(value).split()) if isinstance(value, str) else value
