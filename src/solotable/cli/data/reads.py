"""`solotable get`, `query` and `count`: reading entities by key and by pattern, on any URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from solotable.cli.options.arguments import fields_of, pattern_named, plan_named, query_of
from solotable.cli.options.database import CURSOR_SECRETS, NotThere, Opened, shown_requests
from solotable.cli.options.target import Place, place_options
from solotable.cli.output import output_options, print_json, print_one, print_rows, row_of, say

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Plan
    from solotable._entities.patterns.query import Query

_DEFAULT_LIMIT = 50


@click.command(
    "get",
    epilog="Example: solotable get Section survey_id=s1 section_id=roof -m models.py:surveyor "
    "-d sqlite:///survey.db --tenant acme",
)
@click.argument("entity")
@click.argument("key", nargs=-1, metavar="KEY=VALUE...")
@place_options
@click.option("--consistent", is_flag=True, help="Read what was written last; costs twice.")
@click.option("--show-request", is_flag=True, help="Print the request first, on standard error.")
@output_options
def get(
    entity: str,
    key: tuple[str, ...],
    place: Place,
    consistent: bool,
    show_request: bool,
    shape: str | None,
) -> None:
    """Print the ENTITY with this key; exit with 3 when there is none."""
    tables = place.tables()
    plan = plan_named(tables, entity)
    given = key_of(plan, key)
    with place.opened(tables, plan.table) as there:
        found = there.store.get(plan.entity, consistent=consistent, **given)
        if show_request:
            _show(there)
        if found is None:
            shown = ", ".join(f"{name}={value!r}" for name, value in given.items())
            raise NotThere(f"There is no {plan.name} with {shown}.")
        print_one(row_of(found), shape)


@click.command(
    "query",
    epilog="Example: solotable query Section.of_survey survey_id=s1 --limit 20 -m models.py:surveyor "
    "-d sqlite:///survey.db --tenant acme",
)
@click.argument("pattern")
@click.argument("arguments", nargs=-1, metavar="NAME=VALUE...")
@place_options
@click.option("-n", "--limit", type=click.IntRange(1), help=f"Rows of a page; {_DEFAULT_LIMIT} unless given.")
@click.option("--cursor", help="Go on after a page, with the cursor that it printed.")
@click.option(
    "--cursor-secret",
    metavar="SECRET",
    help=f"Seal and open cursors with this text of 16 bytes or more, as {CURSOR_SECRETS} does. "
    "Without either, no cursor is printed.",
)
@click.option("--all", "everything", is_flag=True, help="Print all rows, page by page.")
@click.option("--reverse", is_flag=True, help="Go the other way than the pattern does.")
@click.option("--consistent", is_flag=True, help="Read what was written last; not on global indexes.")
@click.option("--show-request", is_flag=True, help="Print the requests first, on standard error.")
@output_options
def query(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    pattern: str,
    arguments: tuple[str, ...],
    place: Place,
    limit: int | None,
    cursor: str | None,
    cursor_secret: str | None,
    everything: bool,
    reverse: bool,
    consistent: bool,
    show_request: bool,
    shape: str | None,
) -> None:
    """Print a page of a PATTERN's rows, as in Section.of_survey; --all prints every row.

    The cursor of the next page goes to standard error, and into the object that --json prints.
    """
    tables = place.tables()
    plan, found = pattern_named(tables, pattern)
    asked = _turned(query_of(plan, found, arguments), reverse=reverse, consistent=consistent)
    if everything and (limit is not None or cursor is not None):
        raise click.UsageError("--all prints every row; leave out --limit and --cursor.")
    secret = cursor_secret or _environment_secret()
    if cursor is not None and secret is None:
        raise click.UsageError(
            f"--cursor needs the secret that sealed it: --cursor-secret or {CURSOR_SECRETS}."
        )
    columns = _columns(plan, asked)
    with place.opened(tables, plan.table, secret=cursor_secret) as there:
        if everything:
            rows = (row_of(row) for row in there.store.all(asked))
            print_rows(rows, shape, columns)
            if show_request:
                _show(there)
            return
        page = there.store.page(asked, limit=limit or _DEFAULT_LIMIT, cursor=cursor)
        if show_request:
            _show(there)
        sealed = page.cursor if secret is not None else None
        if shape == "json":
            print_json(
                {"items": [row_of(row) for row in page], "cursor": sealed, "more": page.cursor is not None}
            )
        else:
            print_rows([row_of(row) for row in page], shape, columns)
        _tell_of_more(page.cursor, sealed, as_json=shape == "json")


@click.command(
    "count",
    epilog="Example: solotable count Section.of_survey survey_id=s1 -m models.py:surveyor "
    "-d sqlite:///survey.db --tenant acme",
)
@click.argument("pattern")
@click.argument("arguments", nargs=-1, metavar="NAME=VALUE...")
@place_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def count(
    pattern: str,
    arguments: tuple[str, ...],
    place: Place,
    as_json: bool,
) -> None:
    """Print how many rows a PATTERN has; they are all read and paid for."""
    tables = place.tables()
    plan, found = pattern_named(tables, pattern)
    asked = query_of(plan, found, arguments)
    with place.opened(tables, plan.table) as there:
        number = there.store.count(asked)
    if as_json:
        print_json({"count": number})
    else:
        click.echo(number)


def key_of(plan: Plan, given: tuple[str, ...]) -> dict[str, Any]:
    """Read the parts of a primary key; the tenant comes from the scope unless it is given."""
    values = fields_of(plan, given)
    parts = plan.primary.parts
    wrong = [name for name in values if name not in parts]
    missing = [name for name in parts if name not in values and name != plan.tenant]
    if wrong or missing:
        shown = " ".join(f"{name}=..." for name in parts if name != plan.tenant)
        problem = f"{wrong[0]} is no part of it" if wrong else f"{' and '.join(missing)} is missing"
        raise click.UsageError(f"{plan.name}'s key is {shown} ({plan.describe()}); {problem}.")
    return values


def _turned(query: Query[Any], *, reverse: bool, consistent: bool) -> Query[Any]:
    from dataclasses import replace

    from solotable.errors import DeclarationError

    if reverse:
        query = replace(query, forward=not query.forward)
    try:
        return query.consistent() if consistent else query
    except DeclarationError as refused:
        raise click.UsageError(str(refused)) from None


def _environment_secret() -> str | None:
    import os

    return os.environ.get(CURSOR_SECRETS) or None


def _columns(plan: Plan, query: Query[Any]) -> list[str]:
    return list(plan.entity.model_fields if query.view is None else query.view.model_fields)


def _tell_of_more(cursor: str | None, sealed: str | None, *, as_json: bool) -> None:
    if cursor is None:
        return
    if sealed is None:
        say(f"There are more rows: use --all, or set {CURSOR_SECRETS} to get a cursor for --cursor.")
    elif not as_json:
        say(f"More: --cursor {sealed}")


def _show(there: Opened) -> None:
    import json

    for each in shown_requests(there.recorder.exchanges):
        say(f"{each['operation']} {json.dumps(each['request'], indent=2, ensure_ascii=False)}")
