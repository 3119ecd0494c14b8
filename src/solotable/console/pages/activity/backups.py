"""Backups of a table, and the past of one item with a restore."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Any

from starlette.exceptions import HTTPException

from solotable._entities.declare.plan import Plan
from solotable._values import Item, canonical_item, item_size
from solotable.backup import BackupFile, Scope, Version
from solotable.console.data.backups import backup_file, list_backups, read_window
from solotable.console.data.item_pages import get_item
from solotable.console.editing.save import Conflict, locked_names, save_entity, view_through
from solotable.console.pages.facets import find_table
from solotable.console.pages.item.diff import changed_names, diff_items
from solotable.console.pages.item.item import ItemPlace
from solotable.console.pages.shown import show_facet
from solotable.console.state import Console, PageRequest, Redirect, View
from solotable.console.table_links import TableLinks
from solotable.errors import DataError, RecoveryError, SolotableError

#: The newest versions of an item that the page lists.
_MOST_VERSIONS = 100


def backups(console: Console, asked: PageRequest) -> View | Redirect:
    """Show the window and the backups of a table; with a key in the form, open the past of its item."""
    table = find_table(console, asked.segments[0])
    links = TableLinks(table.name, asked.tenant)
    if asked.get("pk"):
        texts = [asked.get("pk"), asked.get("sk")][: len(table.keys)]
        key = {part.name: {part.kind: text} for part, text in zip(table.keys, texts, strict=True)}
        return Redirect(path=links.past(table, key))
    data: dict[str, Any] = {
        "table": table.name,
        "window": asdict(read_window(console, table.name)),
        "backups": list_backups(console, table.name),
        "has_past": backup_file(console) is not None,
        "keys": [part.name for part in table.keys],
        "commands": _commands(console, table.name),
    }
    return View(
        template="backups.html",
        title=f"Backups, {table.name}",
        data=data,
        table=table,
        section="schema",
        crumbs=((table.name, links.home()), ("Backups", "")),
    )


def _commands(console: Console, table: str) -> list[str]:
    if console.url.scheme != "sqlite":
        where = shlex.quote(console.url.text)
        return [
            f"solotable backup remote status {where}",
            f"solotable backup remote restore {where} {table}Restored --at '1 hour ago'",
        ]
    where, chosen = shlex.quote(console.name), f"--table {table}"
    return [
        f"solotable backup enable {where} {chosen}",
        f"solotable backup create {where} before-import {chosen}",
        f"solotable backup preview {where} {chosen} --at '10 minutes ago'",
        f"solotable backup restore {where} {chosen} --at '10 minutes ago' --to {table}Restored",
    ]


def past(console: Console, asked: PageRequest) -> View:
    """Show the versions of an item in the window, and the difference of two."""
    return _view(ItemPlace(console, asked, claimed=False))


def restore(console: Console, asked: PageRequest) -> View | Redirect:
    """Write an item as it was, if it is still as the user saw it."""
    if not console.settings.write:
        raise HTTPException(403, "The console is read-only; start it with --write to restore.")
    place = ItemPlace(console, asked, claimed=False)
    chosen, over = asked.form.value("sequence"), asked.form.value("over")
    file = _file(console)
    versions = _versions(file, place)
    wanted = next((each for each in versions if str(each.sequence) == chosen), None)
    if wanted is None or wanted.item is None:
        raise DataError("A restore needs a version of the window that has an item; load the page again.")
    if str(versions[-1].sequence) != over:
        text = "Not restored: the item has changed since you opened the page. Compare, then restore again."
        return _view(place, error=text, status=409)
    try:
        text = _restore(place, file, wanted)
    except Conflict:
        text = "Not restored: another write came first. Compare, then restore again."
        return _view(place, error=text, status=409)
    except RecoveryError as error:
        return _view(place, error=str(error), status=422)
    console.census.forget(place.table.name)
    return Redirect(path=place.links.past(place.table, place.key, done=console.notify(text)))


def _restore(place: ItemPlace, file: BackupFile, wanted: Version) -> str:
    """Restore through the model as a new version if it can, else the item as it was; return what was done."""
    console, table = place.console, place.table
    assert wanted.item is not None
    stored, _ = get_item(console.engine, table, place.key)
    then = canonical_item(wanted.item)
    seen = None if stored is None else view_through(table.facet_of(stored), stored)
    if stored is not None and seen is not None and seen.entity is not None and seen.plan is not None:
        locked = locked_names(table, seen.plan)
        kept = {name: value for name, value in stored.items() if name in locked}
        item = kept | {name: value for name, value in then.items() if name not in locked}
        try:
            version = save_entity(console, seen.plan, stored, item)
            return f"Restored{'' if version is None else f' as version {version}'}."
        except Conflict:
            raise
        except SolotableError as error:
            raise RecoveryError(f"The model cannot save the item as it was: {error}") from None
    preview = file.preview(table.name, wanted.sequence, scope=Scope(key=place.key))
    applied = file.apply(preview)
    if applied.conflicts:
        raise RecoveryError(
            "Not restored: another item holds a unique value of this one; change one of the two values."
        )
    return "Restored as it was." if applied.written else "Nothing changed, so nothing was written."


def _file(console: Console) -> BackupFile:
    file = backup_file(console)
    if file is None:
        raise RecoveryError(
            "The console reads the past of an item only in a file that it opens itself; restore the table to "
            "a moment, and open the restored table."
        )
    return file


def _versions(file: BackupFile, place: ItemPlace) -> list[Version]:
    return file.history(place.table.name, place.key)


def _view(place: ItemPlace, *, error: str = "", status: int = 200) -> View:
    console, table, links = place.console, place.table, place.links
    window = read_window(console, table.name)
    key = [str(next(iter(value.values()))) for value in place.key.values()]
    data: dict[str, Any] = {
        "table": table.name,
        "key": key,
        "window": asdict(window),
        "write": console.settings.write,
        "error": error,
        "self": links.past(table, place.key),
        "list": links.section("backups"),
        "versions": [],
        "diff": None,
        "facet": None,
        "item": None,
    }
    if window.enabled:
        file = _file(console)
        data |= _compare(place, _versions(file, place), file.status(table.name).first_sequence)
    return View(
        template="past.html",
        title=f"Backups of {key[-1]}",
        data=data,
        table=table,
        section="facets",
        crumbs=((table.name, links.home()), ("Backups", links.section("backups")), (key[-1], "")),
        status=status,
    )


def _compare(place: ItemPlace, versions: list[Version], begin: int | None) -> dict[str, Any]:
    """Return the versions and the difference of the chosen two; `begin` is the sequence of the window."""
    table, links, asked = place.table, place.links, place.asked
    if not versions:
        return {}
    newest = versions[-1]
    known = {str(each.sequence): at for at, each in enumerate(versions)}
    after = known.get(asked.get("to"), len(versions) - 1)
    before = known.get(asked.get("from"), max(0, after - 1))
    items = [None if each.item is None else canonical_item(each.item) for each in versions]
    shown: list[dict[str, Any]] = []
    for at in range(len(versions) - 1, max(-1, len(versions) - 1 - _MOST_VERSIONS), -1):
        each, item, former = versions[at], items[at], items[at - 1] if at else None
        shown.append(
            {
                "sequence": each.sequence,
                "time": each.at_micros / 1e6,
                "current": each is newest,
                "bytes": None if item is None else item_size(item),
                "change": "as the window began" if each.sequence == begin else _change(former, item),
                "names": [] if item is None or former is None else changed_names(former, item),
                "by_service": each.by_service,
                "selected": at in (before, after),
                "href": links.past(
                    table,
                    place.key,
                    to=each.sequence,
                    **{"from": versions[at - 1].sequence if at else None},
                ),
            }
        )
    now = next((item for item in reversed(items) if item is not None), None)
    facet = None if now is None else table.facet_of(now)
    stored = items[-1]
    return {
        "versions": shown,
        "more": len(versions) > _MOST_VERSIONS,
        "over": newest.sequence,
        "deleted": stored is None,
        "facet": None if facet is None else show_facet(facet),
        "item": None if stored is None or facet is None else links.item(table, facet.name, stored),
        "before": _side(versions[before]),
        "after": _side(versions[after]),
        "diff": diff_items(items[before] or {}, items[after] or {}) if before != after else None,
        "next_version": None if stored is None or facet is None else _next_version(facet.plan, stored),
        "restorable": _restorable(versions, items, before, after),
    }


def _next_version(plan: Plan | None, stored: Item) -> int | None:
    if plan is None or plan.version is None:
        return None
    return int(stored.get(plan.attributes[plan.version].wire, {}).get("N", "0")) + 1


def _restorable(versions: list[Version], items: list[Item | None], *chosen: int) -> int | None:
    """Return the older of the two versions that has an item other than the current one."""
    found = [at for at in sorted(chosen) if items[at] is not None and items[at] != items[-1]]
    return versions[found[0]].sequence if found else None


def _change(former: Item | None, item: Item | None) -> str:
    if item is None:
        return "deleted"
    return "created" if former is None else "changed"


def _side(version: Version) -> dict[str, Any]:
    return {
        "sequence": version.sequence,
        "time": version.at_micros / 1e6,
        "deleted": version.item is None,
    }
