"""`solotable backup preview`, `restore` and `history`: past states of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.output import (
    confirm,
    json_option,
    note,
    on_one_line,
    output_options,
    plural,
    print_json,
    print_rows,
)
from solotable.cli.progress import progress

from .options import (
    at_option,
    choose_table,
    db_argument,
    dry_run_option,
    moment,
    open_file,
    parse_key,
    scope_options,
    table_option,
    yes_option,
)

if TYPE_CHECKING:
    from solotable.backup import BackupFile, Preview, Scope


@click.command(
    "preview", epilog="Example: solotable backup preview shop.db --at '10 minutes ago' --tenant acme"
)
@db_argument
@table_option
@at_option
@scope_options
@click.option("--samples", type=click.IntRange(0), default=5, show_default=True, help="Show so many items.")
@json_option
def preview(db: Path, table: str | None, at: str, scope: Scope, samples: int, as_json: bool) -> None:
    """Show what a restore in place would change."""
    with open_file(db) as file:
        found = _preview(file, choose_table(file, table), at, scope, samples=samples, quiet=as_json)
    if as_json:
        print_json(_described(found))
        return
    click.echo(_sentence(found))
    for each in found.samples:
        click.echo(f"  {each.kind}: {on_one_line(each.key)}")


@click.command(
    "restore",
    epilog="Example: solotable backup restore shop.db --at '10 minutes ago' --tenant acme --in-place",
)
@db_argument
@table_option
@click.option("--at", metavar="MOMENT", help="The moment to restore, as for preview.")
@click.option("--backup", metavar="ARN", help="Restore a backup on demand instead of a moment.")
@scope_options
@click.option("--to", metavar="TABLE", help="Restore into a new table of this name.")
@click.option(
    "--into", type=click.Path(dir_okay=False, path_type=Path), help="Put the new table into another file."
)
@click.option("--in-place", is_flag=True, help="Change the items of the table itself, after a preview.")
@dry_run_option
@yes_option
@json_option
def restore(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    db: Path,
    table: str | None,
    at: str | None,
    backup: str | None,
    scope: Scope,
    to: str | None,
    into: Path | None,
    in_place: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Restore a table, a tenant, an item collection or an item.

    Without --in-place, the restored items go into a new table. With it, the command shows the differences,
    asks, and writes the past items; it skips items that others have changed since. A restore that was
    interrupted can be run again.
    """
    if (at is None) == (backup is None):
        raise click.UsageError("Pass either --at or --backup.")
    if in_place == (to is not None) or (in_place and (into is not None or backup is not None)):
        raise click.UsageError("Pass either --in-place, or --to with the name of the new table.")
    with open_file(db) as file:
        if backup is not None and to is not None:
            _restore_backup(file, backup, to, scope, dry_run=dry_run, as_json=as_json)
            return
        assert at is not None
        name = choose_table(file, table)
        if in_place:
            _restore_in_place(file, name, at, scope, dry_run=dry_run, yes=yes, as_json=as_json)
        else:
            assert to is not None
            _restore_table(file, name, at, (to, into), scope, dry_run=dry_run, as_json=as_json)


@click.command(
    "history", epilog='Example: solotable backup history shop.db \'{"pk": "CUSTOMER#1", "sk": "PROFILE"}\''
)
@db_argument
@click.argument("key")
@table_option
@output_options
def history(db: Path, key: str, table: str | None, output: str | None) -> None:
    """List the versions of the item with this KEY, oldest first.

    KEY is JSON: the attributes of the key. Write {"N": "1"} for a number.
    """
    with open_file(db) as file:
        from solotable.engines.sqlite.recovery.positions import to_datetime

        versions = file.history(choose_table(file, table), parse_key(key))
    rows = [
        {
            "sequence": each.sequence,
            "at": to_datetime(each.at_micros).isoformat(),
            "by": "time to live" if each.by_service else "writer",
            "item": each.item,
        }
        for each in versions
    ]
    print_rows(rows, output, ("sequence", "at", "by", "item"))


def _preview(file: BackupFile, name: str, at: str, scope: Scope, *, samples: int = 5, quiet: bool) -> Preview:
    with progress("compare", quiet=quiet) as update:
        return file.preview(name, moment(at), scope=scope, samples=samples, progress=update)


def _restore_in_place(
    file: BackupFile, name: str, at: str, scope: Scope, *, dry_run: bool, yes: bool, as_json: bool
) -> None:
    found = _preview(file, name, at, scope, quiet=as_json)
    if dry_run or not found.total:
        if as_json:
            print_json(_described(found) | {"written": 0, "deleted": 0, "conflicts": 0})
        else:
            click.echo(_sentence(found))
        return
    if not yes:
        note(_sentence(found))
        confirm(f"Change {plural(found.total, 'item')} of {name}?")
    with progress("restore", quiet=as_json) as update:
        done = file.apply(found, progress=update)
    if as_json:
        counts = {"written": done.written, "deleted": done.removed, "conflicts": done.conflicts}
        print_json(_described(found) | counts | {"conflict_keys": list(done.conflict_keys)})
        return
    click.echo(f"{plural(done.written, 'item')} written, {done.removed:,} removed.")
    if done.conflicts:
        note(f"Skipped {plural(done.conflicts, 'item')} that changed after the preview.")


def _restore_table(
    file: BackupFile,
    name: str,
    at: str,
    target: tuple[str, Path | None],
    scope: Scope,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    to, into = target
    place = f"{to} in {into}" if into is not None else to
    if dry_run:
        found = _preview(file, name, at, scope, samples=0, quiet=as_json)
        if as_json:
            print_json(_described(found))
        else:
            click.echo(f"Table {place} would have the state of {_at(found)}.")
        return
    with progress(f"restore {to}", quiet=as_json) as update:
        copied = 0

        def show(done: int, total: int) -> None:
            nonlocal copied
            copied = done
            update(done, total or None)

        position = file.restore(name, moment(at), to, into=into, scope=scope, progress=show)
    if as_json:
        print_json(
            {
                "table": to,
                "file": None if into is None else str(into),
                "sequence": position.sequence,
                "at": position.at.isoformat(),
                "items": copied,
            }
        )
    else:
        click.echo(f"{place}: {plural(copied, 'item')} of {position.at.isoformat()} (#{position.sequence}).")


def _restore_backup(
    file: BackupFile, arn: str, to: str, scope: Scope, *, dry_run: bool, as_json: bool
) -> None:
    if not scope.is_whole:
        raise click.UsageError("A backup is restored as a whole; restore a part of it from the new table.")
    found = file.find(arn)
    if not dry_run:
        with progress(f"restore {to}", quiet=as_json) as update:
            file.restore_backup(arn, to, progress=lambda done, total: update(done, total or None))
    if as_json:
        print_json({"table": to, "backup": arn, "items": found.items, "dry_run": dry_run})
    else:
        click.echo(f"{to}: {plural(found.items, 'item')} of {found.name} ({found.created.isoformat()}).")


def _described(found: Preview) -> dict[str, Any]:
    return found.to_json() | {
        "samples": [
            {"kind": each.kind, "key": each.key, "now": each.now, "then": each.then} for each in found.samples
        ]
    }


def _sentence(found: Preview) -> str:
    return (
        f"{found.table} at {_at(found)}: {found.added:,} to put back, {found.changed:,} to change, "
        f"{found.removed:,} to remove."
    )


def _at(found: Preview) -> str:
    from solotable.engines.sqlite.recovery.positions import to_datetime

    return f"{to_datetime(found.at_micros).isoformat()} (#{found.sequence})"
