"""`solotable limiter resource` and `solotable limiter system`: limits for all who have none of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from solotable.cli.groups import CommandGroup
from solotable.cli.options.database import NotFoundError
from solotable.cli.output import json_option, note

from .entity import print_stored
from .session import limits_given, opened, shown, table_options

if TYPE_CHECKING:
    from solotable.systems.limiter.admin.entities import OnUnavailable


@click.group("resource", cls=CommandGroup)
def resource() -> None:
    """Limits of a resource, where entities have none."""


@click.group("system", cls=CommandGroup)
def system() -> None:
    """Limits that hold where nothing else is set."""


@resource.command(
    "set-defaults",
    epilog="Example: solotable limiter resource set-defaults gpt-4 rpm=50/minute -d sqlite:///l.db",
)
@click.argument("name", metavar="RESOURCE")
@click.argument("limits", nargs=-1, required=True, metavar="LIMITS...")
@table_options
@json_option
def set_resource(
    name: str, limits: tuple[str, ...], db: str | None, namespace: str | None, as_json: bool
) -> None:
    """Set the LIMITS of a RESOURCE; those that it had are replaced."""
    given = limits_given(limits)
    with opened(db, makes=True) as table:
        stored = table.limiter(namespace).set_limits(given, resource=name)
        print_stored([stored], as_json=as_json, one=True)


@resource.command("get-defaults", epilog="Example: solotable limiter resource get-defaults gpt-4 --json")
@click.argument("name", required=False, metavar="[RESOURCE]")
@table_options
@json_option
def get_resource(name: str | None, db: str | None, namespace: str | None, as_json: bool) -> None:
    """Print the limits of a RESOURCE, or of every one that has some."""
    from solotable.systems.limiter import DEFAULT

    with opened(db) as table:
        limiter = table.limiter(namespace)
        if name is None:
            every = [each for each in limiter.limited_resources() if each.resource != DEFAULT]
            print_stored(every, as_json=as_json)
            return
        found = limiter.get_limits(resource=name)
        if found is None:
            raise NotFoundError(f"No limits are set for resource {name!r}.")
        print_stored([found], as_json=as_json, one=True)


@resource.command("delete-defaults", epilog="Example: solotable limiter resource delete-defaults gpt-4")
@click.argument("name", metavar="RESOURCE")
@table_options
def delete_resource(name: str, db: str | None, namespace: str | None) -> None:
    """Remove the limits of a RESOURCE; the system's hold then."""
    with opened(db) as table:
        before = table.limiter(namespace).delete_limits(resource=name)
        if before is None:
            raise NotFoundError(f"No limits are set for resource {name!r}.")
        click.echo(f"Removed the limits of resource {name}: {shown(before.limits)}")


@system.command(
    "set-defaults", epilog="Example: solotable limiter system set-defaults rpm=100/minute -d sqlite:///l.db"
)
@click.argument("limits", nargs=-1, metavar="[LIMITS]...")
@table_options
@click.option(
    "--on-unavailable",
    type=click.Choice(["block", "allow"]),
    help="What callers do while the table cannot be asked; as they choose unless given.",
)
@json_option
def set_system(
    limits: tuple[str, ...], db: str | None, namespace: str | None, on_unavailable: str | None, as_json: bool
) -> None:
    """Set the LIMITS of the system, and what callers do without it.

    Both are replaced: what is not given is not set any more.
    """
    if not limits and on_unavailable is None:
        raise click.UsageError("Give limits, as in rpm=100/minute, or --on-unavailable.")
    given = limits_given(limits) if limits else None
    with opened(db, makes=True) as table:
        choice = cast("OnUnavailable | None", on_unavailable)
        limiter = table.limiter(namespace)
        before = limiter.get_limits()
        stored = limiter.set_limits(given, on_unavailable=choice)
        print_stored([stored], as_json=as_json, one=True)
        if before is not None and before.limits and not given:
            note(f"The limits of the system were removed by this: {shown(before.limits)}")
        elif before is not None and before.on_unavailable is not None and choice is None:
            note(f"Removed by this: --on-unavailable {before.on_unavailable}")


@system.command("get-defaults", epilog="Example: solotable limiter system get-defaults -d sqlite:///l.db")
@table_options
@json_option
def get_system(db: str | None, namespace: str | None, as_json: bool) -> None:
    """Print the limits of the system."""
    with opened(db) as table:
        found = table.limiter(namespace).get_limits()
        if found is None:
            raise NotFoundError("No limits are set for the system.")
        print_stored([found], as_json=as_json, one=True)


@system.command(
    "delete-defaults", epilog="Example: solotable limiter system delete-defaults -d sqlite:///l.db"
)
@table_options
def delete_system(db: str | None, namespace: str | None) -> None:
    """Remove the limits of the system; entities and resources keep their own."""
    with opened(db) as table:
        before = table.limiter(namespace).delete_limits()
        if before is None:
            raise NotFoundError("No limits are set for the system.")
        click.echo(f"Removed the limits of the system: {shown(before.limits)}")
