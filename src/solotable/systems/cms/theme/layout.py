"""The layout of a page: a hero, bands across the window, and columns of text between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from .blocks import Block

#: Blocks that need the width of the window.
_WIDE = frozenset({"section", "cards", "columns", "posts"})


@dataclass(frozen=True, slots=True)
class Band:
    """A part of a page: `section` over the whole width, or `prose` in a column of text."""

    kind: str
    blocks: tuple[Block, ...]
    section: Block | None = None
    tint: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """A page as bands, below a hero if it begins with one."""

    hero: Block | None
    bands: tuple[Band, ...]

    @property
    def posts(self) -> int:
        """The largest number of posts that a block lists; 0 for none."""
        given = [band.section for band in self.bands if band.section is not None]
        inner = [block for band in self.bands for block in band.blocks]
        return max((block.limit for block in _all([*given, *inner]) if block.kind == "posts"), default=0)


def layout_of(blocks: tuple[Block, ...]) -> Layout:
    """Return the layout of a page's blocks; sections are plain and tinted in turn."""
    hero = blocks[0] if blocks and blocks[0].kind == "hero" else None
    rest = blocks[1:] if hero else blocks
    bands: list[Band] = []
    tint = False
    for wide, group in groupby(rest, key=lambda block: block.kind in _WIDE):
        if not wide:
            bands.append(Band("prose", tuple(group)))
            continue
        for block in group:
            tint = not tint
            inner = block.columns[0] if block.kind == "section" else (block,)
            bands.append(Band("section", inner, block if block.kind == "section" else None, tint))
    return Layout(hero, tuple(bands))


def _all(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        yield from _all(each for column in block.columns for each in column)
        yield from _all(each for row in block.rows for each in row.blocks)
