"""The front page: what is in this database, what it costs, what needs a look; jump, theme, shortcuts."""

from __future__ import annotations

import sqlite3
from typing import Any

from solotable._entities.lint import Finding
from solotable.console.data.catalog import UNCLAIMED, LiveTable
from solotable.console.data.item_pages import partition_page
from solotable.console.data.request_log import LoggedRequest
from solotable.console.paths import decode_key
from solotable.console.state import Console, PageRequest, Redirect, View
from solotable.console.table_links import TableLinks
from solotable.errors import SolotableError

from .shown import lint_findings, show_counts

_MOST_FINDINGS = 5
#: The tables whose entities the page shows, the largest first, and how many of each.
_MOST_COUNTED, _MOST_FACETS = 3, 8
_LATEST = 6
_SEVERITIES = {"error": "bad", "warning": "warn", "note": ""}


def home(console: Console, asked: PageRequest) -> View:
    """Show the tables, the units and their price, findings, and the latest requests."""
    del asked
    tables = console.catalog.tables()
    rcu, wcu, span = console.log.rates()
    read_month, write_month = console.monthly(rcu, wcu)
    largest = sorted(tables, key=lambda each: (each.declared is None, -each.bytes))[:_MOST_COUNTED]
    counted = {each.name: _counts(console, each) for each in largest}
    # A sample of a table without models finds its entities.
    tables = [console.catalog.table(each.name) if each.declared is None else each for each in tables]
    data: dict[str, Any] = {
        "name": console.name,
        "write": console.settings.write,
        "items": sum(each.item_count for each in tables),
        "bytes": sum(each.bytes for each in tables),
        "index_bytes": sum(index.bytes for each in tables for index in each.indexes),
        "entities": sum(len(each.facets) for each in tables),
        "patterns": sum(
            len(facet.plan.patterns) for each in tables for facet in each.facets if facet.plan is not None
        ),
        "rcu_per_second": rcu,
        "wcu_per_second": wcu,
        "measured_seconds": span,
        "dollars_per_month": read_month + write_month,
        "read_dollars": read_month,
        "write_dollars": write_month,
        "tables": [_row(console, each) for each in tables],
        "counts": {name: _largest_facets(each) for name, each in counted.items()},
        "findings": _findings(tables, counted),
        "requests": [show_request(each) for each in console.log.newest(most=_LATEST)],
        "engine": _engine(console),
    }
    return View(template="home.html", title=console.name, data=data)


def _row(console: Console, table: LiveTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "href": TableLinks(table.name).home(),
        "model": console.settings.models if table.declared is not None else "",
        "entities": len(table.facets),
        "guessed": table.declared is None,
        "items": table.item_count,
        "bytes": table.bytes,
        "indexes": len(table.indexes),
    }


def _counts(console: Console, table: LiveTable) -> dict[str, Any]:
    counted = console.census.count(table)
    found = console.catalog.table(table.name) if table.declared is None else table
    return show_counts(found, counted)


