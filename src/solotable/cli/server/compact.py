"""`solotable compact`: return unused pages of a database file to the file system."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from solotable.cli.options.database import NotFoundError
from solotable.cli.output import json_option, note, print_json
from solotable.cli.progress import progress


@click.command("compact", epilog="Example: solotable compact shop.db --json")
@click.argument("db", type=click.Path(dir_okay=False, path_type=Path))
@json_option
def command(db: Path, as_json: bool) -> None:
    """Return unused pages of the file DB to the file system.

    It also recounts the items. Other processes may have DB open: they can read; their writes wait.
    """
    from solotable.engines.sqlite.maintenance.compact import compact

    if not db.exists():
        raise NotFoundError(f"No such file: {db}.")
    with progress("compact", quiet=as_json) as update:
        done = compact(str(db), lambda step, part: update(round(part * 100), 100, step))
    if as_json:
        print_json(asdict(done))
    else:
        click.echo(
            f"{done.path}: {done.bytes_before:,} bytes before, {done.bytes_after:,} after, "
            f"in {done.seconds:.1f} s."
        )
    if done.held_by_readers:
        note("A reader still uses the old pages; the file shrinks at the first write after it has finished.")
