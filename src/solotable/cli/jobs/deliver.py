"""`solotable deliver` and `solotable tail`: deliver outbox events to sinks, and print changes."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from solotable.cli.options.arguments import find_plan
from solotable.cli.options.database import db_option, open_admin_store
from solotable.cli.options.models import load_tables, models_option
from solotable.cli.output import json_option, note, plain, plural, print_json, row_of, show_encrypted_option
from solotable.cli.progress import progress

if TYPE_CHECKING:
    from solotable._entities.declare.table import Table
    from solotable._store.handles.changes import FeedOptions
    from solotable.jobs.sinks import Sink


@click.command(
    "deliver",
    epilog="Example: solotable deliver -m models.py -d blog.db --sink audit --sink jsonl:log.jsonl",
)
@models_option
@db_option
@click.option(
    "--sink",
    "sinks",
    multiple=True,
    metavar="SINK",
    help="audit, jsonl:FILE or eventbridge:FILE. Repeatable. Default: audit.",
)
@click.option("--consumer", default="outbox", show_default=True, help="Name of the checkpoint.")
@click.option("--follow", is_flag=True, help="Wait for more changes instead of exiting.")
@click.option(
    "--recover",
    is_flag=True,
    help="After lost changes: deliver everything in the outbox, and reset the checkpoint.",
)
@click.option("--dead", is_flag=True, help="First retry the dead letters.")
@click.option("--dry-run", is_flag=True, help="Print the number of waiting events; deliver nothing.")
@json_option
def deliver(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    models: str | None,
    db: str | None,
    sinks: tuple[str, ...],
    consumer: str,
    follow: bool,
    recover: bool,
    dead: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Deliver outbox events to sinks, at least once.

    The table stores a checkpoint, at which the next run continues. Exits with 1 if a sink rejected an event.
    """
    from solotable.jobs.deliver import deliver as job
    from solotable.jobs.deliver import redeliver, waiting

    chosen = [_sink(text) for text in sinks or ("audit",)]
    with open_admin_store(db, _streaming(load_tables(models))) as store:
        if dry_run:
            count = waiting(store, consumer=consumer)
            print_json({"waiting": count}) if as_json else click.echo(f"{plural(count, 'event')} waiting.")
            return
        with _log_to_stderr(), progress("events delivered", quiet=as_json) as update:
            if dead:
                again = redeliver(store, chosen, consumer=consumer)
                note(f"{plural(again.events, 'dead letter')} delivered, {again.dead:,} rejected again.")
            done = job(
                store,
                chosen,
                consumer=consumer,
                follow=follow,
                recover=recover,
                progress=lambda now: update(now.events),
            )
    if as_json:
        print_json({"delivered": done.events, "dead": done.dead})
    else:
        click.echo(f"{plural(done.events, 'event')} delivered, {done.dead:,} of them rejected by a sink.")
    if done.dead:
        note("Rejected events are dead letters; --dead retries them.")
        raise click.exceptions.Exit(1)


@click.command("tail", epilog="Example: solotable tail Survey -m models.py:surveyor -d survey.db --follow")
@click.argument("entities", nargs=-1, metavar="[ENTITY]...")
@models_option
@db_option
@click.option("--since", default="earliest", show_default=True, help="earliest, latest, or an ISO 8601 time.")
@click.option("--follow", is_flag=True, help="Wait for more changes instead of exiting.")
@click.option("--skip-unknown", is_flag=True, help="Skip items whose type tag belongs to no entity.")
@show_encrypted_option
def tail(
    entities: tuple[str, ...],
    models: str | None,
    db: str | None,
    since: str,
    follow: bool,
    skip_unknown: bool,
    show_encrypted: bool,
) -> None:
    """Print changes of entities as JSON lines.

    It reads the table's stream and stores no checkpoint.
    """
    tables = load_tables(models)
    wanted: Sequence[type[Any]] = [find_plan(tables, name).entity for name in entities]
    options: FeedOptions = {"since": _parse_since(since), "follow": follow}
    if skip_unknown:
        options["unknown"] = "skip"
    with open_admin_store(db, _streaming(tables)) as store:
        for change in store.changes(*wanted, **options):
            before, after = (
                None if each is None else row_of(each, show_encrypted=show_encrypted)
                for each in (change.before, change.after)
            )
            row = {
                "entity": change.entity.__name__,
                "kind": change.kind,
                "time": change.time,
                "sequence": change.sequence,
                "tenant": change.tenant,
                "by_ttl": change.by_ttl,
                "before": before,
                "after": after,
            }
            click.echo(json.dumps(row, ensure_ascii=False, default=plain))


def _streaming(tables: Sequence[Table]) -> Sequence[Table]:
    """Return the tables that have a stream; all of them if none has, so that the store reports it."""
    return [table for table in tables if table.stream] or tables


def _sink(text: str) -> Sink:
    from solotable.jobs.sinks import AuditSink, EventBridgeSink, JsonLinesSink

    kind, _, file = text.partition(":")
    if kind == "audit" and not file:
        return AuditSink()
    if kind == "jsonl" and file:
        return JsonLinesSink(file)
    if kind == "eventbridge" and file:
        return EventBridgeSink(file)
    raise click.BadParameter(
        f"unknown sink {text!r}; write audit, jsonl:FILE or eventbridge:FILE.", param_hint="--sink"
    )


def _parse_since(text: str) -> datetime | Literal["earliest", "latest"]:
    if text in ("earliest", "latest"):
        return cast(Literal["earliest", "latest"], text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not earliest, latest, or a time such as 2030-01-31T12:00:00Z.",
            param_hint="--since",
        ) from None
    return moment if moment.tzinfo is not None else moment.astimezone()


class _StderrHandler(logging.Handler):
    """Print what the job logs as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        note(f"{record.levelname}: {record.getMessage()}")


@contextmanager
def _log_to_stderr() -> Iterator[None]:
    log, handler = logging.getLogger("solotable.deliver"), _StderrHandler()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
