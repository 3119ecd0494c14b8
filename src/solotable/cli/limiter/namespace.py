"""`solotable limiter namespace`: the registry of namespaces, and what belongs to none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.groups import CommandGroup
from solotable.cli.options.database import db_option
from solotable.cli.output import json_option, note, output_options, print_json, print_one, print_rows, row_of

from .session import InvalidRequest, confirm, list_options, opened, paged

if TYPE_CHECKING:
    from solotable.systems.limiter.admin.namespaces import Namespace, PurgeProgress

_COLUMNS = ("name", "id", "status", "created", "deleted")
_name = click.argument("name", metavar="NAME")
_yes = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


@click.group("namespace", cls=CommandGroup)
def namespace() -> None:
    """Namespaces: make, close, recover, purge."""


@namespace.command("register", epilog="Example: solotable limiter namespace register acme -d sqlite:///l.db")
@_name
@db_option
@json_option
def register(name: str, db: str | None, as_json: bool) -> None:
    """Make a namespace, with an id that is never used again."""
    from solotable.systems.limiter.admin import namespaces

    with opened(db, makes=True) as table:
        made = table.run(namespaces.register(table.db.scope.acting(table.actor, None), name))
        _print(made, as_json, f"Registered {name} with the id {made.id}; use it with --namespace {name}.")


@namespace.command("list", epilog="Example: solotable limiter namespace list -d sqlite:///l.db")
@db_option
@list_options
@output_options
def list_(db: str | None, most: int, everything: bool, output: str | None) -> None:
    """Print the namespaces by name, deleted ones too."""
    from solotable.systems.limiter.admin import namespaces

    with opened(db) as table:

        def ask(*, limit: int, cursor: str | None) -> Any:
            return table.run(namespaces.namespaces(table.db.scope, limit=limit, cursor=cursor))

        print_rows(paged(ask, most, everything=everything, what="namespaces", row=_row), output, _COLUMNS)


@namespace.command("show", epilog="Example: solotable limiter namespace show acme -d sqlite:///l.db")
@_name
@db_option
@json_option
def show(name: str, db: str | None, as_json: bool) -> None:
    """Print a namespace."""
    from solotable.systems.limiter.admin import namespaces

    with opened(db) as table:
        print_one(_row(table.run(namespaces.show(table.db.scope, name))), "json" if as_json else None)


@namespace.command(
    "delete", epilog="Example: solotable limiter namespace delete acme --yes -d sqlite:///l.db"
)
@_name
@db_option
@_yes
@json_option
def delete(name: str, db: str | None, yes: bool, as_json: bool) -> int:
    """Close a namespace: it can be recovered until it is purged."""
    from solotable.systems.limiter.admin import namespaces

    with opened(db) as table:
        table.run(namespaces.show(table.db.scope, name))
        if not confirm(f"Close namespace {name}? Nobody can enter it until it is recovered.", yes=yes):
            note("Nothing was changed.")
            return FAILED
        found = table.run(namespaces.delete(table.db.scope.acting(table.actor, None), name))
        _print(
            found,
            as_json,
            f"Closed {name}; `namespace recover` opens it again, `namespace purge` empties it.",
        )
        return 0


@namespace.command("recover", epilog="Example: solotable limiter namespace recover acme -d sqlite:///l.db")
@_name
@db_option
@json_option
def recover(name: str, db: str | None, as_json: bool) -> None:
    """Open a deleted namespace again, with all that is in it."""
    from solotable.systems.limiter.admin import namespaces

    with opened(db) as table:
        found = table.run(namespaces.recover(table.db.scope.acting(table.actor, None), name))
        _print(found, as_json, f"{name} is open again.")


@namespace.command("purge", epilog="Example: solotable limiter namespace purge acme --yes -d sqlite:///l.db")
@_name
@db_option
@_yes
@json_option
def purge(name: str, db: str | None, yes: bool, as_json: bool) -> int:
    """Remove every item of a deleted namespace for good, and then its name.

    It reads the whole table. Broken off anywhere it goes on where it was.
    """
    from solotable.systems.limiter.admin import namespaces

    with opened(db) as table:
        scope = table.db.scope.acting(table.actor, None)
        found = table.run(namespaces.show(scope, name))
        if found.status == "active":
            raise InvalidRequest(
                f"Namespace {name!r} is active; delete it first: solotable limiter namespace delete {name}"
            )
        if not confirm(f"Remove everything in {name} for good?", yes=yes):
            note("Nothing was changed.")
            return FAILED
        with _showing(quiet=as_json) as told:
            done = table.run(namespaces.purge(scope, name, progress=told))
    if as_json:
        print_json({"namespace": name, "looked_at": done.looked_at, "removed": done.removed})
    else:
        click.echo(f"Purged {name}: {done.removed:,} items removed, {done.looked_at:,} looked at.")
    return 0


@namespace.command("orphans", epilog="Example: solotable limiter namespace orphans -d sqlite:///l.db")
@db_option
@click.option("--purge", "purged", metavar="ID", help="Remove the items of this id instead.")
@_yes
@json_option
def orphans(db: str | None, purged: str | None, yes: bool, as_json: bool) -> int:
    """Count the items of ids that are not registered. It reads the whole table.

    A namespace that was used by its name alone, and never registered, is among them: that is no mistake.
    """
    from solotable.systems.limiter.admin import namespaces

    with opened(db) as table:
        if purged is not None:
            question = (
                f"Remove everything of the id {purged} for good? Whoever uses it as a namespace loses it."
            )
            if not confirm(question, yes=yes):
                note("Nothing was changed.")
                return FAILED
            removed = table.run(namespaces.purge_orphan(table.db.scope, purged))
            print_json({"id": purged, "removed": removed}) if as_json else click.echo(
                f"{removed:,} items of {purged} were removed."
            )
            return 0
        found = table.run(namespaces.orphans(table.db.scope))
    rows = [{"id": name, "items": count} for name, count in sorted(found.items.items())]
    if as_json:
        print_json(rows)
    elif rows:
        print_rows(rows, None, ("id", "items"))
        note("Ids that an application uses as plain namespaces are in here too; do not purge those.")
    else:
        click.echo(f"Every one of {found.looked_at:,} items belongs to a registered namespace.")
    return 0


def _print(found: Namespace, as_json: bool, sentence: str) -> None:
    if as_json:
        print_json(_row(found))
    else:
        click.echo(sentence)


def _row(found: Namespace) -> dict[str, Any]:
    row = row_of(found)
    return {name: row.get(name) for name in _COLUMNS}


@contextmanager
def _showing(*, quiet: bool) -> Iterator[Callable[[PurgeProgress], None] | None]:
    """Show on a terminal how far a purge is."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.completed:,.0f} items looked at, {task.fields[removed]:,} removed"),)
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("purge", total=None, removed=0)
        yield lambda now: bar.update(task, completed=now.looked_at, removed=now.removed)
