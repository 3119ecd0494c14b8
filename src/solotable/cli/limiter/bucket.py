"""`solotable limiter available`, `acquire` and `bucket`: read tokens, and try limits out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.exit_codes import FAILED, USAGE
from solotable.cli.groups import CommandGroup
from solotable.cli.options.database import NotFoundError
from solotable.cli.output import json_option, note, print_json, print_table
from solotable.errors import UnknownEntity

from .session import LimiterTable, format_limits, limiter_command

if TYPE_CHECKING:
    from solotable.systems.limiter import Bucket, LimitStatus

_MILLI = 1000
_MICRO = 1_000_000
_entity = click.argument("entity", metavar="ENTITY")
_resource = click.argument("resource", metavar="RESOURCE")


@limiter_command(None, "available", example="available u-1 gpt-4 -d sqlite:///l.db")
@_entity
@_resource
@json_option
def available(table: LimiterTable, entity: str, resource: str, as_json: bool) -> None:
    """Print the available tokens of an ENTITY for a RESOURCE."""
    from .entity import SOURCES

    found = table.limiter.statuses(entity, resource)
    if as_json:
        print_json([_available(each) for each in found])
        return
    print_statuses(found)
    source = table.limiter.effective_limits(entity, resource).source
    if source is not None:
        note(f"The limits of {entity} are set for {SOURCES[source]}.")


_also = click.option(
    "--also",
    multiple=True,
    metavar="RESOURCE:AMOUNTS",
    help="Take from another resource too, as in search:rpm=1,tpm=50. May be repeated.",
)


@limiter_command(None, "acquire", example="acquire u-1 gpt-4 rpm=1 tpm=500 -d sqlite:///l.db")
@_entity
@_resource
@click.argument("amounts", nargs=-1, required=True, metavar="AMOUNTS...")
@_also
@json_option
def acquire(
    table: LimiterTable,
    *,
    entity: str,
    resource: str,
    amounts: tuple[str, ...],
    also: tuple[str, ...],
    as_json: bool,
) -> int:
    """Take tokens as a call would, to try limits out.

    AMOUNTS are name=tokens. Exits with 1 if there are not enough, or if the entity is denied, and takes none
    then. Exits with 2 if a limit never holds so much.
    """
    from solotable.systems.limiter import RateLimitExceeded

    wanted, others = parse_amounts(amounts), _parse_also(also)
    try:
        with table.limiter.acquire(entity, resource, wanted, also=others) as lease:
            found = lease.statuses
    except RateLimitExceeded as refused:
        if as_json:
            print_json({"acquired": False, **refused.as_dict()})
        else:
            click.echo(f"Refused: {refused}\n")
            print_statuses(refused.statuses)
        return FAILED
    if as_json:
        reports = {
            "limited": lease.limited,
            "exceeded": [each.limit.name for each in lease.exceeded],
            "shadow_refusal": None if lease.shadow_refusal is None else str(lease.shadow_refusal),
        }
        print_json({"acquired": True, "limits": [_available(each) for each in found], **reports})
        return 0
    if not lease.limited:
        click.echo(f"Admitted without limits: those of {entity} are disabled or bypassed.")
        return 0
    click.echo(f"Taken: {' '.join(f'{name}={amount}' for name, amount in wanted.items())}\n")
    print_statuses(found)
    if lease.exceeded:
        note(f"Soft limits exceeded: {' '.join(each.limit.name for each in lease.exceeded)}")
    if lease.shadow_refusal is not None:
        note(f"In shadow mode, which would have refused: {lease.shadow_refusal}")
    return 0


@limiter_command(None, "check", example="check u-1 gpt-4 rpm=1 tpm=500 -d sqlite:///l.db")
@_entity
@_resource
@click.argument("amounts", nargs=-1, required=True, metavar="AMOUNTS...")
@_also
@json_option
def check(
    table: LimiterTable,
    *,
    entity: str,
    resource: str,
    amounts: tuple[str, ...],
    also: tuple[str, ...],
    as_json: bool,
) -> int:
    """Print whether a call for AMOUNTS would be admitted now; takes nothing.

    Exits as acquire does: with 1 if it would be refused, with 2 if a limit never holds so much.
    """
    from solotable.systems.limiter import NeverSatisfiable

    decision = table.limiter.check(entity, resource, parse_amounts(amounts), also=_parse_also(also))
    if as_json:
        print_json(
            {
                "admitted": decision.admitted,
                "retry_after_seconds": decision.retry_after_seconds,
                "refusal": None if decision.refusal is None else str(decision.refusal),
                "limits": [each.as_dict() for each in decision.statuses],
            }
        )
    else:
        click.echo("Would be admitted." if decision.admitted else f"Would be refused: {decision.refusal}")
        if decision.statuses:
            click.echo("")
            print_statuses(decision.statuses)
    if decision.admitted:
        return 0
    return USAGE if isinstance(decision.refusal, NeverSatisfiable) else FAILED


@click.group("bucket", cls=CommandGroup)
def bucket() -> None:
    """Buckets as stored, shard by shard."""


@limiter_command(bucket, "show", example="bucket show u-1 gpt-4 -d sqlite:///l.db")
@_entity
@_resource
@json_option
def show(table: LimiterTable, entity: str, resource: str, as_json: bool) -> None:
    """Print the shards of a bucket: their levels, tokens, and what was consumed from each."""
    from solotable.systems.limiter.admin.limits import parse

    now = int(time.time() * _MICRO)
    found = _read_shards(table, entity, resource)
    if not found:
        raise NotFoundError(
            f"{entity!r} has no bucket for {resource!r}: nothing was taken, or long ago; it counts as full."
        )
    contents = [(_facts(each), _limits(each, now)) for each in found]
    if as_json:
        print_json([{**facts, "limits": limits} for facts, limits in contents])
        return
    rows = [{**facts, **limit} for facts, limits in contents for limit in limits]
    for row in rows:
        row |= {"available": f"{row['available']:,.3f}", "consumed": f"{row['consumed']:,.12g}"}
    columns = ("shard", "level", "limit", "available", "consumed", "writes", "written", "expires")
    print_table(rows, columns)
    for rules in sorted({each.rules for each in found}):
        note(f"Counted by {format_limits(parse(rules))}.")


def _read_shards(table: LimiterTable, entity: str, resource: str) -> list[Bucket]:
    """Read every shard; the levels of those that were read show how many there are."""
    from solotable.systems.limiter import Bucket
    from solotable.systems.limiter.admin.names import entity_name, resource_name
    from solotable.systems.limiter.buckets.bucket import unreadable

    store = table.db.tenant(table.namespace_id)
    given = {"entity": entity_name(entity), "resource": resource_name(resource)}
    found: list[Bucket] = []
    known, wanted = 0, 1
    while known < wanted:
        keys = [{**given, "shard": number} for number in range(known, wanted)]
        try:
            read = store.get_many(Bucket, keys, consistent=True)
        except UnknownEntity as error:
            raise unreadable(error.item) from error
        found += [each for each in read if each is not None]
        known, wanted = wanted, max((1 << each.level for each in found), default=wanted)
    return found


def _facts(found: Bucket) -> dict[str, Any]:
    return {
        "shard": found.shard,
        "level": found.level,
        "writes": found.writes,
        "written": f"{datetime.fromtimestamp(found.at / _MICRO, UTC):%Y-%m-%d %H:%M:%S}",
        "expires": None if found.expires is None else f"{found.expires:%Y-%m-%d %H:%M:%S}",
    }


def _limits(found: Bucket, now: int) -> list[dict[str, Any]]:
    from solotable.systems.limiter.meters.rules import rules_from

    rows = []
    for name, meter in rules_from(found.rules, found.revision).meters.items():
        used, consumed = found.used(meter), found.amount(meter.consumed) or 0
        if used is None:
            used = meter.full(now)
        left = meter.tokens(used, now, found.level)
        rows.append({"limit": name, "available": left / _MILLI, "consumed": consumed / _MILLI})
    return rows


def print_statuses(found: Sequence[LimitStatus]) -> None:
    """Print limits with the tokens that each has."""
    print_table(
        [
            {
                "entity": each.entity,
                "limit": each.limit.name,
                "available": "not read" if each.available is None else f"{each.available:,}",
                "of": f"{each.limit.capacity:,}",
                "refill": format_limits([each.limit]).partition("=")[2].partition("+")[0],
                **({"try again in": f"{each.retry_after_seconds:.1f} s"} if each.exceeded else {}),
            }
            for each in found
        ]
    )


def _available(status: LimitStatus) -> dict[str, Any]:
    row = status.as_dict()
    return {name: row[name] for name in ("entity", "resource", "limit", "capacity", "available")}


def _parse_also(texts: Sequence[str]) -> dict[str, dict[str, int | Decimal]]:
    found: dict[str, dict[str, int | Decimal]] = {}
    for text in texts:
        # A resource's name may have colons; an amount has none.
        resource, colon, amounts = text.rpartition(":")
        if not colon or not resource or resource in found:
            raise click.BadParameter(
                f"{text!r} is not another resource with amounts; write search:rpm=1,tpm=50.",
                param_hint="--also",
            )
        found[resource] = parse_amounts(amounts.split(","))
    return found


def parse_amounts(texts: Sequence[str]) -> dict[str, int | Decimal]:
    """Parse amounts of the command line: name=tokens."""
    found: dict[str, int | Decimal] = {}
    for text in texts:
        name, equals, number = text.partition("=")
        try:
            amount = Decimal(number)
        except InvalidOperation:
            amount = Decimal("NaN")
        if not equals or not name or not amount.is_finite():
            raise click.BadParameter(
                f"{text!r} is not an amount; write name=tokens, as in rpm=1.", param_hint="AMOUNTS"
            )
        if name in found:
            raise click.BadParameter(f"The amount of {name!r} is given twice.", param_hint="AMOUNTS")
        is_whole = amount == amount.to_integral_value() and amount.copy_abs() < 10**15
        found[name] = int(amount) if is_whole else amount
    return found
