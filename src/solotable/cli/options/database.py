"""The database that a command works on: `-d/--db URL`, the tenant, and the store of one entity's table.

A read of a SQLite file that is not there is refused, not answered by making the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from solotable.cli.exit_codes import NOT_FOUND
from solotable.errors import TableNotFound, TenantViolation

if TYPE_CHECKING:
    from solotable._entities.declare.table import Table
    from solotable._protocol.engine import Engine
    from solotable._protocol.requests import Request
    from solotable._store import AdminStore, Database, Store
    from solotable.urls import Url

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
CURSOR_SECRETS = "SOLOTABLE_CURSOR_SECRETS"


class NotThere(click.ClickException):
    """What the command needs is not there."""

    exit_code = NOT_FOUND


def db_option(command: CommandT) -> CommandT:
    """Give a command `-d/--db URL` as its parameter `db`."""
    return click.option(
        "-d",
        "--db",
        metavar="URL",
        envvar="SOLOTABLE_URL",
        help="The database: sqlite:///file.db, http://host:port/TABLE or aws://TABLE?region=... "
        "SOLOTABLE_URL says it for good.",
    )(command)


def scope_options(command: CommandT) -> CommandT:
    """Give a command `--tenant` and `--admin` as its parameters."""
    command = click.option("--admin", is_flag=True, help="See every tenant; name the tenant as an argument.")(
        command
    )
    return click.option(
        "--tenant", metavar="T", envvar="SOLOTABLE_TENANT", help="Work within this tenant (SOLOTABLE_TENANT)."
    )(command)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request as the store made it, and its answer; None where it was refused."""

    request: Request[Any]
    reply: Any


class Recorder:
    """An engine that passes everything on, and keeps what was asked and answered."""

    def __init__(self, engine: Engine, *, metered: bool = False) -> None:
        self._engine = engine
        self._metered = metered
        self.exchanges: list[Exchange] = []

    def handle(self, request: Request[Any], /) -> Any:
        """Pass a request on, with a report of its units when metered."""
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
class Opened:
    """A store in the scope that was asked for, and the record of what it sends."""

    store: Store | AdminStore
    recorder: Recorder
    url: Url


def url_of(db: str | None) -> Url:
    """Read the URL, or say that there is none."""
    from solotable.errors import DeclarationError
    from solotable.urls import Url

    if not db:
        raise click.UsageError("Which database? Say it with -d sqlite:///file.db, or SOLOTABLE_URL.")
    try:
        return Url.parse(db)
    except DeclarationError as refused:
        raise click.BadParameter(str(refused), param_hint="--db") from None


def there(url: Url) -> bool:
    """Whether a URL's file is there; what is no file is taken to be."""
    return url.path is None or Path(url.path).exists()


@contextmanager
def opened(  # noqa: PLR0913 - the options of a command, each by name
    db: str | None,
    tables: Sequence[Table],
    own: Table,
    *,
    tenant: str | None = None,
    admin: bool = False,
    makes: bool = False,
    metered: bool = False,
    secret: str | None = None,
) -> Iterator[Opened]:
    """Open a URL for these tables, or for a command's own one where the URL names a table.

    `makes` lets a missing SQLite file be made.
    """
    from solotable._connect import open_engine, over
    from solotable._store import Database

    url = url_of(db)
    if tenant is not None and admin:
        raise click.UsageError("--tenant and --admin exclude each other.")
    if not makes and not there(url):
        raise NotThere(f"There is no file {url.path}. Make it with: solotable schema apply -d {url.text}")
    engine = open_engine(url)
    try:
        made = over(engine, [own] if url.table else tables, url, cursor_secrets=secrets_of(secret))
        recorder = Recorder(engine, metered=metered)
        database = Database(recorder, made.scope)
        yield Opened(store=scoped(database, tenant, admin=admin), recorder=recorder, url=url)
    except TenantViolation as refused:
        raise click.UsageError(
            f"{refused} Here: --tenant T for what belongs to a tenant, --admin with the tenant as an "
            f"argument, neither of them (nor SOLOTABLE_TENANT) for what is global."
        ) from refused
    except TableNotFound as refused:
        raise NotThere(
            f"{own.name}: the table is not at {url.text}. Make it with: solotable schema apply -d {url.text}"
        ) from refused
    finally:
        engine.close()


def scoped(database: Database, tenant: str | None, *, admin: bool) -> Store | AdminStore:
    """Return the store of the scope that was asked for."""
    if admin:
        return database.admin()
    return database if tenant is None else database.tenant(tenant)


def secrets_of(text: str | None) -> list[bytes]:
    """Return the cursor secrets of an option; the environment's are the store's own business."""
    return [] if text is None else [part.strip().encode() for part in text.split(",") if part.strip()]


def shown_requests(exchanges: Sequence[Exchange]) -> list[dict[str, Any]]:
    """Return requests as DynamoDB's wire has them: the operation and its members."""
    from solotable._protocol.encode.requests import render

    found = []
    for each in exchanges:
        operation, members = render(each.request)
        found.append({"operation": operation, "request": members})
    return found


def is_remote(url: Url) -> bool:
    """Whether a URL is Amazon's own service, where a mistake costs money."""
    return url.scheme == "aws"
