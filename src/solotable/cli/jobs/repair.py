"""`solotable recount` and `solotable locks`: derived facts compared with their causes, and repaired."""

from __future__ import annotations

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.options.arguments import plan_named
from solotable.cli.options.database import db_option
from solotable.cli.options.models import load_tables, models_option
from solotable.cli.output import json_option, print_json, print_table

from .backfill import opened_for_all

_BUDGET = 1_000_000


@click.command(
    "recount", epilog="Example: solotable recount Section -m models.py -d sqlite:///app.db --dry-run"
)
@click.argument("entity")
@models_option
@db_option
@click.option(
    "--budget", type=click.IntRange(1), default=_BUDGET, show_default=True, help="Read at most as many."
)
@click.option("--dry-run", is_flag=True, help="Only say what has drifted.")
@json_option
def recount(
    entity: str, models: str | None, db: str | None, budget: int, dry_run: bool, as_json: bool
) -> int:
    """Compare the counters that ENTITY is counted on with its items, and repair those that have drifted.

    Exits with 1 when a dry run finds one.
    """
    from solotable.jobs.recount import recount as job

    tables = load_tables(models)
    plan = plan_named(tables, entity)
    with opened_for_all(db, tables, plan.table) as store:
        seen = list(job(store, plan.entity, budget=budget, repair=not dry_run))
    drifted = [each for each in seen if each.drifted]
    rows = [
        {
            "parent": each.parent,
            "key": ", ".join(f"{name}={value}" for name, value in each.key.items()),
            "field": each.field,
            "said": str(each.said),
            "counted": str(each.counted),
            "repaired": each.repaired,
        }
        for each in drifted
    ]
    if as_json:
        print_json({"counters": len(seen), "drifted": rows})
    else:
        if rows:
            print_table(rows)
        click.echo(f"{len(seen):,} counters looked at, {len(drifted):,} had drifted.")
    return FAILED if drifted and dry_run else 0


@click.command("locks", epilog="Example: solotable locks User -m models.py -d sqlite:///app.db")
@click.argument("entity")
@models_option
@db_option
@click.option(
    "--budget", type=click.IntRange(1), default=_BUDGET, show_default=True, help="Read at most as many."
)
@json_option
def locks(entity: str, models: str | None, db: str | None, budget: int, as_json: bool) -> int:
    """Take the locks of ENTITY's unique fields for items that were stored before the fields were unique.

    Exits with 1 when some could not be taken: two items have the same value, and somebody has to decide.
    """
    from solotable.jobs.locks import take_locks

    tables = load_tables(models)
    plan = plan_named(tables, entity)
    refused: list[str] = []
    seen = 0
    with opened_for_all(db, tables, plan.table) as store:
        for each in take_locks(store, plan.entity, budget=budget):
            seen += 1
            if each.refused is not None:
                refused.append(str(each.refused))
    if as_json:
        print_json({"items": seen, "refused": refused})
    else:
        for line in refused:
            click.echo(line)
        click.echo(f"{seen:,} {plan.name} looked at, {len(refused):,} hold no lock.")
    return FAILED if refused else 0
