"""The layout of tables as an SVG picture: a column for each key space, a box for each partition.

The picture follows the reader's light or dark theme. As part of a page of the documentation, it uses the
colours of that page.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape

from .diagram import KeySpace, PartitionBox

#: Pixels: the height of a line, the space inside and between boxes, the width of a character of 12 pixels.
_LINE, _PADDING, _GAP, _CHARACTER = 20, 12, 16, 7.25
_ENTITY_GAP = 18
_NARROWEST = 240
_NO_SORT_KEY = "(no sort key)"
_STYLE = """\
.solotable-diagram { --st-ink: var(--md-default-fg-color, #1f2328);
  --st-soft: var(--md-default-fg-color--light, #59636e);
  --st-line: var(--md-default-fg-color--lighter, #afb8c1); --st-box: var(--md-code-bg-color, #f6f8fa);
  --st-accent: var(--md-typeset-a-color, #0969da);
  font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.solotable-diagram text { fill: var(--st-ink); white-space: pre; }
.solotable-diagram .soft { fill: var(--st-soft); }
.solotable-diagram .accent { fill: var(--st-accent); font-weight: 600; }
.solotable-diagram .title { font: 600 14px system-ui, sans-serif; }
.solotable-diagram rect { fill: var(--st-box); stroke: var(--st-line); }
.solotable-diagram path { stroke: var(--st-line); fill: none; }
.solotable-diagram .arrow { stroke: var(--st-soft); }
@media (prefers-color-scheme: dark) {
  .solotable-diagram { --st-ink: var(--md-default-fg-color, #e6edf3);
    --st-soft: var(--md-default-fg-color--light, #9198a1);
    --st-line: var(--md-default-fg-color--lighter, #3d444d); --st-box: var(--md-code-bg-color, #161b22);
    --st-accent: var(--md-typeset-a-color, #4493f8); }
}"""


def svg_text(tables: Iterable[list[KeySpace]], title: str = "Layout of the tables") -> str:
    """Return the picture of some tables, one below the other; the key spaces of a table are side by side."""
    elements: list[str] = []
    width, top = 0.0, 0.0
    for spaces in tables:
        left, height = 0.0, 0.0
        for space in spaces:
            column_width = max(_NARROWEST, *map(_box_width, space.partitions), _title_width(space))
            elements += _header(space, left, top)
            y = top + 2 * _LINE + _PADDING
            for box in space.partitions:
                elements += _draw(box, left, y, column_width)
                y += _box_height(box) + _GAP
            if not space.partitions:
                elements.append(_written("no entity uses it", left, y + _LINE / 2, "soft"))
                y += _LINE + _GAP
            left += column_width + 2 * _GAP
            height = max(height, y - top)
        width = max(width, left - 2 * _GAP)
        top += height + _GAP
    return framed(elements, width=width, height=max(top - 2 * _GAP, _LINE), title=title)


def framed(elements: Iterable[str], *, width: float, height: float, title: str) -> str:
    """Return a picture with these elements and a margin of a pixel."""
    size = (
        f'width="{width + 2:.0f}" height="{height + 2:.0f}" viewBox="-1 -1 {width + 2:.0f} {height + 2:.0f}"'
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="solotable-diagram" role="img" {size}>',
            f"<title>{escape(title)}</title>",
            f"<style>\n{_STYLE}\n</style>",
            *elements,
            "</svg>",
        ]
    )


def _header(space: KeySpace, left: float, top: float) -> list[str]:
    kind = "index" if space.is_index else "table"
    return [
        _written(f"{space.name} ({kind})", left, top + 14, "title"),
        _written(space.attributes, left, top + 14 + _LINE, "soft"),
    ]


def _draw(box: PartitionBox, left: float, top: float, width: float) -> list[str]:
    sort_width = _sort_width(box)
    y = top + _LINE
    elements = [
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{_box_height(box):.1f}" rx="6"/>',
        _written(box.template, left + _PADDING, y, "accent"),
        f'<path d="M{left:.1f} {top + _LINE + 8:.1f} h{width:.1f}"/>',
    ]
    y += 8
    for row in box.rows:
        y += _LINE
        elements.append(_written(row.sort or _NO_SORT_KEY, left + _PADDING, y))
        elements.append(
            _written(_entity(row.entity, row.sparse), left + _PADDING + sort_width + _ENTITY_GAP, y)
        )
        if row.patterns:
            y += _LINE
            elements.append(_written(_patterns(row.patterns), left + 2 * _PADDING, y, "soft"))
    return elements


def _entity(name: str, sparse: bool) -> str:
    return f"{name} (some)" if sparse else name


def _patterns(names: Iterable[str]) -> str:
    return "read by " + ", ".join(names)


def _box_height(box: PartitionBox) -> float:
    return _LINE * (1 + len(box.rows) + sum(bool(row.patterns) for row in box.rows)) + 8 + _PADDING


def _sort_width(box: PartitionBox) -> float:
    return max(len(row.sort or _NO_SORT_KEY) for row in box.rows) * _CHARACTER


def _box_width(box: PartitionBox) -> float:
    sort_width = _sort_width(box)
    widest_row = max(len(_entity(row.entity, row.sparse)) for row in box.rows) * _CHARACTER
    patterns = max(len(_patterns(row.patterns)) for row in box.rows) * _CHARACTER + _PADDING
    widest = max(len(box.template) * _CHARACTER, sort_width + _ENTITY_GAP + widest_row, patterns)
    return widest + 2 * _PADDING


def _title_width(space: KeySpace) -> float:
    return max(len(space.name) + 8, len(space.attributes)) * _CHARACTER + 2


def _written(text: str, x: float, y: float, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{named}>{escape(text)}</text>'
