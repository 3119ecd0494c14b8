"""Blocks of a page, from free JSON to values that templates show and escape; none holds markup.

The `type` of a block selects its reader; the guide lists the types. A block of another type shows its texts
as paragraphs, and entries of the wrong form are left out: a page is shown whatever its editors stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .links import Link, link_of, links_of, safe_href

_MAX_DEPTH = 8
#: The posts that a block can list.
MAX_POSTS = 24
_TEXTS = ("text", "content", "body", "title", "caption")
_CHILDREN = ("items", "blocks", "children")
_ASSET = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_ANCHOR = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}")
_PARAGRAPHS = re.compile(r"\n[ \t]*\n\s*")

Tree = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A part of a paragraph; `lines` are separated by line breaks."""

    lines: tuple[str, ...]
    href: str | None = None
    strong: bool = False
    em: bool = False
    code: bool = False


Paragraph = tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An asset of the tenant; its size avoids a jump when it loads."""

    url: str
    alt: str
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a list, of facts or of cards."""

    title: str = ""
    href: str | None = None
    texts: tuple[Paragraph, ...] = ()
    picture: Picture | None = None
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What a template shows for one block; `kind` names its macro."""

    kind: str
    title: str = ""
    anchor: str = ""
    texts: tuple[Paragraph, ...] = ()
    caption: str = ""
    picture: Picture | None = None
    wide: bool = False
    ordered: bool = False
    link: Link | None = None
    links: tuple[Link, ...] = ()
    rows: tuple[Row, ...] = ()
    head: tuple[str, ...] = ()
    cells: tuple[tuple[str, ...], ...] = ()
    #: The numbers of the columns that are aligned to the right.
    right: frozenset[int] = frozenset()
    columns: tuple[tuple[Block, ...], ...] = ()
    limit: int = 0


def blocks_of(trees: object, depth: int = 0) -> tuple[Block, ...]:
    """Return the blocks of a JSON list."""
    if not isinstance(trees, list) or depth > _MAX_DEPTH:
        return ()
    return tuple(block for tree in trees for block in _read(tree, depth))


def _read(tree: object, depth: int) -> Iterator[Block]:
    if isinstance(tree, str):
        yield from _text(tree)
    elif isinstance(tree, dict):
        kind = tree.get("type")
        reader = _READERS.get(kind) if isinstance(kind, str) else None
        found = None if reader is None else reader(tree, depth)
        if found is None:
            yield from _unknown(tree, depth)
        else:
            yield found


def _text(text: object, kind: str = "text") -> Iterator[Block]:
    if found := paragraphs(text):
        yield Block(kind=kind, texts=found)


def _unknown(tree: Tree, depth: int) -> Iterator[Block]:
    for name in _TEXTS:
        yield from _text(tree.get(name))
    for name in _CHILDREN:
        yield from blocks_of(tree.get(name), depth + 1)


def paragraphs(text: object) -> tuple[Paragraph, ...]:
    """Return the paragraphs of a text: blank lines separate them. A list of spans is one paragraph.

    >>> [[span.lines for span in each] for each in paragraphs("One,\\ntwo.\\n\\nThree.")]
    [[('One,', 'two.')], [('Three.',)]]
    """
    if isinstance(text, str):
        parts = _PARAGRAPHS.split(text.strip().replace("\r\n", "\n"))
        return tuple((Span(lines=tuple(part.split("\n"))),) for part in parts if part)
    if isinstance(text, list):
        spans = tuple(span for each in text if (span := _span(each)) is not None)
        return (spans,) if spans else ()
    return ()


def _span(tree: object) -> Span | None:
    if isinstance(tree, str):
        return Span(lines=tuple(tree.split("\n"))) if tree else None
    text = tree.get("text") if isinstance(tree, dict) else None
    if not isinstance(tree, dict) or not isinstance(text, str) or not text:
        return None
    marks = {name: tree.get(name) is True for name in ("strong", "em", "code")}
    return Span(lines=tuple(text.split("\n")), href=safe_href(tree.get("href")), **marks)


def _string(tree: Tree, *names: str) -> str:
    """Return the first of some names that has a text, in one line."""
    found = (tree.get(name) for name in names)
    return next((" ".join(text.split()) for text in found if isinstance(text, str) and text.strip()), "")


def _anchor(tree: Tree) -> str:
    text = tree.get("id")
    return text if isinstance(text, str) and _ANCHOR.fullmatch(text) else ""


def _number(value: object, most: int) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= most else None


def picture_of(tree: Tree) -> Picture | None:
    """Return the picture of a block: an asset of the site by its id, never a URL."""
    asset = tree.get("asset")
    if not isinstance(asset, str) or not _ASSET.fullmatch(asset):
        return None
    width, height = _number(tree.get("width"), 20_000), _number(tree.get("height"), 20_000)
    return Picture(
        url=f"/public/assets/{asset}",
        alt=_string(tree, "alt"),
        width=width if height else None,
        height=height if width else None,
    )


def _texts(tree: Tree) -> tuple[Paragraph, ...]:
    return next((found for name in ("text", "content", "body") if (found := paragraphs(tree.get(name)))), ())


def _paragraph(kind: str) -> Callable[[Tree, int], Block | None]:
    def read(tree: Tree, depth: int) -> Block | None:
        found = _texts(tree)
        caption = _string(tree, "by", "caption")
        return Block(kind=kind, texts=found, caption=caption) if found else None

    return read


def _heading(kind: str) -> Callable[[Tree, int], Block | None]:
    def read(tree: Tree, depth: int) -> Block | None:
        title = _string(tree, "text", "title", "content")
        return Block(kind=kind, title=title, anchor=_anchor(tree)) if title else None

    return read


def _code(tree: Tree, depth: int) -> Block | None:
    text = next((text for name in ("text", "content", "body") if isinstance(text := tree.get(name), str)), "")
    spans = (Span(lines=(text,)),)
    return Block(kind="code", texts=(spans,), caption=_string(tree, "caption")) if text else None


def _list(tree: Tree, depth: int) -> Block | None:
    entries = next((found for name in _CHILDREN if isinstance(found := tree.get(name), list)), [])
    rows = tuple(row for each in entries if (row := _entry(each, depth + 1)) is not None)
    return Block(kind="list", rows=rows, ordered=tree.get("ordered") is True) if rows else None


def _entry(tree: object, depth: int) -> Row | None:
    if isinstance(tree, (str, list)):
        texts = paragraphs(tree)
        return Row(texts=texts) if texts else None
    if not isinstance(tree, dict) or depth > _MAX_DEPTH:
        return None
    if tree.get("type") in _READERS and tree.get("type") != "text":
        blocks = tuple(_read(tree, depth))
        return Row(blocks=blocks) if blocks else None
    link = link_of(tree)
    if link is not None:
        return Row(texts=((Span(lines=(link.label,), href=link.href),),))
    inner = tuple(block for name in _CHILDREN for block in blocks_of(tree.get(name), depth + 1))
    texts = tuple(each for name in _TEXTS for each in paragraphs(tree.get(name)))
    return Row(texts=texts, blocks=inner) if texts or inner else None


def _table(tree: Tree, depth: int) -> Block | None:
    rows, head = tree.get("rows"), tree.get("head")
    cells = tuple(_cells(row) for row in rows if isinstance(row, list)) if isinstance(rows, list) else ()
    if not any(cells):
        return None
    right = tree.get("right")
    numbers = frozenset(each for each in right if isinstance(each, int)) if isinstance(right, list) else ()
    return Block(
        kind="table",
        caption=_string(tree, "caption", "title"),
        head=_cells(head) if isinstance(head, list) else (),
        cells=cells,
        right=frozenset(numbers),
    )


def _cells(row: list[Any]) -> tuple[str, ...]:
    return tuple(str(each) if isinstance(each, (str, int, float)) else "" for each in row)


def _image(tree: Tree, depth: int) -> Block | None:
    picture = picture_of(tree)
    if picture is None:
        return None
    wide = tree.get("wide") is True
    return Block(kind="image", picture=picture, caption=_string(tree, "caption"), wide=wide)


def _buttons(tree: Tree, depth: int) -> Block | None:
    links = links_of(tree.get("items"), limit=4)
    return Block(kind="buttons", links=links) if links else None


def _facts(tree: Tree, depth: int) -> Block | None:
    entries = tree.get("items")
    given = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
    rows = tuple(Row(title=_string(each, "label", "term"), texts=_texts(each)) for each in given)
    rows = tuple(row for row in rows if row.title and row.texts)
    return Block(kind="facts", rows=rows) if rows else None


def _cards(tree: Tree, depth: int) -> Block | None:
    entries = tree.get("items")
    given = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
    rows = tuple(
        Row(
            title=_string(each, "title", "label"),
            href=safe_href(each.get("href")),
            texts=_texts(each),
            picture=picture_of(each),
        )
        for each in given
    )
    rows = tuple(row for row in rows if row.title)
    return Block(kind="cards", rows=rows) if rows else None


def _columns(tree: Tree, depth: int) -> Block | None:
    given = tree.get("columns")
    columns = tuple(blocks_of(each, depth + 1) for each in given) if isinstance(given, list) else ()
    found = tuple(each for each in columns if each)[:2]
    return Block(kind="columns", columns=found) if found else None


def _hero(tree: Tree, depth: int) -> Block | None:
    return Block(
        kind="hero",
        title=_string(tree, "title"),
        texts=_texts(tree),
        picture=picture_of(tree),
        links=links_of(tree.get("buttons"), limit=2),
    )


def _section(tree: Tree, depth: int) -> Block | None:
    inner = blocks_of(tree.get("blocks"), depth + 1)
    if not inner:
        return None
    title, link = _string(tree, "title"), link_of(tree.get("link"))
    return Block(kind="section", title=title, anchor=_anchor(tree), link=link, columns=(inner,))


def _posts(tree: Tree, depth: int) -> Block | None:
    return Block(kind="posts", limit=_number(tree.get("limit"), MAX_POSTS) or 3)


_READERS: dict[str, Callable[[Tree, int], Block | None]] = {
    "text": _paragraph("text"),
    "lead": _paragraph("lead"),
    "quote": _paragraph("quote"),
    "voice": _paragraph("voice"),
    "heading": _heading("heading"),
    "subheading": _heading("subheading"),
    "code": _code,
    "list": _list,
    "table": _table,
    "image": _image,
    "buttons": _buttons,
    "facts": _facts,
    "cards": _cards,
    "columns": _columns,
    "hero": _hero,
    "section": _section,
    "posts": _posts,
}
#: The types of blocks that the theme shows; the guide describes each.
BLOCK_TYPES = tuple(sorted(_READERS))
