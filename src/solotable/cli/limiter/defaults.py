"""`solotable limiter resource` and `solotable limiter system`: limits of entities without their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from solotable.cli.groups import CommandGroup
from solotable.cli.options.database import NotFoundError
from solotable.cli.output import json_option, note

from .entity import print_deleted, print_mode, print_stored
from .session import (
    LimiterTable,
    dry_run_option,
    format_limits,
    limiter_command,
    mode_option,
    parse_rules,
    schedule_options,
)

if TYPE_CHECKING:
    from solotable.systems.limiter.admin.entities import Mode, OnUnavailable, StoredLimits

_resource = click.argument("name", metavar="RESOURCE")
_mode = click.argument("mode", type=click.Choice(["enforce", "shadow", "disabled"]))


@click.group("resource", cls=CommandGroup)
def resource() -> None:
    """Limits of a resource, for entities without their own."""


@click.group("system", cls=CommandGroup)
def system() -> None:
    """Limits that apply where nothing else is set."""


@limiter_command(
    resource,
    "set-defaults",
    create=True,
    example="resource set-defaults gpt-4 rpm=50/minute -d sqlite:///l.db",
)
@_resource
@click.argument("limits", nargs=-1, required=True, metavar="LIMITS...")
@schedule_options
@mode_option
@json_option
def set_resource(
    table: LimiterTable,
    name: str,
    *,
    limits: tuple[str, ...],
    windows: tuple[str, ...],
    timezone: str,
    mode: Mode | None,
    as_json: bool,
) -> None:
    """Set the LIMITS of a RESOURCE; they replace its limits."""
    given = parse_rules(limits, windows, timezone)
    print_stored([table.limiter.set_limits(given, resource=name, mode=mode)], as_json=as_json, one=True)


@limiter_command(resource, "set-mode", create=True, example="resource set-mode gpt-4 shadow")
@_resource
@_mode
@dry_run_option
@json_option
def set_resource_mode(table: LimiterTable, name: str, mode: Mode, dry_run: bool, as_json: bool) -> None:
    """Set how the limits of a RESOURCE apply; the limits stay."""
    print_mode(table, None, mode, name, dry_run=dry_run, as_json=as_json)


@limiter_command(system, "set-mode", create=True, example="system set-mode disabled -d sqlite:///l.db")
@_mode
@dry_run_option
@json_option
def set_system_mode(table: LimiterTable, mode: Mode, dry_run: bool, as_json: bool) -> None:
    """Set how the limits of the system apply; the limits stay."""
    print_mode(table, None, mode, None, dry_run=dry_run, as_json=as_json)


@limiter_command(resource, "get-defaults", example="resource get-defaults gpt-4 --json")
@click.argument("name", required=False, metavar="[RESOURCE]")
@json_option
def get_resource(table: LimiterTable, name: str | None, as_json: bool) -> None:
    """Print the limits of a RESOURCE, or of every resource with limits."""
    if name is None:
        levels = [each for each in table.limiter.limited_resources() if each.resource_name is not None]
        print_stored(levels, as_json=as_json)
    else:
        _print_level(table.limiter.get_limits(resource=name), f"resource {name!r}", as_json=as_json)


@limiter_command(resource, "delete-defaults", example="resource delete-defaults gpt-4")
@_resource
def delete_resource(table: LimiterTable, name: str) -> None:
    """Delete the limits of a RESOURCE; the system's apply then."""
    print_deleted(table.limiter.delete_limits(resource=name), f"resource {name}")


@limiter_command(
    system, "set-defaults", create=True, example="system set-defaults rpm=100/minute -d sqlite:///l.db"
)
@click.argument("limits", nargs=-1, metavar="[LIMITS]...")
@click.option(
    "--on-unavailable",
    type=click.Choice(["block", "allow"]),
    help="What callers do while the table is unavailable. Default: their own choice.",
)
@schedule_options
@mode_option
@json_option
def set_system(
    table: LimiterTable,
    *,
    limits: tuple[str, ...],
    on_unavailable: str | None,
    windows: tuple[str, ...],
    timezone: str,
    mode: Mode | None,
    as_json: bool,
) -> None:
    """Set the LIMITS of the system, and what callers do without it.

    Both are replaced: what is not given is deleted.
    """
    if not limits and on_unavailable is None:
        raise click.UsageError("Give limits, as in rpm=100/minute, or --on-unavailable.")
    if windows and not limits:
        raise click.UsageError("--window needs LIMITS, which apply outside of the windows.")
    given = parse_rules(limits, windows, timezone) if limits else None
    choice = cast("OnUnavailable | None", on_unavailable)
    before = table.limiter.get_limits()
    stored = table.limiter.set_limits(given, on_unavailable=choice, mode=mode)
    print_stored([stored], as_json=as_json, one=True)
    if before is not None and before.limits and not given:
        note(f"Deleted the limits of the system: {format_limits(before.schedule or before.limits)}")
    elif before is not None and before.on_unavailable is not None and choice is None:
        note(f"Deleted: --on-unavailable {before.on_unavailable}")


@limiter_command(system, "get-defaults", example="system get-defaults -d sqlite:///l.db")
@json_option
def get_system(table: LimiterTable, as_json: bool) -> None:
    """Print the limits of the system."""
    _print_level(table.limiter.get_limits(), "the system", as_json=as_json)


@limiter_command(system, "delete-defaults", example="system delete-defaults -d sqlite:///l.db")
def delete_system(table: LimiterTable) -> None:
    """Delete the limits of the system; entities and resources keep their own."""
    print_deleted(table.limiter.delete_limits(), "the system")


def _print_level(found: StoredLimits | None, level: str, *, as_json: bool) -> None:
    if found is None:
        raise NotFoundError(f"No limits are set for {level}.")
    print_stored([found], as_json=as_json, one=True)
