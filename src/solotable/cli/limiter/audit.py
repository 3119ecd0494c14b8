"""`solotable limiter audit`: who changed which entity, limits or namespace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.files import check_free, write_whole
from solotable.cli.groups import CommandGroup
from solotable.cli.output import json_option, note, plural, print_json
from solotable.errors import FeedTrimmed

from .session import (
    LimiterTable,
    format_limits,
    limiter_command,
    list_options,
    parse_time,
    print_pages,
)

if TYPE_CHECKING:
    from solotable.systems.limiter.admin.audit import AuditRecord

#: Its own consumer: `solotable deliver` may deliver the same events to other sinks.
_CONSUMER = "limiter-audit"
_COLUMNS = ("at", "action", "about", "by", "changes")


@click.group("audit", cls=CommandGroup)
def audit() -> None:
    """The audit trail: who changed what, and when."""


@limiter_command(audit, "list", example="audit list --entity u-1 -d sqlite:///l.db")
@click.option("--entity", metavar="E", help="Only this entity and its limits.")
@click.option("--registry", is_flag=True, help="Changes of namespaces.")
@list_options
def list_(table: LimiterTable, entity: str | None, registry: bool, **options: Any) -> None:
    """Print the trail, newest first. `deliver` adds new changes to it."""
    from solotable.systems.limiter.admin.audit import registry_audit

    if registry and (entity is not None or table.namespace is not None):
        raise click.UsageError(
            "--registry prints changes of all namespaces; leave --entity and --namespace out."
        )

    def ask(*, limit: int, cursor: str | None) -> Any:
        if registry:
            return table.run(registry_audit(table.scope, limit=limit, cursor=cursor))
        return table.limiter.audit(entity=entity, limit=limit, cursor=cursor)

    print_pages(
        ask,
        _row,
        what="records",
        columns=_COLUMNS,
        json_row=lambda record: record.as_dict(),
        empty="The trail is empty. Add recent changes with: solotable limiter audit deliver",
        **options,
    )


@limiter_command(audit, "deliver", namespace=False, example="audit deliver --follow -d sqlite:///l.db")
@click.option("--follow", is_flag=True, help="Wait for more changes instead of exiting.")
@click.option(
    "--recover",
    is_flag=True,
    help="After lost changes: deliver everything in the outbox, and reset the checkpoint.",
)
@json_option
def deliver(table: LimiterTable, follow: bool, recover: bool, as_json: bool) -> int:
    """Add the changes of all namespaces to their trails; each is added once."""
    from solotable.jobs.deliver import deliver as job
    from solotable.systems.limiter.admin.audit import audit_sink

    try:
        done = job(table.db, [audit_sink()], consumer=_CONSUMER, follow=follow, recover=recover)
    except FeedTrimmed as lost:
        raise click.ClickException(
            "The table's stream dropped changes before they were delivered; "
            "deliver what the outbox holds: solotable limiter audit deliver --recover"
        ) from lost
    if as_json:
        print_json({"delivered": done.events, "dead": done.dead})
    else:
        click.echo(f"Added {plural(done.events, 'change')} to the trail.")
    if done.dead:
        note(f"{done.dead} could not be added; they are dead letters of the table.")
    return FAILED if done.dead else 0


@limiter_command(
    audit, "archive", example="audit archive march.jsonl.gz --since 2030-03-01 --before 2030-04-01"
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--since", metavar="TIME", help="From this time, in UTC: 2030-01-31, or 36h or 7d ago.")
@click.option("--before", metavar="TIME", help="Before this time. Default: now.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option
def archive(
    table: LimiterTable, file: Path, since: str | None, before: str | None, force: bool, as_json: bool
) -> None:
    """Write the trail of a namespace to a FILE, as gzipped JSON lines, oldest first.

    The same records give the same bytes. Nothing is deleted; records expire after 90 days.
    """
    from solotable.flow import scope_of
    from solotable.systems.limiter.admin import audit as audit_trail

    check_free(file, force=force)
    start, end = parse_time(since, "--since"), parse_time(before or "0h", "--before")
    assert end is not None
    scope = scope_of(table.db).of_tenant(table.namespace_id)

    def write(target: BinaryIO) -> int:
        return table.run(audit_trail.archive(scope, target, before=end, since=start))

    count = write_whole(file, write)
    if as_json:
        print_json({"file": str(file), "records": count})
    else:
        click.echo(f"Wrote {plural(count, 'record')} to {file}.")


def _row(record: AuditRecord) -> dict[str, Any]:
    return {
        "at": f"{record.at:%Y-%m-%d %H:%M:%S}",
        "action": record.action,
        "about": record.title,
        "by": record.actor_name or record.actor_id or "",
        "changes": _changes(record),
    }


def _changes(record: AuditRecord) -> str:
    if record.action in ("limits_set", "limits_deleted"):
        now = _limits(record.snapshot.get("rules"))
        before = record.changes.get("rules", {}).get("before")
        text = f"{_limits(before)} -> {now}" if before else now
        choice = record.snapshot.get("on_unavailable")
        return text if choice is None else f"{text} on_unavailable={choice}"
    return "; ".join(
        f"{name}: {each.get('before')} -> {each.get('after')}"
        for name, each in record.changes.items()
        if name != "version" and isinstance(each, dict)
    )


def _limits(rules: str | None) -> str:
    from solotable.systems.limiter.admin.schedule import parse_rules

    return format_limits(parse_rules(rules)) if rules else "(none)"
