"""The database of a command: `-d/--db`, the tenant, and the store of an entity's table.

A command that only reads does not create a missing SQLite file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import click

from solotable.cli.exit_codes import NOT_FOUND
from solotable.errors import NotOurFile, TableNotFound, TenantViolation

if TYPE_CHECKING:
    from solotable._entities.declare.table import Table
    from solotable._protocol.engine import Capabilities, Engine
    from solotable._protocol.requests import Request
    from solotable._store import AdminStore, Database, Store
    from solotable.urls import Url

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
ADMIN_HELP = "Work across all tenants; pass the tenant as an argument."
_SQLITE_HEADER = b"SQLite format 3\0"
_SCHEME = re.compile(r"(sqlite|https?|aws):|[A-Za-z0-9+.-]+://")


class NotFoundError(click.ClickException):
    """A file, table or entity that the command needs does not exist."""

    exit_code = NOT_FOUND


def db_option(command: CommandT) -> CommandT:
    """Give a command `-d/--db` as its parameter `db`."""
    return click.option(
        "-d",
        "--db",
        metavar="FILE_OR_URL",
        envvar="SOLOTABLE_URL",
        help="The database: file.db, sqlite:///file.db, http://host:port/TABLE or aws://TABLE?region=... "
        "Default: $SOLOTABLE_URL.",
    )(command)


def scope_options(command: CommandT, admin_help: str = ADMIN_HELP) -> CommandT:
    """Give a command `--tenant` and `--admin` as its parameters."""
    command = click.option("--admin", is_flag=True, help=admin_help)(command)
    return tenant_option(command)


def tenant_option(command: CommandT) -> CommandT:
    """Give a command `--tenant` as its parameter."""
    return click.option(
        "--tenant", metavar="T", envvar="SOLOTABLE_TENANT", help="The tenant. Default: $SOLOTABLE_TENANT."
    )(command)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request that the store sent, and the reply; the reply is None if the request failed."""

    request: Request[Any]
    reply: Any


class Recorder:
    """An engine that forwards requests to another one and records the exchanges."""

    def __init__(self, engine: Engine, *, metered: bool = False) -> None:
        self._engine = engine
        self._metered = metered
        self.exchanges: list[Exchange] = []

    @property
    def capabilities(self) -> Capabilities:
        """What the engine declares, except that requests are sent one at a time."""
        return replace(self._engine.capabilities, handle_together=None)

    def handle(self, request: Request[Any], /) -> Any:
        """Forward a request; if metered, ask for its consumed capacity."""
        sent: Any = request
        if self._metered and any(each.name == "capacity" for each in fields(sent)):
            sent = replace(sent, capacity="INDEXES")
        reply = None
        try:
            reply = self._engine.handle(sent)
        finally:
            self.exchanges.append(Exchange(request=request, reply=reply))
        return reply

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStore:
    """A store in the requested scope, and the requests that it sent."""

    store: Store | AdminStore
    recorder: Recorder
    url: Url


def parse_url(db: str | None) -> Url:
    """Parse `--db`: a URL, or the path of a SQLite file."""
    from solotable.errors import DeclarationError
    from solotable.urls import Url

    if not db:
        raise click.UsageError("No database given; pass -d FILE or -d URL, or set SOLOTABLE_URL.")
    try:
        url = Url.parse(db if _SCHEME.match(db) else f"sqlite:///{quote(db)}")
    except DeclarationError as error:
        raise click.BadParameter(str(error), param_hint="--db") from None
    if url.path is not None and Path(url.path).is_dir():
        raise click.BadParameter(f"{url.path!r} is a folder; pass the path of a file.", param_hint="--db")
    return url


def check_is_database(path: str) -> None:
    """Raise NotOurFile for another file than a SQLite database, before the engine creates its lock file.

    Only for a process that does not have the file open: closing a descriptor drops SQLite's own locks.
    """
    log = (Path(f"{path}{suffix}") for suffix in ("-wal", "-journal"))
    try:
        # With a log, only SQLite knows the content of the first page.
        if not Path(path).is_file() or any(each.exists() for each in log):
            return
        with Path(path).open("rb") as file:
            header = file.read(len(_SQLITE_HEADER))
    except OSError:
        return  # opening the database reports it
    if header not in (b"", _SQLITE_HEADER):
        raise NotOurFile(f"{path} is not a solotable database; nothing was changed.")


