"""`solotable community`: the worker that builds sites, the purge, and exports of one user.

A command parses, calls and prints; `solotable.systems.community` does the work and is imported when a command
runs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from solotable.errors import TableNotFound, Throttled, TransportError

from .files import check_free, write_whole
from .groups import CommandGroup
from .options.database import NotFoundError, db_option, file_exists, parse_url
from .options.signals import stopped_by_signals
from .options.storage import require_storage, storage_option
from .output import json_option, note, plural, print_json

if TYPE_CHECKING:
    from solotable.systems.community.builds.worker import WorkDone

MODELS = "solotable.systems.community.table:community"


@click.group("community", cls=CommandGroup)
def command() -> None:
    """Sites and accounts of a community."""


@command.command(
    "worker",
    epilog="Example: solotable community worker -d app.db --storage files "
    "--site-url 'https://{subdomain}.example.org'",
)
@db_option
@partial(storage_option, what="the built sites")
@click.option(
    "--site-url",
    metavar="URL",
    default="http://{subdomain}.localhost",
    show_default=True,
    help="The address of a site, with {subdomain}.",
)
@click.option(
    "--neighbourhood-url", metavar="URL", default="", help="The page of a neighbourhood, with {slug}."
)
@click.option(
    "--poll",
    "poll_seconds",
    metavar="SECONDS",
    type=click.FloatRange(min=0.05),
    default=1.0,
    show_default=True,
    help="How often to look for work.",
)
@click.option("--once", is_flag=True, help="Do what waits, and exit.")
@json_option
def worker(
    db: str | None,
    storage: str | None,
    site_url: str,
    neighbourhood_url: str,
    poll_seconds: float,
    once: bool,
    as_json: bool,
) -> None:
    """Build the sites that wait, analyse templates, and remove replaced files.

    Runs until it is interrupted, and then finishes the build that it is at. Any number of workers may run.
    With --json, prints one line for each run that did something.
    """
    from solotable import connect
    from solotable.systems.community.builds.stages import BuildSettings
    from solotable.systems.community.builds.worker import BuildWorker
    from solotable.systems.community.table import community

    if "{subdomain}" not in site_url:
        raise click.UsageError("--site-url: write {subdomain} where the subdomain stands.")
    files = require_storage(storage)
    settings = BuildSettings(site_url=site_url, neighbourhood_url=neighbourhood_url)
    with (
        _existing(db) as url,
        stopped_by_signals() as stop,
        connect(url, community) as database,
        BuildWorker(database, files, settings) as builder,
    ):
        while not stop.is_set():
            try:
                _print_done(builder.run_once(stop=stop.is_set), as_json=as_json)
            except (TransportError, Throttled) as error:
                if once:
                    raise
                note(f"Trying again: {error}")
            if once:
                return
            stop.wait(poll_seconds)


@command.command("purge", epilog="Example: solotable community purge -d app.db --dry-run")
@db_option
@click.option("--dry-run", is_flag=True, help="Count only.")
@json_option
def purge(db: str | None, dry_run: bool, as_json: bool) -> None:
    """Remove accounts that were deleted 30 days ago, and sites that were deleted 7 days ago.

    Run it daily. An account leaves its neighbourhoods, its history gets a pseudonym, and a receipt stays. A
    purge that was interrupted continues. Purged data stays in backups until they end.
    """
    from solotable import connect
    from solotable.systems.community.jobs.account_purge import AccountPurge
    from solotable.systems.community.table import community

    with _existing(db) as url, connect(url, community) as database:
        report = AccountPurge(database).run_once(dry_run=dry_run)
    if as_json:
        print_json({"dry_run": dry_run, **report.model_dump()})
    else:
        verb = "Would purge" if dry_run else "Purged"
        count = sum(report.removed.values())
        click.echo(f"{verb} {plural(report.accounts, 'account')}, {plural(count, 'item')}.")
        for name, number in sorted(report.removed.items()):
            click.echo(f"  {name}: {number}")
        if report.held:
            click.echo(f"On hold: {report.held}.")
    if report.errors:
        raise click.ClickException(f"{plural(report.errors, 'error')}; see the log, and run it again.")


@command.command("export", epilog="Example: solotable community export did:plc:abc123 -d app.db -o ana.json")
@click.argument("did")
@db_option
@click.option(
    *("-o", "--output", "file"),
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write.",
)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["json", "atproto"]),
    default="json",
    show_default=True,
    help="All data of the user, or the profile, posts and records of AT Protocol.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option
def export(did: str, db: str | None, file: Path, file_format: str, force: bool, as_json: bool) -> None:
    """Write everything that one user stored as JSON, as the user's own export does."""
    check_free(file, force=force)
    with _existing(db) as url:
        exported = asyncio.run(_export(url, did, file_format))
    size = write_whole(
        file, lambda target: target.write(json.dumps(exported, ensure_ascii=False, indent=2).encode())
    )
    if as_json:
        print_json({"file": str(file), "format": file_format, "bytes": size})
    else:
        click.echo(f"Wrote {plural(size, 'byte')} to {file}.")


async def _export(url: str, did: str, file_format: str) -> dict[str, Any]:
    from solotable import connect_async
    from solotable.errors import NotFound
    from solotable.systems.community.roles import Caller
    from solotable.systems.community.services.accounts import Accounts
    from solotable.systems.community.table import community

    async with connect_async(url, community) as database:
        accounts, caller = Accounts(database), Caller(did=did)
        try:
            return await (
                accounts.export(caller) if file_format == "json" else accounts.export_atproto(caller)
            )
        except NotFound as error:
            raise NotFoundError(f"No user {did!r}, or the account is deleted.") from error


@contextmanager
def _existing(db: str | None) -> Iterator[str]:
    """Yield the URL of the database; a missing file or table is an error that says how to create it."""
    url = parse_url(db)
    create = f"solotable schema apply -m {MODELS} -d {url.text}"
    if not file_exists(url):
        raise NotFoundError(f"No such file: {url.path}. Create it with: {create}")
    try:
        yield url.text
    except TableNotFound as error:
        raise NotFoundError(f"Community: the table is not at {url.text}. Create it with: {create}") from error


def _print_done(done: WorkDone, *, as_json: bool) -> None:
    if done.is_empty:
        return
    if as_json:
        print_json(asdict(done))
        return
    for name, count in asdict(done).items():
        if count and name not in ("templates", "removed_files"):
            click.echo(f"{plural(count, 'build')}: {name}")
    if done.templates:
        click.echo(f"Analysed {plural(done.templates, 'template')}.")
    if done.removed_files:
        click.echo(f"Removed {plural(done.removed_files, 'file')}.")
