"""`solotable backfill` and `solotable schema versions`: upgrade stored items, and count versions."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.options.arguments import find_plan
from solotable.cli.options.database import db_option, open_admin_store
from solotable.cli.options.models import load_tables, models_option
from solotable.cli.options.scan import budget_option, rate_option, segments_option
from solotable.cli.output import json_option, note, plural, print_json, print_table
from solotable.cli.progress import progress

if TYPE_CHECKING:
    from solotable.jobs.backfill import Progress


@click.command("backfill", epilog="Example: solotable backfill Profile -m models.py -d app.db --rate 100")
@click.argument("entity")
@models_option
@db_option
@rate_option
@segments_option()
@click.option("--dry-run", is_flag=True, help="Count the items that would be rewritten; write nothing.")
@click.option(
    "--resume/--restart",
    default=True,
    help="Continue an unfinished run (the default), or start over.",
)
@budget_option()
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
    """Rewrite items of ENTITY to its current version and keys.

    Other writers may continue. An unfinished run continues at its checkpoint. Exits with 1 if some items
    could not be rewritten.
    """
    from solotable.jobs.backfill import backfill as job

    tables = load_tables(models)
    plan = find_plan(tables, entity)

    with (
        open_admin_store(db, tables, plan.table) as store,
        progress(f"backfill {plan.name}", quiet=as_json) as update,
    ):

        def show(now: Progress) -> None:
            left = "" if now.eta_seconds is None else f"{now.eta_seconds:,.0f} s left"
            update(now.tally.seen, None if now.total is None else max(now.total, now.tally.seen), left)

        done = job(
            store,
            plan.entity,
            budget=budget,
            rate=rate,
            segments=segments,
            dry_run=dry_run,
            restart=not resume,
            progress=show,
        )
    if as_json:
        print_json(asdict(done))
    else:
        _print_result(done)
    for problem in done.problems:
        note(problem)
    return FAILED if done.tally.failed else 0


@click.command("versions", epilog="Example: solotable schema versions -m models.py -d app.db --json")
@click.argument("entities", nargs=-1, metavar="[ENTITY]...")
@models_option
@db_option
@budget_option()
@json_option
def versions(
    entities: tuple[str, ...], models: str | None, db: str | None, budget: int, as_json: bool
) -> None:
    """Count items by schema version, and those with stale index keys.

    Scans the table once for each ENTITY. Default: the entities that declare schema versions.
    """
    from solotable.jobs.backfill import report

    tables = load_tables(models)
    plans = [find_plan(tables, name) for name in entities] or [
        plan for table in tables for plan in table.plans.values() if plan.schema_versions.declared
    ]
    if not plans:
        raise click.UsageError("No entity declares schema versions; name the entities to check index keys.")
    found = []
    for plan in plans:
        with (
            open_admin_store(db, tables, plan.table) as store,
            progress(f"read {plan.name}", quiet=as_json) as update,
        ):
            found.append(report(store, plan.entity, budget=budget, progress=update))
    if as_json:
        print_json([{**asdict(each), "old": each.old} for each in found])
        return
    print_table(
        [
            {
                "entity": each.entity,
                "items": each.items,
                "version": each.current,
                "old": each.old,
                "by version": ", ".join(
                    f"{version}: {count}" for version, count in each.by_schema_version.items()
                ),
                "for older releases": each.serving_older,
                "stale keys": each.stale_keys,
                "unreadable": each.unreadable,
            }
            for each in found
        ]
    )


def _print_result(done: Progress) -> None:
    tally = done.tally
    upgraded, reindexed = ("to upgrade", "to reindex") if done.dry_run else ("upgraded", "reindexed")
    click.echo(
        f"{done.entity}: {plural(tally.items, 'item')} read, {tally.upgraded:,} {upgraded}, "
        f"{tally.reindexed:,} {reindexed}, in {done.seconds:.1f} s."
    )
    if tally.recoded:
        verb = "To compress or encrypt again" if done.dry_run else "Compressed or encrypted again"
        click.echo(f"{verb}: {plural(tally.recoded, 'item')}.")
    if tally.conflicts:
        click.echo(f"{plural(tally.conflicts, 'concurrent write')}; those items were read again.")
    if tally.newer:
        click.echo(f"Left unchanged, with a newer schema version: {plural(tally.newer, 'item')}.")
    if tally.failed:
        click.echo(f"Not rewritten: {plural(tally.failed, 'item')}; the first ones:")
