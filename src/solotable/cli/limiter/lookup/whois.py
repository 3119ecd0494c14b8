"""`solotable limiter whois`: the entity of an API key or an address, as the middleware names it."""

from __future__ import annotations

import sys
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

import click

from solotable.cli.limiter.bucket import print_statuses
from solotable.cli.limiter.entity import SOURCES
from solotable.cli.limiter.session import LimiterTable, limiter_command
from solotable.cli.output import json_option, note, print_json


@limiter_command(None, "whois", example="whois --header - --resource gpt-4 -d sqlite:///l.db")
@click.option(
    "--header", metavar="VALUE", help="Value of the header of by_header, such as an API key; - reads it."
)
@click.option("--address", metavar="IP", help="Address of a client, of by_address.")
@click.option(
    "--resource", metavar="R", default="http", show_default=True, help="Resource to print limits for."
)
@json_option
def whois(table: LimiterTable, header: str | None, address: str | None, resource: str, as_json: bool) -> None:
    """Print the entity of an API key or an address, its limits and the tokens left.

    Pass the whole value of the header, as Bearer and the token. With - it is read from standard input, and
    stays out of the shell's history. It is not printed, logged or stored: an entity has its digest.
    """
    from solotable.systems.limiter import NoLimits

    entity = _entity(header, address)
    effective = table.limiter.effective_limits(entity, resource)
    statuses = []
    with suppress(NoLimits):
        statuses = table.limiter.statuses(entity, resource)
    if as_json:
        found: dict[str, Any] = {
            "entity": entity,
            "resource": resource,
            "source": effective.source,
            "mode": effective.mode,
            "limits": [each.as_dict() for each in statuses],
        }
        print_json(found)
        return
    click.echo(f"{entity}\n")
    if statuses:
        print_statuses(statuses)
    if effective.source is None:
        note(f"No limits are stored for {resource}; the program's own may apply.")
    else:
        note(f"The limits are set for {SOURCES[effective.source]}; mode {effective.mode}.")


def _entity(header: str | None, address: str | None) -> str:
    from solotable.systems.limiter.http.identity import address_entity, header_entity

    if (header is None) is (address is None):
        raise click.UsageError("Pass either --header or --address.")
    if address is not None:
        try:
            ip_address(address)
        except ValueError:
            raise click.BadParameter(
                f"{address!r} is not an address; write one of IPv4 or IPv6, such as 192.0.2.7.",
                param_hint="--address",
            ) from None
        return address_entity(address)
    value = _read() if header == "-" else header
    # A server removes the spaces around a value.
    if not (value := (value or "").strip()):
        raise click.UsageError("The value of --header is empty.")
    return header_entity(value)


def _read() -> str:
    if sys.stdin.isatty():
        typed: str = click.prompt("Value", hide_input=True, err=True)
        return typed
    return sys.stdin.readline()
