"""`solotable get`, `query`, `list` and `count`: read entities by key, by pattern, or by a scan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.options.arguments import build_query, find_pattern, find_plan, parse_fields
from solotable.cli.options.cursor_secret import VARIABLE, check_cursor, cursor_options, cursor_secret
from solotable.cli.options.database import (
    NotFoundError,
    OpenStore,
    open_admin_store,
    render_requests,
)
from solotable.cli.options.target import Target, target_options
from solotable.cli.output import (
    json_option,
    note,
    output_options,
    plural,
    print_json,
    print_one,
    print_rows,
    row_of,
    show_encrypted_option,
)

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Plan
    from solotable._entities.patterns.query import Query
    from solotable._flows.scope import Unknown

_DEFAULT_LIMIT = 50
_DEFAULT_BUDGET = 100_000


def skip_unknown_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --skip-unknown, which passes `unknown` to the command."""
    return click.option(
        "--skip-unknown",
        "unknown",
        flag_value="skip",
        default="raise",
        help="Skip items that no entity matches.",
    )(command)


@click.command(
    "get",
    epilog="Example: solotable get Section survey_id=s1 section_id=roof -m models.py:surveyor "
    "-d survey.db --tenant acme",
)
@click.argument("entity")
@click.argument("key", nargs=-1, metavar="KEY=VALUE...")
@target_options
@click.option("--consistent", is_flag=True, help="Read the latest write; costs twice as much.")
@click.option("--show-request", is_flag=True, help="Also print the request, on standard error.")
@show_encrypted_option
@output_options
def get(
    entity: str,
    key: tuple[str, ...],
    target: Target,
    consistent: bool,
    show_request: bool,
    show_encrypted: bool,
    output: str | None,
) -> None:
    """Print the ENTITY with this key.

    Exits with 3 if it does not exist.
    """
    tables = target.tables()
    plan = find_plan(tables, entity)
    given = parse_key(plan, key)
    target.require_tenant(plan, given)
    with target.open(tables, plan.table) as opened:
        found = opened.store.get(plan.entity, consistent=consistent, **given)
        if show_request:
            _print_requests(opened)
        if found is None:
            raise not_found(plan, given, target)
        print_one(row_of(found, show_encrypted=show_encrypted), output)


@click.command(
    "query",
    epilog="Example: solotable query Section.of_survey survey_id=s1 --limit 20 -m models.py:surveyor "
    "-d survey.db --tenant acme",
)
@click.argument("pattern")
@click.argument("arguments", nargs=-1, metavar="NAME=VALUE...")
@target_options
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1),
    help=f"Number of rows in a page. Default: {_DEFAULT_LIMIT}.",
)
@partial(cursor_options, cursor_help="Print the page after the one that printed this cursor.")
@click.option("--all", "everything", is_flag=True, help="Print all rows, page by page.")
@click.option("--reverse", is_flag=True, help="Reverse the order of the pattern.")
@click.option("--consistent", is_flag=True, help="Read the latest writes; not on global indexes.")
@skip_unknown_option
@click.option("--show-request", is_flag=True, help="Also print the requests, on standard error.")
@show_encrypted_option
@output_options
def query(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    pattern: str,
    arguments: tuple[str, ...],
    target: Target,
    limit: int | None,
    cursor: str | None,
    secret: str | None,
    everything: bool,
    reverse: bool,
    consistent: bool,
    unknown: Unknown,
    show_request: bool,
    show_encrypted: bool,
    output: str | None,
) -> None:
    """Print a page of the rows of a PATTERN.

    The cursor of the next page goes to standard error, and into the object that --json prints.
    """
    tables = target.tables()
    plan, found = find_pattern(tables, pattern)
    wanted = _apply_order(build_query(plan, found, arguments), reverse=reverse, consistent=consistent)
    target.require_tenant(plan, wanted.arguments)
    if everything and (limit is not None or cursor is not None):
        raise click.UsageError("--all prints every row; omit --limit and --cursor.")
    if secret or not everything:
        secret = cursor_secret(secret)
    check_cursor(cursor, secret)
    columns = _columns(wanted)
    view_of = None if wanted.view is None else wanted.plan
    to_row = partial(row_of, view_of=view_of, show_encrypted=show_encrypted)
    with target.open(tables, plan.table, secret=secret) as opened:
        if everything:
            print_rows(map(to_row, opened.store.all(wanted, unknown=unknown)), output, columns)
            if show_request:
                _print_requests(opened)
            return
        page = opened.store.page(wanted, limit=limit or _DEFAULT_LIMIT, cursor=cursor, unknown=unknown)
        if show_request:
            _print_requests(opened)
        signed = page.cursor if secret is not None else None
        if output == "json":
            print_json({"items": [*map(to_row, page)], "cursor": signed, "more": page.cursor is not None})
        else:
            print_rows(map(to_row, page), output, columns)
        if page.skipped:
            note(f"Skipped {plural(page.skipped, 'item')} that no entity matches.")
        _note_next_page(page.cursor, signed, as_json=output == "json")


