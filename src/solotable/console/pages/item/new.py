"""A new item: a form of the model's fields, or the raw attributes of any item."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.exceptions import HTTPException

from solotable._values import Item
from solotable.console.data.catalog import Facet, LiveTable
from solotable.console.data.request_log import collect_requests
from solotable.console.editing.create import (
    blank_row,
    blank_rows,
    create_entity,
    create_raw,
    required_names,
    why_not,
    writable,
)
from solotable.console.editing.draft import (
    TYPE_NAMES,
    Draft,
    Row,
    escape_altered,
    read_draft,
    show_row,
)
from solotable.console.editing.save import Conflict
from solotable.console.pages.facets import find_table
from solotable.console.pages.shown import show_facet, write_cost
from solotable.console.paths import decode_key
from solotable.console.render import pretty
from solotable.console.state import Console, PageRequest, Redirect, View
from solotable.console.table_links import TableLinks
from solotable.errors import DataError, SolotableError


class NewItem:
    """What the address asks to create: an entity of a table, or a raw item."""

    def __init__(self, console: Console, asked: PageRequest) -> None:
        self.console, self.asked = console, asked
        self.table: LiveTable = find_table(console, asked.segments[0])
        self.links = TableLinks(self.table.name, asked.tenant)
        name = asked.get("entity")
        self.facet: Facet | None = self.table.facet(name) if name else None
        plan = None if self.facet is None else self.facet.plan
        self.problem = "" if plan is None else why_not(plan)
        self.plan = None if self.problem else plan

    @property
    def required(self) -> frozenset[str]:
        """The attributes that cannot be left out."""
        if self.plan is not None:
            return required_names(self.plan)
        return frozenset(part.name for part in self.table.keys)

    def path(self, entity: str | None = None) -> str:
        """Return the address of this form, or of that of an entity."""
        return self.links.section("new", entity=entity)

    def rows(self) -> tuple[Row, ...]:
        """Return the rows of an empty form; a raw item may start with a partition key."""
        if self.plan is not None:
            return blank_rows(self.plan, self.asked.tenant)
        given = self.asked.get("pk")
        texts = [given, ""]
        return tuple(
            Row(name=part.name, kind=part.kind, text=text)
            for part, text in zip(self.table.keys, texts, strict=False)
        )

    def row(self, name: str) -> Row:
        """Return an empty row for a field, or for any attribute."""
        known = {} if self.plan is None else writable(self.plan)
        return blank_row(name, known[name]) if name in known else Row(name="", kind="S", text="")


def new(console: Console, asked: PageRequest) -> View:
    """Show the form of a new item."""
    place = NewItem(console, asked)
    if asked.get("pk"):
        decode_key(place.table.partition.kind, asked.get("pk"))
    return _view(place, Draft(read={}, rows=place.rows()), tab="form")


def create(console: Console, asked: PageRequest) -> View | Redirect:
    """Take the form of a new item."""
    if not console.settings.write:
        raise HTTPException(403, "The console is read-only; start it with --write to create items.")
    place, form = NewItem(console, asked), asked.form
    draft = read_draft(form, ())
    tab = "json" if draft.text is not None else "form"
    if form.value("view"):
        # Empty fields are not written yet; a wrong value must not get lost.
        wrong = any(row.error and row.text for row in draft.rows) or (tab == "json" and draft.errors)
        if wrong and form.value("view") != tab:
            return _view(place, draft, tab=tab, status=422)
        return _view(place, replace(draft, errors=()), tab=form.value("view"))
    if form.value("add"):
        more = replace(draft, rows=(*draft.rows, place.row(form.value("add"))), errors=())
        return _view(place, more, tab="form")
    if form.value("remove"):
        return _view(place, replace(draft, errors=()), tab="form")
    if draft.errors:
        return _view(place, draft, tab=tab, status=422)
    return _create(place, draft, tab)


def _create(place: NewItem, draft: Draft, tab: str) -> View | Redirect:
    console, table = place.console, place.table
    try:
        with collect_requests() as requests:
            key = (
                create_raw(console, table, draft.item)
                if place.plan is None
                else create_entity(console, place.plan, draft.item)
            )
    except Conflict as error:
        return _view(place, replace(draft, errors=(f"Not created: {error}",)), tab=tab, status=409)
    except SolotableError as error:
        return _view(place, _marked(draft, error), tab=tab, status=422)
    console.census.forget(table.name)
    wcu = sum(each.consumed.wcu for each in requests)
    facet = place.facet if place.plan is not None and place.facet else table.facet_of(draft.item)
    done = console.notify(f"Created, {wcu:g} WCU.")
    return Redirect(path=place.links.item(table, facet.name, key, done=done))


def _marked(draft: Draft, error: SolotableError) -> Draft:
    """Return the draft with the error at the row that it names."""
    name, _, text = str(error).partition(": ")
    rows = tuple(
        replace(row, error=text) if isinstance(error, DataError) and row.name == name else row
        for row in draft.rows
    )
    return replace(draft, rows=rows, errors=(str(error),))


def _view(place: NewItem, draft: Draft, *, tab: str, status: int = 200) -> View:
    table, plan = place.table, place.plan
    required = place.required
    # A draft in JSON may not have them yet.
    missing = [row for row in place.rows() if row.name in required - {each.name for each in draft.rows}]
    rows = [
        show_row(row, number) | {"required": row.name in required, "changed": False}
        for number, row in enumerate((*draft.rows, *missing))
    ]
    given = {row["name"] for row in rows}
    written: Item = draft.item
    data: dict[str, Any] = {
        "table": table.name,
        "facet": None if place.facet is None else show_facet(place.facet),
        "entities": [
            show_facet(each) | {"href": place.path(each.name)}
            for each in table.facets
            if each.plan is not None and not each.plan.abstract
        ],
        "by_model": plan is not None,
        "problem": place.problem,
        "rows": rows,
        "optional": [] if plan is None else [name for name in writable(plan) if name not in given],
        "types": TYPE_NAMES,
        "tab": tab if tab in ("form", "json") else "form",
        "json": draft.text if draft.text is not None and draft.errors else escape_altered(pretty(written)),
        "errors": list(draft.errors),
        "templates": [] if place.facet is None else [list(each) for each in place.facet.templates],
        "write": place.console.settings.write,
        "self": place.path(None if place.facet is None else place.facet.name),
        "raw_path": place.path(),
        "back": place.links.home() if place.facet is None else place.links.facet(place.facet.name),
        "cost": write_cost(table, written) if written else None,
    }
    what = f"New {place.facet.name}" if place.facet is not None else "New item"
    return View(
        template="new.html",
        title=f"{what}, {table.name}",
        data=data | {"title": what},
        table=table,
        section="facets",
        crumbs=((table.name, place.links.home()), (what, "")),
        status=status,
    )
