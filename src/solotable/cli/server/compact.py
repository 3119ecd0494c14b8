"""`solotable compact`: give the free pages of a database file back to the file system."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from solotable.cli.options.database import NotThere
from solotable.cli.output import json_option, print_json, say

if TYPE_CHECKING:
    from solotable.engines.sqlite.maintenance.compact import Progress


@click.command("compact", epilog="Example: solotable compact shop.db --json")
@click.argument("db", type=click.Path(dir_okay=False, path_type=Path))
@json_option
def command(db: Path, as_json: bool) -> None:
    """Give the pages of DB that nothing uses back to the file system, and recount its items.

    Other processes may have DB open: reads go on, writes wait until it is done.
    """
    from solotable.engines.sqlite.maintenance.compact import compact

    if not db.exists():
        raise NotThere(f"There is no file {db}.")
    with _showing(quiet=as_json) as progress:
        done = compact(str(db), progress)
    if as_json:
        print_json(asdict(done))
    else:
        click.echo(
            f"{done.path}: {done.bytes_before:,} bytes before, {done.bytes_after:,} after, "
            f"in {done.seconds:.1f} s."
        )
    if done.held_by_readers:
        say("A reader still needs the old pages; the file shrinks at the first write after it has ended.")


@contextmanager
def _showing(*, quiet: bool) -> Iterator[Progress]:
    """Draw a bar on a terminal; nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield lambda what, part: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("open", total=1.0)
        yield lambda what, part: bar.update(task, description=what, completed=part)
