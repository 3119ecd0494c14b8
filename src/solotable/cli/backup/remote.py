"""`solotable backup remote`: backups of a table on AWS or another endpoint, over DynamoDB's API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.groups import CommandGroup
from solotable.cli.options.database import open_engine_of, parse_url
from solotable.cli.output import json_option, note, plural, print_json, print_table
from solotable.cli.progress import progress

from .options import dry_run_option
from .shipping import format_moment, parse_time

if TYPE_CHECKING:
    from solotable.backup.remote import ExportResult, LostSetting, RemoteTable

_url = click.argument("url", metavar="aws://TABLE|http://HOST:PORT/TABLE")
_poll = click.option(
    "--poll", type=click.FloatRange(0), default=30.0, show_default=True, help="Seconds between two looks."
)
_since = click.option("--since", metavar="TIME", help="Begin here instead of at the end of the last export.")


@click.group("remote", cls=CommandGroup)
def remote() -> None:
    """Export, restore and rehearse a table on AWS or another endpoint."""


@remote.command("plan", epilog="Example: solotable backup remote plan aws://Shop?region=eu-west-1")
@_url
@_since
@json_option
def plan(url: str, since: str | None, as_json: bool) -> None:
    """Show the incremental exports that come next, and what a restore would lose. Changes nothing."""
    from solotable.backup.remote.settings import read_settings
    from solotable.errors import DataError

    with _open(url, 0.0, quiet=as_json) as table:
        settings = read_settings(table.client, table.name)
        try:
            periods = table.plan_periods(parse_time(since))
            reason = ""
        except DataError as error:
            periods, reason = [], str(error)
    if as_json:
        print_json({"table": table.name, "periods": periods, "reason": reason, "settings": settings})
        return
    for start, end in periods:
        click.echo(f"Export of {table.name} from {format_moment(start)} to {format_moment(end)}")
    if reason:
        click.echo(reason)
    lost = ", ".join(name for name, value in settings.items() if value)
    click.echo(f"A restore loses, and 'restore' gives back: {lost or 'nothing'}.")


@remote.command("status", epilog="Example: solotable backup remote status aws://Shop --json")
@_url
@json_option
def status(url: str, as_json: bool) -> None:
    """Show the continuous backups and the newest exports of a table."""
    with _open(url, 0.0, quiet=as_json) as table:
        found = table.status()
    if as_json:
        print_json(asdict(found))
        return
    if not found.enabled or found.earliest is None or found.latest is None:
        click.echo(f"{found.table}: continuous backups are disabled.")
    else:
        click.echo(
            f"{found.table}: restorable from {format_moment(found.earliest)} "
            f"to {format_moment(found.latest)}."
        )
    members = ("ExportStatus", "ExportArn", "ItemCount", "FailureCode")
    if found.exports:
        print_table([{name: each.get(name) for name in members} for each in found.exports])


@remote.command("enable", epilog="Example: solotable backup remote enable aws://Shop --days 35")
@_url
@click.option("--days", type=click.IntRange(1, 35), default=35, show_default=True, help="The window.")
@dry_run_option
@json_option
def enable(url: str, days: int, dry_run: bool, as_json: bool) -> None:
    """Enable continuous backups of a table."""
    with _open(url, 0.0, quiet=True) as table:
        if not dry_run:
            table.enable(days)
        if as_json:
            print_json(asdict(table.status()))
            return
    verb = "would be" if dry_run else "are"
    click.echo(f"{table.name}: continuous backups {verb} enabled for {plural(days, 'day')}.")


@remote.command("export", epilog="Example: solotable backup remote export aws://Shop vault --incremental")
@_url
@click.argument("bucket")
@click.option("--prefix", help="Where in the bucket.")
@click.option("--incremental", is_flag=True, help="Export what changed since the last export.")
@_since
@click.option("--until", metavar="TIME", help="End here. Default: five minutes ago.")
@click.option(
    "--label", help="Exports of one label are one export, also if the command is repeated. Default: the date."
)
@_poll
@dry_run_option
@json_option
def export(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    url: str,
    bucket: str,
    prefix: str | None,
    incremental: bool,
    since: str | None,
    until: str | None,
    label: str | None,
    poll: float,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Export a table to BUCKET with AWS's own export, and wait until it has ended.

    Exits with 1 if an export FAILED, with the code that AWS gives.
    """
    from solotable.backup.remote.table import today

    if not incremental and (since or until):
        raise click.UsageError("--since and --until need --incremental.")
    with _open(url, poll, quiet=as_json) as table:
        name = label or today(table.client.clock)
        periods: list[tuple[int, int] | None] = (
            [*table.plan_periods(parse_time(since), parse_time(until))] if incremental else [None]
        )
        results = []
        for period in periods if not dry_run else ():
            results.append(table.export(bucket, prefix, label=name, period=period))
            if results[-1].failure:
                # The next period would leave a gap.
                break
    if dry_run:
        click.echo(f"{plural(len(periods), 'export')} of {table.name} to {bucket} would start.")
        return 0
    _print_exports(results, as_json)
    return FAILED if results[-1].failure else 0


