"""`solotable collect-blobs`: delete objects of offloaded fields that no item refers to."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.options.database import db_option, open_admin_store
from solotable.cli.options.models import load_tables, models_option
from solotable.cli.options.scan import budget_option, rate_option, segments_option
from solotable.cli.output import json_option, note, plural, print_json
from solotable.cli.progress import progress

if TYPE_CHECKING:
    from solotable._entities.declare.table import Table
    from solotable.jobs.collect_blobs import BlobCollection


@click.command("collect-blobs", epilog="Example: solotable collect-blobs -m models.py -d app.db --dry-run")
@models_option
@db_option
@rate_option
@segments_option(also=", and delete as many objects at a time")
@click.option("--dry-run", is_flag=True, help="Count the objects that would be deleted; delete nothing.")
@click.option(
    "--grace-hours",
    type=click.FloatRange(0),
    default=24.0,
    show_default=True,
    help="Keep objects that were stored or used within this many hours; longer than the longest write.",
)
@click.option("--of-tenant", help="Only the objects of this tenant, such as an erased one.")
@click.option("--allow-all", is_flag=True, help="Delete also if no item refers to any object.")
@budget_option(also=", and delete nothing if there are more")
@json_option
def command(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    models: str | None,
    db: str | None,
    rate: float | None,
    segments: int,
    dry_run: bool,
    grace_hours: float,
    of_tenant: str | None,
    allow_all: bool,
    budget: int,
    as_json: bool,
) -> int:
    """Delete objects of Offloaded fields that no item uses.

    Reads the whole table. Writers may continue. Exits with 1 if the budget was too small.
    """
    tables = [table for table in load_tables(models) if _is_offloaded(table)]
    if not tables:
        raise click.UsageError("No entity has an Offloaded field, so there is nothing to collect.")
    from solotable.jobs.collect_blobs import collect_blobs

    reports: list[BlobCollection] = []
    for table in tables:
        with (
            open_admin_store(db, tables, table) as store,
            progress(f"collect {table.name}", quiet=as_json) as update,
        ):

            def show(now: BlobCollection) -> None:
                gone = now.deleted + now.touched
                found = f"{now.objects:,} objects, {now.items:,} items, {now.deleted:,} deleted"
                update(now.objects + now.items + gone, None, found)

            reports.append(
                collect_blobs(
                    store,
                    table,
                    budget=budget,
                    rate=rate,
                    segments=segments,
                    grace=timedelta(hours=grace_hours),
                    tenant=of_tenant,
                    dry_run=dry_run,
                    allow_all=allow_all,
                    progress=show,
                )
            )
    if as_json:
        print_json([asdict(each) for each in reports])
    else:
        for each in reports:
            _print_report(each)
    return 0 if all(each.done for each in reports) else FAILED


def _is_offloaded(table: Table) -> bool:
    return any(plan.blobs is not None for plan in table.plans.values())


def _print_report(done: BlobCollection) -> None:
    objects = plural(done.objects, "object")
    click.echo(f"{done.table}: {objects}, {done.old:,} of them old; {plural(done.items, 'item')} read.")
    if not done.done:
        note("The budget was reached before the end of the table, so nothing was deleted; raise --budget.")
        return
    click.echo(f"Unreferenced: {done.unreferenced:,} ({done.unreferenced_bytes:,} bytes).")
    if not done.dry_run:
        click.echo(f"Deleted: {done.deleted:,}. Kept after a concurrent write: {done.touched:,}.")
