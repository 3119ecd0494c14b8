r"""A subset of Markdown as safe HTML: all text is escaped, and no link runs a script.

Blocks are paragraphs, headings, lists, quotes, fenced code and rules. Inline are **strong**, *emphasis*,
`code`, [links](https://example.org) and <https://example.org>. HTML is text. A picture is its alternative
text. Every search has a bounded length, so the time is linear in the length of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import urlsplit

from markupsafe import Markup

from solotable.systems.texts import clean

_SCHEMES = frozenset({"", "http", "https", "mailto"})
_LONGEST_LABEL = 500
_LONGEST_URL = 2000
_LONGEST_SPAN = 5000
_MAX_DEPTH = 4

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[^`]*")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})")
_BULLET = re.compile(r" {0,3}[-*+][ \t]+(\S.*)")
_NUMBERED = re.compile(r" {0,3}[0-9]{1,9}[.)][ \t]+(\S.*)")
_QUOTE = re.compile(r" {0,3}> ?(.*)")
_PUNCTUATION = frozenset("\\`*_{}[]()#+-.!<>~|")
#: Characters that may begin an inline element; text between them is copied.
_SPECIAL = re.compile(r"[\\`*\[!<]")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines of text."""

    text: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; level 1 is the title of a page, so the first level in a text is 2."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class ItemList:
    """A list of texts, with numbers or without."""

    items: tuple[str, ...]
    ordered: bool