@click.command(
    "list",
    epilog="Example: solotable list Section --limit 20 -m models.py:surveyor -d survey.db --tenant acme",
)
@click.argument("entity")
@partial(target_options, admin_help="Print the items of all tenants.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1),
    help=f"Print at most this many. Default: {_DEFAULT_LIMIT}.",
)
@click.option("--all", "everything", is_flag=True, help="Print all of them.")
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=_DEFAULT_BUDGET,
    show_default=True,
    help="Fail after reading this many items of the table.",
)
@skip_unknown_option
@show_encrypted_option
@output_options
def list_items(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    entity: str,
    target: Target,
    limit: int | None,
    everything: bool,
    budget: int,
    unknown: Unknown,
    show_encrypted: bool,
    output: str | None,
) -> None:
    """Scan the table and print the items of ENTITY.

    They come in no particular order. A scan reads, and pays for, the items of all entities and tenants:
    use 'query' where a pattern exists.
    """
    tables = target.tables()
    plan = find_plan(tables, entity)
    if plan.tenant is not None and target.tenant is None and not target.admin:
        raise click.UsageError(
            f"{plan.name} belongs to a tenant; pass --tenant T, or --admin for all tenants."
        )
    if plan.tenant is not None and target.tenant is not None and target.admin:
        raise click.UsageError("--tenant (or $SOLOTABLE_TENANT) and --admin cannot be used together.")
    if everything and limit is not None:
        raise click.UsageError("--all prints every row; omit --limit.")
    most = limit or _DEFAULT_LIMIT
    with open_admin_store(target.db, tables, plan.table) as store:
        found: Iterable[Any] = store.scan(
            plan.entity, where=_tenant_filter(plan, target), budget=budget, unknown=unknown
        )
        rows = (row_of(each, show_encrypted=show_encrypted) for each in found)
        columns = list(plan.entity.model_fields)
        if everything:
            print_rows(rows, output, columns)
            return
        first = list(islice(rows, most))
        print_rows(first, output, columns)
        # Whether more exist is not known: finding out may scan the rest of the table.
        if len(first) == most:
            note(f"Stopped after {most} rows; pass --all or a larger --limit for more.")


@click.command(
    "count",
    epilog="Example: solotable count Section.of_survey survey_id=s1 -m models.py:surveyor "
    "-d survey.db --tenant acme",
)
@click.argument("pattern")
@click.argument("arguments", nargs=-1, metavar="NAME=VALUE...")
@target_options
@skip_unknown_option
@json_option
def count(
    pattern: str,
    arguments: tuple[str, ...],
    target: Target,
    unknown: Unknown,
    as_json: bool,
) -> None:
    """Count the rows of a PATTERN.

    It reads, and pays for, all of them.
    """
    tables = target.tables()
    plan, found = find_pattern(tables, pattern)
    wanted = build_query(plan, found, arguments)
    target.require_tenant(plan, wanted.arguments)
    with target.open(tables, plan.table) as opened:
        number = opened.store.count(wanted, unknown=unknown)
    if as_json:
        print_json({"count": number})
    else:
        click.echo(number)


def parse_key(plan: Plan, given: tuple[str, ...]) -> dict[str, Any]:
    """Parse the fields of a primary key; the tenant comes from the scope unless it is given."""
    values = parse_fields(plan, given)
    parts = plan.primary.parts
    extra = [name for name in values if name not in parts]
    missing = [name for name in parts if name not in values and name != plan.tenant]
    if extra or missing:
        shown = " ".join(f"{name}=..." for name in parts if name != plan.tenant)
        problem = f"{extra[0]} is not part of it" if extra else f"{' and '.join(missing)} is missing"
        raise click.UsageError(f"The key of {plan.name} is {shown} ({plan.describe()}); {problem}.")
    return values


def not_found(plan: Plan, key: dict[str, Any], target: Target) -> NotFoundError:
    """Return the error for an entity that does not exist, in the words of the store."""
    from solotable._flows.reads.get import not_found as store_error

    scope = {} if plan.tenant is None else {plan.tenant: target.tenant}
    return NotFoundError(str(store_error(plan, scope | key)))


def _tenant_filter(plan: Plan, target: Target) -> Any:
    if plan.tenant is None or target.tenant is None:
        return None
    name, tenant = plan.tenant, target.tenant
    return lambda entity: getattr(entity, name) == tenant


def _apply_order(query: Query[Any], *, reverse: bool, consistent: bool) -> Query[Any]:
    from dataclasses import replace

    from solotable.errors import DeclarationError

    if reverse:
        query = replace(query, forward=not query.forward)
    try:
        return query.consistent() if consistent else query
    except DeclarationError as error:
        raise click.UsageError(str(error)) from None


def _columns(query: Query[Any]) -> list[str]:
    if query.view is not None:
        return list(query.view.model_fields)
    return list(dict.fromkeys(name for part in query.parts for name in part.plan.entity.model_fields))


def _note_next_page(cursor: str | None, signed: str | None, *, as_json: bool) -> None:
    if cursor is None:
        return
    if signed is None:
        note(f"More rows exist; pass --all, or set {VARIABLE} to get a cursor.")
    elif not as_json:
        note(f"Next page: --cursor {signed}")


def _print_requests(opened: OpenStore) -> None:
    import json

    for each in render_requests(opened.recorder.exchanges):
        note(f"{each['operation']} {json.dumps(each['request'], indent=2, ensure_ascii=False)}")
