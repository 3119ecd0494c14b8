"""The wire's figures as one SVG for the README: a panel an operation, a bar a contender.

Text and bars only, no script, no font of its own, no link. It paints its own ground, so that it
reads the same on a light and on a dark page. Each panel has its own scale, from zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

from bench.limits import OURS, Figures, is_ours, rates, ratios
from bench.report import cell, shown

WIDTH = 800
COLUMNS = 2
_MARGIN = 24
_GAP = 32
_HEAD = 78
_FOOT = 34
_LINE = 19
_TITLE = 28
_PANEL_GAP = 22
_NAMES = 124
_VALUES = 58

_STYLE = """\
text { font: 12.5px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #3d4753; }
.ground { fill: #ffffff; stroke: #d5dbe1; }
.head { font-size: 18px; font-weight: 650; fill: #14191f; }
.title { font-size: 13.5px; font-weight: 650; fill: #14191f; }
.times { font-weight: 650; fill: #0b6e4f; }
.ours { font-weight: 650; fill: #14191f; }
.small { font-size: 11.5px; fill: #66717d; }
.bar { fill: #a9b4c0; }
.bar-ours { fill: #12946b; }
.bar-other { fill: #12946b; opacity: 0.45; }
.axis { stroke: #d5dbe1; }
@media (prefers-color-scheme: dark) {
  text { fill: #b6c0ca; }
  .ground { fill: #12161b; stroke: #303841; }
  .head, .title, .ours { fill: #f0f4f8; }
  .times { fill: #4fd1a1; }
  .small { fill: #8b96a1; }
  .bar { fill: #566270; }
  .bar-ours, .bar-other { fill: #2fb98a; }
  .axis { stroke: #303841; }
}
"""


def svg(figures: Figures, names: Sequence[str], *, title: str, below: str, notes: str = "") -> str:
    """Return the chart: `title` and what was measured `below` it at the top, `notes` at the foot."""
    panel = _TITLE + _LINE * len(names)
    rows = -(-len(figures) // COLUMNS)
    height = _HEAD + rows * (panel + _PANEL_GAP) + (_FOOT if notes else _MARGIN - _PANEL_GAP // 2)
    column = (WIDTH - 2 * _MARGIN - (COLUMNS - 1) * _GAP) / COLUMNS
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="title described">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="described">{escape("; ".join(_spoken(figures, names)))}</desc>',
        f"<style>\n{_STYLE}</style>",
        f'<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="10"/>',
        f'<text class="head" x="{_MARGIN}" y="36">{escape(title)}</text>',
        f'<text class="small" x="{_MARGIN}" y="56">{escape(below)}</text>',
    ]
    for number, (operation, by_name) in enumerate(figures.items()):
        left = _MARGIN + number % COLUMNS * (column + _GAP)
        top = _HEAD + number // COLUMNS * (panel + _PANEL_GAP)
        parts.extend(_panel(operation, by_name, names, left=left, top=top, width=column))
    if notes:
        parts.append(f'<text class="small" x="{_MARGIN}" y="{height - 16}">{escape(notes)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(
    operation: str,
    by_name: Mapping[str, Mapping[str, object]],
    names: Sequence[str],
    *,
    left: float,
    top: float,
    width: float,
) -> Iterator[str]:
    valid = rates(by_name)
    largest = max(valid.values(), default=1.0) or 1.0
    start = left + _NAMES
    room = width - _NAMES - _VALUES
    yield f'<text class="title" x="{left:g}" y="{top + 14}">{escape(operation)}</text>'
    times = ratios(by_name)
    if times:
        fastest = min(times, key=times.__getitem__)
        said = f"{times[fastest]:.1f}× {fastest}"
        place = f'x="{left + width:g}" y="{top + 14}" text-anchor="end"'
        kind = "times" if times[fastest] >= 1 else "small"
        yield f'<text class="{kind}" {place}>{escape(said)}</text>'
    for number, name in enumerate(names):
        y = top + _TITLE + number * _LINE
        weight = ' class="ours"' if name == OURS else ""
        yield f'<text{weight} x="{start - 8:g}" y="{y + 10}" text-anchor="end">{escape(name)}</text>'
        if name not in valid:
            said = cell(by_name.get(name))
            yield f'<text class="small" x="{start + 6:g}" y="{y + 10}">{escape(said)}</text>'
            continue
        length = max(1.0, room * valid[name] / largest)
        bar = "bar-ours" if name == OURS else "bar-other" if is_ours(name) else "bar"
        yield f'<rect class="{bar}" x="{start:g}" y="{y}" width="{length:.1f}" height="13" rx="2"/>'
        yield f'<text{weight} x="{start + length + 6:.1f}" y="{y + 10.5}">{shown(valid[name])}</text>'
    bottom = top + _TITLE + _LINE * len(names) - 3
    yield f'<path class="axis" d="M{start:g} {top + _TITLE - 3}V{bottom}"/>'


def _spoken(figures: Figures, names: Sequence[str]) -> Iterator[str]:
    for operation, by_name in figures.items():
        valid = rates(by_name)
        said = [
            f"{name} {shown(valid[name]) if name in valid else cell(by_name.get(name))}" for name in names
        ]
        yield f"{operation}: {', '.join(said)}"
