"""Facets: the items of one entity as typed columns, and the items that no model claims."""

from __future__ import annotations

from typing import Any

from solotable.console.data.catalog import UNCLAIMED, Facet, LiveTable, why_unclaimed
from solotable.console.data.census import SAMPLE_ITEMS
from solotable.console.data.item_pages import ItemFilter, ItemPage, facet_page, facet_request, unclaimed_page
from solotable.console.paths import decode_start
from solotable.console.state import Console, PageRequest, Redirect, View
from solotable.console.table_links import TableLinks
from solotable.errors import DataError

from .shown import MOST_COLUMNS, columns_of, scan_cost, show_cost, show_counts, show_facet, show_item

_COMPARISONS = {"is": "is any of", "begins": "begins with"}


def find_table(console: Console, name: str) -> LiveTable:
    """Return a table; one without models is sampled first, so that its entities are known."""
    table = console.catalog.table(name)
    if table.declared is None and name not in console.catalog.inferred and console.census.may_scan(table):
        console.census.count(table)
        table = console.catalog.table(name)
    return table


def table(console: Console, asked: PageRequest) -> View | Redirect:
    """Open the first entity of a table, or its unclaimed items without one."""
    found = find_table(console, asked.segments[0])
    links = TableLinks(found.name, asked.tenant)
    first = found.facets[0].name if found.facets else UNCLAIMED.name
    return Redirect(path=links.facet(first))


def facet(console: Console, asked: PageRequest) -> View:
    """Show the items of an entity."""
    found = find_table(console, asked.segments[0])
    chosen = found.facet(asked.segments[1])
    wanted = _filter_of(asked)
    request = facet_request(found, chosen, asked.tenant, wanted)
    operation = type(request).__name__
    page = None
    if operation == "Query" or console.census.may_scan(found):
        after = decode_start(asked.get("after")) if asked.get("after") else None
        page = facet_page(console.engine, found, chosen, tenant=asked.tenant, wanted=wanted, after=after)
    return _view(console, asked, found, chosen, page)


def unclaimed(console: Console, asked: PageRequest) -> View:
    """Show the items that no model claims, and why."""
    found = find_table(console, asked.segments[0])
    page = None
    if console.census.may_scan(found):
        after = decode_start(asked.get("after")) if asked.get("after") else None
        page = unclaimed_page(console.engine, found, after=after)
    return _view(console, asked, found, UNCLAIMED, page)


def _view(
    console: Console, asked: PageRequest, found: LiveTable, chosen: Facet, page: ItemPage | None
) -> View:
    links = TableLinks(found.name, asked.tenant)
    most = 1_000 if asked.get("columns") == "all" else MOST_COLUMNS
    items = [] if page is None else page.items
    columns = columns_of(found, chosen, items, most)
    rows = [show_item(found, item, links) for item in items]
    if chosen is UNCLAIMED:
        for row, item in zip(rows, items, strict=True):
            row["nearest"], row["why"] = why_unclaimed(found, item)
    data: dict[str, Any] = {
        "table": found.name,
        "facet": show_facet(chosen),
        "guessed": found.declared is None,
        "templates": [list(each) for each in chosen.templates],
        "patterns": [] if chosen.plan is None else list(chosen.plan.patterns),
        "counts": show_counts(found, console.census.count(found)),
        "columns": columns,
        "all_columns": [each["name"] for each in columns_of(found, chosen, items, 1_000)],
        "filter": {name: asked.get(name) for name in ("attribute", "comparison", "value")},
        "comparisons": _COMPARISONS,
        "cost": None if page is None else show_cost(page),
        "consent": None if page is not None else scan_cost(console, found),
        "sample_items": SAMPLE_ITEMS,
        "after": asked.get("after"),
        "by_model": chosen.plan is not None,
        "new": links.section("new", entity=None if chosen.plan is None else chosen.name),
        "rows": rows,
    }
    return View(
        template="facets.html",
        title=f"{chosen.name}, {found.name}",
        data=data,
        table=found,
        section="facets",
        crumbs=((found.name, links.home()), (chosen.name, "")),
    )


def _filter_of(asked: PageRequest) -> ItemFilter | None:
    attribute, text = asked.get("attribute"), asked.get("value")
    if not attribute or not text:
        return None
    comparison = asked.get("comparison", "is")
    if comparison not in _COMPARISONS:
        raise DataError(f"comparison={comparison!r} is not known; use {' or '.join(_COMPARISONS)}.")
    return ItemFilter(attribute=attribute, comparison=comparison, text=text)


def allow_scan(console: Console, asked: PageRequest) -> Redirect:
    """Remember that the user agreed to scan a table that costs money."""
    console.census.allow(console.catalog.table(asked.segments[0]).name)
    return Redirect(path=_back(asked))


def recount(console: Console, asked: PageRequest) -> Redirect:
    """Take a new sample of a table."""
    console.census.forget(asked.segments[0])
    return Redirect(path=_back(asked))


def _back(asked: PageRequest) -> str:
    back = asked.form.value("back")
    return back if back.startswith("/t/") else TableLinks(asked.segments[0]).home()
