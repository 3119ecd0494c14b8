"""What the limiter's commands share: options, the open table, the actor, and errors.

A command that writes creates a missing SQLite file; one that reads does not. The limiter is imported when a
command runs.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

import click

from solotable.cli.exit_codes import UNAVAILABLE, USAGE
from solotable.cli.options.database import NotFoundError, db_option, file_exists, parse_url
from solotable.cli.output import note, output_options, print_rows
from solotable.errors import DataError, DeclarationError, SolotableError, TableNotFound

if TYPE_CHECKING:
    from solotable import Actor, Database
    from solotable.flow import Flow, Scope
    from solotable.systems.limiter import Limit, Limiter, Schedule
    from solotable.urls import Url

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
ResultT = TypeVar("ResultT")
Row = dict[str, Any]
DEFAULT_NAMESPACE = "default"
MODELS = "solotable.systems.limiter:limiter"
_PAGE = 200


class TableUnavailable(click.ClickException):
    """The table does not respond."""

    exit_code = UNAVAILABLE


class InvalidRequest(click.ClickException):
    """An argument is not valid: a name, a number, a relation."""

    exit_code = USAGE


class Pages(Protocol):
    """A method of the limiter that returns a page."""

    def __call__(self, *, limit: int, cursor: str | None) -> Any: ...


class LimiterTable:
    """The limiter's table at a URL, opened at its first use."""

    def __init__(self, url: Url, namespace: str | None, *, create: bool) -> None:
        self.url = url
        self.namespace = namespace
        self._create = create

    @cached_property
    def db(self) -> Database:
        """The open database."""
        from solotable import connect
        from solotable.systems.limiter import limiter

        if not self._create and not file_exists(self.url):
            raise NotFoundError(
                f"{self.url.path} does not exist. A command that writes creates it, for instance: "
                f"solotable limiter system set-defaults rpm=100/minute -d {self.url.text}"
            )
        return connect(self.url.text, limiter)

    @property
    def exists(self) -> bool:
        """Whether the database and its table exist; a command that writes creates a missing file."""
        if not file_exists(self.url):
            return False
        try:
            self.limiter.get_limits()
        except TableNotFound:
            return False
        return True

    def close(self) -> None:
        """Close the database if it was opened."""
        if "db" in self.__dict__:
            self.db.close()

    @property
    def scope(self) -> Scope:
        """The scope of the registry of namespaces, with the actor."""
        from solotable.flow import scope_of

        return scope_of(self.db.acting(_actor()))

    def run(self, flow: Flow[ResultT]) -> ResultT:
        """Run a flow."""
        from solotable.flow import run

        return run(flow, self.db)

    @cached_property
    def limiter(self) -> Limiter:
        """The limiter of the namespace."""
        from solotable.systems.limiter import Limiter

        return Limiter(self.db, self.namespace_id, cache_seconds=0).acting(_actor())

    @property
    def namespace_id(self) -> str:
        """The id of the registered namespace; a name that is not registered is itself the id."""
        from solotable.errors import NotFound
        from solotable.systems.limiter.admin import namespaces

        name = namespaces.namespace_name(DEFAULT_NAMESPACE if self.namespace is None else self.namespace)
        try:
            found = self.run(namespaces.show(self.scope, name))
        except NotFound:
            return name
        if found.status != "active":
            raise NotFoundError(
                f"Namespace {name!r} was deleted; recover it: solotable limiter namespace recover {name}"
            )
        return found.id


