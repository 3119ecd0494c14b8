"""Item collections: one partition in sort-key order, and in which indexes an item is and why."""

from __future__ import annotations

from typing import Any

from solotable._entities.keys.layout import TemplateLayout
from solotable._values import Item, item_size
from solotable.console.data.catalog import Facet, LiveIndex, LiveTable
from solotable.console.data.item_pages import ItemPage, get_item, partition_page
from solotable.console.paths import decode_key, decode_start
from solotable.console.state import Console, PageRequest, Redirect, View
from solotable.console.table_links import TableLinks

from .facets import find_table
from .shown import scan_cost, show_cost, show_facet, show_item, write_cost

#: A run of items with one prefix is folded to so many rows.
_LONGEST_RUN, _FOLDED_RUN = 8, 4
_LOCAL_LIMIT = 10 * 1024**3


def partitions(console: Console, asked: PageRequest) -> View | Redirect:
    """List partition keys of the sample; with a key in the form, open it."""
    table = find_table(console, asked.segments[0])
    links = TableLinks(table.name, asked.tenant)
    if asked.get("pk"):
        value = {table.partition.kind: asked.get("pk")}
        return Redirect(path=links.partition(value, sk=asked.get("sk")))
    counted = console.census.count(table)
    rows = [] if counted is None else counted.partitions
    data: dict[str, Any] = {
        "table": table.name,
        "partition": table.partition.name,
        "consent": scan_cost(console, table) if counted is None else None,
        "sampled": None if counted is None else counted.sampled,
        "exact": counted is not None and counted.exact,
        "rows": [
            {"key": next(iter(value.values())), "items": number, "href": links.partition(value)}
            for value, number in rows
        ],
    }
    return View(
        template="partitions.html",
        title=f"Collections, {table.name}",
        data=data,
        table=table,
        section="collections",
        crumbs=((table.name, links.home()), ("Collections", "")),
    )


def collection(console: Console, asked: PageRequest) -> View:
    """Show one partition."""
    table = find_table(console, asked.segments[0])
    value = decode_key(table.partition.kind, asked.segments[1])
    links = TableLinks(table.name, asked.tenant)
    after = decode_start(asked.get("after")) if asked.get("after") else None
    prefix = asked.get("sk")
    page = partition_page(console.engine, table, value, prefix=prefix, after=after)
    text = asked.segments[1]
    data: dict[str, Any] = {
        "table": table.name,
        "key": next(iter(value.values())),
        "prefix": prefix,
        "cost": show_cost(page),
        "bytes": page.bytes,
        "whole": page.after is None and after is None and not prefix,
        "largest": max((item_size(each) for each in page.items), default=0),
        "has_local_index": any(index.local for index in table.indexes),
        "by_facet": _by_facet(table, page),
        "rows": _rows(table, page, links, unfolded=asked.get("all") == "1", selected=asked.get("item")),
        "after": asked.get("after"),
        "selected": _selected(console, table, value, asked.get("item"), page, links),
    }
    return View(
        template="collection.html",
        title=text,
        data=data,
        table=table,
        section="collections",
        crumbs=((table.name, links.home()), ("Collections", links.section("pk")), (text, "")),
    )


def _by_facet(table: LiveTable, page: ItemPage) -> list[dict[str, Any]]:
    sizes: dict[str, int] = {}
    facets: dict[str, Facet] = {}
    for item in page.items:
        facet = table.facet_of(item)
        facets[facet.name] = facet
        sizes[facet.name] = sizes.get(facet.name, 0) + item_size(item)
    total = sum(sizes.values()) or 1
    return [
        show_facet(facet) | {"bytes": sizes[name], "share": 100 * sizes[name] / total}
        for name, facet in facets.items()
    ]


