"""The records that rendering takes: a site, its posts in order, and what a page shows of each."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from markupsafe import Markup

from solotable.systems.browser.dates import long_day
from solotable.systems.errors import InvalidInput
from solotable.systems.texts import clean

from .markdown import Block, Heading, Paragraph, blocks_html, inline_html, parse, plain_text

_SUMMARY_CHARACTERS = 200
_WORDS_A_MINUTE = 200
#: What XML 1.0 and UTF-8 cannot hold; `clean` removes the control characters.
_UNENCODABLE = re.compile("[\ud800-\udfff\ufffe\uffff]")
#: A name that every storage and every file system takes.
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


class ContentRejected(InvalidInput):
    """A post cannot be rendered; `rkey` is the one."""

    def __init__(self, message: str, *, rkey: str) -> None:
        super().__init__(message)
        self.rkey = rkey


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourhoodLink:
    """The neighbourhood that a site is part of."""

    name: str
    url: str


@dataclass(frozen=True, kw_only=True)
class SiteContent:
    """A site: its config has been checked and has all defaults."""

    title: str
    layout: str
    #: The public address of the front page, such as https://alice.example.org/.
    base_url: str
    config: dict[str, Any]
    neighbourhood: NeighbourhoodLink | None = None

    def url_of(self, path: str) -> str:
        """Return the address of a file."""
        return self.base_url.rstrip("/") + "/" + ("" if path == "index.html" else path)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostContent:
    """A post as it is stored."""

    rkey: str
    #: The name of its page without `.html`; see `file_names`.
    name: str
    title: str
    body: str
    published_at: datetime | None
    updated_at: datetime | None = None
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterItem:
    """A numbered item of a newsletter: a heading of a post, and what follows it."""

    heading: Markup
    html: Markup


class PostPage:
    """A post as pages show it. `number` counts from the oldest post, which is 1."""

    def __init__(self, post: PostContent, number: int) -> None:
        self.title = _text(post.title) or "Untitled"
        if post.published_at is None:
            raise ContentRejected(f"Post “{self.title}” has no date.", rkey=post.rkey)
        self.rkey = post.rkey
        self.number = number
        self.path = f"posts/{post.name}.html"
        self.date = post.published_at.astimezone(UTC).date().isoformat()
        self.day = long_day(post.published_at.astimezone(UTC).date())
        self.published = _stamp(post.published_at)
        self.updated = _stamp(max(post.published_at, post.updated_at or post.published_at))
        self._blocks = parse(_UNENCODABLE.sub("", post.body))
        self._words = len(post.body.split())
        self._given_summary = _text(post.summary)

    @cached_property
    def html(self) -> Markup:
        """The text of the post."""
        return blocks_html(self._blocks)

    @cached_property
    def summary(self) -> str:
        """The summary, or the beginning of the first paragraph."""
        if self._given_summary:
            return self._given_summary
        first = next((block for block in self._blocks if isinstance(block, Paragraph)), None)
        return "" if first is None else _shortened(plain_text(first))

    @property
    def reading_time(self) -> str:
        """How long reading takes."""
        minutes = max(1, round(self._words / _WORDS_A_MINUTE))
        return "1 minute" if minutes == 1 else f"{minutes} minutes"

    @property
    def opening(self) -> Markup:
        """What precedes the first heading."""
        return blocks_html(self._sections()[0])

    @property
    def items(self) -> list[LetterItem]:
        """The headings of the second level, each with what follows."""
        found: list[LetterItem] = []
        for section in self._sections()[1:]:
            heading = section[0]
            assert isinstance(heading, Heading)
            found.append(LetterItem(heading=inline_html(heading.text), html=blocks_html(section[1:])))
        return found

    def listed(self, label: str | None = None) -> ListedPost:
        """Return what lists show; it does not keep the text of the post."""
        return ListedPost(
            path=self.path, label=label or self.title, title=self.title, date=self.date, day=self.day,
            summary=self.summary, reading_time=self.reading_time, number=self.number,
        )  # fmt: skip

    def _sections(self) -> list[Sequence[Block]]:
        sections: list[list[Block]] = [[]]
        for block in self._blocks:
            if isinstance(block, Heading) and block.level == 2:
                sections.append([])
            sections[-1].append(block)
        return list(sections)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPost:
    """A post in a list, and as the neighbour of another one."""

    path: str
    label: str
    title: str
    date: str
    day: str
    summary: str
    reading_time: str
    number: int


def file_names(posts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the name of each post's page by its record key, from pairs of record key and slug.

    It is the slug. Posts with the same slug, or with one in another script, have their key in the name.

    >>> file_names([("3kb", "ice"), ("3kc", "ice"), ("3kd", "heron"), ("3ke", "東京")])
    {'3kb': 'ice-3kb', '3kc': 'ice-3kc', '3kd': 'heron', '3ke': '3ke'}
    """
    pairs = [(rkey, slug if _FILE_NAME.fullmatch(slug) else "") for rkey, slug in posts]
    uses = Counter(slug for _, slug in pairs)
    names: dict[str, str] = {}
    for rkey, slug in pairs:
        key = rkey if _FILE_NAME.fullmatch(rkey) else hashlib.sha256(rkey.encode()).hexdigest()[:32]
        names[rkey] = key if not slug else slug if uses[slug] == 1 else f"{slug}-{key}"[-100:].lstrip("-_")
    return names


def custom_rows(config: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the custom fields that are texts or numbers, in their order."""
    return [
        (_text(name), _text(str(value)))
        for name, value in config.get("custom_fields", {}).items()
        if isinstance(value, (str, int, float)) and not isinstance(value, bool)
    ]


def cleaned(value: Any) -> Any:
    """Return a config without characters that a page or a feed cannot hold."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return {name: cleaned(each) for name, each in value.items()}
    return [cleaned(each) for each in value] if isinstance(value, list) else value


def _text(text: str) -> str:
    return " ".join(_UNENCODABLE.sub("", clean(text)).split())


def _shortened(text: str) -> str:
    if len(text) <= _SUMMARY_CHARACTERS:
        return text
    return text[: _SUMMARY_CHARACTERS - 1].rsplit(" ", 1)[0].rstrip(" ,;:.") + "…"


def _stamp(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
