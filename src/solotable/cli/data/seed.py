"""`solotable seed`: store generated entities, for tests and demos."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from solotable.cli.options.arguments import find_plan
from solotable.cli.options.target import Target, target_options
from solotable.cli.output import output_options, plural, print_rows
from solotable.cli.progress import progress

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Plan
    from solotable._entities.declare.table import Table


@click.command(
    "seed",
    epilog="Example: solotable seed Survey=5 Section=40 -m models.py:surveyor -d survey.db --tenant acme",
)
@click.argument("entities", nargs=-1, metavar="[ENTITY[=COUNT]]...")
@target_options
@click.option(
    "--count", type=click.IntRange(0), default=10, show_default=True, help="Entities of each class."
)
@click.option(
    "--seed", "number", type=int, default=0, show_default=True, help="The same seed gives the same data."
)
@output_options
def command(entities: tuple[str, ...], target: Target, count: int, number: int, output: str | None) -> None:
    """Store generated entities, for tests and demos.

    Without ENTITY, all entities of the models are stored, in the order of their definition. Each takes over
    the key fields of the entities before it, so name parents first. Nothing is replaced: the same seed again
    exits with 4.
    """
    tables = target.tables()
    wanted = _parse(tables, entities, count)
    if target.admin:
        raise click.UsageError("seed stores entities of one tenant, or global ones; pass --tenant.")
    rows = []
    stored: list[tuple[Plan, list[Any]]] = []
    for plan, each in wanted:
        # A global entity has no tenant, so each entity is stored in its own scope.
        scoped = (
            target
            if plan.tenant is not None
            else Target(models=target.models, db=target.db, tenant=None, admin=False)
        )
        stored.append((plan, _seed(scoped, tables, plan, each, number, stored)))
        rows.append({"entity": plan.name, "stored": each})
    if output is not None:
        print_rows(rows, output, ["entity", "stored"])
        return
    for plan, each in wanted:
        click.echo(f"Stored {plural(each, plan.name, plan.name)}.")


def _parse(tables: list[Table], entities: tuple[str, ...], count: int) -> list[tuple[Plan, int]]:
    """Return the entities to store with their counts; without names, all of the models."""
    if not entities:
        return [(plan, count) for table in tables for plan in table.plans.values()]
    found = []
    for each in entities:
        name, equals, given = each.partition("=")
        if equals and not given.isdecimal():
            raise click.UsageError(f"The count in {each!r} must be a whole number, such as {name}=10.")
        found.append((find_plan(tables, name), int(given) if equals else count))
    return found


def _seed(
    target: Target,
    tables: list[Table],
    plan: Plan,
    count: int,
    number: int,
    stored: list[tuple[Plan, list[Any]]],
) -> list[Any]:
    from solotable.seeding import seed

    parents = _parents(plan, stored)
    with (
        target.open(tables, plan.table, create=True) as opened,
        progress(f"seed {plan.name}") as update,
    ):
        return seed(opened.store, plan.entity, count=count, seed=number, parents=parents, progress=update)


def _parents(plan: Plan, stored: list[tuple[Plan, list[Any]]]) -> list[Any]:
    """Return the stored entities that share the most key fields with this one, apart from the tenant."""
    best: list[Any] = []
    most = 0
    for parent, entities in stored:
        shared = [part for part in parent.primary.parts if part != parent.tenant]
        if entities and len(shared) > most and all(_refers(plan, part) for part in shared):
            best, most = entities, len(shared)
    return best


def _refers(plan: Plan, part: str) -> bool:
    """Return whether a field names another entity; a field such as `name` does so only in a key."""
    return part in plan.primary.parts or (part in plan.attributes and part.endswith("_id"))
