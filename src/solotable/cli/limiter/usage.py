"""`solotable limiter usage`: what was consumed by hour, day and month, and the job that counts it."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from solotable.cli.groups import CommandGroup
from solotable.cli.options.database import db_option
from solotable.cli.output import json_option, output_options, print_json, print_rows, print_table
from solotable.errors import FeedTrimmed

from .session import list_options, moment, opened, paged, table_options

if TYPE_CHECKING:
    from solotable.systems.limiter import Limiter
    from solotable.systems.limiter.usage import AggregateResult, Usage

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
_MOST_ROWS = 100_000
#: For a terminal that has no blocks.
_PLAIN_BLOCKS = str.maketrans(dict.fromkeys("█▉▊▋▌▍▎▏▐▕", "#"))


def _range_options(command: CommandT) -> CommandT:
    for name, text in (
        ("--until", "Up to this time."),
        ("--since", "From this time on: 2030-01-31, 2030-01-31T12:00Z, or so long ago, 36h or 7d; in UTC."),
    ):
        command = click.option(name, metavar="TIME", help=text)(command)
    command = click.option(
        "--window",
        type=click.Choice(["hour", "day", "month"]),
        default="hour",
        show_default=True,
        help="By the hour, the day or the month, in UTC.",
    )(command)
    command = click.option("--resource", metavar="R", help="Of this resource.")(command)
    return click.option("--entity", metavar="E", help="By this entity.")(command)


@click.group("usage", cls=CommandGroup)
def usage() -> None:
    """What was used, with a chart, and the job that counts."""


@usage.command("list", epilog="Example: solotable limiter usage list --entity u-1 --window day --since 7d")
@table_options
@_range_options
@list_options
@output_options
def list_(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    db: str | None,
    namespace: str | None,
    entity: str | None,
    resource: str | None,
    window: str,
    since: str | None,
    until: str | None,
    most: int,
    everything: bool,
    output: str | None,
) -> None:
    """Print usage row by row, oldest first."""
    asked = _asked(entity, resource, window, since, until)
    with opened(db) as table:
        limiter = table.limiter(namespace)

        def ask(*, limit: int, cursor: str | None) -> Any:
            return limiter.usage(**asked, limit=limit, cursor=cursor)

        if output in ("json", "jsonl"):
            rows = paged(ask, most, everything=everything, what="rows", row=lambda row: row.as_dict())
            print_rows(rows, output)
            return
        flat = list(paged(ask, most, everything=everything, what="rows", row=_flat))
    if not flat and output is None:
        _say_none()
        return
    print_rows(flat, output, list(dict.fromkeys(name for row in flat for name in row)))


@usage.command("summary", epilog="Example: solotable limiter usage summary --resource gpt-4 --since 24h")
@table_options
@_range_options
@click.option("--chart/--no-chart", "charted", default=True, help="Draw a bar for every window.")
@json_option
def summary(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    db: str | None,
    namespace: str | None,
    entity: str | None,
    resource: str | None,
    window: str,
    since: str | None,
    until: str | None,
    charted: bool,
    as_json: bool,
) -> None:
    """Print totals, means and peaks, with a chart."""
    asked = _asked(entity, resource, window, since, until)
    with opened(db) as table:
        limiter = table.limiter(namespace)
        found = limiter.usage_summary(**asked)
        rows = [] if as_json or not charted else list(_rows(limiter, asked))
    if as_json:
        print_json(found.as_dict())
        return
    if found.since is None or found.until is None or not found.limits:
        _say_none()
        return
    whose = " of ".join(filter(None, (entity, resource)))
    click.echo(f"{whose}: {found.since:%Y-%m-%d %H:%M} to {found.until:%Y-%m-%d %H:%M} UTC, by the {window}")
    click.echo("")
    print_table(
        [
            {
                "limit": name,
                "total": f"{each.total:,}",
                "mean": f"{each.mean:,.1f}",
                "peak": f"{each.peak:,}",
                "peak at": f"{each.peak_at:%Y-%m-%d %H:%M}",
            }
            for name, each in found.limits.items()
        ]
    )
    if rows:
        click.echo("")
        click.echo(drawn(rows), nl=False)


@usage.command("aggregate", epilog="Example: solotable limiter usage aggregate --follow -d sqlite:///l.db")
@db_option
@click.option("--follow", is_flag=True, help="Wait for more instead of ending.")
@click.option("--recover", is_flag=True, help="After a loss: go on with what the table's stream still has.")
@json_option
def aggregate(db: str | None, follow: bool, recover: bool, as_json: bool) -> None:
    """Count what was consumed and is not counted yet.

    All namespaces are counted at once. It may be killed at any moment, started again, or run twice at the
    same time: nothing is counted twice. A table's stream keeps changes for a day, so run it at least that
    often.
    """
    from solotable.systems.limiter.usage import aggregate as job

    with opened(db) as table, _showing(quiet=as_json) as progress:
        try:
            done = job(table.db, follow=follow, recover=recover, progress=progress)
        except FeedTrimmed as lost:
            raise click.ClickException(
                "Changes were dropped from the table's stream before they were counted; "
                "go on with what is left: solotable limiter usage aggregate --recover"
            ) from lost
    if as_json:
        print_json(
            {
                "records": done.records,
                "skipped": done.skipped,
                "rows": done.rows,
                "transactions": done.transactions,
            }
        )
        return
    again = f"; {done.skipped:,} were counted before" if done.skipped else ""
    changes = "1 change" if done.records == 1 else f"{done.records:,} changes"
    click.echo(f"Counted {changes} of buckets{again}.")


def drawn(rows: list[Usage], width: int = 40) -> str:
    """Return the chart of some rows as text, in colour on a terminal."""
    from rich.console import Console

    from solotable.systems.limiter.usage.chart import chart

    on_terminal = sys.stdout.isatty()
    text = io.StringIO()
    Console(file=text, force_terminal=on_terminal, width=None if on_terminal else 100).print(
        chart(rows, width=width)
    )
    encoding = sys.stdout.encoding or "utf-8"
    lines = "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())
    try:
        lines.encode(encoding)
    except UnicodeEncodeError:
        return lines.translate(_PLAIN_BLOCKS).encode(encoding, "replace").decode(encoding)
    return lines


def _asked(
    entity: str | None, resource: str | None, window: str, since: str | None, until: str | None
) -> dict[str, Any]:
    if entity is None and resource is None:
        raise click.UsageError("Usage of whom or of what? Give --entity E, --resource R, or both.")
    return {
        "entity": entity,
        "resource": resource,
        "window": window,
        "since": moment(since, "--since"),
        "until": moment(until, "--until"),
    }


def _rows(limiter: Limiter, asked: dict[str, Any]) -> Iterator[Usage]:
    cursor, count = None, 0
    while count < _MOST_ROWS:
        page = limiter.usage(**asked, limit=1_000, cursor=cursor)
        yield from page
        cursor, count = page.cursor, count + len(page)
        if cursor is None:
            return


def _flat(row: Usage) -> dict[str, Any]:
    return {
        "start": f"{row.start:%Y-%m-%d %H:%M}",
        "entity": row.entity,
        "resource": row.resource,
        "events": row.events,
        **row.tokens,
    }


def _say_none() -> None:
    click.echo(
        "No usage in this time. What was just consumed is counted by: solotable limiter usage aggregate"
    )


@contextmanager
def _showing(*, quiet: bool) -> Iterator[Callable[[AggregateResult], None] | None]:
    """Show on a terminal how many changes were counted."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.completed:,.0f} changes counted"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("usage", total=None)
        yield lambda done: bar.update(task, completed=done.records + done.skipped)
