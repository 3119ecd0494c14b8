"""`solotable surveys`: reports as HTML or PDF, photos as a ZIP, and the export of a tenant.

A command parses, calls and prints; `solotable.systems.surveys` does the work and is imported when a command
runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import click

from solotable.errors import TableNotFound

from .files import check_free, write_whole
from .groups import CommandGroup
from .options.database import NotFoundError, db_option, file_exists, parse_url
from .options.storage import open_storage, require_storage, storage_option
from .output import json_option, note, plural, print_json

if TYPE_CHECKING:
    from solotable import AsyncDatabase

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
MODELS = "solotable.systems.surveys.table:surveyor"


@click.group("surveys", cls=CommandGroup)
def command() -> None:
    """Reports, photos and exports of building surveys."""


def _output_options(function: CommandT) -> CommandT:
    """Give a command the database, the tenant and `-o/--output`."""
    for option in (
        json_option,
        click.option("--force", is_flag=True, help="Replace an existing file."),
        click.option(
            *("-o", "--output", "file"),
            metavar="FILE",
            required=True,
            type=click.Path(path_type=Path, dir_okay=False),
            help="The file to write.",
        ),
        click.option(
            *("-t", "--tenant"),
            metavar="T",
            envvar="SOLOTABLE_TENANT",
            required=True,
            help="The tenant. Default: $SOLOTABLE_TENANT.",
        ),
    ):
        function = option(function)
    return db_option(function)


def _file_options(function: CommandT) -> CommandT:
    """Give a command the database, the tenant, the storage and `-o/--output`."""
    return _output_options(storage_option(function, "the photos"))


@command.command(
    "report", epilog="Example: solotable surveys report s-1 -d app.db -t acme --storage files -o report.pdf"
)
@click.argument("survey_id", metavar="ID")
@_file_options
def report(
    survey_id: str,
    db: str | None,
    tenant: str,
    storage: str | None,
    file: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Write the report of a survey, as report.html or report.pdf.

    The page holds the thumbnails of the photos if --storage is given. A PDF needs Chromium or WeasyPrint.
    """
    from solotable.systems.surveys.entities.access import Tenant
    from solotable.systems.surveys.report.pdf import print_pdf
    from solotable.systems.surveys.report.service import report_html

    kind = file.suffix.lower()
    if kind not in (".html", ".htm", ".pdf"):
        raise click.UsageError(f"-o {file}: write a file that ends with .html or .pdf.")
    check_free(file, force=force)

    async def render() -> str:
        async with _open(db) as database:
            owner = await database.get(Tenant, id=tenant)
            return await report_html(
                database.tenant(tenant),
                open_storage(storage),
                survey_id,
                firm="" if owner is None else owner.name,
            )

    page = asyncio.run(render())
    data = print_pdf(page) if kind == ".pdf" else page.encode()
    write_whole(file, lambda target: target.write(data))
    _print_written(file, len(data), as_json=as_json)
    if storage is None:
        note("Photos are not shown; --storage says where they are.")


@command.command(
    "photos", epilog="Example: solotable surveys photos s-1 -d app.db -t acme --storage files -o photos.zip"
)
@click.argument("survey_id", metavar="ID")
@_file_options
def photos(
    survey_id: str,
    db: str | None,
    tenant: str,
    storage: str | None,
    file: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Write the photos of a survey as a ZIP, with a manifest of their captions."""
    from solotable.systems.surveys.report.photo_export import export_photos

    found = require_storage(storage)
    check_free(file, force=force)

    async def export(target: BinaryIO) -> int:
        size = 0
        async with _open(db) as database:
            async for chunk in await export_photos(database.tenant(tenant), found, survey_id):
                size += target.write(chunk)
        return size

    size = write_whole(file, lambda target: asyncio.run(export(target)))
    _print_written(file, size, as_json=as_json)


@command.command("export", epilog="Example: solotable surveys export -d app.db -t acme -o acme.ndjson")
@_output_options
def export(db: str | None, tenant: str, file: Path, force: bool, as_json: bool) -> None:
    """Write every item of a tenant as lines of JSON.

    The last line has the number of items. The bytes of images and documents stay in the storage; their lines
    have the storage keys.
    """
    from solotable.systems.surveys import Tenant, export_tenant

    check_free(file, force=force)

    async def write(target: BinaryIO) -> int:
        size = 0
        async with _open(db) as database:
            await database.require(Tenant, id=tenant)
            async for chunk in await export_tenant(database.tenant(tenant)):
                size += target.write(chunk)
        return size

    size = write_whole(file, lambda target: asyncio.run(write(target)))
    _print_written(file, size, as_json=as_json)


def _print_written(file: Path, size: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"file": str(file), "bytes": size})
    else:
        click.echo(f"Wrote {file} ({plural(size, 'byte')}).")


@asynccontextmanager
async def _open(db: str | None) -> AsyncIterator[AsyncDatabase]:
    """Open the surveys; a missing file is not created."""
    from solotable import connect_async
    from solotable.systems.surveys.table import surveyor

    url = parse_url(db)
    create = f"solotable schema apply -m {MODELS} -d {url.text}"
    if not file_exists(url):
        raise NotFoundError(f"No such file: {url.path}. Create it with: {create}")
    database = connect_async(url.text, surveyor)
    try:
        yield database
    except TableNotFound as error:
        raise NotFoundError(f"Surveys: the table is not at {url.text}. Create it with: {create}") from error
    finally:
        await database.close()
