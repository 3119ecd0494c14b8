"""What the commands of a migration share: its name, its mapping, and the databases of both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from solotable.cli.options.database import db_option, open_engine_of, parse_url
from solotable.cli.options.mapping import load_mapping
from solotable.cli.options.models import models_option

if TYPE_CHECKING:
    from solotable.migrations.migration import Migration

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def migration_command(name: str, example: str) -> Callable[[CommandT], click.Command]:
    """Make a command of `migrate`: it gets the open migration as its parameter `migration`."""

    def decorate(function: CommandT) -> click.Command:
        @wraps(function)
        def run(
            *, workflow: str, models: str | None, db: str | None, source: str | None, **others: Any
        ) -> Any:
            with open_migration(workflow, models, db, source) as migration:
                return function(migration=migration, **others)

        command = models_option(db_option(_source_option(run)))
        command = click.argument("workflow", metavar="NAME")(command)
        return click.command(name, epilog=f"Example: solotable migrate {name} {example}")(command)

    return decorate


def _source_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--source",
        metavar="FILE_OR_URL",
        envvar="SOLOTABLE_SOURCE_URL",
        help="The database of the source tables. Default: $SOLOTABLE_SOURCE_URL, or the database of the "
        "target (--db).",
    )(command)


@contextmanager
def open_migration(name: str, models: str | None, db: str | None, source: str | None) -> Iterator[Migration]:
    """Open both databases of a migration; a file that has both sides is opened once."""
    from solotable._connect import over
    from solotable.migrations.migration import Migration

    mapping = load_mapping(models)
    target_url = parse_url(db)
    with ExitStack() as opened:
        engine = opened.enter_context(
            open_engine_of(db, create=target_url.path is not None and source is not None)
        )
        same = source is None or _place(source) == _place(cast(str, db))
        sources = engine if same else opened.enter_context(open_engine_of(source))
        target = over(engine, [mapping.target], target_url)
        yield Migration(name, mapping, sources=sources, target=target)


def _place(url: str) -> tuple[Any, ...]:
    """Return what two URLs of one database have in common."""
    parsed = parse_url(url)
    return parsed.scheme, parsed.path, parsed.endpoint, parsed.settings.get("region")


def dry_run_option(text: str) -> Callable[[CommandT], CommandT]:
    """Add `--dry-run`."""
    return click.option("--dry-run", is_flag=True, help=text)


def rate_option(command: CommandT) -> CommandT:
    """Add `--rate`, in write units."""
    return click.option(
        "--rate",
        type=click.FloatRange(0),
        help="Use at most this many write capacity units per second, all workers together; 0 for no limit.",
    )(command)


def percent_option(text: str) -> Callable[[CommandT], CommandT]:
    """Add `--percent`."""
    return click.option("--percent", type=click.FloatRange(0, 100), required=True, help=text)
