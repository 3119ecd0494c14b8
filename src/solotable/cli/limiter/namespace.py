"""`solotable limiter namespace`: the registry of namespaces, and items without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.groups import CommandGroup
from solotable.cli.output import json_option, note, plural, print_json, print_one, print_rows, row_of
from solotable.cli.progress import progress

from .session import (
    InvalidRequest,
    LimiterTable,
    confirm,
    limiter_command,
    list_options,
    print_pages,
    yes_option,
)

if TYPE_CHECKING:
    from solotable.systems.limiter.admin.namespaces import Namespace

_COLUMNS = ("name", "id", "status", "created", "deleted")
_name = click.argument("name", metavar="NAME")


@click.group("namespace", cls=CommandGroup)
def namespace() -> None:
    """Namespaces: register, close, recover, purge."""


@limiter_command(
    namespace,
    "register",
    create=True,
    namespace=False,
    example="namespace register acme -d sqlite:///l.db",
)
@_name
@json_option
def register(table: LimiterTable, name: str, as_json: bool) -> None:
    """Register a namespace, with an id that is never used again."""
    from solotable.systems.limiter.admin import namespaces

    made = table.run(namespaces.register(table.scope, name))
    _print(made, f"Registered {name} with the id {made.id}; use it with --namespace {name}.", as_json=as_json)


@limiter_command(namespace, "list", namespace=False, example="namespace list -d sqlite:///l.db")
@list_options
def list_(table: LimiterTable, **options: Any) -> None:
    """Print the namespaces by name, deleted ones too."""
    from solotable.systems.limiter.admin import namespaces

    def ask(*, limit: int, cursor: str | None) -> Any:
        return table.run(namespaces.namespaces(table.scope, limit=limit, cursor=cursor))

    print_pages(ask, _row, what="namespaces", columns=_COLUMNS, **options)


@limiter_command(namespace, "show", namespace=False, example="namespace show acme -d sqlite:///l.db")
@_name
@json_option
def show(table: LimiterTable, name: str, as_json: bool) -> None:
    """Print a namespace."""
    from solotable.systems.limiter.admin import namespaces

    print_one(_row(table.run(namespaces.show(table.scope, name))), "json" if as_json else None)


@limiter_command(
    namespace, "delete", namespace=False, example="namespace delete acme --yes -d sqlite:///l.db"
)
@_name
@yes_option
@json_option
def delete(table: LimiterTable, name: str, yes: bool, as_json: bool) -> int:
    """Close a namespace: it can be recovered until it is purged."""
    from solotable.systems.limiter.admin import namespaces

    table.run(namespaces.show(table.scope, name))
    if not confirm(f"Close namespace {name}? It cannot be used until it is recovered.", yes=yes):
        return FAILED
    found = table.run(namespaces.delete(table.scope, name))
    sentence = f"Closed {name}; `namespace recover` opens it again, `namespace purge` empties it."
    _print(found, sentence, as_json=as_json)
    return 0


@limiter_command(namespace, "recover", namespace=False, example="namespace recover acme -d sqlite:///l.db")
@_name
@json_option
def recover(table: LimiterTable, name: str, as_json: bool) -> None:
    """Open a deleted namespace again, with all its items."""
    from solotable.systems.limiter.admin import namespaces

    found = table.run(namespaces.recover(table.scope, name))
    _print(found, f"{name} is open again.", as_json=as_json)


@limiter_command(namespace, "purge", namespace=False, example="namespace purge acme --yes -d sqlite:///l.db")
@_name
@yes_option
@json_option
def purge(table: LimiterTable, name: str, yes: bool, as_json: bool) -> int:
    """Remove every item of a deleted namespace for good, and then its name.

    It scans the whole table. After an interruption, run it again: it continues.
    """
    from solotable.systems.limiter.admin import namespaces

    if table.run(namespaces.show(table.scope, name)).status == "active":
        raise InvalidRequest(
            f"Namespace {name!r} is active; delete it first: solotable limiter namespace delete {name}"
        )
    if not confirm(f"Remove everything in {name} for good?", yes=yes):
        return FAILED
    with progress("items read", quiet=as_json) as update:

        def report(now: namespaces.PurgeProgress) -> None:
            update(now.looked_at, detail=f"{now.removed:,} removed")

        done = table.run(namespaces.purge(table.scope, name, progress=report))
    if as_json:
        print_json({"namespace": name, "looked_at": done.looked_at, "removed": done.removed})
    else:
        click.echo(f"Purged {name}: {plural(done.removed, 'item')} removed, {done.looked_at:,} read.")
    return 0


@limiter_command(namespace, "orphans", namespace=False, example="namespace orphans -d sqlite:///l.db")
@click.option("--purge", "purged", metavar="ID", help="Remove the items of this id instead.")
@yes_option
@json_option
def orphans(table: LimiterTable, purged: str | None, yes: bool, as_json: bool) -> int:
    """Count the items of ids that are not registered. It scans the whole table.

    A namespace that is used by its name, without being registered, is among them. That is allowed.
    """
    from solotable.systems.limiter.admin import namespaces

    if purged is not None:
        question = f"Remove everything of the id {purged} for good? Its users lose their limits and usage."
        if not confirm(question, yes=yes):
            return FAILED
        removed = table.run(namespaces.purge_orphan(table.scope, purged))
        if as_json:
            print_json({"id": purged, "removed": removed})
        else:
            click.echo(f"Removed {plural(removed, 'item')} of {purged}.")
        return 0
    found = table.run(namespaces.orphans(table.scope))
    rows = [{"id": name, "items": count} for name, count in sorted(found.items.items())]
    if as_json:
        print_json(rows)
    elif rows:
        print_rows(rows, None, ("id", "items"))
        note("This includes ids that an application uses as namespaces; do not purge those.")
    else:
        click.echo(f"All {plural(found.looked_at, 'item')} belong to registered namespaces.")
    return 0


def _print(found: Namespace, sentence: str, *, as_json: bool) -> None:
    if as_json:
        print_json(_row(found))
    else:
        click.echo(sentence)


def _row(found: Namespace) -> dict[str, Any]:
    row = row_of(found)
    return {name: row.get(name) for name in _COLUMNS}
