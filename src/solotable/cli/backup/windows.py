"""`solotable backup enable`, `disable` and `status`: the continuous backups of a table."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from solotable.cli.output import confirm, json_option, plural, print_json

from .options import choose_table, db_argument, dry_run_option, open_file, table_option, yes_option

if TYPE_CHECKING:
    from solotable.backup import WindowStatus


@click.command("enable", epilog="Example: solotable backup enable shop.db --days 35")
@db_argument
@table_option
@click.option(
    "--days", type=click.IntRange(1, 35), help="The length of the window. Default: 35, or as it is."
)
@click.option(
    "--max-bytes",
    type=click.IntRange(0),
    help="Record at most so many bytes; 0 removes the limit. Default: no limit, or as it is.",
)
@dry_run_option
@json_option
def enable(
    db: Path, table: str | None, days: int | None, max_bytes: int | None, dry_run: bool, as_json: bool
) -> None:
    """Enable continuous backups of a table.

    From now on, the table can be restored to any moment of the window. Every write records the item that it
    replaces. Run it again to change the limits.
    """
    with open_file(db) as file:
        name = choose_table(file, table)
        found = file.status(name) if dry_run else file.enable(name, days=days, max_bytes=max_bytes)
    if dry_run and not as_json:
        click.echo(f"Continuous backups of {name} would be enabled.")
        return
    _print(found, as_json=as_json)


@click.command("disable", epilog="Example: solotable backup disable shop.db --yes")
@db_argument
@table_option
@dry_run_option
@yes_option
@json_option
def disable(db: Path, table: str | None, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Disable continuous backups of a table, and drop what they recorded."""
    with open_file(db) as file:
        name = choose_table(file, table)
        found = file.status(name)
        if found.enabled and not dry_run:
            if not yes:
                confirm(f"Drop the recorded changes of {name} in {db}?")
            found = file.disable(name)
    _print(found, as_json=as_json)


@click.command("status", epilog="Example: solotable backup status shop.db --json")
@db_argument
@json_option
def status(db: Path, as_json: bool) -> None:
    """Show to which moments the tables of a file can be restored."""
    with open_file(db) as file:
        found = [file.status(name) for name in file.tables()]
    if as_json:
        print_json([asdict(each) for each in found])
        return
    for each in found:
        _print(each, as_json=False)


def _print(found: WindowStatus, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(found))
        return
    if not found.enabled or found.earliest is None or found.latest is None:
        click.echo(f"{found.table}: continuous backups are disabled.")
        return
    limit = "" if found.max_bytes is None else f", at most {found.max_bytes:,}"
    click.echo(
        f"{found.table}: restorable from {found.earliest.isoformat()} (#{found.first_sequence}) "
        f"to {found.latest.isoformat()} (#{found.last_sequence}); "
        f"{plural(found.days or 0, 'day')}, {found.log_bytes or 0:,} bytes recorded{limit}."
    )
