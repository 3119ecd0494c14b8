"""`solotable delete-partition`: delete the rows of a pattern, with a budget and a confirmation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from solotable.cli.options.arguments import build_query, find_pattern
from solotable.cli.options.target import Target, target_options
from solotable.cli.output import json_option, note, plural, print_json
from solotable.cli.progress import progress

if TYPE_CHECKING:
    from solotable import PartitionDeletion


@click.command(
    "delete-partition",
    epilog="Example: solotable delete-partition Section.of_survey survey_id=s1 --dry-run "
    "-m models.py:surveyor -d survey.db --tenant acme",
)
@click.argument("pattern")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...")
@target_options
@click.option("--budget", type=click.IntRange(1), help="Read at most this many items; repeat it to continue.")
@click.option(
    "--raw", is_flag=True, help="Delete every item of the range, also unknown ones, without traits."
)
@click.option("--dry-run", is_flag=True, help="Count the items that would be deleted; delete nothing.")
@click.option("-y", "--yes", is_flag=True, help="Skip the confirmation prompt.")
@json_option
def command(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    pattern: str,
    arguments: tuple[str, ...],
    target: Target,
    budget: int | None,
    raw: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete the rows of a PATTERN, or a whole partition.

    Locks, counters, history and soft deletes follow, as with delete. Items that no entity matches are kept.
    """
    tables = target.tables()
    plan, found = find_pattern(tables, pattern)
    query = build_query(plan, found, arguments)
    target.require_tenant(plan, query.arguments)
    with target.open(tables, plan.table) as opened:
        if not dry_run and not yes:
            _confirm(f"Delete the rows of {query!r}?")
        with progress(f"delete {query.described}", quiet=as_json) as update:

            def show(now: PartitionDeletion) -> None:
                update(now.total, None, f"of {now.read:,} read")

            done = opened.store.delete_partition(
                query, budget=budget, raw=raw, dry_run=dry_run, progress=show
            )
    report = {
        "deleted": dict(done.deleted),
        "read": done.read,
        "unknown": done.unknown,
        "changed": done.changed,
        "dry_run": done.dry_run,
        "done": done.done,
    }
    if as_json:
        print_json(report)
        return
    shown = ", ".join(f"{count:,} {name}" for name, count in done.deleted.items())
    verb = "to delete" if dry_run else "deleted"
    click.echo(f"{plural(done.total, 'item')} {verb}{f' ({shown})' if shown else ''}.")
    if done.unknown:
        note(f"Kept {plural(done.unknown, 'item')} that no entity matches; --raw deletes them.")
    if done.changed:
        note(f"Kept {plural(done.changed, 'item')} that changed after they were read.")
    if not done.done:
        note("The budget is spent; run the command again to continue.")


def _confirm(question: str) -> None:
    try:
        agreed = click.confirm(question, err=True)
    except click.exceptions.Abort:
        raise click.UsageError("No confirmation received; pass --yes to skip the prompt.") from None
    if not agreed:
        raise click.exceptions.Exit(1)
