"""`solotable limiter usage`: what was consumed by hour, day and month, and the job that counts it."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import click

from solotable.cli.groups import CommandGroup
from solotable.cli.output import json_option, plural, print_json, print_table
from solotable.cli.progress import progress
from solotable.errors import FeedTrimmed

from .session import LimiterTable, limiter_command, list_options, parse_time, print_pages

if TYPE_CHECKING:
    from solotable.systems.limiter import Limiter
    from solotable.systems.limiter.usage import AggregateResult, Usage

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
_MOST_ROWS = 100_000
#: For a terminal without block characters.
_PLAIN_BLOCKS = str.maketrans(dict.fromkeys("█▉▊▋▌▍▎▏▐▕", "#"))
_NO_USAGE = "No usage in this time. Count what was just consumed with: solotable limiter usage aggregate"
_FILTERS = (
    click.option("--entity", metavar="E", help="Only this entity."),
    click.option("--resource", metavar="R", help="Only this resource."),
    click.option(
        "--window",
        type=click.Choice(["hour", "day", "month"]),
        default="hour",
        show_default=True,
        help="By hour, day or month, in UTC.",
    ),
    click.option(
        "--since",
        metavar="TIME",
        help="From this time, in UTC: 2030-01-31, 2030-01-31T12:00Z, 36h or 7d ago.",
    ),
    click.option("--until", metavar="TIME", help="Up to this time."),
)


def _filter_options(command: CommandT) -> CommandT:
    for option in reversed(_FILTERS):
        command = option(command)
    return command


@click.group("usage", cls=CommandGroup)
def usage() -> None:
    """What was used, with a chart, and the job that counts it."""


@limiter_command(usage, "list", example="usage list --entity u-1 --window day --since 7d")
@_filter_options
@list_options
def list_(table: LimiterTable, most: int, everything: bool, output: str | None, **given: Any) -> None:
    """Print usage row by row, oldest first."""
    filters = _parse_filters(**given)

    def ask(*, limit: int, cursor: str | None) -> Any:
        return table.limiter.usage(**filters, limit=limit, cursor=cursor)

    print_pages(
        ask,
        _row,
        what="rows",
        json_row=lambda row: row.as_dict(),
        empty=_NO_USAGE,
        most=most,
        everything=everything,
        output=output,
    )


@limiter_command(usage, "summary", example="usage summary --resource gpt-4 --since 24h")
@_filter_options
@click.option("--chart/--no-chart", "with_chart", default=True, help="Draw a bar per window.")
@json_option
def summary(table: LimiterTable, with_chart: bool, as_json: bool, **given: Any) -> None:
    """Print totals, means and peaks, with a chart."""
    filters = _parse_filters(**given)
    found = table.limiter.usage_summary(**filters)
    if as_json:
        print_json(found.as_dict())
        return
    if found.since is None or found.until is None or not found.limits:
        click.echo(_NO_USAGE)
        return
    subject = " of ".join(filter(None, (given["entity"], given["resource"])))
    click.echo(
        f"{subject}: {found.since:%Y-%m-%d %H:%M} to {found.until:%Y-%m-%d %H:%M} UTC, by {found.window}\n"
    )
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
    if with_chart:
        click.echo("")
        click.echo(draw(list(_all_rows(table.limiter, filters))), nl=False)


@limiter_command(usage, "aggregate", namespace=False, example="usage aggregate --follow -d sqlite:///l.db")
@click.option("--follow", is_flag=True, help="Wait for more changes instead of exiting.")
@click.option("--recover", is_flag=True, help="After lost changes: continue with what the stream still has.")
@json_option
def aggregate(table: LimiterTable, follow: bool, recover: bool, as_json: bool) -> None:
    """Count consumption that is not counted yet, of all namespaces.

    You can kill it at any time, start it again, or run it twice at the same time: nothing is counted twice.
    A stream keeps changes for a day, so run it at least that often.
    """
    from solotable.systems.limiter.usage import aggregate as job

    with progress("changes counted", quiet=as_json) as update:

        def report(done: AggregateResult) -> None:
            update(done.records + done.skipped)

        try:
            done = job(table.db, follow=follow, recover=recover, progress=report)
        except FeedTrimmed as lost:
            raise click.ClickException(
                "The table's stream dropped changes before they were counted; "
                "continue with the rest: solotable limiter usage aggregate --recover"
            ) from lost
    if as_json:
        print_json(asdict(done))
        return
    before = f"; {done.skipped:,} were counted before" if done.skipped else ""
    click.echo(f"Counted {plural(done.records, 'change')} of buckets{before}.")


def draw(rows: list[Usage], width: int = 40) -> str:
    """Return the chart of rows as text, in colour on a terminal."""
    from rich.console import Console

    from solotable.systems.limiter.usage.chart import chart

    on_terminal = sys.stdout.isatty()
    text = io.StringIO()
    console = Console(file=text, force_terminal=on_terminal, width=None if on_terminal else 100)
    console.print(chart(rows, width=width))
    encoding = sys.stdout.encoding or "utf-8"
    lines = "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())
    try:
        lines.encode(encoding)
    except UnicodeEncodeError:
        return lines.translate(_PLAIN_BLOCKS).encode(encoding, "replace").decode(encoding)
    return lines


def _parse_filters(since: str | None, until: str | None, **given: Any) -> dict[str, Any]:
    if given["entity"] is None and given["resource"] is None:
        raise click.UsageError("Give --entity E, --resource R, or both.")
    return {**given, "since": parse_time(since, "--since"), "until": parse_time(until, "--until")}


def _all_rows(limiter: Limiter, filters: dict[str, Any]) -> Iterator[Usage]:
    cursor, count = None, 0
    while count < _MOST_ROWS:
        page = limiter.usage(**filters, limit=1_000, cursor=cursor)
        yield from page
        cursor, count = page.cursor, count + len(page)
        if cursor is None:
            return


def _row(row: Usage) -> dict[str, Any]:
    return {
        "start": f"{row.start:%Y-%m-%d %H:%M}",
        "entity": row.entity,
        "resource": row.resource,
        "events": row.events,
        **row.tokens,
    }
