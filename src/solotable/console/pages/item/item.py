"""An item as a form or as DynamoDB JSON: two views of one draft, saved under an optimistic lock."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException

from solotable._values import Item
from solotable.console.data.backups import backup_file, read_window
from solotable.console.data.catalog import UNCLAIMED, Facet, LiveTable
from solotable.console.data.item_pages import get_item
from solotable.console.data.request_log import collect_requests
from solotable.console.editing.draft import (
    TYPE_NAMES,
    Draft,
    Row,
    dump_item,
    escape_altered,
    merge,
    read_draft,
    rows_of,
    show_row,
)
from solotable.console.editing.save import (
    Conflict,
    ModelView,
    delete_item,
    locked_names,
    save_entity,
    save_raw,
    view_through,
)
from solotable.console.pages.collection import has_history
from solotable.console.pages.facets import find_table
from solotable.console.pages.shown import label_of, show_item, write_cost
from solotable.console.paths import decode_key
from solotable.console.render import pretty
from solotable.console.state import Console, PageRequest, Redirect, View
from solotable.console.table_links import TableLinks
from solotable.errors import DataError, NotFound, SolotableError

#: An item with more attributes is edited as JSON: a form has at most 20,000 fields.
_MOST_ROWS = 1_000


class ItemPlace:
    """The item that a path names: its table, its entity and its key."""

    def __init__(self, console: Console, asked: PageRequest, *, claimed: bool) -> None:
        self.console = console
        self.asked = asked
        self.table: LiveTable = find_table(console, asked.segments[0])
        texts = asked.segments[2:] if claimed else asked.segments[1:]
        self.links = TableLinks(self.table.name, asked.tenant)
        if len(texts) != len(self.table.keys):
            names = " and ".join(part.name for part in self.table.keys)
            raise NotFound(
                f"An item of {self.table.name} has the key {names}; the address has {len(texts)} parts."
            )
        self.key: Item = {
            part.name: decode_key(part.kind, text) for part, text in zip(self.table.keys, texts, strict=True)
        }

    def read(self) -> tuple[Item, float]:
        """Return the item and the read units, or raise NotFound."""
        found, rcu = get_item(self.console.engine, self.table, self.key)
        if found is None:
            shown = " · ".join(str(next(iter(value.values()))) for value in self.key.values())
            past = self.past()
            more = "" if past is None else f" Continuous backups have its past: {past}"
            raise NotFound(f"Table {self.table.name} has no item {shown}.{more}")
        return found, rcu

    def past(self) -> str | None:
        """Return the page of the item in continuous backups, if there is one; at AWS it is not asked for."""
        if backup_file(self.console) is None or not read_window(self.console, self.table.name).enabled:
            return None
        return self.links.past(self.table, self.key)


def item(console: Console, asked: PageRequest) -> View:
    """Show an item of an entity."""
    return _show(ItemPlace(console, asked, claimed=True))


def unclaimed_item(console: Console, asked: PageRequest) -> View:
    """Show an item of no entity."""
    return _show(ItemPlace(console, asked, claimed=False))


def _show(place: ItemPlace) -> View:
    stored, rcu = place.read()
    facet = place.table.facet_of(stored)
    seen = view_through(facet, stored)
    raw = seen.entity is None or place.asked.get("raw") == "1"
    locked = locked_names(place.table, None if raw else seen.plan)
    draft = Draft(read=stored, rows=rows_of(stored, locked), item=stored)
    return _view(place, facet, seen, draft, raw=raw, rcu=rcu, tab=place.asked.get("tab"))


def edit_item(console: Console, asked: PageRequest) -> View | Redirect:
    """Take the form of an item of an entity."""
    return _edit(ItemPlace(console, asked, claimed=True))


def edit_unclaimed(console: Console, asked: PageRequest) -> View | Redirect:
    """Take the form of an item of no entity."""
    return _edit(ItemPlace(console, asked, claimed=False))


def _edit(place: ItemPlace) -> View | Redirect:
    console, form = place.console, place.asked.form
    if not console.settings.write:
        raise HTTPException(403, "The console is read-only; start it with --write to edit.")
    raw = form.value("raw") == "1"
    # The key attributes alone are locked until the form's own item is known.
    read = read_draft(form, ()).read
    if place.table.key_of(read) != place.key:
        raise HTTPException(400, "The form is of another item than its address; load the page again.")
    facet = place.table.facet_of(read)
    seen = view_through(facet, read)
    raw = raw or seen.entity is None
    locked = locked_names(place.table, None if raw else seen.plan)
    draft = read_draft(form, locked)
    tab = "json" if draft.text is not None else "form"
    if form.value("delete") == "1":
        return _delete(place, facet, seen, draft, raw=raw)
    if form.value("view"):
        tab = form.value("view") if not draft.errors else tab
        return _view(place, facet, seen, draft, raw=raw, tab=tab)
    if form.value("add") == "1":
        more = Draft(
            read=draft.read,
            rows=(*draft.rows, Row(name="", kind="S", text="")),
            errors=(),
            item=draft.item,
        )
        return _view(place, facet, seen, more, raw=raw, tab="form")
    if form.value("remove"):
        return _view(place, facet, seen, draft, raw=raw, tab="form")
    if draft.errors:
        return _view(place, facet, seen, draft, raw=raw, tab=tab, status=422)
    return _save(place, facet, seen, draft, raw=raw, tab=tab)


def _save(
    place: ItemPlace, facet: Facet, seen: ModelView, draft: Draft, *, raw: bool, tab: str
) -> View | Redirect:
    console, table = place.console, place.table
    here = place.links.item(
        table, facet.name, draft.read, raw="1" if raw and seen.entity is not None else None
    )
    if not draft.changed:
        return Redirect(path=_with_notice(console, here, "Nothing changed, so nothing was written."))
    version = None
    try:
        with collect_requests() as requests:
            if raw or seen.plan is None:
                save_raw(console, table, draft.read, draft.item)
            else:
                version = save_entity(console, seen.plan, draft.read, draft.item)
    except Conflict as error:
        return _conflict(place, facet, seen, draft, raw=raw, error=error)
    except SolotableError as error:
        failed = Draft(
            read=draft.read, rows=draft.rows, text=draft.text, errors=(str(error),), item=draft.item
        )
        return _view(place, facet, seen, failed, raw=raw, tab=tab, status=422)
    console.census.forget(table.name)
    wcu = sum(each.consumed.wcu for each in requests)
    what = "Saved" if version is None else f"Saved as version {version}"
    stored, _ = place.read()
    now = place.links.item(
        table, table.facet_of(stored).name, stored, raw="1" if raw and seen.entity is not None else None
    )
    return Redirect(path=_with_notice(console, now, f"{what}, {wcu:g} WCU."))


def _with_notice(console: Console, path: str, text: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}done={console.notify(text)}"


def _conflict(
    place: ItemPlace, facet: Facet, seen: ModelView, draft: Draft, *, raw: bool, error: Conflict
) -> View:
    """Show what another writer saved beside the draft; nothing of either is lost."""
    stored, _ = get_item(place.console.engine, place.table, place.key)
    if stored is None:
        text = "Not saved: the item was deleted while you edited. Copy what you need from the form."
        gone = Draft(read=draft.read, rows=draft.rows, text=draft.text, errors=(text,), item=draft.item)
        return _view(place, facet, seen, gone, raw=raw, status=409)
    if stored == draft.read:
        failed = Draft(
            read=draft.read,
            rows=draft.rows,
            text=draft.text,
            errors=(f"Not saved: {error}",),
            item=draft.item,
        )
        return _view(place, facet, seen, failed, raw=raw, status=409)
    locked = locked_names(place.table, None if raw else seen.plan)
    merged = merge(draft.read, draft.item, stored, locked)
    clashing = [row.name for row in merged.rows if row.clash is not None]
    mine = [row.name for row in merged.rows if row.changed]
    theirs = [
        name
        for name in dict.fromkeys((*stored, *draft.read))
        if stored.get(name) != draft.read.get(name) and name not in clashing and name not in locked
    ]
    conflict = {
        "read": _version(seen, draft.read),
        "stored": _version(seen, stored),
        "clashing": clashing,
        "mine": mine,
        "theirs": theirs,
    }
    return _view(place, facet, seen, merged, raw=raw, conflict=conflict, status=409)


def _delete(place: ItemPlace, facet: Facet, seen: ModelView, draft: Draft, *, raw: bool) -> View | Redirect:
    try:
        delete_item(place.console, place.table, None if raw else seen.plan, draft.read)
    except Conflict as error:
        return _conflict(place, facet, seen, Draft(read=draft.read, item=draft.read), raw=raw, error=error)
    except DataError as error:
        failed = Draft(read=draft.read, rows=draft.rows, errors=(str(error),), item=draft.item)
        return _view(place, facet, seen, failed, raw=raw, status=422)
    place.console.census.forget(place.table.name)
    path = place.links.partition(draft.read[place.table.partition.name])
    return Redirect(path=_with_notice(place.console, path, "Deleted."))


def _version(seen: ModelView, stored: Item) -> str | None:
    plan = seen.plan
    if plan is None or plan.version is None:
        return None
    value: str | None = stored.get(plan.attributes[plan.version].wire, {}).get("N")
    return value


def _view(  # noqa: PLR0913 - the parts of a page, each by name
    place: ItemPlace,
    facet: Facet,
    seen: ModelView,
    draft: Draft,
    *,
    raw: bool,
    rcu: float = 0.0,
    tab: str = "form",
    conflict: dict[str, Any] | None = None,
    status: int = 200,
) -> View:
    table, links, plan = place.table, place.links, seen.plan
    shown = show_item(table, draft.read, links)
    cost = write_cost(table, draft.item or draft.read)
    version = _version(seen, draft.read)
    by_model = plan is not None and not raw
    is_wide = len(draft.rows) > _MOST_ROWS
    data: dict[str, Any] = shown | {
        "table": table.name,
        "title": label_of(table, draft.read).partition(",")[0] or shown["key"][-1],
        "rcu": rcu,
        "tab": "json" if is_wide else tab if tab in ("form", "json") else "form",
        "is_wide": is_wide,
        "rows": []
        if is_wide
        else _ordered([show_row(row, number) for number, row in enumerate(draft.rows)], table),
        "json": draft.text
        if draft.text is not None and draft.errors
        else escape_altered(pretty(draft.item or draft.read)),
        "read": dump_item(draft.read),
        "types": TYPE_NAMES,
        "errors": list(draft.errors),
        "changes": draft.changed if draft.item else [],
        "conflict": conflict,
        "raw": raw,
        "by_model": by_model,
        "has_model": plan is not None and seen.entity is not None,
        "problem": seen.problem,
        "version": version,
        "next_version": None if version is None or not by_model else int(version) + 1,
        "write": place.console.settings.write,
        "asks_delete": place.asked.get("delete") == "1",
        "history": links.item(table, facet.name, draft.read, "/history") if has_history(facet) else None,
        "past": place.past(),
        "collection": links.partition(draft.read[table.partition.name], item=shown["key"][-1]),
        "self": links.item(table, facet.name, draft.read),
        "raw_path": links.item(table, facet.name, draft.read, raw="1"),
        "delete_path": links.item(table, facet.name, draft.read, raw="1" if raw else None, delete="1"),
        "cost": cost | {"transaction": by_model and plan is not None and bool(plan.traits)},
        "facts": _facts(facet, draft.read),
        "unclaimed": facet is UNCLAIMED,
    }
    crumbs: tuple[tuple[str, str], ...] = (
        (table.name, links.home()),
        (facet.name, links.facet(facet.name)),
        (shown["key"][-1], ""),
    )
    return View(
        template="item.html",
        title=f"{data['title']}, {facet.name}",
        data=data,
        table=table,
        section="facets",
        crumbs=crumbs,
        status=status,
    )


def _ordered(rows: list[dict[str, Any]], table: LiveTable) -> list[dict[str, Any]]:
    """Return the key first, what the user may write next, and what solotable writes last."""
    keys = [part.name for part in table.keys]
    return sorted(rows, key=lambda row: (row["name"] not in keys, row["locked"]))


def _facts(facet: Facet, stored: Item) -> list[list[str]]:
    """Return the times and the owner of an item, as far as its model names them."""
    plan = facet.plan
    if plan is None:
        return []
    found = []
    for label, name in (("Created", plan.created), ("Updated", plan.updated), ("Expires", plan.ttl)):
        if name is not None and plan.attributes[name].wire in stored:
            value = next(iter(stored[plan.attributes[name].wire].values()))
            found.append([label, str(value)])
    return found
