"""The records of search: documents, queries with their filters and visibility, hits and facets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from solotable.systems.errors import InvalidInput

#: The longest text of a query, and its most words.
LONGEST_TEXT = 256
MOST_WORDS = 16
#: The most hits on a page, and the most values of a facet.
LARGEST_PAGE = 100
MOST_FACET_VALUES = 50
#: The length of a summary in a hit.
LONGEST_SNIPPET = 240
#: The facets of a page, by the name of their filter.
FACETS = ("status", "suite", "concept", "audience", "tags")
#: Mark a match inside a text. Indexes store documents without control characters, see `printable`.
MATCH_BEGINS = "\x02"
MATCH_ENDS = "\x03"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What search knows of one content item."""

    content_id: str
    title: str
    summary: str
    status: str
    owner: str
    tags: tuple[str, ...] = ()
    suite: str | None = None
    concept: str | None = None
    audience: str | None = None
    updated: datetime
    #: The number that each write of the item increases; an index ignores older ones.
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Visibility:
    """Which documents a caller may find and count: those of some statuses, and the caller's own."""

    statuses: frozenset[str]
    owner: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A text and filters. Values of one filter are alternatives, but a document needs every tag."""

    visible: Visibility
    text: str = ""
    status: tuple[str, ...] = ()
    suite: tuple[str, ...] = ()
    concept: tuple[str, ...] = ()
    audience: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    #: A document needs one of these, as the tags of a subscription.
    any_tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.text) > LONGEST_TEXT:
            raise InvalidInput(f"query: write at most {LONGEST_TEXT} characters.")
        if len(self.words) > MOST_WORDS:
            raise InvalidInput(f"query: write at most {MOST_WORDS} words.")
        for name in (*FACETS, "any_tags"):
            if len(getattr(self, name)) > MOST_FACET_VALUES:
                raise InvalidInput(f"{name}: give at most {MOST_FACET_VALUES} values.")

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the text that contain a letter or a digit."""
        cleaned = printable(self.text)
        return tuple(word for word in cleaned.split() if any(each.isalnum() for each in word))

    @property
    def has_text(self) -> bool:
        """Whether the caller wrote anything; a text without words finds nothing."""
        return bool(self.text.strip())


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a text, and whether it matches the query. Escape the text before you show it."""

    text: str
    is_match: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A document that was found: its fields, its score (higher is better) and its highlighted texts."""

    document: Document
    score: float = 0.0
    title: tuple[Fragment, ...]
    summary: tuple[Fragment, ...]


#: A position behind a hit, as JSON has it: numbers and texts.
Position = tuple[float | int | str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPage:
    """One page of hits, the counts of all visible matches by facet, and the position of the next page."""

    hits: tuple[Hit, ...]
    total: int
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: None on the last page.
    next: Position | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """How many documents an index has, its checkpoint, and up to when it has all changes."""

    documents: int
    checkpoint: str | None = None
    caught_up_at: float | None = None


def check_limit(limit: int) -> None:
    """Raise InvalidInput for a page that is too small or too large."""
    if not 1 <= limit <= LARGEST_PAGE:
        raise InvalidInput(f"limit: give a number from 1 to {LARGEST_PAGE}.")


def top_values(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the most frequent values of a facet, ties in the order of the values."""
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return dict(ordered[:MOST_FACET_VALUES])


def shorten(text: str) -> str:
    """Return the beginning of a text, cut at a word."""
    if len(text) <= LONGEST_SNIPPET:
        return text
    return text[:LONGEST_SNIPPET].rsplit(" ", 1)[0] + "\N{HORIZONTAL ELLIPSIS}"


def printable(text: str) -> str:
    """Return a text with a space for each control character."""
    return "".join(each if each.isprintable() or each.isspace() else " " for each in text)


def fragments(marked: str) -> tuple[Fragment, ...]:
    """Return a text with match marks as fragments.

    >>> [(each.text, each.is_match) for each in fragments("a \x02b\x03 c")]
    [('a ', False), ('b', True), (' c', False)]
    """
    first, *rest = marked.split(MATCH_BEGINS)
    found = [Fragment(first)]
    for part in rest:
        match, _, after = part.partition(MATCH_ENDS)
        found += [Fragment(match, is_match=True), Fragment(after)]
    return tuple(each for each in found if each.text)
