"""`solotable delete-partition`: delete the rows of a pattern, with a budget and a confirmation."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from solotable.cli.options.arguments import build_query, find_pattern
from solotable.cli.options.cursor_secret import VARIABLE, check_cursor, cursor_options, cursor_secret
from solotable.cli.options.target import Target, target_options
from solotable.cli.output import confirm, json_option, note, on_one_line, plural, print_json
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
@click.option(
    "--budget", type=click.IntRange(1), help="Read at most this many items, and print a cursor for the rest."
)
@partial(cursor_options, cursor_help="Continue behind the items that the run with this cursor read.")
@click.option(
    "--raw", is_flag=True, help="Delete every item of the range, also unknown ones, without traits."
)
@click.option("--dry-run", is_flag=True, help="Count the items that would be deleted; delete nothing.")
@click.option("-y", "--yes", is_flag=True, help="Skip the count and the confirmation prompt.")
@json_option
def command(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    pattern: str,
    arguments: tuple[str, ...],
    target: Target,
    budget: int | None,
    cursor: str | None,
    secret: str | None,
    raw: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete the rows of a PATTERN, or a whole partition.

    It counts the rows, asks, and deletes them. Locks, counters, history and soft deletes follow, as with
    delete. Items that no entity matches are kept.
    """
    tables = target.tables()
    plan, found = find_pattern(tables, pattern)
    query = build_query(plan, found, arguments)
    target.require_tenant(plan, query.arguments)
    secret = cursor_secret(secret)
    check_cursor(cursor, secret)
    with target.open(tables, plan.table, secret=secret) as opened:

        def run(*, counting: bool) -> PartitionDeletion:
            verb = "count" if counting else "delete"
            with progress(f"{verb} {query.described}", quiet=as_json) as update:

                def show(now: PartitionDeletion) -> None:
                    update(now.total, None, f"of {now.read:,} read")

                return opened.store.delete_partition(
                    query, budget=budget, cursor=cursor, raw=raw, dry_run=counting, progress=show
                )

        if dry_run or yes:
            done = run(counting=dry_run)
        else:
            # The count also rejects a wrong tenant or cursor before the question.
            done = replace(run(counting=True), dry_run=False)
            if done.total:
                tenant = query.arguments.get(plan.tenant or "", target.tenant)
                owner = "" if plan.tenant is None else f" of tenant {on_one_line(tenant)}"
                place = opened.url.path or opened.url.text
                confirm(f"Delete {_count(done)}{owner} in {on_one_line(place)}?")
                done = run(counting=False)
    signed = None if secret is None else done.cursor
    if as_json:
        print_json(
            {
                "deleted": dict(done.deleted),
                "read": done.read,
                "unknown": done.unknown,
                "changed": done.changed,
                "dry_run": done.dry_run,
                "done": done.done,
                "cursor": signed,
            }
        )
        return
    click.echo(f"{_count(done, ' to delete' if dry_run else ' deleted')}.")
    if done.unknown:
        note(f"Kept {plural(done.unknown, 'item')} that no entity matches; --raw deletes them.")
    if done.changed:
        note(f"Kept {plural(done.changed, 'item')} that changed after they were read.")
    if signed is not None:
        note(f"The budget is spent; continue with: --cursor {signed}")
    elif not done.done:
        note(f"The budget is spent; pass a larger --budget, or set {VARIABLE} to get a cursor.")


def _count(done: PartitionDeletion, verb: str = "") -> str:
    """Return the number of items, and of each entity: 3 items deleted (2 Section, 1 Survey)."""
    shown = ", ".join(f"{count:,} {name}" for name, count in done.deleted.items())
    return plural(done.total, "item") + verb + (f" ({shown})" if shown else "")
