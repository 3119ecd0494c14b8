"""Access patterns: run one or explain it, with its exact request and its cost."""

from __future__ import annotations

import json
import time
from enum import Enum
from inspect import Parameter
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import TypeAdapter, ValidationError

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import suggestion
from solotable._entities.patterns.access_patterns import access_pattern
from solotable._entities.patterns.cost import query_units
from solotable._entities.patterns.pattern import BoundPattern, Pattern
from solotable._entities.patterns.query import Query
from solotable._entities.patterns.samples import argument_types, shown_type
from solotable._protocol.encode.requests import encode_request
from solotable._values import item_size
from solotable.console.data.catalog import Facet, LiveTable
from solotable.console.data.request_log import LoggedRequest, collect_requests
from solotable.console.state import Console, PageRequest, Redirect, View
from solotable.console.table_links import TableLinks
from solotable.errors import NotFound, SolotableError

from .facets import find_table
from .shown import show_facet
from .snippets import aws_cli, boto3_call, solotable_call

_TABS = {"cost": "Cost", "json": "Request JSON", "cli": "AWS CLI", "boto3": "boto3", "call": "solotable call"}
_DEFAULT_LIMIT, _MOST_LIMIT = 50, 1_000
_MOST_COLUMNS = 8
#: Half of what was read was dropped.
_WASTED_PERCENT = 50


def patterns(console: Console, asked: PageRequest) -> View | Redirect:
    """Open the first pattern of a table."""
    table = find_table(console, asked.segments[0])
    links = TableLinks(table.name, asked.tenant)
    names = [name for name, _, _ in _all(table)]
    if names:
        return Redirect(path=links.pattern(names[0]))
    data: dict[str, Any] = {"table": table.name, "menu": [], "has_models": table.declared is not None}
    return _view(table, links, "Patterns", data)


def pattern(console: Console, asked: PageRequest) -> View:
    """Show a pattern with its form; run it if the form says so."""
    table = find_table(console, asked.segments[0])
    links = TableLinks(table.name, asked.tenant)
    name = asked.segments[1]
    known = {each: (facet, found) for each, facet, found in _all(table)}
    if name not in known:
        raise NotFound(f"Table {table.name} has no pattern {name!r}; {suggestion(name, known)}")
    facet, found = known[name]
    plan = facet.plan
    assert plan is not None
    described = access_pattern(plan, found)
    form = _Form(plan, found, asked)
    data: dict[str, Any] = {
        "table": table.name,
        "has_models": True,
        "menu": _menu(table, links, name),
        "name": name,
        "facet": show_facet(facet),
        "summary": described.summary,
        "index": described.index,
        "key_condition": described.key_condition,
        "filters": list(described.filters),
        "estimate": described.cost,
        "fields": form.fields,
        "limit": form.limit,
        "tabs": _TABS,
        "tab": asked.get("tab") if asked.get("tab") in _TABS else "cost",
        "result": None,
        "explained": None,
        "error": None,
    }
    if asked.get("run") or asked.get("explain"):
        try:
            _answer(console, table, data, form, links)
        except SolotableError as error:
            data["error"] = str(error)
    return _view(table, links, name, data)


def _view(table: LiveTable, links: TableLinks, title: str, data: dict[str, Any]) -> View:
    crumbs = ((table.name, links.home()), ("Patterns", links.section("patterns")))
    return View(
        template="patterns.html",
        title=title,
        data=data,
        table=table,
        section="patterns",
        crumbs=(crumbs[0], ("Patterns", "")) if title == "Patterns" else (*crumbs, (title, "")),
    )


def _all(table: LiveTable) -> list[tuple[str, Facet, Pattern]]:
    return [
        (f"{facet.name}.{name}", facet, found)
        for facet in table.facets
        if facet.plan is not None
        for name, found in facet.plan.patterns.items()
    ]


