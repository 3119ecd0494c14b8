"""`solotable backup drill`: restore a random moment beside the live table, and verify it."""

from __future__ import annotations

from pathlib import Path

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.output import json_option, plural, print_json
from solotable.cli.progress import progress

from .options import choose_table, db_argument, open_file, table_option


@click.command("drill", epilog="Example: solotable backup drill shop.db --history drills.jsonl")
@db_argument
@table_option
@click.option("--times", type=click.IntRange(1), default=1, show_default=True, help="Run so many drills.")
@click.option("--seed", type=int, help="Choose the same moments again.")
@click.option(
    "--history",
    "history_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append each result to this file, as a line of JSON.",
)
@click.option(
    "--shipped",
    metavar="FOLDER|s3://BUCKET/PREFIX",
    help="Recover the backup that is shipped there too, and count the changes that it lacks.",
)
@json_option
def drill(
    db: Path,
    table: str | None,
    times: int,
    seed: int | None,
    history_file: Path | None,
    shipped: str | None,
    as_json: bool,
) -> int:
    """Restore random moments into scratch files, and compare each by another way.

    Exits with 1 if a restored table differs from the replay of the changes, or an index from its table. The
    scratch files need the space of the table, in the folder of DB.
    """
    from solotable.backup.file import append_drill
    from solotable.locations import locate

    location = None if shipped is None else locate(shipped)
    results = []
    with open_file(db) as file, progress("drill", quiet=as_json) as update:
        name = choose_table(file, table)
        for number in range(times):
            each = file.drill(
                name,
                seed=None if seed is None else seed + number,
                progress=lambda done, total: update(done, total or None),
                shipped=location,
            )
            results.append(each)
            if history_file is not None:
                append_drill(history_file, each)
    if as_json:
        print_json([each.to_json() for each in results])
    else:
        for each in results:
            click.echo(
                f"{'passed' if each.passed else 'FAILED'}: {each.table} at {each.at.isoformat()} "
                f"(#{each.sequence}): {plural(each.items, 'item')}, {plural(each.changes, 'change')} undone, "
                f"{plural(each.indexes, 'index', 'indexes')}; restored in {each.restore_seconds:.1f} s, "
                f"verified in {each.verify_seconds:.1f} s; {plural(each.differences, 'difference')}, "
                f"{plural(each.index_differences, 'wrong index entry', 'wrong index entries')}."
            )
            if each.loss is not None:
                click.echo(
                    f"  a lost disk costs {plural(each.loss.changes, 'change')} "
                    f"({each.loss.seconds:.1f} s); recovered in {each.loss.recover_seconds:.1f} s"
                )
    return 0 if all(each.passed for each in results) else FAILED
