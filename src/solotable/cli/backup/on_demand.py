"""`solotable backup create`, `list` and `delete`: backups on demand."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.output import confirm, json_option, output_options, print_json, print_rows
from solotable.cli.progress import progress

from .options import choose_table, db_argument, dry_run_option, open_file, table_option, yes_option

if TYPE_CHECKING:
    from solotable.backup import BackupSummary

_COLUMNS = ("name", "table", "kind", "status", "created", "expires", "items", "bytes", "arn")


@click.command("create", epilog="Example: solotable backup create shop.db before-import")
@db_argument
@click.argument("name")
@table_option
@dry_run_option
@json_option
def create(db: Path, name: str, table: str | None, dry_run: bool, as_json: bool) -> None:
    """Back up a table as it is now, under NAME, inside the file.

    The backup stays until you delete it, also after the table is deleted. It does not need continuous
    backups.
    """
    with open_file(db) as file:
        chosen = choose_table(file, table)
        if dry_run:
            click.echo(f"Table {chosen} would be backed up as {name}.")
            return
        with progress(f"back up {chosen}", quiet=as_json) as update:
            made = file.create(chosen, name, progress=lambda done, total: update(done, total or None))
    if as_json:
        print_json(_row(made))
    else:
        click.echo(f"{made.items:,} items, {made.bytes:,} bytes: {made.arn}")


@click.command("list", epilog="Example: solotable backup list shop.db")
@db_argument
@table_option
@output_options
def list_backups(db: Path, table: str | None, output: str | None) -> None:
    """List the backups on demand, and the last states of deleted tables."""
    with open_file(db) as file:
        found = file.list(table)
    print_rows([_row(each) for each in found], output, _COLUMNS)


@click.command(
    "delete",
    epilog="Example: solotable backup delete shop.db "
    "arn:aws:dynamodb:us-east-1:000000000000:table/shop/backup/01800000000000-1a2b3c4d --yes",
)
@db_argument
@click.argument("arn")
@dry_run_option
@yes_option
@json_option
def delete(db: Path, arn: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Delete the backup with this ARN."""
    with open_file(db) as file:
        found = file.find(arn)
        if not dry_run:
            if not yes:
                confirm(f"Delete the backup {found.name} of {found.table} in {db}?")
            file.delete(arn)
    if as_json:
        print_json(_row(found) | {"deleted": not dry_run})
    else:
        click.echo(f"{'Would delete' if dry_run else 'Deleted'} {found.name} of {found.table}.")


def _row(backup: BackupSummary) -> dict[str, Any]:
    row = asdict(backup)
    return row | {
        name: None if row[name] is None else row[name].isoformat() for name in ("created", "expires")
    }