def _menu(table: LiveTable, links: TableLinks, current: str) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = []
    for facet in table.facets:
        if facet.plan is None or not facet.plan.patterns:
            continue
        entries = []
        for name, found in facet.plan.patterns.items():
            full = f"{facet.name}.{name}"
            index = access_pattern(facet.plan, found).index
            entries.append(
                {"name": name, "href": links.pattern(full), "index": index, "current": full == current}
            )
        groups.append({"facet": show_facet(facet), "entries": entries})
    return groups


class _Form:
    """The fields of a pattern's signature, and their values as they were typed."""

    def __init__(self, plan: Plan, found: Pattern, asked: PageRequest) -> None:
        self.plan = plan
        self.bound = BoundPattern(found, plan.entity)
        self._parameters = found.parameters
        self._kinds = argument_types(plan.entity, found)
        self._asked = asked
        #: Whether to show the request without sending it.
        self.explains = bool(asked.get("explain"))
        self.fields: list[dict[str, Any]] = []
        self._needs_tenant = plan.tenant is not None and plan.tenant not in self._kinds
        if self._needs_tenant and asked.tenant is None:
            self.fields.append(self._field("tenant", "str", str, required=True))
        for each in found.parameters:
            if each.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
                continue
            kind = self._kinds[each.name]
            field = self._field(each.name, shown_type(kind), kind, required=each.default is each.empty)
            if each.default is not each.empty and each.default is not None:
                field["placeholder"] = str(each.default)
            self.fields.append(field)
        limit = asked.get("limit") or str(_DEFAULT_LIMIT)
        self.limit = min(_MOST_LIMIT, max(1, int(limit))) if limit.isdigit() else _DEFAULT_LIMIT

    def _field(self, name: str, shown: str, kind: Any, *, required: bool) -> dict[str, Any]:
        return {
            "name": name,
            "type": shown,
            "choices": choices_of(kind),
            "number": _bare(kind) is int,
            "required": required,
            "placeholder": "",
            "value": self._asked.get(f"a.{name}"),
            "error": "",
        }

    @property
    def tenant(self) -> str | None:
        """The tenant of the call: of the scope, or of the form."""
        if not self._needs_tenant:
            return self._asked.tenant if self.plan.tenant is not None else None
        return self._asked.tenant or self._asked.get("a.tenant") or None

    def arguments(self) -> dict[str, Any] | None:
        """Return the parsed arguments; None if one is missing or wrong, which its field says."""
        found: dict[str, Any] = {}
        for field in self.fields:
            name, text = field["name"], field["value"]
            if text == "" and not field["required"]:
                continue
            if text == "":
                field["error"] = "Write a value."
                continue
            if name == "tenant" and name not in self._kinds:
                continue
            try:
                found[name] = parse_text(self._kinds[name], text)
            except ValidationError as error:
                field["error"] = f"{error.errors()[0]['msg']}."
        return None if any(each["error"] for each in self.fields) else found

    def query(self, arguments: dict[str, Any]) -> Query[Any]:
        """Call the pattern."""
        named = dict(arguments)
        positional = [named.pop(each.name) for each in self._parameters if each.kind is each.POSITIONAL_ONLY]
        return self.bound(*positional, **named)


