"""`solotable explain`: the exact request of a pattern, a get or a put, and its cost.

Without a database, the store builds the request over an engine in memory. With a database, reads run there
and are measured. A put never runs there; it is measured on the engine in memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from solotable.cli.options.database import parse_url
from solotable.cli.options.target import Target, target_options
from solotable.cli.output import json_option, plural, print_json

from .prices import DEFAULT_REGION, load_prices

#: Assumptions of an estimate.
DEFAULT_ITEMS, DEFAULT_ITEM_SIZE = 50, 1024


@click.command(
    "explain",
    epilog="Example: solotable explain Section.of_survey survey_id=s1 --rate 50/s -m models.py:surveyor",
)
@click.argument("what", metavar="PATTERN|get ENTITY|put ENTITY")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE...]")
@target_options
@click.option("--rate", metavar="N/s", help="Calls: 50/s, 3000/min, 10000/h or 1000000/day.")
@click.option("--items", type=click.IntRange(1), help=f"Items read. Default: {DEFAULT_ITEMS}.")
@click.option("--item-size", type=click.IntRange(1), help=f"Bytes per item. Default: {DEFAULT_ITEM_SIZE}.")
@click.option("--region", help=f"Region of the prices. Default: the URL's region, or {DEFAULT_REGION}.")
@click.option(
    "--prices",
    "prices_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Your own price table, as JSON.",
)
@json_option
def command(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    what: str,
    arguments: tuple[str, ...],
    target: Target,
    rate: str | None,
    items: int | None,
    item_size: int | None,
    region: str | None,
    prices_file: Path | None,
    as_json: bool,
) -> None:
    """Print the request and cost of a PATTERN, a get or a put.

    Missing arguments get sample values. With a database (--db), a read is run and measured.
    """
    from .explanation import Subject, explain, monthly_cost

    subject = Subject(
        tables=target.tables(), target=target, arguments=arguments, items=items, item_size=item_size
    )
    if region is None and target.db:
        region = parse_url(target.db).settings.get("region")
    prices = load_prices(prices_file, region or DEFAULT_REGION)
    per_second = None if rate is None else _parse_rate(rate)
    explanation = explain(subject, what)
    explanation["cost"] = monthly_cost(explanation, prices, per_second)
    if as_json:
        print_json(explanation)
    else:
        click.echo("\n".join(_format_explanation(explanation)))


def _parse_rate(text: str) -> float:
    from solotable._entities.patterns.cost import rate_per_second
    from solotable.errors import DataError

    try:
        return rate_per_second(text)
    except DataError as error:
        raise click.BadParameter(str(error), param_hint="--rate") from None


def _format_explanation(found: Mapping[str, Any]) -> list[str]:
    lines = [f"{found['what']}  on {found['index'] or 'the table'} of {found['table']}", ""]
    for each in found["requests"]:
        lines += [f"{each['operation']} {json.dumps(each['request'], indent=2, ensure_ascii=False)}", ""]
    if "queries" in found:
        lines += [
            f"the first of up to {found['queries']} queries, one for each shard and time bucket",
            "",
        ]
    if "then" in found:
        lines += [f"then {found['then']}", ""]
    lines.append(f"estimate  {_format_units(found['estimated'])}  ({_format_assumptions(found['assumed'])})")
    measured = found["measured"]
    if measured is not None:
        requests = plural(measured["requests"], "request")
        lines.append(f"measured  {_format_units(measured)}  ({requests} at {measured['where']})")
        if "items_read" in measured:
            lines.append(
                f"items     {measured['items_read']} read, {measured['items_returned']} returned"
                + (
                    f", {measured['items_filtered']} removed by the filter"
                    if measured["items_filtered"]
                    else ""
                )
                + (
                    f", {measured['items_of_others']} of other entities"
                    if measured["items_of_others"]
                    else ""
                )
            )
    cost = found["cost"]
    lines.append(f"price     ${cost['dollars_per_million']:,.4f} per million calls")
    if cost["dollars_per_month"] is not None:
        lines.append(
            f"          ${cost['dollars_per_month']:,.2f} per month at {cost['rate_per_second']:g} a second"
        )
    if "storage_dollars_per_month" in cost:
        storage = f"${cost['storage_dollars_per_month']:,.2f}"
        lines.append(f"          {storage} per month to store a month of writes, without indexes")
    lines.append(
        f"          on demand in {cost['region']}, prices of {cost['prices_of']}, as {cost['basis']}"
    )
    return lines


def _format_units(counted: Mapping[str, Any]) -> str:
    unit = "WCU" if counted["kind"] == "write" else "RCU"
    by = [f"{name} {units:g}" for name, units in counted["by"].items() if units]
    text = f"{counted['units']:g} {unit}" + (f" = {' + '.join(by)}" if len(by) > 1 else "")
    return f"{text}, after a read of {counted['read_first']:g} RCU" if counted.get("read_first") else text


def _format_assumptions(assumed: Mapping[str, Any]) -> str:
    parts = []
    if "items" in assumed:
        parts.append(f"{assumed['items']} items of {assumed['item_size']} bytes")
    elif "item_size" in assumed:
        parts.append(f"an item of {assumed['item_size']} bytes")
    if assumed.get("new_item"):
        parts.append("a new item")
    if assumed["sample_values"]:
        parts.append(f"sample values for {', '.join(assumed['sample_values'])}")
    return "; ".join(parts)
