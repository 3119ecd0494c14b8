"""Mark the words of a query in the texts of a hit. Pure.

FTS5's own functions read the matches of a word again for each hit: 40 ms a page for a common word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from solotable.systems.portal.search.records import Fragment

#: The words of a shortened text, and how many of them come before the first match.
_SNIPPET_WORDS = 32
_WORDS_BEFORE = 6
_WORD = re.compile(r"[^\W_]+")
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def fold(text: str) -> str:
    """Return a text without case and accents, as the index compares it.

    >>> fold("Café ÜBER")
    'cafe uber'
    """
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text.lower())
    return unicodedata.normalize(
        "NFC", "".join(each for each in decomposed if not unicodedata.combining(each))
    )


class Highlighter:
    """Marks the words of one query; the last one also at the beginning of longer words."""

    def __init__(self, words: tuple[str, ...], *, last_is_prefix: bool) -> None:
        folded = [part for word in words for part in _WORD.findall(fold(word))]
        self._whole = frozenset(folded)
        self._prefix = folded[-1] if folded and last_is_prefix else None

    def mark(self, text: str) -> tuple[Fragment, ...]:
        """Return a whole text."""
        return _fragments(text, self._is_match)

    def snippet(self, text: str) -> tuple[Fragment, ...]:
        """Return the part of a text around its first match, or its beginning."""
        spans = [found.span() for found in _WORD.finditer(text)]
        first = next((at for at, span in enumerate(spans) if self._is_match(text[slice(*span)])), 0)
        start = max(0, first - _WORDS_BEFORE)
        end = start + _SNIPPET_WORDS
        begin = spans[start][0] if start else 0
        cut = spans[end - 1][1] if end < len(spans) else len(text)
        found = _fragments(text[begin:cut], self._is_match)
        before = (Fragment(_ELLIPSIS),) if start else ()
        after = (Fragment(_ELLIPSIS),) if end < len(spans) else ()
        return (*before, *found, *after)

    def _is_match(self, word: str) -> bool:
        folded = fold(word)
        return folded in self._whole or (self._prefix is not None and folded.startswith(self._prefix))


def _fragments(text: str, is_match: Callable[[str], bool]) -> tuple[Fragment, ...]:
    found: list[Fragment] = []
    at = 0
    for word in _WORD.finditer(text):
        if is_match(word[0]):
            found += [Fragment(text[at : word.start()]), Fragment(word[0], is_match=True)]
            at = word.end()
    return tuple(each for each in (*found, Fragment(text[at:])) if each.text)
