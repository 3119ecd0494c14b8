"""`solotable portal`: exports of the portal's events.

A command parses, calls and prints; `solotable.systems.portal` does the work and is imported when a command
runs.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from solotable.errors import TableNotFound

from .files import check_free, write_whole
from .groups import CommandGroup
from .options.database import NotFoundError, db_option, file_exists, parse_url
from .output import json_option, plural, print_json

MODELS = "solotable.systems.portal.tables:events"
_DAY = click.DateTime(["%Y-%m-%d"])


@click.group("portal", cls=CommandGroup)
def command() -> None:
    """Events of the enablement portal."""


@command.command(
    "export",
    epilog="Example: solotable portal export -d app.db --from 2026-11-01 --to 2026-11-30 -o events.parquet",
)
@db_option
@click.option("--from", "first", metavar="DAY", type=_DAY, required=True, help="The first day, in UTC.")
@click.option("--to", "last", metavar="DAY", type=_DAY, help="The last day, in UTC. Default: the first day.")
@click.option(
    *("-o", "--output", "file"),
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write: .jsonl or .parquet.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option
def export(
    db: str | None, first: datetime, last: datetime | None, file: Path, force: bool, as_json: bool
) -> None:
    """Write the events of some days as JSON Lines or Parquet, the oldest first.

    Parquet needs PyArrow: pip install solotable[parquet].
    """
    from solotable import connect
    from solotable.systems.portal.events.export import export_events, format_of
    from solotable.systems.portal.tables import events

    file_format = format_of(file)
    if file_format is None:
        raise click.UsageError(f"-o {file}: write a file that ends with .jsonl or .parquet.")
    check_free(file, force=force)
    url = parse_url(db)
    create = f"solotable schema apply -m {MODELS} -d {url.text}"
    if not file_exists(url):
        raise NotFoundError(f"No such file: {url.path}. Create it with: {create}")
    try:
        with connect(url.text, events) as database:
            count = write_whole(
                file,
                lambda target: export_events(
                    database,
                    target,
                    first=first.date(),
                    last=(last or first).date(),
                    file_format=file_format,
                ),
            )
    except TableNotFound as error:
        raise NotFoundError(
            f"Portal: the events are not at {url.text}. Create them with: {create}"
        ) from error
    if as_json:
        print_json({"file": str(file), "format": file_format, "events": count})
    else:
        click.echo(f"Wrote {plural(count, 'event')} to {file}.")
