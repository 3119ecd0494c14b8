"""HTML from templates: autoescaped, strict about unknown names; and how keys, values and numbers read."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import jinja2
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from solotable import __version__
from solotable.pages.assets import Assets

from .data.catalog import LiveTable
from .paths import with_query
from .state import Console, PageRequest, View
from .table_links import TableLinks

#: The literal parts of a key: words in capitals before a separator, and the separators.
_LITERAL = re.compile(r"(?:(?<=#)|^)[A-Z][A-Z0-9_]*#|#[A-Z][A-Z0-9_]*#|#")
_SLOT = re.compile(r"(\{[^{}]*\})")
_LONGEST_CELL = 120
_TAIL, _LONGEST_TAIL = 16, 40
_UNITS = ("B", "KB", "MB", "GB", "TB")


def _segments(text: str) -> list[tuple[str, bool]]:
    """Split a key; the second member says whether a segment is literal."""
    found: list[tuple[str, bool]] = []
    at = 0
    for literal in _LITERAL.finditer(text):
        found += [(text[at : literal.start()], False), (literal[0], True)]
        at = literal.end()
    return [each for each in (*found, (text[at:], False)) if each[0]]


def _marked(segments: list[tuple[str, bool]]) -> Markup:
    return Markup("").join(
        Markup("<i>{}</i>").format(text) if literal else escape(text) for text, literal in segments
    )


def key_parts(text: str) -> Markup:
    """Return a key with its literal parts quiet.

    >>> key_parts("ORDER#7#<b>")
    Markup('<i>ORDER#</i>7<i>#</i>&lt;b&gt;')
    """
    return _marked(_segments(text))


def short_key(text: str) -> Markup:
    """Return a key in one line that is cut in the middle: its end is what differs."""
    segments = _segments(text)
    last = max((at for at, (_, literal) in enumerate(segments) if literal), default=0)
    cut = max(last, 1)
    head, tail = segments[:cut], segments[cut:]
    if len("".join(each for each, _ in tail)) > _LONGEST_TAIL:
        end = segments[-1][0]
        head, tail = [*segments[:-1], (end[:-_TAIL], False)], [(end[-_TAIL:], False)]
    spans = Markup("").join(Markup("<span>{}</span>").format(_marked(each)) for each in (head, tail) if each)
    return Markup('<span class="key" title="{}">{}</span>').format(text, spans)


def full_key(text: str) -> Markup:
    """Return a whole key, which may break after a separator."""
    return Markup('<span class="key full">{}</span>').format(
        Markup(str(key_parts(text)).replace("#</i>", "#</i><wbr>"))  # noqa: S704 - its parts are escaped
    )


def template(text: str) -> Markup:
    """Return a key template with its fields in the accent colour."""
    parts = (
        Markup("<var>{}</var>").format(each) if each.startswith("{") else Markup("<i>{}</i>").format(each)
        for each in _SLOT.split(text)
        if each
    )
    return Markup('<code class="tpl">{}</code>').format(Markup("").join(parts))


def number(value: float | None, digits: int = 2) -> str:
    """Return a number with thousands separators, and no more digits than it has; a dash for None.

    >>> number(4590), number(36.5), number(None), number(0.0000125, 7)
    ('4,590', '36.5', '–', '0.0000125')
    """
    if value is None:
        return "–"
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def size(count: int | None) -> Markup:
    """Return bytes with a quiet unit."""
    if count is None:
        return Markup("–")
    value, unit = float(count), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    text = f"{value:,.0f}" if unit == 0 or value >= 100 else f"{value:.1f}"
    return Markup('{} <span class="quiet">{}</span>').format(text, _UNITS[unit])


def dollars(value: float) -> str:
    """Return an amount with as many digits as it needs.

    >>> dollars(4.2), dollars(0.0000625), dollars(0.125), dollars(0)
    ('$4.20', '$0.0000625', '$0.125', '$0.00')
    """
    if 0 < value < 1:
        text = f"{value:.10f}".rstrip("0")
        return f"${text}" if len(text) > len("0.00") else f"${value:.2f}"
    return f"${value:,.2f}"


def moment(seconds: float | None, precise: bool = False) -> Markup:
    """Return a time of the epoch as people and machines read it."""
    if not seconds:
        return Markup("–")
    at = datetime.fromtimestamp(seconds, UTC)
    text = at.strftime("%Y-%m-%d %H:%M:%S" if precise else "%Y-%m-%d %H:%M")
    return Markup('<time datetime="{}">{}</time>').format(at.isoformat().replace("+00:00", "Z"), text)


def cell(value: dict[str, Any] | None) -> Markup:
    """Return an attribute value for a row of a table."""
    if value is None:
        return Markup('<span class="quiet">–</span>')
    kind, inner = next(iter(value.items()))
    match kind:
        case "S":
            text = inner if len(inner) <= _LONGEST_CELL else inner[: _LONGEST_CELL - 1] + "…"
            return Markup("{}").format(text) if inner else Markup('<span class="quiet">empty</span>')
        case "N":
            return Markup("{}").format(inner)
        case "BOOL":
            return Markup("{}").format("true" if inner else "false")
        case "NULL":
            return Markup('<span class="quiet">null</span>')
        case "B":
            return Markup('<span class="quiet">{} bytes</span>').format(_decoded_length(inner))
        case "SS" | "NS" | "BS":
            return Markup('<span title="{}">{} <span class="quiet">in set</span></span>').format(
                ", ".join(inner)[:_LONGEST_CELL], len(inner)
            )
        case _:
            noun = "key" if kind == "M" else "element"
            plural = "" if len(inner) == 1 else "s"
            return Markup('<span class="quiet">{} {}{}</span>').format(len(inner), noun, plural)


def _decoded_length(text: str) -> int:
    return len(text) * 3 // 4 - text.count("=")


def pretty(value: Any) -> str:
    """Return JSON with one attribute a line; nested values stay in one line while they are short."""
    return _pretty(value, 0)


def _pretty(value: Any, depth: int) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or (depth > 0 and len(flat) <= 76):
        return flat
    inner = "  " * (depth + 1)
    if isinstance(value, dict):
        rows = [
            f"{inner}{json.dumps(k, ensure_ascii=False)}: {_pretty(v, depth + 1)}" for k, v in value.items()
        ]
        return "{\n" + ",\n".join(rows) + "\n" + "  " * depth + "}"
    rows = [f"{inner}{_pretty(each, depth + 1)}" for each in value]
    return "[\n" + ",\n".join(rows) + "\n" + "  " * depth + "]"


class _Environment(jinja2.Environment):
    """Templates whose `data.items` is the value of a dict before it is a method of it."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return a value of a dict, or an attribute."""
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


