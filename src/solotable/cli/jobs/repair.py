"""`solotable recount` and `solotable locks`: check derived items, and repair them."""

from __future__ import annotations

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.options.arguments import find_plan
from solotable.cli.options.database import db_option, open_admin_store
from solotable.cli.options.models import load_tables, models_option
from solotable.cli.output import json_option, plural, print_json, print_table

_BUDGET = 1_000_000


@click.command("recount", epilog="Example: solotable recount Section -m models.py -d app.db --dry-run")
@click.argument("entity")
@models_option
@db_option
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=_BUDGET,
    show_default=True,
    help="Read at most this many items.",
)
@click.option("--dry-run", is_flag=True, help="Print wrong counters; repair nothing.")
@json_option
def recount(
    entity: str, models: str | None, db: str | None, budget: int, dry_run: bool, as_json: bool
) -> int:
    """Compare counters with the items of ENTITY; repair them.

    Exits with 1 if a dry run finds a wrong counter.
    """
    from solotable.jobs.recount import recount as job

    tables = load_tables(models)
    plan = find_plan(tables, entity)
    with open_admin_store(db, tables, plan.table) as store:
        seen = list(job(store, plan.entity, budget=budget, repair=not dry_run))
    drifted = [each for each in seen if each.drifted]
    rows = [
        {
            "parent": each.parent,
            "key": ", ".join(f"{name}={value}" for name, value in each.key.items()),
            "field": each.field,
            "stored": str(each.said),
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
        click.echo(f"{plural(len(seen), 'counter')} checked, {len(drifted):,} wrong.")
    return FAILED if drifted and dry_run else 0


@click.command("locks", epilog="Example: solotable locks User -m models.py -d app.db")
@click.argument("entity")
@models_option
@db_option
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=_BUDGET,
    show_default=True,
    help="Read at most this many items.",
)
@json_option
def locks(entity: str, models: str | None, db: str | None, budget: int, as_json: bool) -> int:
    """Create missing locks of the unique fields of ENTITY.

    Items that were stored before a field became unique have none. Exits with 1 if two
    items have the same value: change one of them, then run it again.
    """
    from solotable.jobs.locks import take_locks

    tables = load_tables(models)
    plan = find_plan(tables, entity)
    rejected: list[str] = []
    seen = 0
    with open_admin_store(db, tables, plan.table) as store:
        for each in take_locks(store, plan.entity, budget=budget):
            seen += 1
            if each.refused is not None:
                rejected.append(str(each.refused))
    if as_json:
        print_json({"items": seen, "rejected": rejected})
    else:
        for line in rejected:
            click.echo(line)
        click.echo(f"{seen:,} {plan.name} checked, {len(rejected):,} without a lock.")
    return FAILED if rejected else 0