def _rows(
    table: LiveTable, page: ItemPage, links: TableLinks, *, unfolded: bool, selected: str
) -> list[dict[str, Any]]:
    """Return the items, with a row above each run of items that share a prefix; long runs are folded."""
    runs: list[tuple[str, list[Item]]] = []
    for item in page.items:
        prefix = _prefix(table, item)
        if runs and prefix and runs[-1][0] == prefix:
            runs[-1][1].append(item)
        else:
            runs.append((prefix, [item]))
    rows: list[dict[str, Any]] = []
    for prefix, items in runs:
        grouped = len(items) > 1
        folded = grouped and len(items) > _LONGEST_RUN and not unfolded
        if grouped:
            shown = _FOLDED_RUN if folded else len(items)
            rows.append({"group": prefix, "shown": shown, "count": len(items)})
        for item in items[:_FOLDED_RUN] if folded else items:
            row = show_item(table, item, links)
            sort = row["key"][-1]
            del row["item"]
            rows.append(
                row
                | {
                    "depth": _depth(sort, grouped=grouped),
                    "text": sort.removeprefix(prefix) if grouped else sort,
                    "prefix_end": _last_literal(prefix) if grouped else "",
                    "sort": sort,
                    "select": links.partition(item[table.partition.name], sk=None, item=sort),
                    "selected": sort == selected,
                    "indexes": [
                        index.name
                        for index in table.indexes
                        if all(part.name in item for part in index.parts)
                    ],
                }
            )
    return rows


def _prefix(table: LiveTable, item: Item) -> str:
    """Return the sort key up to its last value: `SURVEY#1#SECTION#` of `SURVEY#1#SECTION#roof`."""
    if table.sort is None or table.sort.kind != "S":
        return ""
    text: str = item[table.sort.name]["S"]
    head, separator, _ = text.rstrip("#").rpartition("#")
    return head + separator


def _last_literal(prefix: str) -> str:
    head = prefix.rstrip("#").rpartition("#")[2]
    return f"{head}#" if head else ""


def _depth(sort: str, *, grouped: bool) -> int:
    return min(2, max(0, (len(sort.split("#")) - 1) // 2)) if grouped or sort.count("#") > 1 else 0


def _selected(
    console: Console,
    table: LiveTable,
    partition: dict[str, str],
    sort: str,
    page: ItemPage,
    links: TableLinks,
) -> dict[str, Any] | None:
    if not sort or table.sort is None:
        item = page.items[0] if page.items else None
    else:
        key = {table.partition.name: partition, table.sort.name: decode_key(table.sort.kind, sort)}
        item = next((each for each in page.items if table.key_of(each) == key), None)
        if item is None:
            item, _ = get_item(console.engine, table, key)
    if item is None:
        return None
    facet = table.facet_of(item)
    row = show_item(table, item, links)
    plan = facet.plan
    return row | {
        "version": item.get(plan.attributes[plan.version].wire, {}).get("N")
        if plan is not None and plan.version is not None
        else None,
        "history": links.item(table, facet.name, item, "/history") if has_history(facet) else None,
        "write_cost": write_cost(table, item),
        "indexes": [_where(index, facet, item, links) for index in table.indexes],
    }


def has_history(facet: Facet) -> bool:
    """Return whether the entity keeps its former versions."""
    from solotable._entities.traits.history import History

    return facet.plan is not None and any(isinstance(each, History) for each in facet.plan.traits)


def _where(index: LiveIndex, facet: Facet, item: Item, links: TableLinks) -> dict[str, Any]:
    """Say which key an item has in an index and from which fields, or why it is not there."""
    plan = facet.plan
    paths = (
        []
        if plan is None
        else [each for each in plan.indexes if each.index and each.index.name == index.name]
    )
    names = [each.name for each in paths]
    found: dict[str, Any] = {"index": index.name, "name": names[0] if names else "", "keys": None, "why": ""}
    if all(part.name in item for part in index.parts):
        found["keys"] = [[part.name, str(item[part.name][part.kind])] for part in index.parts]
        if plan is not None and paths:
            fields = [
                each
                for each in paths[0].parts
                if each != plan.tenant and isinstance(paths[0].partition, TemplateLayout)
            ]
            texts = [f"{each} = {_text(item.get(plan.attributes[each].wire))}" for each in fields]
            found["why"] = f"Because {', '.join(texts)}." if texts else ""
            found["patterns"] = [
                [f"{plan.name}.{name}", links.pattern(f"{plan.name}.{name}")] for name in plan.patterns
            ]
        return found
    missing = [part.name for part in index.parts if part.name not in item]
    if plan is not None and not paths:
        found["why"] = f"{plan.name} declares no key on {index.name}."
    elif plan is not None:
        empty = [
            each for each in paths[0].parts if plan.attributes[each].wire not in item and each != plan.tenant
        ]
        reason = f"{' and '.join(empty)} is None" if empty else "its condition excludes the item"
        found["why"] = f"Not in {names[0]}: {reason}."
    else:
        found["why"] = f"The item has no {' and no '.join(missing)}."
    return found


def _text(value: dict[str, Any] | None) -> str:
    return "None" if value is None else str(next(iter(value.values())))[:60]
