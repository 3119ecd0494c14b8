"""`solotable schema`: show, compare, apply, export and draw the declared tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.groups import CommandGroup
from solotable.cli.jobs.backfill import versions
from solotable.cli.options.database import db_option, file_exists, is_remote, parse_url
from solotable.cli.options.models import load_tables, models_option
from solotable.cli.output import json_option, note, print_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from solotable._entities.declare.table import Table

    from .live_tables import LiveTable


@click.group("schema", cls=CommandGroup)
def command() -> None:
    """Show, compare, apply, export and draw the declared tables."""


@command.command("show", epilog="Example: solotable schema show -m models.py:surveyor")
@models_option
@db_option
@json_option
def show(models: str | None, db: str | None, as_json: bool) -> None:
    """Print the declared tables."""
    from solotable._entities.schema.export import requests

    wanted = _table_names(load_tables(models), db)
    if as_json:
        print_json(requests(wanted))
        return
    for table, name in wanted:
        click.echo("\n".join(_format_table(table, name)))


@command.command("diff", epilog="Example: solotable schema diff -m models.py:surveyor -d aws://Survey")
@models_option
@db_option
@json_option
def diff(models: str | None, db: str | None, as_json: bool) -> int:
    """Compare the declared tables with the live ones.

    Exits with 1 if they differ.
    """
    found = [(each, each.differences()) for each in _live_tables(load_tables(models), db)]
    if as_json:
        print_json(
            {
                each.name: [
                    {
                        "subject": difference.subject,
                        "declared": difference.declared,
                        "live": difference.live,
                        "remedy": difference.remedy,
                    }
                    for difference in differences
                ]
                for each, differences in found
            }
        )
    else:
        for each, differences in found:
            for difference in differences:
                click.echo(f"{each.name}: {difference.sentence}")
            if not differences:
                click.echo(f"{each.name}: as declared")
    return FAILED if any(differences for _, differences in found) else 0


@command.command("apply", epilog="Example: solotable schema apply -m models.py:surveyor -d survey.db")
@models_option
@db_option
@click.option("--delete-extra", is_flag=True, help="Also delete and replace indexes, and turn TTL off.")
@click.option(
    "-y",
    "--yes",
    is_flag=True,
    help="Do not ask for confirmation. Without it, changes at aws:// and deletions ask.",
)
@click.option(
    "--timeout",
    default=3600.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Seconds to wait for a table or index.",
)
def apply(models: str | None, db: str | None, delete_extra: bool, yes: bool, timeout: float) -> int:
    """Create missing tables and indexes, and turn time to live on.

    Nothing is deleted without --delete-extra. Exits with 1 if something still differs.
    """
    from solotable._entities.schema.diff import DESTRUCTIVE

    url = parse_url(db)
    left = 0
    for each in _live_tables(load_tables(models), db, create=True):
        differences = each.differences()
        todo = [d for d in differences if d.remedy and (delete_extra or d.remedy not in DESTRUCTIVE)]
        for difference in differences:
            if difference not in todo:
                left += 1
                advice = "; --delete-extra changes it" if difference.remedy else ""
                note(f"{each.name}: left unchanged: {difference.sentence}{advice}")
        if todo and not yes and (is_remote(url) or any(d.remedy in DESTRUCTIVE for d in todo)):
            _confirm(each.name, [difference.sentence for difference in todo])
        for difference in todo:
            for line in each.repair(difference, timeout):
                note(f"{each.name}: {line}")
        if not differences:
            note(f"{each.name}: as declared")
    return FAILED if left else 0


command.add_command(versions)


@command.command("export", epilog="Example: solotable schema export -m models.py:surveyor --format terraform")
@models_option
@db_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["cfn", "terraform", "workbench", "json"]),
    default="json",
    show_default=True,
    help="CloudFormation, Terraform, a model of NoSQL Workbench, or DynamoDB's own requests; each as JSON.",
)
def export(models: str | None, db: str | None, form: str) -> None:
    """Print the tables as CloudFormation, Terraform, a model of NoSQL Workbench, or requests."""
    from solotable._entities.schema.export import cloudformation, needs_key_schema, requests, terraform
    from solotable._entities.schema.workbench import left_out, workbench

    wanted = _table_names(load_tables(models), db)
    writers: dict[str, Callable[..., dict[str, Any]]] = {
        "cfn": cloudformation,
        "terraform": terraform,
        "workbench": workbench,
        "json": requests,
    }
    print_json(writers[form](wanted))
    several = needs_key_schema(table for table, _ in wanted)
    missing = left_out(table for table, _ in wanted)
    if form == "workbench" and missing:
        note(
            f"{', '.join(missing)}: left out; the format has no local index and no key of several attributes."
        )
    if form == "terraform" and several:
        note(f"{', '.join(several)}: keys of several attributes need the AWS provider 6.29 or newer.")


@command.command("diagram", epilog="Example: solotable schema diagram -m models.py:surveyor --format svg")
@models_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["mermaid", "svg"]),
    default="mermaid",
    show_default=True,
    help="Mermaid's text, or an SVG picture that needs no other program.",
)
def diagram(models: str | None, form: str) -> None:
    """Draw the partitions, entities and indexes of the declared tables.

    The picture has the key templates, the entities of each partition key, and the patterns that read them.
    """
    from solotable._entities.schema.diagram import key_spaces
    from solotable._entities.schema.mermaid_text import mermaid_text
    from solotable._entities.schema.svg_text import svg_text

    tables = load_tables(models)
    spaces = [key_spaces(table) for table in tables]
    if form == "svg":
        click.echo(svg_text(spaces, title=f"Layout of {', '.join(table.name for table in tables)}"))
    else:
        click.echo(mermaid_text(spaces))


def _table_names(tables: list[Table], db: str | None) -> list[tuple[Table, str]]:
    from solotable._connect import table_names

    names = table_names(tables, parse_url(db) if db else None)
    return [(table, names[table.name]) for table in tables]


def _live_tables(tables: list[Table], db: str | None, *, create: bool = False) -> list[LiveTable]:
    from solotable._connect import open_engine

    from .live_tables import LiveTable

    url = parse_url(db)
    wanted = _table_names(tables, db)
    # A comparison must not create a missing SQLite file.
    engine = open_engine(url) if create or file_exists(url) else None
    if engine is not None:
        click.get_current_context().call_on_close(engine.close)
    return [LiveTable(engine, table, name) for table, name in wanted]


def _confirm(name: str, sentences: list[str]) -> None:
    note(f"{name} would be changed:")
    for sentence in sentences:
        note(f"  {sentence}")
    try:
        agreed = click.confirm("Apply these changes?", err=True)
    except click.exceptions.Abort:
        raise click.UsageError("No confirmation received; pass --yes to skip the prompt.") from None
    if not agreed:
        raise click.exceptions.Exit(FAILED)


def _format_table(table: Table, name: str) -> list[str]:
    from solotable._entities.schema.diff import shown_projection, shown_schema

    wanted: dict[str, Any] = table.definition(name)
    kinds = ", ".join(
        f"{each['AttributeName']} {each['AttributeType']}" for each in wanted["AttributeDefinitions"]
    )
    lines = [name, f"  key         {shown_schema(wanted['KeySchema'])}", f"  attributes  {kinds}"]
    for place, kind in (("GlobalSecondaryIndexes", "index"), ("LocalSecondaryIndexes", "local index")):
        lines += [
            f"  {kind:<11} {each['IndexName']}: {shown_schema(each['KeySchema'])}; "
            f"{shown_projection(each['Projection'])}"
            for each in wanted.get(place, ())
        ]
    lines.append(f"  ttl         {table.ttl or 'off'}")
    return lines
