"""`solotable purge`: remove for good what was deleted and whose grace is over, and tell what is held."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.options.database import db_option
from solotable.cli.options.models import load_tables, models_option
from solotable.cli.output import json_option, print_json, print_rows, print_table

from .backfill import opened_for_all

if TYPE_CHECKING:
    from solotable._entities.declare.table import Table
    from solotable._store import AdminStore
    from solotable.jobs.purge import Purged


@click.command("purge", epilog="Example: solotable purge -m models.py -d sqlite:///app.db --dry-run")
@models_option
@db_option
@click.option("--dry-run", is_flag=True, help="Only count what would go.")
@click.option("--hold-report", is_flag=True, help="Purge nothing; list what is held, due or not.")
@click.option("--receipts", is_flag=True, help="Purge nothing; print the receipts as JSON lines.")
@json_option
def command(
    models: str | None, db: str | None, dry_run: bool, hold_report: bool, receipts: bool, as_json: bool
) -> int:
    """Purge what was deleted and can no longer be undeleted, with everything that belongs to it.

    Broken off anywhere it can be run again. Exits with 1 when something could not be purged.
    """
    tables = [table for table in load_tables(models) if _is_soft(table)]
    if not tables:
        raise click.UsageError("No entity declares a SoftDelete, so nothing waits for a purge.")
    if hold_report and receipts:
        raise click.UsageError("--hold-report and --receipts exclude each other.")
    reports: list[dict[str, Any]] = []
    for table in tables:
        with opened_for_all(db, tables, table) as store:
            if hold_report:
                reports += _held(store, table)
            elif receipts:
                _print_receipts(store, table)
            else:
                reports.append({"table": table.name, **_purged(store, table, dry_run=dry_run, quiet=as_json)})
    if receipts:
        return 0
    if as_json:
        print_json(reports)
    elif hold_report:
        print_table(reports, ("entity", "key", "deleted_at", "purge_at", "held"))
    else:
        _tell(reports)
    return FAILED if any(report.get("problems") for report in reports) else 0


def _is_soft(table: Table) -> bool:
    return any(plan.deletion is not None for plan in table.plans.values())


def _purged(store: AdminStore, table: Table, *, dry_run: bool, quiet: bool) -> dict[str, Any]:
    from solotable.jobs.purge import purge

    with _showing(table.name, quiet=quiet) as show:
        return purge(store, table, dry_run=dry_run, progress=show).row()


def _held(store: AdminStore, table: Table) -> Iterator[dict[str, Any]]:
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


def _tell(reports: Sequence[dict[str, Any]]) -> None:
    for report in reports:
        verb = "would be" if report["dry_run"] else "were"
        shown = ", ".join(f"{count:,} {name}" for name, count in report["removed"].items())
        told = f" ({shown})" if shown else ""
        click.echo(f"{report['table']}: {report['items']:,} items {verb} purged{told}.")
        if report["held"]:
            click.echo(f"{len(report['held']):,} are held; --hold-report lists them.")
        for problem in report["problems"]:
            click.echo(f"Not purged: {problem}")


@contextmanager
def _showing(name: str, *, quiet: bool) -> Iterator[Callable[[Purged], None] | None]:
    """Show on a terminal how far it has come."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=None)

        def show(now: Purged) -> None:
            bar.update(task, completed=now.looked_at, total=now.due)

        yield show
