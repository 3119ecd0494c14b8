"""`solotable limiter available`, `acquire` and `bucket`: tokens to look at and to try out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.groups import CommandGroup
from solotable.cli.options.database import NotFoundError
from solotable.cli.output import json_option, note, print_json, print_table
from solotable.errors import UnknownEntity

from .session import Table, opened, shown, table_options

if TYPE_CHECKING:
    from solotable.systems.limiter import Bucket, LimitStatus

_MILLI = 1000
_entity = click.argument("entity", metavar="ENTITY")
_resource = click.argument("resource", metavar="RESOURCE")


@click.command("available", epilog="Example: solotable limiter available u-1 gpt-4 -d sqlite:///l.db")
@_entity
@_resource
@table_options
@json_option
def available(entity: str, resource: str, db: str | None, namespace: str | None, as_json: bool) -> None:
    """Print the tokens that an ENTITY has for a RESOURCE."""
    from .entity import SOURCES

    with opened(db) as table:
        limiter = table.limiter(namespace)
        found = limiter.statuses(entity, resource)
        source = limiter.effective_limits(entity, resource).source
    if as_json:
        print_json([_left(each) for each in found])
        return
    _print_statuses(found)
    if source is not None:
        note(f"The limits of {entity} are set for {SOURCES[source]}.")


@click.command(
    "acquire", epilog="Example: solotable limiter acquire u-1 gpt-4 rpm=1 tpm=500 -d sqlite:///l.db"
)
@_entity
@_resource
@click.argument("amounts", nargs=-1, required=True, metavar="AMOUNTS...")
@table_options
@json_option
def acquire(
    entity: str,
    resource: str,
    amounts: tuple[str, ...],
    db: str | None,
    namespace: str | None,
    as_json: bool,
) -> int:
    """Take tokens as a call would, to try it out.

    AMOUNTS are name=tokens. Exits with 1 when there are not enough, and then none is taken. More than a
    limit ever holds is refused with 2: waiting would not help.
    """
    from solotable.systems.limiter import RateLimitExceeded

    wanted = _amounts(amounts)
    with opened(db) as table:
        try:
            with table.limiter(namespace).acquire(entity, resource, wanted) as lease:
                found = lease.statuses
        except RateLimitExceeded as refused:
            if as_json:
                print_json({"acquired": False, **refused.as_dict()})
            else:
                click.echo(f"Refused: {refused}")
                click.echo("")
                _print_statuses(refused.statuses)
            return FAILED
    if as_json:
        print_json({"acquired": True, "limits": [_left(each) for each in found]})
        return 0
    click.echo(f"Taken: {' '.join(f'{name}={amount}' for name, amount in wanted.items())}")
    click.echo("")
    _print_statuses(found)
    return 0


@click.group("bucket", cls=CommandGroup)
def bucket() -> None:
    """Buckets as they are stored, shard by shard."""


@bucket.command("show", epilog="Example: solotable limiter bucket show u-1 gpt-4 -d sqlite:///l.db")
@_entity
@_resource
@table_options
@json_option
def show(entity: str, resource: str, db: str | None, namespace: str | None, as_json: bool) -> None:
    """Print the shards of a bucket: their levels, tokens, and what was consumed from each."""
    now = int(time.time() * 1_000_000)
    with opened(db) as table:
        found = _shards(table, table.id_of(namespace), entity, resource)
        contents = [(each, _contents(each, now)) for each in found]
    if not found:
        raise NotFoundError(
            f"{entity!r} has no bucket for {resource!r}: nothing was taken, or long ago; it counts as full."
        )
    if as_json:
        print_json([{**_facts(each), "limits": limits} for each, limits in contents])
        return
    print_table(
        [
            {
                **_facts(each),
                **content,
                "available": f"{content['available']:,.3f}",
                "consumed": f"{content['consumed']:,.12g}",
            }
            for each, limits in contents
            for content in limits
        ],
        ("shard", "level", "limit", "available", "consumed", "writes", "written", "expires"),
    )
    rules = sorted({each.rules for each in found})
    for each in rules:
        from solotable.systems.limiter.admin.limits import parse

        note(f"Reckoned with {shown(parse(each))}.")


def _shards(table: Table, namespace: str, entity: str, resource: str) -> list[Bucket]:
    """Read every shard; their number is known by the levels that are met."""
    from solotable.systems.limiter import Bucket
    from solotable.systems.limiter.admin.names import entity_name, resource_name
    from solotable.systems.limiter.buckets.bucket import unreadable

    store = table.db.tenant(namespace)
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
    from datetime import UTC, datetime

    return {
        "shard": found.shard,
        "level": found.level,
        "writes": found.writes,
        "written": f"{datetime.fromtimestamp(found.at / 1_000_000, UTC):%Y-%m-%d %H:%M:%S}",
        "expires": None if found.expires is None else f"{found.expires:%Y-%m-%d %H:%M:%S}",
    }


def _contents(found: Bucket, now: int) -> list[dict[str, Any]]:
    from solotable.systems.limiter.buckets.token_bucket import rules_from

    rows = []
    for name, token_bucket in rules_from(found.rules, found.revision).token_buckets.items():
        used, consumed = found.amount(token_bucket.used), found.amount(token_bucket.consumed) or 0
        rows.append(
            {
                "limit": name,
                "available": token_bucket.tokens(
                    token_bucket.full(now) if used is None else used, now, found.level
                )
                / _MILLI,
                "consumed": consumed / _MILLI,
            }
        )
    return rows


def _print_statuses(found: Sequence[LimitStatus]) -> None:
    print_table(
        [
            {
                "entity": each.entity,
                "limit": each.limit.name,
                "available": "not asked" if each.available is None else f"{each.available:,}",
                "of": f"{each.limit.capacity:,}",
                "refill": shown([each.limit]).partition("=")[2].partition("+")[0],
                **({"try again in": f"{each.retry_after_seconds:.1f} s"} if each.exceeded else {}),
            }
            for each in found
        ]
    )


def _left(status: LimitStatus) -> dict[str, Any]:
    row = status.as_dict()
    return {name: row[name] for name in ("entity", "resource", "limit", "capacity", "available")}


def _amounts(texts: Sequence[str]) -> dict[str, int | Decimal]:
    found: dict[str, int | Decimal] = {}
    for text in texts:
        name, equals, number = text.partition("=")
        try:
            amount = Decimal(number)
        except InvalidOperation:
            amount = Decimal("NaN")
        if not equals or not name or not amount.is_finite():
            raise click.BadParameter(
                f"{text!r} is no amount; write name=tokens, as in rpm=1.", param_hint="AMOUNTS"
            )
        if name in found:
            raise click.BadParameter(f"The amount of {name!r} is given twice.", param_hint="AMOUNTS")
        found[name] = (
            int(amount) if amount == amount.to_integral_value() and amount.copy_abs() < 10**15 else amount
        )
    return found
