"""`solotable backfill` and `solotable shapes`: old items brought up to date, and how many there are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.options.arguments import plan_named
from solotable.cli.options.database import NotThere, db_option, there, url_of
from solotable.cli.options.models import load_tables, models_option
from solotable.cli.output import json_option, print_json, print_table, say
from solotable.errors import TableNotFound

if TYPE_CHECKING:
    from solotable._entities.declare.table import Table
    from solotable._store import AdminStore
    from solotable.jobs.backfill import Progress

_BUDGET = 1_000_000_000
CommandT = Callable[..., Any]


def _budget_option(command: CommandT) -> CommandT:
    return click.option(
        "--budget",
        type=click.IntRange(1),
        default=_BUDGET,
        help="Read at most this many items; without it the whole table.",
    )(command)


@click.command(
    "backfill", epilog="Example: solotable backfill Profile -m models.py -d sqlite:///app.db --rate 100"
)
@click.argument("entity")
@models_option
@db_option
@click.option(
    "--rate", type=click.FloatRange(0, min_open=True), help="Take at most this many capacity units a second."
)
@click.option(
    "--segments", type=click.IntRange(1, 1000), default=1, show_default=True, help="Work on as many parts."
)
@click.option("--dry-run", is_flag=True, help="Only count what would be rewritten.")
@click.option(
    "--resume/--restart",
    default=True,
    help="Go on where a run that did not end stood (the default), or anew.",
)
@_budget_option
@json_option
def backfill(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    entity: str,
    models: str | None,
    db: str | None,
    rate: float | None,
    segments: int,
    dry_run: bool,
    resume: bool,
    budget: int,
    as_json: bool,
) -> int:
    """Bring all items of ENTITY to its current shape and index keys, beside whoever else writes them.

    A run that was stopped goes on where it stood. Exits with 1 when some items could not be rewritten.
    """
    from solotable.jobs.backfill import backfill as job

    tables = load_tables(models)
    plan = plan_named(tables, entity)
    with opened_for_all(db, tables, plan.table) as store, _showing(plan.name, quiet=as_json) as progress:
        done = job(
            store,
            plan.entity,
            budget=budget,
            rate=rate,
            segments=segments,
            dry_run=dry_run,
            restart=not resume,
            progress=progress,
        )
    if as_json:
        print_json(asdict(done))
    else:
        _tell(done)
    for problem in done.problems:
        say(problem)
    return FAILED if done.tally.failed else 0


@click.command("shapes", epilog="Example: solotable shapes -m models.py -d sqlite:///app.db --json")
@click.argument("entities", nargs=-1, metavar="[ENTITY]...")
@models_option
@db_option
@_budget_option
@json_option
def shapes(entities: tuple[str, ...], models: str | None, db: str | None, budget: int, as_json: bool) -> None:
    """Count stored items by their shapes, and those with wrong index keys.

    Reads the whole table for each of these ENTITIES; without any, for those that have had several shapes.
    """
    from solotable.jobs.backfill import report

    tables = load_tables(models)
    plans = [plan_named(tables, name) for name in entities] or [
        plan for table in tables for plan in table.plans.values() if plan.shapes.declared
    ]
    if not plans:
        raise click.UsageError("No entity declares a shape; name those whose index keys are to be checked.")
    found = []
    for plan in plans:
        with opened_for_all(db, tables, plan.table) as store:
            found.append(report(store, plan.entity, budget=budget))
    if as_json:
        print_json([{**asdict(each), "old": each.old} for each in found])
        return
    print_table(
        [
            {
                "entity": each.entity,
                "items": each.items,
                "shape": each.current,
                "old": each.old,
                "by shape": ", ".join(f"{shape}: {count}" for shape, count in each.by_shape.items()),
                "serving older": each.serving_older,
                "stale keys": each.stale_keys,
                "unreadable": each.unreadable,
            }
            for each in found
        ]
    )


@contextmanager
def opened_for_all(db: str | None, tables: Sequence[Table], own: Table) -> Iterator[AdminStore]:
    """Open a URL for all tenants; nothing is recorded, for a job sends more than fits into memory."""
    from solotable._connect import open_engine, over

    url = url_of(db)
    if not there(url):
        raise NotThere(f"There is no file {url.path}. Make it with: solotable schema apply -d {url.text}")
    engine = open_engine(url)
    try:
        yield over(engine, [own] if url.table else tables, url).admin()
    except TableNotFound as refused:
        raise NotThere(
            f"{own.name}: the table is not at {url.text}. Make it with: solotable schema apply -d {url.text}"
        ) from refused
    finally:
        engine.close()


def _tell(done: Progress) -> None:
    tally = done.tally
    verb = "would be" if done.dry_run else "were"
    click.echo(
        f"{done.entity}: of {tally.items:,} items {tally.upgraded:,} {verb} brought to the current shape and "
        f"{tally.reindexed:,} {verb} given new index keys, in {done.seconds:.1f} s."
    )
    if tally.conflicts:
        click.echo(f"{tally.conflicts:,} times somebody else wrote first, and the item was read anew.")
    if tally.newer:
        click.echo(f"{tally.newer:,} items were written by newer code and left alone.")
    if tally.failed:
        click.echo(f"{tally.failed:,} items could not be rewritten; the first of them:")


@contextmanager
def _showing(name: str, *, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Show on a terminal how far it has come, and when it will be done."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(name),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=None, left="")

        def show(now: Progress) -> None:
            left = "" if now.eta_seconds is None else f"{now.eta_seconds:,.0f} s left"
            total = None if now.total is None else max(now.total, now.tally.seen)
            bar.update(task, completed=now.tally.seen, total=total, left=left)

        yield show
