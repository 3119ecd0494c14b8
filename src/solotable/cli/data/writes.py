"""`solotable put`, `update` and `delete`: writing entities on any URL, by the same rules as the store."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

import click

from solotable.cli.options.arguments import fields_of, made, paths_of, plan_named
from solotable.cli.options.database import CommandT, NotThere
from solotable.cli.options.target import Place, place_options
from solotable.cli.output import output_options, print_one, print_rows, row_of, say

from .reads import key_of

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Plan
    from solotable._flows.transactions.write import ExpectedVersion


def _version_options(command: CommandT) -> CommandT:
    """Give a command `--if-version` and `--any-version` as its parameters, for `_expected`."""
    anyhow = click.option("--any-version", is_flag=True, help="Whatever version is stored.")
    only = click.option("--if-version", type=click.IntRange(0), help="Only if this version is stored.")
    return only(anyhow(command))


@click.command(
    "put",
    epilog="Example: solotable put Survey survey_id=s1 title='12 Main Street' -m models.py:surveyor "
    "-d sqlite:///survey.db --tenant acme",
)
@click.argument("entity")
@click.argument("values", nargs=-1, metavar="FIELD=VALUE...")
@place_options
@click.option(
    "--json-input",
    type=click.File("r", encoding="utf-8"),
    help="Take the fields from a file of JSON, or - for standard input: an object, or a list of objects.",
)
@click.option("--create", is_flag=True, help="Refuse to replace: exit with 4 when it is there already.")
@output_options
def put(
    entity: str,
    values: tuple[str, ...],
    place: Place,
    json_input: IO[str] | None,
    create: bool,
    shape: str | None,
) -> None:
    """Make an ENTITY, or replace the stored one, and print it as stored."""
    tables = place.tables()
    plan = plan_named(tables, entity)
    if json_input is not None and values:
        raise click.UsageError("Give FIELD=VALUE or --json-input, not both.")
    if json_input is None:
        wanted = [made(plan, fields_of(plan, values))]
        many = False
    else:
        objects, many = _objects(json_input)
        wanted = [made(plan, each, as_json=True) for each in objects]
    stored = []
    with place.opened(tables, plan.table, makes=True) as there:
        for each in wanted:
            try:
                stored.append(there.store.create(each) if create else there.store.put(each))
            except Exception:
                if many:
                    say(f"{len(stored)} of {len(wanted)} are stored; this one is not:")
                raise
    if many:
        print_rows([row_of(each) for each in stored], shape, list(plan.entity.model_fields))
    else:
        print_one(row_of(stored[0]), shape)


@click.command(
    "update",
    epilog="Example: solotable update Section survey_id=s1 section_id=roof --set notes='Clay tiles' "
    "-m models.py:surveyor -d sqlite:///survey.db --tenant acme",
)
@click.argument("entity")
@click.argument("key", nargs=-1, metavar="KEY=VALUE...")
@place_options
@click.option("--set", "sets", multiple=True, metavar="FIELD=VALUE", help="Set a field; dotted for nested.")
@click.option("--remove", "removes", multiple=True, metavar="FIELD", help="Remove a field.")
@click.option("--add", "adds", multiple=True, metavar="FIELD=N", help="Add to a number or a set.")
@_version_options
@output_options
def update(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    entity: str,
    key: tuple[str, ...],
    place: Place,
    sets: tuple[str, ...],
    removes: tuple[str, ...],
    adds: tuple[str, ...],
    if_version: int | None,
    any_version: bool,
    shape: str | None,
) -> None:
    """Change fields of a stored ENTITY and print it as it is now; exit with 3 when there is none."""
    tables = place.tables()
    plan = plan_named(tables, entity)
    given = key_of(plan, key)
    if not (sets or removes or adds):
        raise click.UsageError("Nothing to change; say it with --set, --remove or --add.")
    changes: dict[str, Any] = {"set": paths_of(plan, sets), "remove": removes, "add": paths_of(plan, adds)}
    version = _expected(plan, if_version, any_version=any_version)
    with place.opened(tables, plan.table) as there:
        changed: Any = there.store.update(plan.entity, version=version, **changes, **given)
    print_one(row_of(changed), shape)


@click.command(
    "delete",
    epilog="Example: solotable delete Section survey_id=s1 section_id=roof -m models.py:surveyor "
    "-d sqlite:///survey.db --tenant acme",
)
@click.argument("entity")
@click.argument("key", nargs=-1, metavar="KEY=VALUE...")
@place_options
@_version_options
@output_options
def delete(
    entity: str,
    key: tuple[str, ...],
    place: Place,
    if_version: int | None,
    any_version: bool,
    shape: str | None,
) -> None:
    """Remove an ENTITY and print it as it was; exit with 3 when there was none."""
    tables = place.tables()
    plan = plan_named(tables, entity)
    given = key_of(plan, key)
    version = _expected(plan, if_version, any_version=any_version)
    with place.opened(tables, plan.table) as there:
        removed = there.store.delete(plan.entity, version=version, **given)
    if removed is None:
        raise NotThere(f"There was no {plan.name} with {', '.join(f'{n}={v!r}' for n, v in given.items())}.")
    print_one(row_of(removed), shape)


def _expected(plan: Plan, if_version: int | None, *, any_version: bool) -> ExpectedVersion:
    from solotable._flows.transactions.write import ANY

    if if_version is not None and any_version:
        raise click.UsageError("--if-version and --any-version exclude each other.")
    if plan.version is None:
        if if_version is not None or any_version:
            raise click.UsageError(f"{plan.name} has no version; leave out --if-version and --any-version.")
        return None
    if if_version is None and not any_version:
        raise click.UsageError(
            f"{plan.name} is versioned: say --if-version N as you read it, or --any-version."
        )
    return ANY if any_version else if_version


def _objects(source: IO[str]) -> tuple[list[dict[str, Any]], bool]:
    """Read an object, a list of objects, or an object a line."""
    text = source.read()
    try:
        read = json.loads(text)
    except ValueError as refused:
        try:
            read = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError:
            raise click.UsageError(f"--json-input is no JSON: {refused}.") from None
    many = isinstance(read, list)
    objects = read if isinstance(read, list) else [read]
    if not objects or not all(isinstance(each, dict) for each in objects):
        raise click.UsageError("--json-input is an object of fields, or a list of them.")
    return objects, many
