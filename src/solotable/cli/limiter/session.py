"""What the limiter's commands share: the options, the open table, who acts, and how errors are told.

A command that writes makes a SQLite file that is not there; one that reads refuses.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from solotable.cli.exit_codes import UNAVAILABLE, USAGE
from solotable.cli.options.database import NotFoundError, db_option, file_exists, parse_url
from solotable.cli.output import note
from solotable.errors import DataError, TableNotFound

if TYPE_CHECKING:
    from solotable._entities.traits.events import Actor
    from solotable._flows.retry import Flow
    from solotable._store import Database
    from solotable.systems.limiter import Limit, Limiter
    from solotable.urls import Url

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
ResultT = TypeVar("ResultT")
RowT = TypeVar("RowT")
DEFAULT_NAMESPACE = "default"
MODELS = "solotable.systems.limiter:limiter"
_PAGE = 200


class TableUnavailable(click.ClickException):
    """The table could not be asked."""

    exit_code = UNAVAILABLE


class InvalidRequest(click.ClickException):
    """What was asked for cannot be: a name, a number, a relation."""

    exit_code = USAGE


class Pages(Protocol):
    """Lists page by page, as the limiter's methods do."""

    def __call__(self, *, limit: int, cursor: str | None) -> Any: ...


def table_options(command: CommandT) -> CommandT:
    """Give a command `-d/--db` and `-N/--namespace` as its parameters `db` and `namespace`."""
    command = click.option(
        "-N",
        "--namespace",
        metavar="NAME",
        envvar="SOLOTABLE_NAMESPACE",
        help=f"The namespace, registered or just a name; {DEFAULT_NAMESPACE} unless given "
        "(SOLOTABLE_NAMESPACE).",
    )(command)
    return db_option(command)


def list_options(command: CommandT) -> CommandT:
    """Give a command `-n/--limit` and `--all` as its parameters `most` and `everything`."""
    command = click.option("--all", "everything", is_flag=True, help="Print all rows.")(command)
    return click.option(
        "-n", "--limit", "most", default=50, show_default=True, type=click.IntRange(1), help="Rows to print."
    )(command)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The limiter's table, open."""

    db: Database
    url: Url
    actor: Actor

    def run(self, flow: Flow[ResultT]) -> ResultT:
        """Run a flow over it."""
        from solotable._store.runner import run

        return run(flow, self.db.engine)

    def limiter(self, namespace: str | None) -> Limiter:
        """Return the limiter of a namespace, for whoever runs the command."""
        from solotable.systems.limiter import Limiter

        found = Limiter(self.db, self.id_of(namespace), cache_seconds=0)
        return found.acting(self.actor)

    def id_of(self, namespace: str | None) -> str:
        """Return the id of a registered namespace; a name that is not registered is an id itself."""
        from solotable.errors import NotFound
        from solotable.systems.limiter.admin import namespaces

        name = namespaces.namespace_name(DEFAULT_NAMESPACE if namespace is None else namespace)
        try:
            there = self.run(namespaces.show(self.db.scope, name))
        except NotFound:
            return name
        if there.status != "active":
            raise NotFoundError(
                f"Namespace {name!r} was deleted; recover it: solotable limiter namespace recover {name}"
            )
        return there.id


@contextmanager
def opened(db: str | None, *, makes: bool = False) -> Iterator[Table]:
    """Open the limiter's table at a URL; `makes` lets a missing SQLite file be made."""
    from solotable._connect import open_engine, over
    from solotable.systems.limiter import errors, limiter

    url = parse_url(db)
    if not makes and not file_exists(url):
        raise NotFoundError(
            f"There is no file {url.path}. A command that writes makes it, for instance: "
            f"solotable limiter system set-defaults rpm=100/minute -d {url.text}"
        )
    engine = open_engine(url)
    try:
        yield Table(db=over(engine, [limiter], url), url=url, actor=_actor())
    except TableNotFound as refused:
        raise NotFoundError(
            f"{limiter.name}: the table is not at {url.text}. "
            f"Make it with: solotable schema apply -m {MODELS} -d {url.text}"
        ) from refused
    except errors.NoLimits as refused:
        told = str(refused).partition(";")[0]
        raise NotFoundError(
            f"{told}; set some: solotable limiter system set-defaults rpm=100/minute"
        ) from refused
    except errors.UnreadableBucket as refused:
        raise TableUnavailable(str(refused)) from refused
    except errors.LimiterUnavailable as refused:
        told = (
            str(refused) if refused.__cause__ is None else f"The table does not answer: {refused.__cause__}"
        )
        raise TableUnavailable(told) from refused
    except (DataError, errors.NeverSatisfiable) as refused:
        raise InvalidRequest(str(refused)) from refused
    finally:
        engine.close()


def paged(
    ask: Pages, most: int, *, everything: bool, what: str, row: Callable[[Any], RowT]
) -> Iterator[RowT]:
    """Give rows page by page, and say when there are more."""
    found, cursor = 0, None
    while True:
        # One more than is printed tells whether there are more: a cursor alone may lead to nothing.
        page = ask(limit=_PAGE if everything else min(_PAGE, most + 1 - found), cursor=cursor)
        for each in page:
            found += 1
            if not everything and found > most:
                note(f"There are more {what}; --all prints them, -n {most * 10} prints more.")
                return
            yield row(each)
        cursor = page.cursor
        if cursor is None:
            return


def limits_given(texts: tuple[str, ...]) -> list[Limit]:
    """Read limits as they are written on the command line."""
    from solotable.systems.limiter.admin.limits import limits_of
    from solotable.systems.limiter.manifest import parse_limit

    try:
        return list(limits_of(map(parse_limit, texts)))
    except DataError as refused:
        raise click.BadParameter(str(refused), param_hint="LIMITS") from None


def shown(limits: Any) -> str:
    """Return limits on one line, as they are written on the command line."""
    from solotable.systems.limiter.manifest import format_limit

    return " ".join(map(format_limit, limits or ()))


def moment(text: str | None, hint: str, now: datetime | None = None) -> datetime | None:
    """Read a time: ISO 8601, in UTC unless it says otherwise, or so long ago, as in 36h or 7d."""
    if text is None:
        return None
    number, unit = text[:-1], text[-1:]
    if unit in ("h", "d") and number.isascii() and number.isdecimal() and len(number) < 6:
        hours = int(number) * (1 if unit == "h" else 24)
        return (now or datetime.now(UTC)) - timedelta(hours=hours)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is no time; write 2030-01-31, 2030-01-31T12:00Z, 36h or 7d.", param_hint=hint
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def confirm(question: str, *, yes: bool) -> bool:
    """Ask on standard error; whoever cannot be asked has to say --yes."""
    if yes:
        return True
    try:
        return click.confirm(question, err=True)
    except click.exceptions.Abort:
        raise InvalidRequest("Nobody answered; say --yes to do it without being asked.") from None


def _actor() -> Actor:
    from solotable._entities.traits.events import Actor

    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = "unknown"
    return Actor(id=f"cli:{name}", name=name)