def _answer(console: Console, table: LiveTable, data: dict[str, Any], form: _Form, links: TableLinks) -> None:
    arguments = form.arguments()
    if arguments is None:
        data["error"] = "The pattern was not run: a field needs a value."
        return
    query = form.query(arguments)
    store = console.store(form.tenant)
    prepared = store.explain(query)
    data["queries"] = prepared.queries
    if form.explains or prepared.request is None:
        sent = [] if prepared.request is None else [encode_request(prepared.request)]
        average = max(1, table.bytes // table.item_count) if table.item_count else 1024
        index = None if query.path.index is None else query.path.index.name
        units = query_units(
            form.limit, average, index=index, consistent=query.consistently, hydrates=prepared.hydrates
        )
        data["explained"] = _costs(
            console, {"rcu": units.total, "by": {index or "table": units.total}, "items": form.limit}
        )
    else:
        began = time.perf_counter()
        with collect_requests() as requests:
            page = store.page(query, limit=form.limit, unknown="skip")
        seconds = time.perf_counter() - began
        sent = [(each.operation, each.members or {}) for each in requests[:1]]
        data["result"] = _result(console, table, list(page.items), requests, links) | {
            "ms": round(seconds * 1000, 1),
            "more": page.cursor is not None,
        }
    if sent:
        operation, members = sent[0]
        data["request"] = {
            "operation": operation,
            "json": members,
            "cli": aws_cli(operation, members),
            "boto3": boto3_call(operation, members),
            "call": solotable_call(form.bound.name, arguments, form.tenant, form.limit),
        }


def _costs(console: Console, found: dict[str, Any]) -> dict[str, Any]:
    return found | {"dollars_per_million": console.read_dollars(found["rcu"]) * 1e6}


def _result(
    console: Console, table: LiveTable, rows: list[Any], requests: list[LoggedRequest], links: TableLinks
) -> dict[str, Any]:
    read = sum(each.scanned for each in requests)
    by: dict[str, float] = {}
    for each in requests:
        own = each.consumed.rcu
        for name, units in each.consumed.indexes.items():
            by[name.rpartition("/")[2]] = by.get(name.rpartition("/")[2], 0.0) + units.rcu
            own -= units.rcu
        if own:
            by["table"] = by.get("table", 0.0) + own
    dropped = max(0, read - len(rows))
    tenants = {facet.plan.tenant for facet in table.facets if facet.plan is not None}
    named = [each for each in type(rows[0]).model_fields if each not in tenants] if rows else []
    columns = named[:_MOST_COLUMNS]
    return _costs(
        console,
        {
            "read": read,
            "returned": len(rows),
            "dropped": dropped,
            "dropped_percent": 100 * dropped / read if read else 0.0,
            "wasteful": read > 1 and 100 * dropped / read > _WASTED_PERCENT,
            "requests": len(requests),
            "rcu": sum(each.consumed.rcu for each in requests),
            "by": by,
            "columns": columns,
            "rows": [_row(table, row, columns, links) for row in rows],
        },
    )


def _row(table: LiveTable, row: Any, columns: list[str], links: TableLinks) -> dict[str, Any]:
    shown = row.model_dump(mode="json", include=set(columns))
    found: dict[str, Any] = {"cells": [_cell(shown.get(each)) for each in columns]}
    if isinstance(row, Entity):
        plan = row.plan()
        item = plan.encode(row.__dict__)
        facet = next((each for each in table.facets if each.plan is plan), None)
        if facet is not None:
            found |= {"facet": show_facet(facet), "href": links.item(table, facet.name, item)}
        found["bytes"] = item_size(item)
    return found


def _cell(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else str(value)


def _bare(kind: Any) -> Any:
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return kind


def choices_of(kind: Any) -> list[str]:
    """Return the values of a Literal, an Enum or a bool; nothing for other types.

    >>> choices_of(Literal["a", "b"] | None)
    ['a', 'b']
    """
    kind = _bare(kind)
    if get_origin(kind) in (Union, UnionType):
        arms = [each for each in get_args(kind) if each is not type(None)]
        return choices_of(arms[0]) if len(arms) == 1 else []
    if get_origin(kind) is Literal:
        return [str(each) for each in get_args(kind)]
    if kind is bool:
        return ["true", "false"]
    return [str(each.value) for each in kind] if isinstance(kind, type) and issubclass(kind, Enum) else []


def parse_text(kind: Any, text: str) -> Any:
    """Return the value of a text by its type; lists and maps are JSON. Raises ValidationError."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    try:
        return adapter.validate_strings(text)
    except ValidationError:
        if text[:1] not in ("[", "{", '"'):
            raise
        return adapter.validate_json(text)
