"""`solotable limiter audit`: who changed which entity, limits or namespace."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.groups import CommandGroup
from solotable.cli.options.database import db_option
from solotable.cli.output import json_option, note, output_options, print_json, print_rows
from solotable.errors import FeedTrimmed

from .session import InvalidRequest, list_options, moment, opened, paged, shown, table_options

if TYPE_CHECKING:
    from solotable.systems.limiter.admin.audit import AuditRecord

#: A place of its own: `solotable deliver` may hand the same events to other sinks.
_CONSUMER = "limiter-audit"
_COLUMNS = ("at", "action", "about", "by", "changes")


@click.group("audit", cls=CommandGroup)
def audit() -> None:
    """The audit trail: who changed what, and when."""


@audit.command("list", epilog="Example: solotable limiter audit list --entity u-1 -d sqlite:///l.db")
@table_options
@click.option("--entity", metavar="E", help="Of this entity and its limits.")
@click.option("--registry", is_flag=True, help="What was done to namespaces themselves.")
@list_options
@output_options
def list_(
    db: str | None,
    namespace: str | None,
    entity: str | None,
    registry: bool,
    most: int,
    everything: bool,
    output: str | None,
) -> None:
    """Print the trail, newest first. Changes are in it once `deliver` has run."""
    from solotable.systems.limiter.admin import audit as trail

    if registry and (entity is not None or namespace is not None):
        raise click.UsageError(
            "--registry is the trail of all namespaces; leave --entity and --namespace out."
        )
    with opened(db) as table:
        limiter = None if registry else table.limiter(namespace)

        def ask(*, limit: int, cursor: str | None) -> Any:
            if limiter is None:
                return table.run(trail.registry_audit(table.db.scope, limit=limit, cursor=cursor))
            return limiter.audit(entity=entity, limit=limit, cursor=cursor)

        if output in ("json", "jsonl"):
            rows = paged(ask, most, everything=everything, what="records", row=lambda each: each.as_dict())
            print_rows(rows, output)
            return
        told = list(paged(ask, most, everything=everything, what="records", row=_told))
    if not told and output is None:
        click.echo(
            "Nothing is in the trail. Recent changes are put there by: solotable limiter audit deliver"
        )
        return
    print_rows(told, output, _COLUMNS)


@audit.command("deliver", epilog="Example: solotable limiter audit deliver --follow -d sqlite:///l.db")
@db_option
@click.option("--follow", is_flag=True, help="Wait for more instead of ending.")
@click.option("--recover", is_flag=True, help="After a loss: deliver what the outbox holds, and begin anew.")
@json_option
def deliver(db: str | None, follow: bool, recover: bool, as_json: bool) -> int:
    """Put the changes of all namespaces into their trails; each is kept once, however often it is run."""
    from solotable.jobs.deliver import deliver as job
    from solotable.systems.limiter.admin.audit import audit_sink

    with opened(db) as table:
        try:
            done = job(table.db, [audit_sink()], consumer=_CONSUMER, follow=follow, recover=recover)
        except FeedTrimmed as lost:
            raise click.ClickException(
                "Changes were dropped from the table's stream before they were delivered; "
                "deliver what the outbox holds: solotable limiter audit deliver --recover"
            ) from lost
    if as_json:
        print_json({"delivered": done.events, "dead": done.dead})
    else:
        click.echo(
            f"{done.events:,} {'change was' if done.events == 1 else 'changes were'} put into the trail."
        )
    if done.dead:
        note(f"{done.dead} could not be kept; they are dead letters of the table.")
    return FAILED if done.dead else 0


@audit.command(
    "archive",
    epilog="Example: solotable limiter audit archive march.jsonl.gz --since 2030-03-01 --before 2030-04-01",
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@table_options
@click.option("--since", metavar="TIME", help="From this time on, in UTC: 2030-01-31, 36h or 7d ago.")
@click.option("--before", metavar="TIME", help="Up to this time; up to now unless given.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@json_option
def archive(
    file: Path,
    db: str | None,
    namespace: str | None,
    since: str | None,
    before: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write the trail of a namespace into a FILE, as gzip of JSON lines, oldest first.

    The same records give the same bytes. Nothing is removed here; the table does that itself after 90 days.
    """
    from solotable.systems.limiter.admin import audit as trail

    if file.exists() and not force:
        raise InvalidRequest(f"{file} is there already; --force replaces it.")
    start, end = moment(since, "--since"), moment(before, "--before") or moment("0h", "--before")
    assert end is not None
    with opened(db) as table:
        scope = table.db.scope.of_tenant(table.id_of(namespace))
        count = _whole(file, lambda into: table.run(trail.archive(scope, into, before=end, since=start)))
    if as_json:
        print_json({"file": str(file), "records": count})
    else:
        click.echo(f"{count:,} {'record is' if count == 1 else 'records are'} in {file}.")


def _whole(file: Path, write: Any) -> int:
    """Write a file under another name first: an archive is whole or not there."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    except OSError as error:
        raise InvalidRequest(f"{file} cannot be written: {error.strerror}.") from error
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as into:
            count: int = write(into)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    return count


def _told(record: AuditRecord) -> dict[str, Any]:
    return {
        "at": f"{record.at:%Y-%m-%d %H:%M:%S}",
        "action": record.action,
        "about": record.title,
        "by": record.actor_name or record.actor_id or "",
        "changes": _changes(record),
    }


def _changes(record: AuditRecord) -> str:
    if record.action in ("limits_set", "limits_deleted"):
        now = record.snapshot.get("rules")
        before = record.changes.get("rules", {}).get("before")
        told = f"{_limits(before)} -> {_limits(now)}" if before else _limits(now)
        choice = record.snapshot.get("on_unavailable")
        return told if choice is None else f"{told} on_unavailable={choice}"
    return "; ".join(
        f"{name}: {each.get('before')} -> {each.get('after')}"
        for name, each in record.changes.items()
        if name != "version" and isinstance(each, dict)
    )


def _limits(rules: str | None) -> str:
    from solotable.systems.limiter.admin.limits import parse

    return shown(parse(rules)) if rules else "(none)"