def limiter_command(
    group: click.Group | None, name: str, *, example: str, create: bool = False, namespace: bool = True
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of a function whose first argument is the LimiterTable.

    It has `-d/--db` and, unless `namespace` is False, `-N/--namespace`. `create` lets it create a file.
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        @wraps(function)
        def run(*, db: str | None, namespace: str | None = None, **given: Any) -> Any:
            with _open_table(db, namespace, create=create) as table:
                return function(table, **given)

        if namespace:
            click.option(
                "-N",
                "--namespace",
                metavar="NAME",
                envvar="SOLOTABLE_NAMESPACE",
                help=f"Namespace, registered or not. Default: {DEFAULT_NAMESPACE} (SOLOTABLE_NAMESPACE).",
            )(run)
        made = click.command(name, epilog=f"Example: solotable limiter {example}")(db_option(run))
        if group is not None:
            group.add_command(made)
        return made

    return decorate


@contextmanager
def _open_table(db: str | None, namespace: str | None, *, create: bool) -> Iterator[LimiterTable]:
    table = LimiterTable(parse_url(db), namespace, create=create)
    try:
        yield table
    except SolotableError as error:
        _translate(error, table)
    finally:
        table.close()


def _translate(error: SolotableError, table: LimiterTable) -> NoReturn:
    """Raise an error as a command reports it."""
    from solotable.systems.limiter import errors

    message = str(error)
    match error:
        case TableNotFound():
            url = table.url.text
            raise NotFoundError(
                f"Limiter: the table is not at {url}. "
                f"Create it with: solotable schema apply -m {MODELS} -d {url}"
            ) from error
        case DeclarationError() if "stream" in message:
            raise no_stream(table) from error
        case errors.NoLimits():
            advice = "set some: solotable limiter system set-defaults rpm=100/minute"
            raise NotFoundError(f"{message.partition(';')[0]}; {advice}") from error
        case errors.LimiterUnavailable():
            if error.__cause__ is not None and not isinstance(error, errors.UnreadableBucket):
                message = f"The table does not respond: {error.__cause__}"
            raise TableUnavailable(message) from error
        case errors.EntityDenied():
            raise click.ClickException(message) from error
        case DataError() | errors.NeverSatisfiable():
            raise InvalidRequest(message) from error
    raise error


def no_stream(table: LimiterTable) -> click.ClickException:
    """Return the error of a command that reads the table's stream, where the table has none."""
    return click.ClickException(
        "The table has no stream of changes, which this command reads. "
        f"Turn it on with: solotable schema apply -m {MODELS} -d {table.url.text}"
    )


def list_options(command: CommandT) -> CommandT:
    """Give a command `-n/--limit`, `--all` and the output formats, for `print_pages(**options)`."""
    command = output_options(command)
    command = click.option("--all", "everything", is_flag=True, help="Print all rows.")(command)
    return click.option(
        "-n", "--limit", "most", default=50, show_default=True, type=click.IntRange(1), help="Rows to print."
    )(command)


def print_pages(  # noqa: PLR0913 - options of a command, each by name
    ask: Pages,
    row: Callable[[Any], Row],
    *,
    what: str,
    most: int,
    everything: bool,
    output: str | None,
    columns: Sequence[str] = (),
    json_row: Callable[[Any], Row] | None = None,
    empty: str | None = None,
) -> None:
    """Print the rows of pages; `json_row` makes those of JSON, `empty` is printed instead of no rows."""
    if output in ("json", "jsonl"):
        print_rows(_rows(ask, json_row or row, what, most, everything=everything), output)
        return
    rows: Iterable[Row] = _rows(ask, row, what, most, everything=everything)
    if not columns or empty is not None:
        found = rows = list(rows)
        columns = columns or list(dict.fromkeys(name for each in found for name in each))
        if not found and output is None and empty is not None:
            click.echo(empty)
            return
    print_rows(rows, output, columns)


def _rows(ask: Pages, row: Callable[[Any], Row], what: str, most: int, *, everything: bool) -> Iterator[Row]:
    found, cursor = 0, None
    while True:
        # One more than is printed shows whether there are more: after a cursor there may be nothing.
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


def schedule_options(command: CommandT) -> CommandT:
    """Give a command `--window` and `--timezone`, for `parse_rules`."""
    command = click.option(
        "--timezone", metavar="ZONE", default="UTC", show_default=True, help="Time zone of the windows."
    )(command)
    return click.option(
        "--window",
        "windows",
        multiple=True,
        metavar="TEXT",
        help="Other limits at some times, as in 'mon-fri 08:00-18:00 rpm=10/minute'. Repeatable.",
    )(command)


def parse_rules(texts: tuple[str, ...], windows: tuple[str, ...], timezone: str) -> list[Limit] | Schedule:
    """Parse limits of the command line, and the windows of a schedule."""
    limits = parse_limits(texts)
    if not windows:
        return limits
    from solotable.systems.limiter import Schedule
    from solotable.systems.limiter.manifest import parse_window

    try:
        return Schedule(limits, map(parse_window, windows), timezone=timezone)
    except DataError as error:
        raise click.BadParameter(str(error), param_hint="--window") from None


def parse_limits(texts: tuple[str, ...]) -> list[Limit]:
    """Parse limits of the command line."""
    from solotable.systems.limiter.admin.limits import limits_of
    from solotable.systems.limiter.manifest import parse_limit

    try:
        return list(limits_of(map(parse_limit, texts)))
    except DataError as error:
        raise click.BadParameter(str(error), param_hint="LIMITS") from None


def format_limits(limits: Any) -> str:
    """Return limits, or a schedule, on one line, as on the command line."""
    from solotable.systems.limiter.manifest import format_rules

    return format_rules(limits or ())


def parse_time(text: str | None, hint: str, now: datetime | None = None) -> datetime | None:
    """Parse a time: ISO 8601, in UTC by default, or a time ago, as 36h or 7d."""
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
            f"{text!r} is not a time; write 2030-01-31, 2030-01-31T12:00Z, 36h or 7d.", param_hint=hint
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


dry_run_option = click.option("--dry-run", is_flag=True, help="Print what would change; change nothing.")
mode_option = click.option(
    "--mode",
    type=click.Choice(["enforce", "shadow", "disabled"]),
    help="How the limits apply: shadow only reports, disabled does nothing. Default: as before.",
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Skip the confirmation prompt.")


def confirm(question: str, *, yes: bool) -> bool:
    """Ask on standard error; note a negative answer."""
    if yes:
        return True
    try:
        confirmed = click.confirm(question, err=True)
    except click.exceptions.Abort:
        raise InvalidRequest("No confirmation received; pass --yes to skip the prompt.") from None
    if not confirmed:
        note("Nothing was changed.")
    return confirmed


def _actor() -> Actor:
    from solotable import Actor

    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = "unknown"
    return Actor(id=f"cli:{name}", name=name)