def file_exists(url: Url) -> bool:
    """Return whether the file of a SQLite URL exists; True for other URLs."""
    return url.path is None or Path(url.path).exists()


@contextmanager
def open_store(  # noqa: PLR0913 - the options of a command, each by name
    db: str | None,
    tables: Sequence[Table],
    own: Table,
    *,
    tenant: str | None = None,
    admin: bool = False,
    create: bool = False,
    metered: bool = False,
    secret: str | None = None,
) -> Iterator[OpenStore]:
    """Open a URL for these tables, or for `own` alone if the URL names a table.

    `create` allows a missing SQLite file to be created.
    """
    from solotable._connect import over
    from solotable._store import Database

    if tenant is not None and admin:
        raise click.UsageError("--tenant (or $SOLOTABLE_TENANT) and --admin cannot be used together.")
    with _open_engine(db, own, create=create) as (engine, url):
        try:
            opened = over(engine, [own] if url.table else tables, url, cursor_secrets=split_secrets(secret))
            recorder = Recorder(engine, metered=metered)
            database = Database(recorder, opened.scope)
            yield OpenStore(store=select_scope(database, tenant, admin=admin), recorder=recorder, url=url)
        except TenantViolation as error:
            raise click.UsageError(
                f"{error} On the command line: pass --tenant T for an entity of a tenant, --admin with the "
                f"tenant as an argument, or neither (and no SOLOTABLE_TENANT) for a global entity."
            ) from error


@contextmanager
def open_admin_store(
    db: str | None, tables: Sequence[Table], own: Table | None = None
) -> Iterator[AdminStore]:
    """Open a URL across all tenants. Requests are not recorded: a job sends more than fits into memory."""
    from solotable._connect import over

    with _open_engine(db, own) as (engine, url):
        yield over(engine, [own] if url.table and own else tables, url).admin()


@contextmanager
def open_engine_of(db: str | None, *, create: bool = False) -> Iterator[Engine]:
    """Open the engine of a URL, for a command that needs no models."""
    from solotable._connect import open_engine

    url = parse_url(db)
    if not create and not file_exists(url):
        raise NotFoundError(f"No such file: {url.path}.")
    if url.path is not None:
        check_is_database(url.path)
    engine = open_engine(url)
    try:
        yield engine
    finally:
        engine.close()


@contextmanager
def _open_engine(db: str | None, own: Table | None, *, create: bool = False) -> Iterator[tuple[Engine, Url]]:
    url = parse_url(db)
    if not create and not file_exists(url):
        raise NotFoundError(f"No such file: {url.path}. Create it with: {_apply_command(db)}")
    with open_engine_of(db, create=create) as engine:
        try:
            yield engine, url
        except TableNotFound as error:
            raise NotFoundError(
                f"{f'Table {own.name}' if own else 'A declared table'} does not exist at {db}. "
                f"Create it with: {_apply_command(db)}"
            ) from error


def _apply_command(db: str | None) -> str:
    return f"solotable schema apply -d {shlex.quote(db or '')}"


def select_scope(database: Database, tenant: str | None, *, admin: bool) -> Store | AdminStore:
    """Return the store of the requested scope."""
    if admin:
        return database.admin()
    return database if tenant is None else database.tenant(tenant)


def split_secrets(text: str | None) -> list[bytes]:
    """Split a comma-separated list of cursor secrets."""
    return [] if text is None else [part.strip().encode() for part in text.split(",") if part.strip()]


def render_requests(exchanges: Sequence[Exchange]) -> list[dict[str, Any]]:
    """Return requests in wire form: the operation and its members."""
    from solotable._protocol.encode.requests import encode_request

    found = []
    for each in exchanges:
        operation, members = encode_request(each.request)
        found.append({"operation": operation, "request": members})
    return found


def is_remote(url: Url) -> bool:
    """Return whether a URL is Amazon DynamoDB, where a mistake costs money."""
    return url.scheme == "aws"