def _largest_facets(counts: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of the entities that have items, the largest first; all keep their share."""
    facets = [each for each in counts["facets"] if each["items"]]
    shown = sorted(facets, key=lambda each: -each["bytes"])[:_MOST_FACETS]
    return counts | {"facets": [each for each in facets if each in shown], "more": len(facets) - len(shown)}


def _findings(tables: list[LiveTable], counted: dict[str, dict[str, Any]]) -> list[dict[str, str]]:
    """Return what needs a look, worst first."""
    found: list[dict[str, str]] = []
    for table in tables:
        if table.declared is None:
            continue
        links = TableLinks(table.name)
        found += [
            {
                "kind": "unclaimed",
                "level": "warn",
                "title": f"{facet['items']:,} {_matches(facet['items'])} no model",
                "text": f"In {table.name}: the page says why for each of them.",
                "href": links.section("unclaimed"),
            }
            for facet in counted.get(table.name, {}).get("facets", ())
            if facet["name"] == UNCLAIMED.name and facet["items"]
        ]
        by_code: dict[str, list[Finding]] = {}
        for finding in lint_findings(table.declared):
            by_code.setdefault(finding.code, []).append(finding)
        for code, findings in by_code.items():
            title, _, rest = findings[0].message.partition("; ")
            more = f" {len(findings) - 1} more like it." if len(findings) > 1 else ""
            found.append(
                {
                    "kind": code,
                    "level": _SEVERITIES[findings[0].severity],
                    "title": f"{findings[0].entity or table.name}: {title}",
                    "text": f"{rest}{more}",
                    "href": links.section("schema"),
                }
            )
    rank = {"bad": 0, "warn": 1, "": 2}
    return sorted(found, key=lambda each: rank[each["level"]])[:_MOST_FINDINGS]


def _matches(count: int) -> str:
    return "item matches" if count == 1 else "items match"


def _engine(console: Console) -> list[dict[str, str]]:
    prices = console.settings.prices
    rows: list[dict[str, str]] = []
    if console.url.scheme == "sqlite":
        rows.append({"label": "Engine", "text": f"embedded, SQLite {sqlite3.sqlite_version}"})
        rows.append({"label": "File", "text": console.url.path or "in memory"})
    else:
        rows.append({"label": "Engine", "text": "Amazon DynamoDB" if console.is_remote else "an endpoint"})
        rows.append({"label": "URL", "text": console.url.text})
    if console.settings.endpoint:
        rows.append({"label": "Endpoint", "text": console.settings.endpoint})
    rows.append({"label": "Models", "text": console.settings.models or "none: entities are guessed"})
    rows.append({"label": "Prices", "text": f"{prices.region} on demand, {prices.date}"})
    return rows


def show_request(each: LoggedRequest) -> dict[str, Any]:
    """Return a logged request as a row."""
    return {
        "id": each.id,
        "time": each.time,
        "operation": each.operation,
        "tables": list(each.tables),
        "index": each.index,
        "page": each.page,
        "items": each.items,
        "scanned": each.scanned,
        "rcu": each.consumed.rcu,
        "wcu": each.consumed.wcu,
        "ms": round(each.seconds * 1000, 2),
        "error": each.error,
        "is_write": each.is_write,
        "can_replay": each.members is not None,
    }


def jump(console: Console, asked: PageRequest) -> View | Redirect:
    """Find a table, an entity, a pattern or a partition key; one hit opens at once."""
    wanted = asked.get("q").strip()
    hits: list[dict[str, str]] = []
    for name in console.catalog.names() if wanted else ():
        table = console.catalog.table(name)
        links = TableLinks(name, asked.tenant)
        if wanted.lower() in name.lower():
            hits.append({"kind": "table", "text": name, "href": links.home()})
        for facet in table.facets:
            if wanted.lower() in facet.name.lower():
                hits.append({"kind": "entity", "text": facet.name, "href": links.facet(facet.name)})
            for pattern in () if facet.plan is None else facet.plan.patterns:
                full = f"{facet.name}.{pattern}"
                if wanted.lower() in full.lower() and wanted.lower() != facet.name.lower():
                    hits.append({"kind": "pattern", "text": full, "href": links.pattern(full)})
        hits += _keys(console, table, links, wanted)
    exact = [each for each in hits if each["text"] == wanted]
    if len(hits) == 1 or len(exact) == 1:
        return Redirect(path=(exact or hits)[0]["href"])
    return View(template="jump.html", title="Jump", data={"q": wanted, "hits": hits[:50]})


def _keys(console: Console, table: LiveTable, links: TableLinks, wanted: str) -> list[dict[str, str]]:
    """Return the partition with this key, if it has items: one Query."""
    try:
        value = decode_key(table.partition.kind, wanted)
        page = partition_page(console.engine, table, value, most=1)
    except SolotableError:
        # Not a value of the key's type.
        return []
    return [{"kind": "partition", "text": wanted, "href": links.partition(value)}] if page.items else []


def shortcuts(console: Console, asked: PageRequest) -> View:
    """List the keys of the keyboard."""
    del console, asked
    return View(template="shortcuts.html", title="Shortcuts", data={"keys": _SHORTCUTS})


_SHORTCUTS = [
    ["/", "jump to a key, entity or pattern"],
    ["?", "this list"],
    ["g h", "home"],
    ["g f", "facets"],
    ["g c", "collections"],
    ["g p", "patterns"],
    ["g t", "heat"],
    ["g m", "migrations"],
    ["j k", "next and previous row"],
    ["Enter", "open the row"],
    ["[ ]", "first and next page"],
    ["e", "edit the item"],
    ["Ctrl S", "save the item"],
    ["Ctrl Enter", "run the pattern"],
    ["y", "copy the key of the row"],
    ["t", "light or dark"],
    ["Esc", "leave the field"],
]


def change_theme(console: Console, asked: PageRequest) -> Redirect:
    """Keep the chosen theme in a cookie."""
    del console
    chosen = asked.form.value("theme")
    back = asked.form.value("back")
    path = back if back.startswith("/") and not back.startswith(("//", "/\\")) else "/"
    return Redirect(path=path, cookie=("theme", chosen if chosen in ("light", "dark") else ""))
