"""`solotable export` and `solotable import`: a table to files and back, in AWS's format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.options.database import NotFoundError, db_option, open_engine_of
from solotable.cli.options.models import load_tables, models_option
from solotable.cli.options.scan import rate_option
from solotable.cli.output import json_option, note, plural, print_json, print_table
from solotable.cli.progress import progress
from solotable.errors import TableNotFound

if TYPE_CHECKING:
    from solotable._export_files.reader import Export
    from solotable._protocol.engine import Engine
    from solotable.exports.importing import ImportReport

#: The attribute with an item's type tag, unless the models name another.
_TAG = "_type"


@click.command("export", epilog="Example: solotable export Shop exports/ -d shop.db")
@click.argument("table")
@click.argument("target", metavar="FOLDER|s3://BUCKET/PREFIX")
@db_option
@click.option(
    "--format",
    "format_",
    type=click.Choice(["dynamodb-json", "jsonl", "csv", "parquet"]),
    default="dynamodb-json",
    show_default=True,
    help="AWS's export format, or one file for each entity for analysis.",
)
@models_option
@rate_option
@json_option
def export(
    table: str,
    target: str,
    db: str | None,
    format_: str,
    models: str | None,
    rate: float | None,
    as_json: bool,
) -> None:
    """Export TABLE to files.

    On a SQLite file, the export is one snapshot, and writers may continue. Elsewhere it is a Scan with
    consistent reads: items that change during the export may be old or new.
    """
    if format_ != "dynamodb-json":
        _export_flat(table, target, db, format_, models, rate, as_json)
        return
    from solotable.exports import export_table, locate

    with _opened(db, table) as engine, progress(f"export {table}", quiet=as_json) as update:
        done = export_table(engine, table, locate(target), rate=rate, progress=update)
    summary = done.summary
    if as_json:
        print_json({"folder": done.folder, "is_snapshot": done.is_snapshot, **asdict(summary)})
        return
    click.echo(
        f"{table}: {plural(summary.item_count, 'item')}, {summary.billed_size_bytes:,} bytes, "
        f"in {target.rstrip('/')}/{done.folder}"
    )
    if not done.is_snapshot:
        note("The table was scanned: the export is not one snapshot.")


def _export_flat(
    table: str,
    target: str,
    db: str | None,
    format_: Any,
    models: str | None,
    rate: float | None,
    as_json: bool,
) -> None:
    from solotable.exports.exporting import open_snapshot
    from solotable.exports.flat_files import write_flat_files

    if target.startswith("s3://"):
        raise click.UsageError(f"--format {format_} writes to a folder; s3:// needs dynamodb-json.")
    with (
        _opened(db, table) as engine,
        progress(f"export {table}", quiet=as_json) as update,
        open_snapshot(engine, table, rate=rate) as snapshot,
    ):
        files = write_flat_files(
            snapshot.items, Path(target), format_, tag=_tag_of(models, table), progress=update
        )
    if as_json:
        print_json(files)
    else:
        print_table([{"file": name, "items": count} for name, count in sorted(files.items())])


def _tag_of(models: str | None, table: str) -> str:
    if models is None:
        return _TAG
    for declared in load_tables(models):
        if declared.name == table:
            return declared.internal_tag
    return _TAG


@click.command("import", epilog="Example: solotable import exports/ -d copy.db --create")
@click.argument("source", metavar="FOLDER|s3://BUCKET/PREFIX")
@click.argument("table", required=False)
@db_option
@click.option("--create", is_flag=True, help="Create the table as it was exported, and the file if needed.")
@click.option(
    "--on-conflict",
    type=click.Choice(["error", "skip", "replace", "newer"]),
    default="error",
    show_default=True,
    help="If the table has another item under a key: report it, keep it, or replace it (newer: if older).",
)
@click.option("--newer-by", metavar="ATTRIBUTE", help="With --on-conflict newer: the attribute to compare.")
@click.option("--allow-duplicates", is_flag=True, help="Accept an export with two items of one key.")
@click.option("--verify", "verify_only", is_flag=True, help="Check every file and item; write nothing.")
@json_option
def import_(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    source: str,
    table: str | None,
    db: str | None,
    create: bool,
    on_conflict: Any,
    newer_by: str | None,
    allow_duplicates: bool,
    verify_only: bool,
    as_json: bool,
) -> int:
    """Import an export of a table into TABLE.

    The export is one that AWS or `solotable export` made. TABLE is the exported table's name by default.
    All files are checked before the first item is written. Items that the table already has are not written
    again, so an interrupted import can be repeated. Exits with 1 if some items were not imported.
    """
    from solotable.exports import import_export

    found = _open_export(source)
    if verify_only:
        return _verify(found, as_json)
    if (on_conflict == "newer") != (newer_by is not None):
        raise click.UsageError("--on-conflict newer and --newer-by go together; pass both or neither.")
    name = table or found.summary.table_name
    with (
        _opened(db, name, create=found if create else None, can_create=True) as engine,
        progress(f"import {name}", quiet=as_json) as update,
    ):
        done = import_export(
            engine,
            name,
            found,
            on_conflict=on_conflict,
            newer_by=newer_by,
            allow_duplicates=allow_duplicates,
            progress=lambda now: update(now.read, found.summary.item_count),
        )
    _print_import(name, done, as_json)
    return FAILED if done.failed else 0


def _open_export(source: str) -> Export:
    from solotable._export_files.manifests import EXPORT_ID
    from solotable.exports import locate, open_export

    parent, _, name = source.rstrip("/").rpartition("/")
    if EXPORT_ID.fullmatch(name):
        # The data of an incremental export is beside its folder.
        return open_export(locate(parent or "."), name)
    return open_export(locate(source))


def _verify(found: Export, as_json: bool) -> int:
    with progress("verify", quiet=as_json):
        found.verify()
    summary = found.summary
    if as_json:
        print_json(asdict(summary))
    else:
        click.echo(
            f"Export {found.id} of table {summary.table_name} is complete: "
            f"{plural(summary.item_count, 'item')} in {plural(len(found.files), 'file')}."
        )
    return 0


def _print_import(name: str, done: ImportReport, as_json: bool) -> None:
    if as_json:
        print_json(asdict(done))
        return
    click.echo(f"{name}: {plural(done.read, 'item')} read, {done.written:,} written.")
    for count, what in (
        (done.deleted, "deleted"),
        (done.unchanged, "already there"),
        (done.skipped, "skipped: the table has another item under the key"),
        (done.failed, "not imported"),
    ):
        if count:
            click.echo(f"  {count:,} {what}")
    for problem in done.problems:
        note(f"{problem.file}, line {problem.line}: {problem.reason}")
    if done.failed > len(done.problems):
        note(f"... and {done.failed - len(done.problems):,} more.")


@contextmanager
def _opened(
    db: str | None, table: str, *, create: Export | None = None, can_create: bool = False
) -> Iterator[Engine]:
    """Open the engine of a command; with `create`, create a missing table as it was exported."""
    with open_engine_of(db, create=create is not None) as engine:
        if create is not None:
            _create(engine, table, create)
        try:
            yield engine
        except TableNotFound as error:
            hint = "; --create creates it" if can_create else ""
            raise NotFoundError(f"Table {table} does not exist at {db}{hint}.") from error


def _create(engine: Engine, table: str, found: Export) -> None:
    from solotable._protocol.requests import Control

    try:
        engine.handle(Control(operation="DescribeTable", members={"TableName": table}))
    except TableNotFound:
        if found.definition is None:
            raise click.UsageError(
                "AWS's exports do not have the table's definition, so --create cannot create the table. "
                "Create it first, for example with: solotable schema apply"
            ) from None
        members = {**found.definition, "TableName": table}
        engine.handle(Control(operation="CreateTable", members=members))
