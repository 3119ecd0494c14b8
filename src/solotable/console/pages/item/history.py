"""History of one item: its versions, what changed between two of them, and a restore as a new version."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from starlette.exceptions import HTTPException

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.traits.history import History
from solotable._store.handles.history import EntityHistory
from solotable._values import Item, item_size
from solotable.console.data.backups import backup_file, read_window
from solotable.console.data.catalog import Facet
from solotable.console.editing.save import scope_of
from solotable.console.pages.shown import label_of, show_facet
from solotable.console.state import Console, PageRequest, Redirect, View
from solotable.errors import ConditionFailed, DataError, TransactionCancelled

from .diff import changed_names, diff_items
from .item import ItemPlace

_MOST_VERSIONS = 100


def history(console: Console, asked: PageRequest) -> View:
    """Show the versions of an item, and the difference of two."""
    place = ItemPlace(console, asked, claimed=True)
    stored, _ = place.read()
    facet = place.table.facet_of(stored)
    return _view(place, facet, stored)


def restore(console: Console, asked: PageRequest) -> View | Redirect:
    """Write a former version as a new one, if the item is still at the version that the user saw."""
    if not console.settings.write:
        raise HTTPException(403, "The console is read-only; start it with --write to restore.")
    place = ItemPlace(console, asked, claimed=True)
    stored, _ = place.read()
    facet = place.table.facet_of(stored)
    plan = facet.plan
    version, over = asked.form.value("version"), asked.form.value("over")
    if plan is None or not version.isdigit() or not over.isdigit():
        raise DataError("A restore needs a version of an entity with history; load the page again.")
    try:
        restored = _handle(console, plan, stored).restore(int(version), over=int(over))
    except (ConditionFailed, TransactionCancelled):
        now = plan.version and stored[plan.attributes[plan.version].wire]["N"]
        text = f"Not restored: the item is at version {now}, and you saw version {over}."
        return _view(place, facet, stored, error=text, status=409)
    number = int(getattr(restored, plan.version or ""))
    path = place.links.item(place.table, facet.name, stored, "/history")
    done = console.notify(f"Version {version} restored as version {number}.")
    return Redirect(path=f"{path}{'&' if '?' in path else '?'}done={done}")


def _handle(console: Console, plan: Plan, stored: Item) -> EntityHistory[Entity]:
    entity = plan.decode(stored)
    # The tenant is the scope's.
    key = {name: getattr(entity, name) for name in plan.primary.parts if name != plan.tenant}
    return EntityHistory(console.engine, scope_of(console, plan, stored), plan.entity, key)


def _view(place: ItemPlace, facet: Facet, stored: Item, *, error: str = "", status: int = 200) -> View:
    table, links, plan = place.table, place.links, facet.plan
    trait = None
    if plan is not None:
        trait = next((each for each in plan.traits if isinstance(each, History)), None)
    data: dict[str, Any] = {
        "table": table.name,
        "facet": show_facet(facet),
        "key": [str(stored[part.name][part.kind]) for part in table.keys],
        "title": label_of(table, stored).partition(",")[0] or str(stored[table.keys[-1].name]),
        "item": links.item(table, facet.name, stored),
        "self": links.item(table, facet.name, stored, "/history"),
        "has_history": trait is not None,
        "versions": [],
        "diff": None,
        "error": error,
        "write": place.console.settings.write,
        "window": asdict(read_window(place.console, table.name)),
        "past": None if backup_file(place.console) is None else links.past(table, stored),
        "backups": links.section("backups"),
    }
    if plan is not None and trait is not None:
        data |= _versions(place, plan, stored)
    crumbs = (
        (table.name, links.home()),
        (facet.name, links.facet(facet.name)),
        (data["key"][-1], data["item"]),
        ("History", ""),
    )
    return View(
        template="history.html",
        title=f"History of {data['title']}",
        data=data,
        table=table,
        section="facets",
        crumbs=crumbs,
        status=status,
    )


def _versions(place: ItemPlace, plan: Plan, stored: Item) -> dict[str, Any]:
    handle = _handle(place.console, plan, stored)
    page = handle.list(limit=_MOST_VERSIONS)
    wire = plan.attributes[plan.version or ""].wire
    items: dict[int, Item] = {int(stored[wire]["N"]): stored}
    for entity in page.items:
        items[int(getattr(entity, plan.version or ""))] = _item_of(plan, entity)
    numbers = sorted(items, reverse=True)
    newest = numbers[0]
    after = _number(place.asked.get("to"), numbers, newest)
    earlier = [each for each in numbers if each < after]
    before = _number(place.asked.get("from"), numbers, earlier[0] if earlier else after)
    rows = []
    for at, number in enumerate(numbers):
        former = numbers[at + 1] if at + 1 < len(numbers) else None
        changed = [] if former is None else changed_names(items[former], items[number])
        ignored = {plan.attributes[each].wire for each in (plan.version, plan.updated) if each}
        rows.append(
            {
                "version": number,
                "current": number == newest,
                "bytes": item_size(items[number]),
                "changed": [each for each in changed if each not in ignored],
                "first": former is None and number == 1,
                "time": _time(plan, items[number]),
                "selected": number in (before, after),
                "href": place.links.item(
                    place.table,
                    place.table.facet_of(stored).name,
                    stored,
                    "/history",
                    to=number,
                    **{"from": former},
                ),
            }
        )
    return {
        "versions": rows,
        "more": page.cursor is not None,
        "current": newest,
        "before": before,
        "after": after,
        "restorable": before if before != newest else None,
        "diff": diff_items(items[before], items[after]) if before != after else None,
        "time_before": _time(plan, items[before]),
        "time_after": _time(plan, items[after]),
        "call": _call(plan, before, newest, stored),
    }


def _item_of(plan: Plan, entity: Entity) -> Item:
    values = entity.__dict__
    return plan.encode(values, plan.kept(entity, values))


def _number(text: str, known: list[int], default: int) -> int:
    return int(text) if text.isdigit() and int(text) in known else default


def _time(plan: Plan, item: Item) -> str:
    name = plan.updated or plan.created
    value = None if name is None else item.get(plan.attributes[name].wire)
    return "" if value is None else str(next(iter(value.values())))[:19].replace("T", " ")


def _call(plan: Plan, before: int, newest: int, stored: Item) -> str:
    entity = plan.decode(stored)
    key = ", ".join(f"{name}={getattr(entity, name)!r}" for name in plan.primary.parts if name != plan.tenant)
    return f"history = db.history({plan.name}, {key})\nhistory.restore({before}, over={newest})"
