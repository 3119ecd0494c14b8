"""`solotable migrate diff` and `repair`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.output import json_option, note, plural, print_json, print_table
from solotable.cli.progress import progress

from .options import dry_run_option, migration_command

if TYPE_CHECKING:
    from solotable.migrations.diff import DiffReport
    from solotable.migrations.migration import Migration

_EXAMPLE = "shop -m shop.py:mapping --source old.db -d new.db"


def _options(command: Any) -> Any:
    command = click.option(
        "--samples", type=click.IntRange(0), default=20, show_default=True, help="Show this many differences."
    )(command)
    return click.option(
        "--checkpoint",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Save the progress to this file, and continue from it after an interruption.",
    )(command)


@migration_command("diff", f"{_EXAMPLE} --json")
@_options
@json_option
def diff(migration: Migration, samples: int, checkpoint: Path | None, as_json: bool) -> int:
    """Compare both sides item by item, while writers continue.

    An item counts as different only if it differs again after a wait. Exits with 1 if the sides differ, and
    with 2 if items changed so often that no result is possible. Samples hide encrypted values.
    """
    from solotable.migrations.diff import DiffOptions
    from solotable.migrations.diff import diff as compare

    with progress(f"diff {migration.name}", quiet=as_json) as update:
        options = DiffOptions(samples=samples, state=checkpoint, progress=update)
        report = compare(migration, options)
    return _print_report(report, as_json)


@migration_command("repair", f"{_EXAMPLE} --dry-run")
@_options
@dry_run_option("Show what would be repaired; write nothing.")
@json_option
def repair(migration: Migration, samples: int, checkpoint: Path | None, dry_run: bool, as_json: bool) -> int:
    """Compare both sides and repair the one that does not take writes.

    Exits as `diff` does, after a second comparison.
    """
    from solotable.migrations.diff import DiffOptions
    from solotable.migrations.diff import diff as compare
    from solotable.migrations.diff import repair as repair_sides

    with progress(f"repair {migration.name}", quiet=as_json) as update:
        options = DiffOptions(samples=samples, state=checkpoint, progress=update)
        found = compare(migration, options) if dry_run else repair_sides(migration, options)
        after = found if dry_run else compare(migration, DiffOptions(samples=samples))
    if not as_json and not dry_run:
        note(f"Repaired {plural(found.total, 'difference')}.")
    return _print_report(after, as_json)


def _print_report(report: DiffReport, as_json: bool) -> int:
    if as_json:
        print_json(report.to_json())
        return report.exit_code
    click.echo(
        f"{plural(report.expected, 'expected item')}, {plural(report.actual, 'stored item')}: "
        f"{plural(report.total, 'difference')}, {plural(report.unsettled, 'unsettled item')}."
    )
    if report.dead_letters:
        cause = report.dead_samples[0] if report.dead_samples else ""
        click.echo(f"{plural(report.dead_letters, 'dead letter')}, such as {cause}".rstrip(". ") + ".")
    if report.total:
        print_table([{"difference": kind, "items": count} for kind, count in report.differences.items()])
        print_table(report.to_json()["samples"])
    return report.exit_code
