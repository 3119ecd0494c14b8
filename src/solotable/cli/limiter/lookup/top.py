"""`solotable limiter top`: the busiest buckets, from the table's changes."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from solotable.cli.limiter.session import LimiterTable, limiter_command, no_stream
from solotable.cli.output import json_option, print_json, print_table
from solotable.errors import FeedTrimmed

if TYPE_CHECKING:
    from solotable.systems.limiter.usage.activity import BucketActivity

_MICRO = 1_000_000


@limiter_command(None, "top", example="top --sort rate -d sqlite:///l.db")
@click.option(
    "-n", "--limit", "rows", type=click.IntRange(1, 1000), default=20, show_default=True, help="Rows."
)
@click.option(
    "--sort",
    type=click.Choice(["left", "rate"]),
    default="left",
    show_default=True,
    help="Least left, or most used.",
)
@click.option(
    "--window",
    type=click.FloatRange(1, 86_400),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time that rates are of, and in which a bucket must have changed.",
)
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two refreshes.",
)
@click.option("--once", is_flag=True, help="Print once and exit.")
@json_option
def top(
    table: LimiterTable,
    *,
    rows: int,
    sort: str,
    window: float,
    interval: float,
    once: bool,
    as_json: bool,
) -> None:
    """Print the busiest buckets of a namespace, again and again, until you press Ctrl-C.

    It reads the table's stream of changes, and no buckets. A refused call changes no bucket, so refusals are
    not shown: see the metrics. With --json, each refresh is one line, or with --once one document.
    """
    try:
        for at, found in enumerate(_refreshes(table, window, None if once else interval)):
            chosen = _choose(found, sort, rows)
            if as_json and once:
                print_json([each.as_dict() for each in chosen])
            elif as_json:
                click.echo(json.dumps([each.as_dict() for each in chosen]))
            else:
                _print(chosen, len(found), is_first=at == 0)
    except KeyboardInterrupt:
        return
    except FeedTrimmed as lost:
        # It was turned off, as nothing is dropped while it is read.
        raise no_stream(table) from lost


def _refreshes(table: LimiterTable, window: float, interval: float | None) -> Iterator[list[BucketActivity]]:
    """Yield the activity at each refresh; without an interval, once."""
    from solotable.systems.limiter import Bucket
    from solotable.systems.limiter.usage.activity import Activity

    activity, namespace = Activity(window), table.namespace_id
    since = datetime.now(UTC) - timedelta(seconds=window)
    changes = table.db.changes(Bucket, since=since, unknown="skip")
    while True:
        for change in changes:
            if change.tenant == namespace:
                activity.add(change)
        yield activity.rows(int(time.time() * _MICRO))
        if interval is None:
            return
        time.sleep(interval)


def _choose(found: list[BucketActivity], sort: str, rows: int) -> list[BucketActivity]:
    if sort == "rate":
        return sorted(found, key=lambda each: (-each.rate, each.left))[:rows]
    return sorted(found, key=lambda each: (each.left, -each.rate))[:rows]


def _print(chosen: list[BucketActivity], total: int, *, is_first: bool) -> None:
    if sys.stdout.isatty():
        click.clear()
    elif not is_first:
        click.echo("")
    click.echo(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, {len(chosen):,} of {total:,} limits")
    print_table(
        [
            {
                "entity": each.entity,
                "resource": each.resource,
                "limit": each.limit,
                "available": f"{each.available:,.0f}",
                "of": f"{each.capacity:,}",
                "left": f"{max(0.0, each.left):.0%}",
                "per second": f"{each.rate:,.2f}",
            }
            for each in chosen
        ],
        ("entity", "resource", "limit", "available", "of", "left", "per second"),
    )
