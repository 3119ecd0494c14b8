"""An extension of griffe: shows the examples in docstrings as code.

Docstrings are Markdown, with examples after `>>>` that the tests run. Markdown reads `>>>` as quotes.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"(?:^|(?<=\n))(>>> .*?)(?=\n\s*\n|\Z)", re.DOTALL)


def fence_examples(text: str) -> str:
    """Return a docstring with its examples in code fences.

    >>> fence_examples("Add.\\n\\n>>> 1 + 1\\n2")
    'Add.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```'
    """
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[1]}\n```", text)


class DocstringExamples(Extension):
    """Fences the examples of every docstring that griffe collects."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fence_examples(obj.docstring.value)