@remote.command(
    "restore", epilog="Example: solotable backup remote restore aws://Shop Restored --at 2026-11-17"
)
@_url
@click.argument("target")
@click.option("--at", metavar="TIME", help="The moment, as 2026-11-17T09:00:00Z. Default: the newest.")
@_poll
@dry_run_option
@json_option
def restore(url: str, target: str, at: str | None, poll: float, dry_run: bool, as_json: bool) -> int:
    """Restore a table as TARGET, and give it the settings that AWS does not restore.

    Exits with 1 if a setting still differs.
    """
    with _open(url, poll, quiet=as_json) as table:
        if dry_run:
            click.echo(f"{table.name} would be restored as {target}.")
            return 0
        done = table.restore(target, parse_time(at))
    if as_json:
        print_json({**asdict(done), "is_equal": done.is_equal})
    else:
        click.echo(f"{done.table}: restored in {done.seconds:.0f} s.")
        print_table([_row(each) for each in done.settings])
    return 0 if done.is_equal else FAILED


@remote.command("drill", epilog="Example: solotable backup remote drill aws://Shop --items 1000")
@_url
@click.option("--target", help="The name of the copy. Default: TABLE-drill.")
@click.option("--seed", type=int, help="Choose the same moment again; without --items.")
@click.option(
    "--items",
    type=click.IntRange(0, 100_000),
    default=0,
    show_default=True,
    help="Compare so many items, at a moment just after the start.",
)
@_poll
@dry_run_option
@json_option
def drill(
    url: str, target: str | None, seed: int | None, items: int, poll: float, dry_run: bool, as_json: bool
) -> int:
    """Restore a moment beside the table, compare it, and delete the copy.

    Without --items, the moment is a random one and the definition is compared. With --items, items are read
    before and after the moment; those that did not change must be the same in the copy. Exits with 1 if
    something differs.
    """
    with _open(url, poll, quiet=as_json) as table:
        units = table.estimate_drill(items) if items else 0
        cost = f"The drill takes about {units:,} read units, and a restore of {table.name}, which AWS bills."
        if dry_run:
            click.echo(cost)
            return 0
        note(cost)
        done = table.drill(target or f"{table.name}-drill", seed, items=items)
    if as_json:
        print_json(asdict(done))
        return FAILED if done.differences else 0
    verdict = f"differs in {', '.join(done.differences)}" if done.differences else "passed"
    click.echo(
        f"{done.table} at {format_moment(done.at)}: {verdict}; restored in {done.restore_seconds:.0f} s."
    )
    if done.items is not None:
        click.echo(
            f"{plural(done.items.compared, 'item')} compared, {done.items.wrong:,} wrong, "
            f"{done.items.undecided:,} changed during the drill."
        )
        for key in done.items.keys:
            click.echo(f"  wrong: {json.dumps(key)}")
    return FAILED if done.differences else 0


@contextmanager
def _open(url: str, poll: float, *, quiet: bool) -> Iterator[RemoteTable]:
    from solotable.backup.remote import RemoteTable
    from solotable.backup.remote.requests import AMAZON_PACE_SECONDS, ControlClient

    parsed = parse_url(url)
    if parsed.scheme == "sqlite" or parsed.table is None:
        raise click.UsageError("Pass the URL of a table: aws://TABLE or http://HOST:PORT/TABLE.")
    with open_engine_of(url) as engine, progress("waiting", quiet=quiet) as update:
        waited = 0.0

        def waiting(seconds: float, reason: str) -> None:
            nonlocal waited
            waited += seconds
            update(waited, None, reason)

        pace = AMAZON_PACE_SECONDS if engine.capabilities.amazon else 0.0
        yield RemoteTable(
            client=ControlClient(engine=engine, pace_seconds=pace),
            name=parsed.table,
            poll_seconds=poll,
            waiting=waiting,
        )


def _print_exports(results: list[ExportResult], as_json: bool) -> None:
    if as_json:
        print_json([asdict(each) for each in results])
        return
    for each in results:
        if each.failure:
            click.echo(f"FAILED: {each.arn}: {each.failure}", err=True)
        else:
            click.echo(
                f"{each.status}: {plural(each.items, 'item')}, {each.bytes:,} bytes, in {each.manifest}"
            )


def _row(setting: LostSetting) -> dict[str, Any]:
    return {
        "setting": setting.name,
        "outcome": setting.outcome,
        "source": setting.detail or setting.source,
        "restored": setting.restored,
    }
