"""`solotable purge`: remove soft-deleted items whose grace period is over, and list holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.options.database import db_option, open_admin_store
from solotable.cli.options.models import load_tables, models_option
from solotable.cli.output import json_option, plural, print_json, print_rows, print_table
from solotable.cli.progress import progress

if TYPE_CHECKING:
    from solotable._entities.declare.table import Table
    from solotable._store import AdminStore
    from solotable.jobs.purge import Purged


@click.command("purge", epilog="Example: solotable purge -m models.py -d app.db --dry-run")
@models_option
@db_option
@click.option("--dry-run", is_flag=True, help="Count the items that would be removed; remove nothing.")
@click.option("--hold-report", is_flag=True, help="Remove nothing; list the items on hold.")
@click.option("--receipts", is_flag=True, help="Remove nothing; print the receipts as JSON lines.")
@json_option
def command(
    models: str | None, db: str | None, dry_run: bool, hold_report: bool, receipts: bool, as_json: bool
) -> int:
    """Remove soft-deleted items after their grace period.

    Their children and history are removed with them. A run that was interrupted can be repeated.
    Exits with 1 if an item could not be removed.
    """
    tables = [table for table in load_tables(models) if _is_soft(table)]
    if not tables:
        raise click.UsageError("No entity declares a SoftDelete, so there is nothing to purge.")
    if hold_report and receipts:
        raise click.UsageError("--hold-report and --receipts cannot be used together.")
    reports: list[dict[str, Any]] = []
    for table in tables:
        with open_admin_store(db, tables, table) as store:
            if hold_report:
                reports += _holds(store, table)
            elif receipts:
                _print_receipts(store, table)
            else:
                reports.append(
                    {"table": table.name, **_purge_table(store, table, dry_run=dry_run, quiet=as_json)}
                )
    if receipts:
        return 0
    if as_json:
        print_json(reports)
    elif hold_report:
        print_table(reports, ("entity", "key", "deleted_at", "purge_at", "held"))
    else:
        _print_reports(reports)
    return FAILED if any(report.get("problems") for report in reports) else 0


def _is_soft(table: Table) -> bool:
    return any(plan.deletion is not None for plan in table.plans.values())


def _purge_table(store: AdminStore, table: Table, *, dry_run: bool, quiet: bool) -> dict[str, Any]:
    from solotable.jobs.purge import purge

    with progress(f"purge {table.name}", quiet=quiet) as update:

        def show(now: Purged) -> None:
            update(now.looked_at, now.due)

        return purge(store, table, dry_run=dry_run, progress=show).row()


def _holds(store: AdminStore, table: Table) -> Iterator[dict[str, Any]]:
    for plan in table.plans.values():
        cursor = None
        while plan.deletion is not None:
            page = store.deleted(plan.entity, limit=1_000, cursor=cursor)
            yield from (each.model_dump(mode="json") for each in page if each.held is not None)
            cursor = page.cursor
            if cursor is None:
                break


def _print_receipts(store: AdminStore, table: Table) -> None:
    from solotable.jobs.purge import list_receipts

    rows = ({"table": table.name, **each.model_dump(mode="json")} for each in list_receipts(store, table))
    print_rows(rows, "jsonl")


def _print_reports(reports: Sequence[dict[str, Any]]) -> None:
    for report in reports:
        verb = "to purge" if report["dry_run"] else "purged"
        shown = ", ".join(f"{count:,} {name}" for name, count in report["removed"].items())
        details = f" ({shown})" if shown else ""
        click.echo(f"{report['table']}: {plural(report['items'], 'item')} {verb}{details}.")
        if report["held"]:
            click.echo(f"On hold: {plural(len(report['held']), 'item')}; --hold-report lists them.")
        for problem in report["problems"]:
            click.echo(f"Not purged: {problem}")
