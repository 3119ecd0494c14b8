"""`solotable migrate status` and `show`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from solotable.cli.output import json_option, plural, print_json, print_table

from .options import migration_command

if TYPE_CHECKING:
    from solotable.migrations.migration import Migration
    from solotable.migrations.status import Status
    from solotable.migrations.workflow.control import ControlRecord

_MOST_LETTERS = 20


@migration_command("status", "shop -m shop.py:mapping --source old.db -d new.db --json")
@json_option
def status(migration: Migration, as_json: bool) -> None:
    """Show the state, progress, lag and routing of a migration."""
    from solotable.migrations.workflow.states import ENDED

    now = migration.status()
    if as_json:
        print_json(now.to_dict())
        return
    record = now.record
    click.echo(f"{record.name}: {record.state}{_because(now)}")
    if record.state in ENDED:
        click.echo(f"  {_end(record)}")
        return
    click.echo(f"  {describe_progress(now)}")
    click.echo(
        f"  writes go to the {record.writes}; reads from the target: {_shares(now)}; "
        f"mirrored: {record.mirror_percent:g} %"
    )
    click.echo(
        f"  {plural(now.dead_letters, 'dead letter')}, {_diff(now)}, {plural(len(now.workers), 'worker')}"
    )


@migration_command("show", "shop -m shop.py:mapping --source old.db -d new.db --json")
@json_option
def show(migration: Migration, as_json: bool) -> None:
    """Show the whole control record of a migration, its sources and its dead letters."""
    record = asdict(migration.record())
    letters = [
        {"source": each.source, "key": each.key, "cause": each.cause} for each in migration.dead_letters()
    ]
    sources = [
        {"source": name, "table": table, "items": record["totals"].get(name)}
        for name, table in migration.source.names.items()
    ]
    if as_json:
        print_json({"record": record, "sources": sources, "dead_letters": letters})
        return
    print_table([{"field": name, "value": value} for name, value in record.items()], ("field", "value"))
    print_table(sources)
    if letters:
        print_table(letters[:_MOST_LETTERS])
    if len(letters) > _MOST_LETTERS:
        click.echo(f"... and {len(letters) - _MOST_LETTERS:,} more; --json shows all.")


def describe_progress(now: Status) -> str:
    """Return counts, rate, time left, lag and dead letters in one line."""
    copy = now.copy
    total = f"{copy.total:,}" if copy.total_is_exact else f"about {copy.total:,}"
    words = [f"{copy.scanned:,} of {total} items copied"]
    if copy.rate is not None:
        words.append(f"{copy.rate:,.0f}/s")
    if copy.eta_seconds:
        words.append(f"{copy.eta_seconds:,.0f} s left")
    words.append(f"{now.applied:,} changes applied")
    words.append("lag unknown" if now.lag_seconds is None else f"lag {now.lag_seconds:.1f} s")
    if now.dead_letters:
        words.append(plural(now.dead_letters, "dead letter"))
    return ", ".join(words)


def _end(record: ControlRecord) -> str:
    if record.state == "Cancelled":
        return f"not everything is deleted yet; run `solotable migrate cancel {record.name}` again"
    if record.parked_until is None:
        return "the target serves all reads and writes"
    until = datetime.fromtimestamp(record.parked_until, UTC)
    return f"the target serves all reads and writes; the sources are parked until {until:%Y-%m-%d %H:%M} UTC"


def _because(now: Status) -> str:
    record = now.record
    if record.error:
        return f" ({record.error})"
    return f" (throttled: {record.throttled})" if record.throttled else ""


def _shares(now: Status) -> str:
    own = [f"{name} {share:g} %" for name, share in now.record.reads_by_entity.items()]
    return ", ".join([f"{now.record.reads_percent:g} %", *own])


def _diff(now: Status) -> str:
    found = now.record.diff
    return (
        "not compared yet"
        if found is None
        else f"{plural(found.differences, 'difference')} at the last comparison"
    )
