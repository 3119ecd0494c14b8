"""Sync: the spaces of a table, their clients with their last mutations, and their logs."""

from __future__ import annotations

from typing import Any

from solotable._entities.declare.table import Table
from solotable._flows.sync.log import LogRecord, Operation
from solotable.console.data.catalog import LiveTable
from solotable.console.data.request_log import LoggedRequest, collect_requests
from solotable.console.pages.facets import find_table
from solotable.console.pages.shown import scan_cost, show_facet
from solotable.console.state import Console, PageRequest, Redirect, View
from solotable.console.table_links import TableLinks
from solotable.errors import DataError, NotFound
from solotable.sync.inspection import ClientStatus, SpaceStatus, read_clients, read_log, read_spaces

_MOST_SPACES = 100
_MOST_CLIENTS = 200
_LOG_PAGE = 25
#: The keys of a log record that the page lists.
_MOST_KEYS = 5


def sync(console: Console, asked: PageRequest) -> View | Redirect:
    """List the spaces of the sample; with a space in the form, open it."""
    table = find_table(console, asked.segments[0])
    links = TableLinks(table.name, asked.tenant)
    if "space" in asked.parameters:
        return Redirect(path=links.space(asked.get("of") or None, asked.get("space")))
    counted = console.census.count(table) if table.synced else None
    names = [] if counted is None else list(counted.spaces)
    if asked.tenant is not None and table.synced:
        names = [each for each in ((asked.tenant, ""), *names) if each[0] == asked.tenant]
    names = list(dict.fromkeys(names))[:_MOST_SPACES]
    found, requests = _spaces(console, table, names)
    data: dict[str, Any] = {
        "table": table.name,
        "declared": table.declared is not None,
        "entities": [show_facet(each) | {"space": _template(each.plan)} for each in table.synced],
        "consent": scan_cost(console, table) if table.synced and counted is None else None,
        "sampled": None if counted is None else counted.sampled,
        "exact": counted is not None and counted.exact,
        "tenant": asked.tenant or "",
        "spaces": [
            _show_space(each) | {"href": links.space(each.tenant, each.name)}
            for each in sorted(found, key=lambda each: (each.tenant or "", each.name))
        ],
        "cost": _cost(requests),
    }
    return View(
        template="sync.html",
        title=f"Sync, {table.name}",
        data=data,
        table=table,
        section="sync",
        crumbs=((table.name, links.home()), ("Sync", "")),
    )


def space(console: Console, asked: PageRequest) -> View:
    """Show one space: its head, the clients of its tenant, and its newest log records."""
    table = find_table(console, asked.segments[0])
    links = TableLinks(table.name, asked.tenant)
    tenant, name = asked.segments[1] or None, asked.segments[2]
    before = asked.get("before")
    if before and not (before.isascii() and before.isdigit()):
        raise DataError(f"before={before!r} is not a version; open the first page of the log again.")
    (found,), requests = _spaces(console, table, [(tenant, name)])
    if not found.version:
        raise NotFound(f"Table {table.name} has no space {name!r} of tenant {tenant!r}: it has no write.")
    database = console.database
    assert database is not None
    declared = _declared(table)
    with collect_requests() as more:
        clients = read_clients(database, declared, tenant, limit=_MOST_CLIENTS)
        records = read_log(
            database, declared, (tenant, name), before=int(before) if before else None, limit=_LOG_PAGE
        )
    last = records[-1].version if len(records) == _LOG_PAGE else None
    here = links.space(tenant, name)
    data: dict[str, Any] = _show_space(found) | {
        "table": table.name,
        "clients": [_show_client(each, name, found.version) for each in clients],
        "rejected": sum(each.rejected for each in clients),
        "groups": len({each.group for each in clients}),
        "more_clients": len(clients) == _MOST_CLIENTS,
        "log": [_show_record(each) for each in records],
        "before": before,
        "self": here,
        "next": None if last is None or last == found.oldest else links.space(tenant, name, before=last),
        "cost": _cost([*requests, *more]),
    }
    title = name or "The tenant's own space"
    return View(
        template="space.html",
        title=f"{title}, {table.name}",
        data=data | {"title": title},
        table=table,
        section="sync",
        crumbs=(
            (table.name, links.home()),
            ("Sync", links.section("sync")),
            (f"{tenant or 'global'} / {name or 'own space'}", ""),
        ),
    )


def _spaces(
    console: Console, table: LiveTable, names: list[tuple[str | None, str]]
) -> tuple[list[SpaceStatus], list[LoggedRequest]]:
    if console.database is None or not table.synced:
        if names:
            raise NotFound(f"No entity of {table.name} is synced; declare sync = Synced() on one.")
        return [], []
    with collect_requests() as requests:
        found = read_spaces(console.database, _declared(table), names) if names else []
    return found, requests


def _declared(table: LiveTable) -> Table:
    assert table.declared is not None
    return table.declared


def _template(plan: Any) -> str:
    text: str = plan.synced.space_template.text
    return text


def _show_space(found: SpaceStatus) -> dict[str, Any]:
    return {
        "tenant": found.tenant,
        "name": found.name,
        "version": found.version,
        "epoch": found.epoch,
        "at": found.at,
        "oldest": found.oldest,
    }


def _show_client(each: ClientStatus, name: str, version: int) -> dict[str, Any]:
    confirmed = each.versions.get(name)
    return {
        "group": each.group,
        "client": each.client,
        "user": each.user,
        "last_mutation_id": each.last_mutation_id,
        "at": each.at,
        "rejected": each.rejected,
        "is_reset": each.is_reset,
        "confirmed_at": confirmed,
        "versions_since": None if confirmed is None else version - confirmed,
    }


def _show_record(record: LogRecord) -> dict[str, Any]:
    return {
        "version": record.version,
        "at": record.at,
        "operations": len(record.operations),
        "keys": [_show_operation(each) for each in record.operations[:_MOST_KEYS]],
        "more": max(0, len(record.operations) - _MOST_KEYS),
        "clients": [list(each) for each in record.clients],
        "needs": dict(record.needs),
        "is_reset": record.after is not None,
    }


def _show_operation(operation: Operation) -> dict[str, Any]:
    deleted = operation.value is None and operation.item_key is None
    return {"key": operation.key, "change": "deleted" if deleted else "written", "group": operation.group}


def _cost(requests: list[LoggedRequest]) -> dict[str, Any]:
    return {"requests": len(requests), "rcu": sum(each.consumed.rcu for each in requests)}
