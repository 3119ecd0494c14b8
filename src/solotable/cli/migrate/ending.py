"""`solotable migrate cancel` and `complete`."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.output import json_option, plural, print_json

from .options import dry_run_option, migration_command

if TYPE_CHECKING:
    from solotable.migrations.migration import Migration
    from solotable.migrations.switching.ending import Ended

_EXAMPLE = "shop -m shop.py:mapping --source old.db -d new.db"
_YES = click.option("--yes", is_flag=True, help="Do not ask for a confirmation.")


@migration_command("cancel", f"{_EXAMPLE} --yes")
@_YES
@dry_run_option("Count what would be deleted; delete nothing.")
@json_option
def cancel(migration: Migration, yes: bool, dry_run: bool, as_json: bool) -> int:
    """Delete what a migration wrote to the target; the sources stay as they are.

    Possible until reads or writes are switched.
    """
    if not dry_run and not yes:
        # A migration that cannot be cancelled asks for no confirmation.
        count = migration.cancel(dry_run=True).items
        _confirm(f"Delete {plural(count, 'item')} that {migration.name} wrote to the target?", yes)
    done = migration.cancel(dry_run=dry_run)
    verb = "would be deleted" if dry_run else "deleted"
    return _print_ended(done, as_json, f"{plural(done.items, 'item')} of the target {verb}.")


def _park(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)d?", value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a number of days, such as 30d.")
    return float(found[1])


@migration_command("complete", f"{_EXAMPLE} --park 30d")
@click.option("--keep-data", is_flag=True, help="Keep the source tables.")
@click.option(
    "--park",
    "park_days",
    metavar="DAYS",
    callback=_park,
    help="Keep the source tables for this time (30d); run `complete` again afterwards to delete them.",
)
@_YES
@dry_run_option("Show what refuses the end, and what would be deleted; exit with 1 if something refuses.")
@json_option
def complete(
    migration: Migration, keep_data: bool, park_days: float | None, yes: bool, dry_run: bool, as_json: bool
) -> int:
    """End a migration: the target stays, and the source tables are deleted, kept or parked.

    Refused without a comparison since the last switch, or with differences or dead letters.
    """
    if keep_data and park_days is not None:
        raise click.UsageError("--keep-data and --park cannot be used together.")
    deletes = not keep_data and park_days is None
    # A refused end asks for no confirmation.
    if not dry_run and deletes and migration.complete(dry_run=True).is_deleting:
        names = ", ".join(migration.source.names.values())
        _confirm(f"Delete the source tables {names}? They cannot be restored.", yes)
    done = migration.complete(keep_data=keep_data, park_days=park_days, dry_run=dry_run)
    return _print_ended(done, as_json, _completed_text(migration.name, done, park_days, dry_run))


def _completed_text(name: str, done: Ended, park_days: float | None, dry_run: bool) -> str:
    verb = "would be" if dry_run else "is"
    if done.deleted:
        tables = ", ".join(done.deleted)
        return f"Migration {name} {verb} completed. Source tables deleted: {tables}."
    if park_days is not None:
        days = f"{park_days:g} day{'' if park_days == 1 else 's'}"
        return (
            f"Migration {name} {verb} completed. The source tables stay; run `solotable migrate complete "
            f"{name}` after {days} to delete them."
        )
    return f"Migration {name} {verb} completed. The source tables stay."


def _print_ended(done: Ended, as_json: bool, text: str) -> int:
    if as_json:
        print_json(asdict(done))
    else:
        for reason in done.reasons or ():
            click.echo(f"Refused: {reason}.")
        if not done.reasons:
            click.echo(text)
    return FAILED if done.reasons else 0


def _confirm(question: str, yes: bool) -> None:
    if yes:
        return
    try:
        agreed = click.confirm(question, err=True)
    except click.exceptions.Abort:
        raise click.UsageError("No confirmation received; pass --yes to skip the prompt.") from None
    if not agreed:
        raise click.exceptions.Exit(FAILED)
