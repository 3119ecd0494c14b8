"""`solotable export-daily`: all tables to files, once a day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from solotable.cli.options.database import db_option, open_admin_store
from solotable.cli.options.models import load_tables, models_option
from solotable.cli.options.scan import rate_option
from solotable.cli.output import json_option, note, plural, print_json
from solotable.cli.progress import progress

if TYPE_CHECKING:
    from solotable.exports import DailyExport


@click.command(
    "export-daily",
    epilog="Example: solotable export-daily s3://backups/daily -m models.py -d app.db --keep 35",
)
@click.argument("target", metavar="FOLDER|s3://BUCKET/PREFIX")
@models_option
@db_option
@click.option("--keep", type=click.IntRange(1), metavar="DAYS", help="Delete all but the newest days.")
@rate_option
@json_option
def command(
    target: str, models: str | None, db: str | None, keep: int | None, rate: float | None, as_json: bool
) -> None:
    """Export all tables of the models, each once a day (UTC).

    Run it as often as you like, on several machines: a table that has its export of the day is not exported
    again. After a crash, the next run exports what is left. The exports are at TARGET/DAY/TABLE.
    """
    from solotable.exports import export_daily, locate

    tables = load_tables(models)
    with open_admin_store(db, tables) as store, progress("export", quiet=as_json) as update:
        done = export_daily(
            store,
            locate(target),
            keep=keep,
            rate=rate,
            progress=lambda name, items, total: update(items, total, name),
        )
    if as_json:
        print_json(_row(done))
    else:
        _print(done, target.rstrip("/"))


def _row(done: DailyExport) -> dict[str, Any]:
    return {
        "day": str(done.day),
        "complete": done.complete,
        "exported": {name: each.summary.item_count for name, each in done.exported.items()},
        "present": list(done.present),
        "deleted": list(done.deleted),
        "held_by": done.held_by,
    }


def _print(done: DailyExport, target: str) -> None:
    for name, each in done.exported.items():
        click.echo(
            f"{name}: {plural(each.summary.item_count, 'item')}, in {target}/{done.day}/{name}/{each.folder}"
        )
    for name in done.present:
        click.echo(f"{name}: exported before, in {target}/{done.day}/{name}")
    for day in done.deleted:
        click.echo(f"{day}: deleted")
    if done.held_by is not None:
        note(f"Worker {done.held_by} exports at the moment; run the command again later.")
