"""`solotable tag`: add type tags to the items of an adopted table, or count what they match."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from solotable.cli.options.database import db_option, open_admin_store
from solotable.cli.options.models import load_tables, models_option
from solotable.cli.options.scan import budget_option, rate_option, segments_option
from solotable.cli.output import json_option, note, plural, print_json
from solotable.cli.progress import progress

if TYPE_CHECKING:
    from solotable._entities.declare.table import Table
    from solotable.jobs.tag_items import TagReport


@click.command("tag", epilog="Example: solotable tag -m models.py -d aws://Instagram --dry-run")
@click.argument("table", required=False)
@models_option
@db_option
@click.option("--dry-run", is_flag=True, help="Count which entities the items match; write nothing.")
@rate_option
@segments_option()
@budget_option()
@click.option(
    "--checkpoint",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save the position in this file, and continue from it if it exists.",
)
@json_option
def tag(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    table: str | None,
    models: str | None,
    db: str | None,
    dry_run: bool,
    rate: float | None,
    segments: int,
    budget: int,
    checkpoint: Path | None,
    as_json: bool,
) -> None:
    """Add the type tag to items of TABLE that have none.

    An item gets the tag of the one entity whose key it matches. No other attribute changes, and other writers
    may continue. Items that match no entity, or several, or whose fields derive another key, stay as
    they are, and the command prints their keys.
    """
    from solotable.jobs.tag_items import tag_items

    tables = load_tables(models)
    chosen = _choose(tables, table)
    resume = checkpoint.read_text() if checkpoint is not None and checkpoint.exists() else None
    with (
        open_admin_store(db, tables, chosen) as store,
        progress(f"tag {chosen.name}", quiet=as_json) as update,
    ):

        def show(now: TagReport) -> None:
            update(now.counts.seen, None, "")
            if checkpoint is not None and now.checkpoint is not None:
                _save(checkpoint, now.checkpoint)

        done = tag_items(
            store,
            chosen,
            budget=budget,
            rate=rate,
            segments=segments,
            dry_run=dry_run,
            resume=resume,
            progress=show,
        )
    if checkpoint is not None and done.done:
        checkpoint.unlink(missing_ok=True)
    if as_json:
        print_json(asdict(done))
        return
    _print_report(done)


def _save(file: Path, checkpoint: str) -> None:
    """Replace the file at once: a killed command leaves the former or the new checkpoint."""
    temporary = file.with_name(f".{file.name}.new")
    temporary.write_text(checkpoint)
    temporary.replace(file)


def _choose(tables: list[Table], name: str | None) -> Table:
    found = [each for each in tables if name is None or each.name == name]
    if len(found) == 1:
        return found[0]
    names = ", ".join(each.name for each in tables)
    raise click.UsageError(f"Name one of the declared tables: {names}.")


def _print_report(done: TagReport) -> None:
    counts = done.counts
    verb = "to tag" if done.dry_run else "matched"
    click.echo(f"{done.table}: {plural(counts.seen, 'item')} read.")
    for name, count in sorted(counts.matched.items()):
        click.echo(f"  {name}: {count:,} {verb}")
    if not done.dry_run:
        click.echo(f"Tagged: {counts.tagged:,}. Skipped after a concurrent write: {counts.conflicts:,}.")
    click.echo(f"With a tag already: {counts.known:,}. Internal items: {counts.internal:,}.")
    for name, count in sorted(counts.unknown_tags.items()):
        click.echo(f"With the unknown tag {name!r}: {count:,}.")
    if counts.unmatched:
        click.echo(f"Matched no entity: {counts.unmatched:,}; the first ones:")
        for key in counts.unmatched_samples:
            click.echo(f"  {json.dumps(key, ensure_ascii=False)}")
    if counts.ambiguous:
        click.echo(f"Matched several entities: {counts.ambiguous:,}; the first ones:")
        for key, names in counts.ambiguous_samples:
            click.echo(f"  {json.dumps(key, ensure_ascii=False)}: {', '.join(names)}")
    if counts.mismatched:
        click.echo(f"Fields derive another key: {counts.mismatched:,}; the first ones:")
        for key in counts.mismatched_samples:
            click.echo(f"  {json.dumps(key, ensure_ascii=False)}")
    if not done.done:
        note(
            "The budget was reached before the end of the table; run it again with --checkpoint to continue."
        )
