"""`solotable adopt`: look at a sample of a live table, and write a models file that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.options.database import open_engine_of, parse_url
from solotable.cli.output import json_option, note, print_json

if TYPE_CHECKING:
    from solotable._entities.adoption.sample import TableSample
    from solotable._protocol.engine import Engine
    from solotable._values import Item

#: How many parts of the key space the sample comes from.
_SEGMENTS = 10


@click.command("adopt", epilog="Example: solotable adopt aws://Orders?region=eu-west-1 --out models.py")
@click.argument("db", metavar="URL")
@click.option("--table", "name", metavar="TABLE", help="The table, if the URL does not name one.")
@click.option(
    "--sample",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Read at most this many items, from all parts of the table.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the models to this file.")
@click.option("--force", is_flag=True, help="Replace the file of --out if it exists.")
@json_option
def command(db: str, name: str | None, sample: int, out: Path | None, force: bool, as_json: bool) -> int:
    """Look at a live table and write models for it.

    Reads the table's definition and a sample of its items; writes nothing to the table. Exits with 1 if the
    models do not read every sampled item back unchanged.
    """
    from .adoption import adopt, as_json_report, text_report

    if out is not None and out.exists() and not force:
        raise click.UsageError(f"{out} exists; pass --force to replace it, or another name.")
    sampled = _sample(db, name, sample)
    if not sampled.items:
        raise click.ClickException(f"Table {sampled.name} has no items, so there is nothing to infer from.")
    adoption = adopt(sampled)
    if out is not None:
        out.write_text(adoption.text, encoding="utf-8")
    if as_json:
        print_json(as_json_report(adoption))
    else:
        click.echo("\n".join(text_report(adoption)))
        if out is None:
            click.echo(f"\n{adoption.text}", nl=False)
        else:
            note(f"Wrote {out}. Next: solotable lint {out}:table")
    return 0 if adoption.is_complete else FAILED


def _sample(db: str, name: str | None, most: int) -> TableSample:
    """Read a table's definition and some of its items."""
    from solotable._entities.adoption.sample import TableSample
    from solotable._protocol.requests import Control

    with open_engine_of(db) as engine:
        table = name or parse_url(db).table or _only_table(engine)
        described = engine.handle(Control(operation="DescribeTable", members={"TableName": table}))
        ttl = engine.handle(Control(operation="DescribeTimeToLive", members={"TableName": table}))
        status = ttl.get("TimeToLiveDescription", {})
        return TableSample.of(
            described["Table"],
            status.get("AttributeName")
            if status.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
            else None,
            list(_scan(engine, table, most)),
        )


def _only_table(engine: Engine) -> str:
    from solotable._protocol.requests import Control

    names: list[str] = engine.handle(Control(operation="ListTables", members={}))["TableNames"]
    if len(names) != 1:
        shown = f"it has {', '.join(names)}" if names else "it has none"
        raise click.UsageError(f"The database does not have exactly one table ({shown}); pass --table.")
    return names[0]


def _scan(engine: Engine, table: str, most: int) -> Iterator[Item]:
    """Yield items from the start of each segment, so that the sample is not one partition."""
    from solotable._flows.scope import decode_item
    from solotable._protocol.requests import Scan

    segments = min(_SEGMENTS, most)
    # The start key of each segment that has more items.
    starts: dict[int, Item | None] = dict.fromkeys(range(segments))
    left = most
    while starts and left > 0:
        for segment, start in list(starts.items()):
            share = -(-left // len(starts))
            if share == 0:
                return
            page = engine.handle(
                Scan(table=table, limit=share, start=start, segment=segment, segments=segments)
            )
            items = page.items or []
            yield from map(decode_item, items)
            left -= len(items)
            if page.last_key is None:
                del starts[segment]
            else:
                starts[segment] = page.last_key
