"""`solotable migrate create`, `start` and `stop`."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.output import json_option, note, plural, print_json
from solotable.cli.progress import progress

from .options import dry_run_option, migration_command, rate_option
from .status import describe_progress

if TYPE_CHECKING:
    from solotable.migrations.migration import Migration
    from solotable.migrations.workflow.control import ControlRecord

#: Time between two updates of the progress bar.
_SHOW_SECONDS = 0.5


@migration_command("create", "shop -m shop.py:mapping --source old.db -d new.db")
@click.option(
    "--segments",
    type=click.IntRange(1, 1000),
    default=4,
    show_default=True,
    help="Scan each source table in this many segments, which workers share.",
)
@click.option(
    "--samples",
    type=click.IntRange(0),
    default=1000,
    show_default=True,
    help="Check the mapping with this many items of each source table.",
)
@click.option(
    "--allow-non-empty", is_flag=True, help="Migrate beside items that the target has; they stay as they are."
)
@rate_option
@dry_run_option("Check the mapping and the tables; create nothing.")
@json_option
def create(
    migration: Migration,
    segments: int,
    samples: int,
    allow_non_empty: bool,
    rate: float | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Create a migration, after a check of its mapping and tables.

    The check maps samples of every source table: each output must be valid, keys must not collide, and
    inverses must return the source item. Exits with 1 if the mapping fails.
    """
    from solotable.errors import MappingRejected

    try:
        migration.create(
            segments=segments,
            samples=samples,
            rate=rate or None,
            allow_non_empty=allow_non_empty,
            dry_run=dry_run,
        )
    except MappingRejected as rejected:
        if as_json:
            print_json({"name": migration.name, "created": False, "problems": rejected.problems})
        else:
            click.echo(f"The mapping of {migration.name} has {plural(len(rejected.problems), 'problem')}:")
            for problem in rejected.problems:
                click.echo(f"  {problem}")
        return FAILED
    if as_json:
        print_json({"name": migration.name, "created": not dry_run, "problems": []})
    else:
        verb = (
            "can be created"
            if dry_run
            else f"is created; start it with `solotable migrate start {migration.name}`"
        )
        click.echo(f"Migration {migration.name} {verb}.")
    return 0


@migration_command("start", "shop -m shop.py:mapping --source old.db -d new.db --rate 500")
@rate_option
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Workers in this process."
)
@click.option("--until-running", is_flag=True, help="Exit once the copy is done and the changes are applied.")
@click.option(
    "--no-work",
    is_flag=True,
    help="Change the state and --rate only; workers of other processes see it within a second.",
)
@click.option(
    "--copy-again", is_flag=True, help="Copy everything once more, as after a change of the mapping."
)
@json_option
def start(
    migration: Migration,
    rate: float | None,
    workers: int,
    until_running: bool,
    no_work: bool,
    copy_again: bool,
    as_json: bool,
) -> int:
    """Start or resume a migration, and work on it.

    The command copies, then applies changes until the migration is stopped, completed or cancelled. Run it
    in several processes to share the copy. Kill it at any time: another worker continues. Exits with 1 if
    the migration ends with an error.
    """
    record = _start(migration, copy_again=copy_again)
    if rate is not None:
        record = migration.set_rate(rate or None)
    if not no_work:
        record = _work(migration, workers, until_running=until_running, quiet=as_json)
    if as_json:
        print_json(migration.status().to_dict())
    else:
        click.echo(f"Migration {migration.name} is {record.state}.")
    if record.state == "Error":
        note(f"Error: {record.error}")
        return FAILED
    return 0


def _start(migration: Migration, *, copy_again: bool) -> ControlRecord:
    """Start a migration that does not run; a second process joins the first one."""
    from solotable.errors import MigrationConflict

    record = migration.record()
    if not copy_again and record.state not in _STARTABLE:
        return record
    try:
        return migration.start(copy_again=copy_again)
    except MigrationConflict:
        return migration.record()


def _work(migration: Migration, workers: int, *, until_running: bool, quiet: bool) -> ControlRecord:
    """Run workers in threads until they end; an interrupt stops them after their batch."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def is_over(record: ControlRecord) -> bool:
        return record.state in _OVER or (until_running and record.state in _RUNNING)

    def work() -> None:
        try:
            migration.work(workers=workers, until=is_over, stop=stop)
        except BaseException as error:  # noqa: BLE001 - raised by the main thread
            failures.append(error)

    previous = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    thread = threading.Thread(target=work, name="migrate")
    try:
        thread.start()
        _watch(migration, thread, stop, quiet=quiet)
    finally:
        stop.set()
        thread.join()
        signal.signal(signal.SIGTERM, previous)
    if failures:
        raise failures[0]
    return migration.record()


_STARTABLE = frozenset({"Created", "Stopped", "Error"})
#: States in which a worker of this command has nothing more to do.
_OVER = frozenset({"Stopped", "Error", "Completed", "Cancelled"})
_RUNNING = frozenset({"Running", "Verified", "ReadsSwitched", "SwitchingWrites", "WritesSwitched"})


def _watch(migration: Migration, thread: threading.Thread, stop: threading.Event, *, quiet: bool) -> None:
    """Show the progress until the workers end; Ctrl-C stops them."""
    with progress(f"migrate {migration.name}", quiet=quiet) as update:
        try:
            while thread.is_alive():
                now = migration.status()
                update(now.copy.scanned, now.copy.total, describe_progress(now))
                thread.join(_SHOW_SECONDS)
        except KeyboardInterrupt:
            note("Stopping after the current batch; another worker can continue.")
            stop.set()


@migration_command("stop", "shop -m shop.py:mapping --source old.db -d new.db")
@json_option
def stop(migration: Migration, as_json: bool) -> None:
    """Stop the workers of a migration; `start` continues where they stopped."""
    record = migration.stop()
    if as_json:
        print_json(migration.status().to_dict())
    else:
        click.echo(f"Migration {migration.name} is {record.state}.")
