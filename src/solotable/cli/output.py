"""How commands print results: a table, JSON, JSON lines or CSV.

Notes go to standard error, so that piped output stays clean. Rich is imported on a terminal only.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Plan

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
Row = Mapping[str, Any]
#: Printed instead of the value of an encrypted field.
MASK = "<encrypted>"


def output_options(command: CommandT) -> CommandT:
    """Give a command `--json`, `--jsonl` and `--csv` as its parameter `output`."""
    for output, text in (
        ("csv", "Print CSV with a header line."),
        ("jsonl", "Print one JSON object per line."),
        ("json", "Print JSON."),
    ):
        command = click.option(f"--{output}", "output", flag_value=output, default=None, help=text)(command)
    return command


def json_option(command: CommandT) -> CommandT:
    """Give a command `--json` as its parameter `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def show_encrypted_option(command: CommandT) -> CommandT:
    """Give a command `--show-encrypted` as its parameter, for `row_of`."""
    return click.option(
        "--show-encrypted", is_flag=True, help=f"Print the values of encrypted fields instead of {MASK}."
    )(command)


def note(text: str) -> None:
    """Print a note on standard error."""
    click.echo(text, err=True)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=plain))


def print_rows(rows: Iterable[Row], output: str | None, columns: Sequence[str] = ()) -> None:
    """Print rows; JSON lines and CSV are streamed."""
    match output:
        case "json":
            print_json(list(rows))
        case "jsonl":
            for row in rows:
                click.echo(json.dumps(row, ensure_ascii=False, default=plain))
        case "csv":
            _print_csv(rows, columns)
        case "markdown":
            click.echo(markdown(list(rows), columns))
        case _:
            print_table(list(rows), columns)


def print_one(row: Row, output: str | None) -> None:
    """Print one object; as a table, one line per field."""
    if output in ("jsonl", "csv"):
        print_rows([row], output, list(row))
    elif output == "json":
        print_json(row)
    else:
        print_table([{"field": name, "value": value} for name, value in row.items()], ("field", "value"))


def print_table(rows: Sequence[Row], columns: Sequence[str] = ()) -> None:
    """Print a table: drawn on a terminal, aligned text in a pipe."""
    names = list(columns) or list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_format_cell(row.get(name)) for name in names] for row in rows]
    if not rows:
        note("0 rows")
    if not sys.stdout.isatty():
        click.echo(_align(names, cells))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    for line in cells:
        # Text, so that Rich does not read brackets in a value as markup.
        table.add_row(*(Text(cell) for cell in line))
    Console().print(table)


def plural(count: int, noun: str, several: str | None = None) -> str:
    """Return a number and its noun: 1 item, 2,000 items."""
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


def confirm(question: str) -> None:
    """Ask before a change; without an answer, or with no, end the command."""
    try:
        agreed = click.confirm(question, err=True)
    except click.exceptions.Abort:
        raise click.UsageError("No confirmation received; pass --yes to skip the prompt.") from None
    if not agreed:
        raise click.exceptions.Exit(1)


def markdown(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Return rows as a Markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        cells = (_format_cell(row.get(name)) for name in columns)
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(lines)


def plain(value: Any) -> Any:
    """Return a value that JSON can encode: the `default` of json.dumps."""
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return int(value) if value == value.to_integral_value() else str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case set() | frozenset():
            return _sort(value)
        case Enum():
            return value.value
        case _:
            return str(value)


def row_of(entity: Any, view_of: Plan | None = None, *, show_encrypted: bool = False) -> dict[str, Any]:
    """Return the fields of an entity, or of a view of one, as JSON values; sets are sorted.

    Encrypted values, and computed fields that may contain them, are masked, unless `show_encrypted` is true.
    """
    attributes = (view_of or entity.plan()).attributes
    secrets = {
        name: getattr(entity, name)
        for name in type(entity).model_fields
        if name in attributes and attributes[name].encrypted is not None
    }
    if secrets and not show_encrypted:
        from solotable._entities.codecs.computed_fields import computed_from

        secrets |= {name: getattr(entity, name) for name in computed_from(type(entity), secrets)}
    hidden = set() if show_encrypted else set(secrets)
    fields = entity.model_dump(by_alias=False, exclude=hidden)
    try:
        dumped = entity.model_dump(mode="json", by_alias=False, exclude=hidden)
    except ValueError:
        # Pydantic cannot encode bytes that are not UTF-8.
        dumped = json.loads(json.dumps(fields, default=plain))
    found: dict[str, Any] = _sort_sets(fields, dumped)
    for name, value in secrets.items():
        if not show_encrypted:
            found[name] = None if value is None else MASK
        elif hasattr(value, "get_secret_value"):
            found[name] = value.get_secret_value()
    # The masked fields keep their places.
    return {name: found[name] for name in (*type(entity).model_fields, *found) if name in found}


def _sort_sets(value: Any, dumped: Any) -> Any:
    """Return a dumped value in which what was a set is sorted."""
    match value, dumped:
        case (set() | frozenset(), list()):
            return _sort(dumped)
        case dict(), dict() if len(value) == len(dumped):
            pairs = zip(value.values(), dumped.items(), strict=True)
            return {name: _sort_sets(each, below) for each, (name, below) in pairs}
        case (list() | tuple(), list()) if len(value) == len(dumped):
            return [_sort_sets(each, below) for each, below in zip(value, dumped, strict=True)]
        case _:
            return dumped


def _sort(values: Iterable[Any]) -> list[Any]:
    found = list(values)
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=str)


def on_one_line(value: Any) -> str:
    """Return a stored value on one line, with control characters escaped."""
    return " ".join(_format_cell(value).split())


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return _escape(value)
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return ", ".join(map(_escape, value))
    return _escape(json.dumps(value, ensure_ascii=False, default=plain))


def _escape(text: str) -> str:
    """Escape control characters, which a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each.isspace() else each.encode("unicode_escape").decode()
        for each in text
    )


def _align(names: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    clean = [[" ".join(cell.split()) for cell in line] for line in cells]
    widths = [max(len(name), *(len(line[at]) for line in clean), 0) for at, name in enumerate(names)]
    lines = [names, ["-" * width for width in widths], *clean]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _print_csv(rows: Iterable[Row], columns: Sequence[str]) -> None:
    names = list(columns)
    first = True
    for row in rows:
        names = names or list(row)
        if first:
            click.echo(_csv_line(names), nl=False)
            first = False
        click.echo(_csv_line([_csv_cell(row.get(name)) for name in names]), nl=False)
    if first and names:
        click.echo(_csv_line(names), nl=False)


def _csv_cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=plain)


def _csv_line(cells: Sequence[str]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerow(cells)
    return written.getvalue()
