"""`solotable cost`: what the recorded traffic of a database would cost on AWS in a month."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.data.prices import DEFAULT_REGION, load_prices
from solotable.cli.options.database import db_option, parse_url
from solotable.cli.options.models import load_tables, models_option
from solotable.cli.output import json_option, note, print_json, print_table

from .window import last_option, read_log

if TYPE_CHECKING:
    from solotable._entities.patterns.cost import Prices
    from solotable.heat.monthly_cost import CostLine


@click.command("cost", epilog="Example: solotable cost -d shop.db --last 24h --by pattern -m models.py")
@db_option
@models_option
@click.option(
    "--by",
    type=click.Choice(("table", "pattern", "partition")),
    default="table",
    show_default=True,
    help="The lines: tables and indexes, access patterns (needs models), or partitions.",
)
@last_option
@click.option("--top", type=click.IntRange(1, 1000), default=20, show_default=True, help="Lines to print.")
@click.option("--region", help=f"Region of the prices. Default: {DEFAULT_REGION}.")
@click.option(
    "--prices",
    "prices_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Your own price table, as JSON.",
)
@json_option
def command(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    db: str | None,
    models: str | None,
    by: str,
    last: int,
    top: int,
    region: str | None,
    prices_file: Path | None,
    as_json: bool,
) -> None:
    """Print the monthly price of the recorded traffic on AWS.

    On demand, and provisioned. The traffic of the time range is taken as that of the whole month.
    Provisioned capacity is for the busiest minute, at 70 % utilisation. Storage, backups and the free tier
    are not included.
    """
    from solotable._entities.patterns.access_patterns import access_patterns
    from solotable.heat.monthly_cost import cost_by_partition, cost_by_pattern, cost_by_table

    prices = load_prices(prices_file, region or DEFAULT_REGION)
    url = parse_url(db)
    if url.scheme == "aws":
        raise click.ClickException(
            "The traffic of a table on AWS is in CloudWatch (ConsumedReadCapacityUnits and "
            "ConsumedWriteCapacityUnits), and its price in Cost Explorer. Run this command on a file or a "
            "server that had the same traffic, or price a pattern: solotable explain PATTERN --rate 50/s"
        )
    log, now = read_log(db, last)
    observed = _observed_seconds(log, now, last)
    match by:
        case "table":
            lines = cost_by_table(log, observed, prices)
        case "partition":
            lines = cost_by_partition(log, observed, prices)
        case _:
            lines = cost_by_pattern(log, observed, prices, access_patterns(load_tables(models)))
    total = sum(line.on_demand for line in cost_by_table(log, observed, prices))
    provisioned = sum(line.provisioned or 0.0 for line in cost_by_table(log, observed, prices))
    if as_json:
        print_json(
            {
                "region": prices.region,
                "prices": prices.date,
                "observed_seconds": observed,
                "on_demand_per_month": total,
                "provisioned_per_month": provisioned if prices.read_unit_hour is not None else None,
                "lines": [line.to_json() for line in lines[:top]],
            }
        )
        return
    _print(lines[:top], prices, by)
    note(
        f"From {observed / 60:,.0f} minutes of traffic; prices of {prices.region}, {prices.date}. "
        f"All together: ${total:,.2f} on demand"
        + (f", ${provisioned:,.2f} provisioned." if prices.read_unit_hour is not None else ".")
    )


def _observed_seconds(log: Any, now: float, last: int) -> float:
    """Return how long traffic was recorded: from the first interval on, at most the time range."""
    first = min((each.start for each in log.intervals), default=now)
    return max(60.0, min(float(last), now - first))


def _print(lines: list[CostLine], prices: Prices, by: str) -> None:
    print_table(
        [
            {
                by: line.label,
                "RCU": f"{line.read_units:,.1f}",
                "WCU": f"{line.write_units:,.1f}",
                "on demand $/month": f"{line.on_demand:,.2f}",
                **(
                    {"provisioned $/month": "" if line.provisioned is None else f"{line.provisioned:,.2f}"}
                    if by == "table" and prices.read_unit_hour is not None
                    else {}
                ),
            }
            for line in lines
        ]
    )
