"""The pages of the console by the segments of their path; `*` is a name or a key, `-` is only itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.exceptions import HTTPException

from .pages import collection, facets, home, patterns, schema
from .pages.activity import backups, heat, migrations, requests, sync
from .pages.item import history, item, new
from .state import Console, PageRequest, Redirect, View

Handler = Callable[[Console, PageRequest], View | Redirect]

_GET: dict[str, Handler] = {
    "": home.home,
    "-/jump": home.jump,
    "-/shortcuts": home.shortcuts,
    "t/*": facets.table,
    "t/*/-/unclaimed": facets.unclaimed,
    "t/*/*": facets.facet,
    "t/*/-/pk": collection.partitions,
    "t/*/-/pk/*": collection.collection,
    "t/*/-/patterns": patterns.patterns,
    "t/*/-/patterns/*": patterns.pattern,
    "t/*/-/schema": schema.schema,
    "t/*/-/requests": requests.requests,
    "t/*/-/requests/*": requests.request,
    "t/*/*/*": item.item,
    "t/*/*/*/*": item.item,
    "t/*/*/*/*/history": history.history,
    "t/*/-/item/*": item.unclaimed_item,
    "t/*/-/item/*/*": item.unclaimed_item,
    "t/*/-/new": new.new,
    "t/*/-/backups": backups.backups,
    "t/*/-/backups/*": backups.past,
    "t/*/-/backups/*/*": backups.past,
    "t/*/-/heat": heat.heat,
    "t/*/-/sync": sync.sync,
    "t/*/-/sync/*/*": sync.space,
    "-/migrations": migrations.migrations,
    "-/migrations/*": migrations.migration,
}
_POST: dict[str, Handler] = {
    "-/theme": home.change_theme,
    "t/*/-/consent": facets.allow_scan,
    "t/*/-/recount": facets.recount,
    "t/*/-/requests/*/replay": requests.replay,
    "t/*/*/*": item.edit_item,
    "t/*/*/*/*": item.edit_item,
    "t/*/*/*/*/history": history.restore,
    "t/*/-/new": new.create,
    "t/*/-/backups/*": backups.restore,
    "t/*/-/backups/*/*": backups.restore,
    "t/*/-/item/*": item.edit_unclaimed,
    "t/*/-/item/*/*": item.edit_unclaimed,
}


def find_page(method: str, segments: Sequence[str]) -> tuple[Handler, list[str]]:
    """Return the page of a path, and its variable segments; raise 404 or 405."""
    pages = _POST if method == "POST" else _GET
    for pattern, handler in pages.items():
        variable = _match(pattern.split("/") if pattern else [], segments)
        if variable is not None:
            return handler, variable
    others = _GET if method == "POST" else _POST
    if any(_match(pattern.split("/"), segments) is not None for pattern in others if pattern):
        raise HTTPException(405, "This address takes a form, and shows no page; go back to the page before.")
    raise HTTPException(404, f"The console has no page /{'/'.join(segments)}.")


def _match(pattern: Sequence[str], segments: Sequence[str]) -> list[str] | None:
    if len(pattern) != len(segments):
        return None
    found = []
    for wanted, given in zip(pattern, segments, strict=True):
        if wanted == "*" and given != "-":
            found.append(given)
        elif wanted != given:
            return None
    return found
