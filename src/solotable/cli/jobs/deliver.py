"""`solotable deliver` and `solotable tail`: events from the outbox to sinks, and changes as they come."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from solotable.cli.options.arguments import plan_named
from solotable.cli.options.database import NotThere, db_option, there, url_of
from solotable.cli.options.models import load_tables, models_option
from solotable.cli.output import json_option, plain, print_json, row_of, say
from solotable.errors import TableNotFound

if TYPE_CHECKING:
    from solotable._entities.declare.table import Table
    from solotable._store import AdminStore
    from solotable._store.handles.changes import FeedOptions
    from solotable.jobs.deliver import Delivered
    from solotable.jobs.sinks import Sink


@click.command(
    "deliver",
    epilog="Example: solotable deliver -m models.py -d sqlite:///blog.db --sink audit --sink jsonl:log.jsonl",
)
@models_option
@db_option
@click.option(
    "--sink",
    "sinks",
    multiple=True,
    metavar="SINK",
    help="Where to: audit, jsonl:FILE or eventbridge:FILE; several may be given. audit without any.",
)
@click.option("--consumer", default="outbox", show_default=True, help="Whose place in the changes to keep.")
@click.option("--follow", is_flag=True, help="Wait for more instead of ending.")
@click.option("--recover", is_flag=True, help="After a loss: deliver what the outbox holds, and begin anew.")
@click.option("--dead", is_flag=True, help="First try again what sinks have refused for good.")
@click.option("--dry-run", is_flag=True, help="Only say how many events wait; nothing is delivered.")
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
    """Hand the events of the outbox to sinks, at least once, and keep the place in the table."""
    from solotable.jobs.deliver import deliver as job
    from solotable.jobs.deliver import redeliver, waiting

    chosen = [_sink(text) for text in sinks or ("audit",)]
    with _watched(db, load_tables(models)) as store:
        if dry_run:
            count = waiting(store, consumer=consumer)
            print_json({"waiting": count}) if as_json else click.echo(f"{count} events wait.")
            return
        with _telling(), _showing(quiet=as_json) as progress:
            if dead:
                again = redeliver(store, chosen, consumer=consumer)
                say(f"{again.events} dead letters delivered, {again.dead} refused again.")
            done = job(store, chosen, consumer=consumer, follow=follow, recover=recover, progress=progress)
    if as_json:
        print_json({"delivered": done.events, "dead": done.dead})
    else:
        click.echo(f"{done.events} events delivered, {done.dead} of them refused by some sink for good.")
    if done.dead:
        say("What was refused is kept as dead letters; --dead tries them again.")
        raise click.exceptions.Exit(1)


@click.command(
    "tail", epilog="Example: solotable tail Survey -m models.py:surveyor -d sqlite:///survey.db --follow"
)
@click.argument("entities", nargs=-1, metavar="[ENTITY]...")
@models_option
@db_option
@click.option("--since", default="earliest", show_default=True, help="earliest, latest, or an ISO 8601 time.")
@click.option("--follow", is_flag=True, help="Wait for more instead of ending.")
@click.option("--skip-unknown", is_flag=True, help="Leave out items whose type tag no entity has.")
def tail(
    entities: tuple[str, ...],
    models: str | None,
    db: str | None,
    since: str,
    follow: bool,
    skip_unknown: bool,
) -> None:
    """Print changes as JSON lines, of these ENTITIES or of all; no place is kept."""
    tables = load_tables(models)
    wanted: Sequence[type[Any]] = [plan_named(tables, name).entity for name in entities]
    options: FeedOptions = {"since": _moment(since), "follow": follow}
    if skip_unknown:
        options["unknown"] = "skip"
    with _watched(db, tables) as store:
        for change in store.changes(*wanted, **options):
            row = {
                "entity": change.entity.__name__,
                "kind": change.kind,
                "time": change.time,
                "sequence": change.sequence,
                "tenant": change.tenant,
                "by_ttl": change.by_ttl,
                "before": None if change.before is None else row_of(change.before),
                "after": None if change.after is None else row_of(change.after),
            }
            click.echo(json.dumps(row, ensure_ascii=False, default=plain))


@contextmanager
def _watched(db: str | None, tables: Sequence[Table]) -> Iterator[AdminStore]:
    """Open a URL for all tenants; nothing is recorded, as a command that follows never ends."""
    from solotable._connect import open_engine, over

    url = url_of(db)
    if not there(url):
        raise NotThere(f"There is no file {url.path}. Make it with: solotable schema apply -d {url.text}")
    streaming = [table for table in tables if table.stream]
    engine = open_engine(url)
    try:
        yield over(engine, streaming or tables, url).admin()
    except TableNotFound as refused:
        raise NotThere(f"{refused.message} Make it with: solotable schema apply -d {url.text}") from refused
    finally:
        engine.close()


def _sink(text: str) -> Sink:
    from solotable.jobs.sinks import AuditSink, EventBridgeSink, JsonLinesSink

    kind, _, place = text.partition(":")
    if kind == "audit" and not place:
        return AuditSink()
    if kind == "jsonl" and place:
        return JsonLinesSink(place)
    if kind == "eventbridge" and place:
        return EventBridgeSink(place)
    raise click.BadParameter(
        f"{text!r} is no sink; write audit, jsonl:FILE or eventbridge:FILE.", param_hint="--sink"
    )


def _moment(text: str) -> datetime | Literal["earliest", "latest"]:
    if text in ("earliest", "latest"):
        return cast(Literal["earliest", "latest"], text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither earliest, latest, nor a time as 2030-01-31T12:00:00Z.",
            param_hint="--since",
        ) from None
    return moment if moment.tzinfo is not None else moment.astimezone()


class _Teller(logging.Handler):
    """Tells a person what the job logs."""

    def emit(self, record: logging.LogRecord) -> None:
        say(f"{record.levelname}: {record.getMessage()}")


@contextmanager
def _telling() -> Iterator[None]:
    log, teller = logging.getLogger("solotable.deliver"), _Teller()
    log.addHandler(teller)
    try:
        yield
    finally:
        log.removeHandler(teller)


@contextmanager
def _showing(*, quiet: bool) -> Iterator[Callable[[Delivered], None] | None]:
    """Show on a terminal how many events were handled."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.completed} events delivered"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("deliver", total=None)
        yield lambda done: bar.update(task, completed=done.events)