class Renderer:
    """Renders the templates of the console with what every page shows."""

    def __init__(self, console: Console, assets: Assets) -> None:
        self._console = console
        self._environment = _Environment(
            loader=jinja2.PackageLoader("solotable.console", "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.globals.update(static=assets.url, version=__version__, console=console)
        self._environment.filters.update(
            {
                "key": short_key,
                "full_key": full_key,
                "key_parts": key_parts,
                "tpl": template,
                "n": number,
                "size": size,
                "dollars": dollars,
                "moment": moment,
                "cell": cell,
                "pretty": pretty,
            }
        )

    def respond(self, view: View, asked: PageRequest, theme: str) -> HTMLResponse:
        """Return a page as a response."""
        return HTMLResponse(self.html(view, asked, theme), view.status)

    def html(self, view: View, asked: PageRequest, theme: str = "") -> str:
        """Return a page as text."""
        table = view.table
        tenant = asked.tenant
        return self._environment.get_template(view.template).render(
            view=view,
            data=view.data,
            table=table,
            links=None if table is None else TableLinks(table.name, tenant),
            tenants=self._tenants(table, tenant),
            tenant=tenant,
            url=lambda path, given: with_query(path, **given),
            theme=theme,
            asked=asked,
            token=self._console.gate.token,
            here=with_query(asked.path, **asked.parameters),
            json_path=with_query(f"{asked.path}.json", **asked.parameters),
            notice=self._console.notice(asked.get("done")) if asked.get("done") else None,
            link=lambda path, **more: with_query(path, **({"tenant": tenant} | more)),
        )

    def _tenants(self, table: LiveTable | None, tenant: str | None) -> list[str]:
        """Return the tenants to choose from: those of the sample, and the chosen one."""
        if table is None or table.declared is None or table.declared.tenant is None:
            return []
        counted = self._console.census.count(table)
        known = () if counted is None else counted.tenants
        return sorted({*known, *([] if tenant is None else [tenant])})
