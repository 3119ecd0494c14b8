"""`solotable put`, `update` and `delete`: write entities, with the checks of the store."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import IO, TYPE_CHECKING, Any

import click

from solotable.cli.options.arguments import build_entity, find_plan, parse_fields, parse_paths
from solotable.cli.options.database import CommandT
from solotable.cli.options.target import Target, target_options
from solotable.cli.output import note, output_options, print_one, print_rows, row_of, show_encrypted_option
from solotable.cli.progress import progress

from .reads import not_found, parse_key

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Plan
    from solotable._flows.transactions.write import ExpectedVersion

#: Threads that write the objects of a file, and how many they write before progress is shown.
_WRITERS = 16
_BATCH = 256


def _version_options(command: CommandT) -> CommandT:
    """Give a command `--if-version` and `--any-version` as its parameters, for `_expected`."""
    anyhow = click.option("--any-version", is_flag=True, help="Write whatever version is stored.")
    only = click.option("--if-version", type=click.IntRange(0), help="Write only if this version is stored.")
    return only(anyhow(command))


@click.command(
    "put",
    epilog="Example: solotable put Survey survey_id=s1 title='12 Main Street' -m models.py:surveyor "
    "-d survey.db --tenant acme",
)
@click.argument("entity")
@click.argument("values", nargs=-1, metavar="[FIELD=VALUE]...")
@target_options
@click.option(
    "--json-input",
    type=click.File("r", encoding="utf-8"),
    help="Read the fields from a JSON file (- for standard input): an object, a list of objects, "
    "or an object per line.",
)
@click.option("--create", is_flag=True, help="Do not replace: exit with 4 if it exists.")
@show_encrypted_option
@output_options
def put(
    entity: str,
    values: tuple[str, ...],
    target: Target,
    json_input: IO[str] | None,
    create: bool,
    show_encrypted: bool,
    output: str | None,
) -> None:
    """Store an ENTITY, or every object of a JSON file.

    Replaces what is stored, unless --create is given. Prints an ENTITY as stored; for a file, the number of
    objects unless --json, --jsonl or --csv is given.
    """
    tables = target.tables()
    plan = find_plan(tables, entity)
    if json_input is not None and values:
        raise click.UsageError("Pass FIELD=VALUE or --json-input, not both.")
    if json_input is None:
        fields, many = parse_fields(plan, values), False
        target.require_tenant(plan, fields)
        entities = [build_entity(plan, fields)]
    else:
        objects, many = _parse_objects(json_input)
        for each in objects:
            target.require_tenant(plan, each)
        entities = [_build_object(plan, each, at if many else None) for at, each in enumerate(objects, 1)]
    with target.open(tables, plan.table, create=True) as opened:
        write = opened.store.create if create else opened.store.put
        stored = _write_all(plan, entities, write) if many else [write(entities[0])]
    if not many:
        print_one(row_of(stored[0], show_encrypted=show_encrypted), output)
    elif output is not None:
        rows = [row_of(each, show_encrypted=show_encrypted) for each in stored]
        print_rows(rows, output, list(plan.entity.model_fields))
    else:
        click.echo(f"Stored {len(stored):,} {plan.name}.")


def _build_object(plan: Plan, values: dict[str, Any], number: int | None) -> Any:
    """Return the entity of an object of a file; an error names the number of the object."""
    try:
        return build_entity(plan, values, as_json=True)
    except click.UsageError as error:
        if number is None:
            raise
        raise click.UsageError(f"Object {number}: {error.message} Nothing was stored.") from None


def _write_all(plan: Plan, entities: list[Any], write: Callable[[Any], Any]) -> list[Any]:
    """Write entities from several threads, whose writes the engine commits together.

    Two writes of one key stay in order.
    """
    futures: list[Future[Any]] = []
    with ThreadPoolExecutor(_WRITERS) as threads, progress(f"put {plan.name}") as update:
        try:
            while (start := len(futures)) < len(entities):
                batch = _take_distinct(plan, entities[start : start + _BATCH])
                for each in batch:
                    # One by one: after an interruption, all that were submitted are counted.
                    futures.append(threads.submit(write, each))  # noqa: PERF401
                wait(futures[start:])
                for number, future in enumerate(futures[start:], start + 1):
                    if (error := future.exception()) is not None:
                        note(f"{_count(futures, entities)}; object {number} failed:")
                        raise error
                update(len(futures), len(entities))
        except KeyboardInterrupt:
            threads.shutdown(cancel_futures=True)
            note(f"Interrupted: {_count(futures, entities)}.")
            raise
    return [future.result() for future in futures]


def _count(futures: list[Future[Any]], entities: list[Any]) -> str:
    """Return how many of the objects were stored, for a message."""
    stored = sum(not each.cancelled() and each.exception() is None for each in futures)
    return f"{stored:,} of {len(entities):,} objects were stored"


def _take_distinct(plan: Plan, entities: list[Any]) -> list[Any]:
    """Return the entities before the first one that repeats a key."""
    seen: set[str] = set()
    for count, each in enumerate(entities):
        key = repr([getattr(each, name, None) for name in plan.primary.parts])
        if key in seen:
            return entities[:count]
        seen.add(key)
    return entities


@click.command(
    "update",
    epilog="Example: solotable update Section survey_id=s1 section_id=roof --set notes='Clay tiles' "
    "-m models.py:surveyor -d survey.db --tenant acme",
)
@click.argument("entity")
@click.argument("key", nargs=-1, metavar="KEY=VALUE...")
@target_options
@click.option("--set", "sets", multiple=True, metavar="FIELD=VALUE", help="Set a field; dotted for nested.")
@click.option("--remove", "removes", multiple=True, metavar="FIELD", help="Remove a field.")
@click.option("--add", "adds", multiple=True, metavar="FIELD=N", help="Add to a number or a set.")
@_version_options
@show_encrypted_option
@output_options
def update(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    entity: str,
    key: tuple[str, ...],
    target: Target,
    sets: tuple[str, ...],
    removes: tuple[str, ...],
    adds: tuple[str, ...],
    if_version: int | None,
    any_version: bool,
    show_encrypted: bool,
    output: str | None,
) -> None:
    """Change fields of a stored ENTITY, and print the result.

    Exits with 3 if it does not exist.
    """
    tables = target.tables()
    plan = find_plan(tables, entity)
    given = parse_key(plan, key)
    target.require_tenant(plan, given)
    if not (sets or removes or adds):
        raise click.UsageError("Nothing to change; pass --set, --remove or --add.")
    changes: dict[str, Any] = {
        "set": parse_paths(plan, sets),
        "remove": removes,
        "add": parse_paths(plan, adds),
    }
    version = _expected_version(plan, if_version, any_version=any_version)
    with target.open(tables, plan.table) as opened:
        changed: Any = opened.store.update(plan.entity, version=version, **changes, **given)
    print_one(row_of(changed, show_encrypted=show_encrypted), output)


@click.command(
    "delete",
    epilog="Example: solotable delete Section survey_id=s1 section_id=roof -m models.py:surveyor "
    "-d survey.db --tenant acme",
)
@click.argument("entity")
@click.argument("key", nargs=-1, metavar="KEY=VALUE...")
@target_options
@_version_options
@show_encrypted_option
@output_options
def delete(
    entity: str,
    key: tuple[str, ...],
    target: Target,
    if_version: int | None,
    any_version: bool,
    show_encrypted: bool,
    output: str | None,
) -> None:
    """Delete an ENTITY, and print what was stored.

    Exits with 3 if it does not exist.
    """
    tables = target.tables()
    plan = find_plan(tables, entity)
    given = parse_key(plan, key)
    target.require_tenant(plan, given)
    version = _expected_version(plan, if_version, any_version=any_version)
    with target.open(tables, plan.table) as opened:
        removed = opened.store.delete(plan.entity, version=version, **given)
    if removed is None:
        raise not_found(plan, given, target)
    print_one(row_of(removed, show_encrypted=show_encrypted), output)


def _expected_version(plan: Plan, if_version: int | None, *, any_version: bool) -> ExpectedVersion:
    from solotable._flows.transactions.write import ANY

    if if_version is not None and any_version:
        raise click.UsageError("--if-version and --any-version cannot be used together.")
    if plan.version is None:
        if if_version is not None or any_version:
            raise click.UsageError(f"{plan.name} has no version field; omit --if-version and --any-version.")
        return None
    if if_version is None and not any_version:
        raise click.UsageError(
            f"{plan.name} is versioned; pass --if-version N with the version that you read, or --any-version."
        )
    return ANY if any_version else if_version


def _parse_objects(source: IO[str]) -> tuple[list[dict[str, Any]], bool]:
    """Parse an object, a list of objects, or an object per line."""
    text = source.read()
    try:
        read = json.loads(text)
    except ValueError as error:
        read = _parse_lines(text, error)
    many = isinstance(read, list)
    objects = read if isinstance(read, list) else [read]
    if not all(isinstance(each, dict) for each in objects):
        raise click.UsageError("--json-input takes an object of fields, or a list of objects.")
    return objects, many


def _parse_lines(text: str, whole: ValueError) -> list[Any]:
    """Parse a value per line; if the first line is not JSON, raise the error of the whole text."""
    found: list[Any] = []
    # Not splitlines(): a string of JSON may contain other line separators.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                found.append(json.loads(line))
            except ValueError as error:
                raise _not_json(error, number) if found else _not_json(whole) from None
    if not found:
        raise _not_json(whole)
    return found


def _not_json(error: ValueError, line: int = 1) -> click.UsageError:
    """Return the usage error for a text that starts at this line of the file."""
    # Other errors, as for an integer with too many digits, have no place.
    place, problem = f"line {line}", str(error)
    if isinstance(error, json.JSONDecodeError):
        place, problem = f"line {line + error.lineno - 1}, column {error.colno}", error.msg
    return click.UsageError(f"--json-input is not JSON: {place}: {problem}. Nothing was stored.")
