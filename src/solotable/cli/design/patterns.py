"""`solotable patterns`: the access-pattern table of the models."""

from __future__ import annotations

import shutil
import sys
from dataclasses import asdict

import click

from solotable.cli.options.models import load_tables, models_option
from solotable.cli.output import print_rows

#: Width of a terminal from which on the table is drawn.
_WIDE = 160
_COLUMNS = (
    "pattern",
    "arguments",
    "index",
    "key condition",
    "direction",
    "projection",
    "cost",
    "description",
)


@click.command("patterns", epilog="Example: solotable patterns -m models.py:surveyor --format markdown")
@models_option
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "markdown", "json", "csv"]),
    default="text",
    show_default=True,
    help="Format of the table.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, as --format json does.")
def command(models: str | None, output: str, as_json: bool) -> None:
    """List the access patterns with their keys and costs."""
    from solotable._entities.patterns.access_patterns import AccessPattern, access_patterns

    def row(each: AccessPattern) -> dict[str, str]:
        condition = each.key_condition
        if each.filters:
            condition += f" (filters on {', '.join(each.filters)})"
        cells = (
            each.name,
            ", ".join(each.arguments),
            each.index or "the table",
            condition,
            each.direction,
            each.projection,
            each.cost,
            each.summary.strip(),
        )
        return dict(zip(_COLUMNS, cells, strict=True))

    tables = load_tables(models)
    found = access_patterns(tables)
    if as_json or output == "json":
        print_rows([asdict(each) for each in found], "json")
        return
    if not found:
        raise click.ClickException(
            "The models declare no pattern; decorate a class method of an entity that returns a query of one "
            "of its keys with @pattern."
        )
    if output == "text" and sys.stdout.isatty() and shutil.get_terminal_size().columns < _WIDE:
        click.echo("\n\n".join("\n".join(_card(row(each))) for each in found))
        return
    print_rows([row(each) for each in found], output, _COLUMNS)


def _card(row: dict[str, str]) -> list[str]:
    """Return a pattern as a few lines, for terminals too narrow for eight columns."""
    lines = [f"{row['pattern']}({row['arguments']})  {row['description']}".rstrip()]
    lines.append(f"  {row['index']}: {row['key condition']}")
    lines.append("  " + ", ".join(filter(None, (row["direction"], row["projection"], row["cost"]))))
    return lines