@dataclass(frozen=True, slots=True)
class Quotation:
    """Blocks that are quoted."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Text as it was typed."""

    text: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A change of subject."""


Block = Paragraph | Heading | ItemList | Quotation | Code | Rule


def parse(text: str) -> tuple[Block, ...]:
    r"""Return the blocks of a text.

    >>> parse("# Fish\nOne\n\n- roach")
    (Heading(level=2, text='Fish'), Paragraph(text='One'), ItemList(items=('roach',), ordered=False))
    """
    return tuple(_blocks(clean(text).split("\n"), 0))


def blocks_html(blocks: Sequence[Block]) -> Markup:
    """Return blocks as HTML."""
    return Markup(_blocks_html(blocks))  # noqa: S704 - every text in it is escaped


def inline_html(text: str) -> Markup:
    """Return a text with its inline elements; a line break stays one.

    >>> inline_html("**Ice** on [the lock](javascript:x) <b>")
    Markup('<strong>Ice</strong> on the lock &lt;b&gt;')
    """
    return Markup(_inline(text, 0))  # noqa: S704 - every text in it is escaped


def plain_text(block: Block) -> str:
    """Return the words of a block without marks."""
    return " ".join(blocks_html([block]).striptags().split())


def safe_link(url: str) -> str | None:
    """Return a link to a page or a mail address; None for one that could run a script.

    >>> safe_link("https://example.org/a"), safe_link("/about"), safe_link("java\tscript:x")
    ('https://example.org/a', '/about', None)
    """
    if not url or len(url) > _LONGEST_URL or "\\" in url or any(ord(each) < 0x21 for each in url):
        return None
    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        return None
    # A colon before the first slash is a scheme to some browsers, whatever characters precede it.
    if not scheme and ":" in re.split(r"[/?#]", url, maxsplit=1)[0]:
        return None
    return url if scheme in _SCHEMES else None


def _blocks(lines: Sequence[str], depth: int) -> Iterator[Block]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif fence := _FENCE.fullmatch(line):
            end = _end_of_fence(lines, at + 1, fence[1])
            yield Code("\n".join(lines[at + 1 : end]))
            at = end + 1
        elif heading := _HEADING.fullmatch(line):
            yield Heading(min(max(len(heading[1]), 2), 4), heading[2].rstrip(" \t#"))
            at += 1
        elif _RULE.fullmatch(line):
            yield Rule()
            at += 1
        elif _QUOTE.fullmatch(line) and depth < _MAX_DEPTH:
            quoted, at = _run_of(lines, at, _QUOTE)
            yield Quotation(tuple(_blocks(quoted, depth + 1)))
        elif pattern := _list_pattern(line):
            items, at = _list_items(lines, at, pattern)
            yield ItemList(items, ordered=pattern is _NUMBERED)
        else:
            end = at + 1
            while end < len(lines) and not _interrupts(lines[end]):
                end += 1
            yield Paragraph("\n".join(each.strip() for each in lines[at:end]))
            at = end


def _end_of_fence(lines: Sequence[str], start: int, fence: str) -> int:
    for number in range(start, len(lines)):
        closing = lines[number].strip()
        if closing.startswith(fence) and not closing.strip(fence[0]):
            return number
    return len(lines)


def _run_of(lines: Sequence[str], start: int, pattern: re.Pattern[str]) -> tuple[list[str], int]:
    found: list[str] = []
    at = start
    while at < len(lines) and (match := pattern.fullmatch(lines[at])):
        found.append(match[1])
        at += 1
    return found, at


def _list_pattern(line: str) -> re.Pattern[str] | None:
    return next((each for each in (_BULLET, _NUMBERED) if each.fullmatch(line)), None)


def _list_items(lines: Sequence[str], start: int, pattern: re.Pattern[str]) -> tuple[tuple[str, ...], int]:
    items: list[str] = []
    at = start
    while at < len(lines):
        line = lines[at]
        if match := pattern.fullmatch(line):
            items.append(match[1].strip())
        elif line.strip() and line.startswith("  ") and not _list_pattern(line.strip()):
            items[-1] += "\n" + line.strip()
        else:
            break
        at += 1
    return tuple(items), at


def _interrupts(line: str) -> bool:
    return (
        not line.strip()
        or any(each.fullmatch(line) for each in (_FENCE, _HEADING, _RULE, _QUOTE))
        or _list_pattern(line) is not None
    )


def _blocks_html(blocks: Sequence[Block]) -> str:
    return "\n".join(map(_block_html, blocks))


# Plain strings, and not `Markup`: every part is escaped where it is made.
def _block_html(block: Block) -> str:
    match block:
        case Paragraph(text):
            return f"<p>{_inline(text, 0)}</p>"
        case Heading(level, text):
            return f"<h{level}>{_inline(text, 0)}</h{level}>"
        case ItemList(items, ordered):
            tag = "ol" if ordered else "ul"
            rows = "".join(f"<li>{_inline(item, 0)}</li>" for item in items)
            return f"<{tag}>{rows}</{tag}>"
        case Quotation(blocks):
            return f"<blockquote>{_blocks_html(blocks)}</blockquote>"
        case Code(text):
            return f'<pre tabindex="0"><code>{escape(text)}</code></pre>'
        case Rule():
            return "<hr>"


def _inline(text: str, depth: int) -> str:
    parts: list[str] = []
    # Text from `start` to `position` has no element.
    start = position = 0
    while found := _SPECIAL.search(text, position):
        element = _element(text, found.start(), depth)
        if element is None:
            position = found.start() + 1
            continue
        parts.append(_text_html(text[start : found.start()]))
        markup, start = element
        position = start
        parts.append(markup)
    parts.append(_text_html(text[start:]))
    return "".join(parts)


def _element(text: str, at: int, depth: int) -> tuple[str, int] | None:
    """Return the inline element at a special character, and where the text continues; None without one."""
    mark = text[at]
    if mark == "\\" and text[at + 1 : at + 2] in _PUNCTUATION:
        return escape(text[at + 1]), at + 2
    if mark == "`" and (end := text.find("`", at + 1, at + _LONGEST_SPAN)) > at + 1:
        return f"<code>{escape(text[at + 1 : end])}</code>", end + 1
    if mark == "<" and (end := text.find(">", at, at + _LONGEST_URL)) > 0:
        url = text[at + 1 : end]
        if url.startswith(("https://", "http://", "mailto:")) and safe_link(url):
            return _link(url, escape(url)), end + 1
    if depth < _MAX_DEPTH:
        if mark == "*":
            return _emphasis(text, at, depth)
        if mark in "[!":
            return _labelled(text, at)
    return None


def _emphasis(text: str, at: int, depth: int) -> tuple[str, int] | None:
    marks = "**" if text.startswith("**", at) else "*"
    start = at + len(marks)
    end = text.find(marks, start, start + _LONGEST_SPAN)
    # As in Markdown, a mark beside a space is a character: 2 * 3 * 4.
    if end <= start or text[start].isspace() or text[end - 1].isspace():
        return None
    tag = "strong" if marks == "**" else "em"
    return f"<{tag}>{_inline(text[start:end], depth + 1)}</{tag}>", end + len(marks)


def _labelled(text: str, at: int) -> tuple[str, int] | None:
    picture = text[at] == "!"
    start = at + 2 if picture else at + 1
    if picture and text[at + 1 : at + 2] != "[":
        return None
    middle = text.find("](", start, start + _LONGEST_LABEL)
    end = text.find(")", middle, middle + _LONGEST_URL) if middle > start else -1
    if end < 0 or "[" in text[start:middle]:
        return None
    label = text[start:middle]
    if picture:
        return escape(label), end + 1
    url = safe_link(text[middle + 2 : end].strip())
    content = _inline(label, _MAX_DEPTH)
    return (content if url is None else _link(url, content)), end + 1


def _link(url: str, content: str) -> str:
    return f'<a href="{escape(url)}">{content}</a>'


def _text_html(text: str) -> str:
    return escape(text).replace("\n", "<br>\n")
