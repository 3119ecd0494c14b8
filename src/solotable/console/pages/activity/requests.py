"""Requests: the last 1,000 with their cost and time, and a request sent again."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException

from solotable._protocol.wire import call
from solotable.console.data.request_log import LoggedRequest
from solotable.console.pages.facets import find_table
from solotable.console.pages.home import show_request
from solotable.console.pages.snippets import aws_cli, boto3_call
from solotable.console.state import Console, PageRequest, View
from solotable.console.table_links import TableLinks
from solotable.errors import NotFound, SolotableError

_PAGE = 100


def requests(console: Console, asked: PageRequest) -> View:
    """List the requests of a table, newest first."""
    kept = console.log.newest(asked.segments[0])
    page = max(1, int(asked.get("page"))) if asked.get("page").isdigit() else 1
    data: dict[str, Any] = {
        "rows": [show_request(each) for each in kept[(page - 1) * _PAGE : page * _PAGE]],
        "kept": len(kept),
        "page": page,
        "pages": max(1, -(-len(kept) // _PAGE)),
        "rcu": sum(each.consumed.rcu for each in kept),
        "wcu": sum(each.consumed.wcu for each in kept),
        "scans": sum(each.operation == "Scan" for each in kept),
        "errors": sum(each.error is not None for each in kept),
    }
    return _view(console, asked, "requests.html", "Requests", data)


def request(console: Console, asked: PageRequest) -> View:
    """Show one request, and how to send it elsewhere."""
    return _view(console, asked, "request.html", "Request", _shown(console, asked))


def replay(console: Console, asked: PageRequest) -> View:
    """Send a request again, and show its reply; a write needs --write."""
    found = _find(console, asked)
    if found.is_write and not console.settings.write:
        raise HTTPException(
            403, f"{found.operation} changes data; start the console with --write to send it."
        )
    if found.members is None:
        raise HTTPException(409, "The request was too large to keep, so it cannot be sent again.")
    data = _shown(console, asked)
    try:
        data["reply"] = call(console.engine, found.operation, found.members)
    except SolotableError as error:
        data["failure"] = str(error)
    return _view(console, asked, "request.html", "Request", data)


def _find(console: Console, asked: PageRequest) -> LoggedRequest:
    number = asked.segments[1]
    found = console.log.find(int(number)) if number.isdigit() else None
    if found is None or asked.segments[0] not in found.tables:
        raise NotFound(f"Request {number} is not kept: the console keeps the last 1,000.")
    return found


def _shown(console: Console, asked: PageRequest) -> dict[str, Any]:
    found = _find(console, asked)
    members = found.members
    return show_request(found) | {
        "by": {
            name.rpartition("/")[2]: units.rcu + units.wcu for name, units in found.consumed.indexes.items()
        },
        "request": members,
        "cli": "" if members is None else aws_cli(found.operation, members),
        "boto3": "" if members is None else boto3_call(found.operation, members),
        "allowed": members is not None and (console.settings.write or not found.is_write),
        "reply": None,
        "failure": None,
    }


def _view(console: Console, asked: PageRequest, template: str, title: str, data: dict[str, Any]) -> View:
    table = find_table(console, asked.segments[0])
    links = TableLinks(table.name, asked.tenant)
    last = ("Requests", "") if title == "Requests" else ("Requests", links.section("requests"))
    more = () if title == "Requests" else ((f"{data['operation']} {data['id']}", ""),)
    return View(
        template=template,
        title=f"{title}, {table.name}",
        data=data | {"table": table.name},
        table=table,
        section="requests",
        crumbs=((table.name, links.home()), last, *more),
    )
