"""Options of the backup commands: the file, its table, a moment, and a part of the table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from solotable.cli.options.database import NotFoundError

if TYPE_CHECKING:
    from solotable.backup import BackupFile, Scope

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

dry_run_option = click.option("--dry-run", is_flag=True, help="Print what would change; change nothing.")
yes_option = click.option("-y", "--yes", is_flag=True, help="Skip the confirmation prompt.")
table_option = click.option("-t", "--table", help="The table. Default: the only one in the file.")


def db_argument(command: CommandT) -> CommandT:
    """Give a command the file as its parameter `db`."""
    return click.argument("db", type=click.Path(dir_okay=False, path_type=Path))(command)


def at_option(command: CommandT) -> CommandT:
    """Give a command `--at` as its parameter `at`."""
    return click.option(
        "--at",
        required=True,
        metavar="MOMENT",
        help="A time (2030-01-31T12:00:00Z, UTC by default), a time ago ('10 minutes ago', 36h), "
        "a sequence number (#1234), or now.",
    )(command)


def scope_options(command: CommandT) -> CommandT:
    """Give a command the options of a part of a table as its parameter `scope`."""

    @wraps(command)
    def run(
        *, tenant: str | None, tenant_key: str, tenant_attribute: str, key: str | None, **others: Any
    ) -> Any:
        return command(scope=_scope(tenant, tenant_key, tenant_attribute, key), **others)

    options = (
        click.option("--tenant", metavar="T", help="Only the items of one tenant."),
        click.option(
            "--tenant-key",
            default="TENANT#{tenant}",
            show_default=True,
            help="How the partition keys of a tenant begin.",
        ),
        click.option(
            "--tenant-attribute",
            default="tenant_id",
            show_default=True,
            help="The attribute that names the tenant of an item.",
        ),
        click.option(
            "--key",
            metavar="JSON",
            help='Only one item or item collection: \'{"pk": "CUSTOMER#1"}\', with or without the sort key. '
            'Write {"N": "1"} for a number.',
        ),
    )
    decorated: Any = run
    for option in reversed(options):
        decorated = option(decorated)
    return cast(CommandT, decorated)


def parse_key(text: str) -> dict[str, Any]:
    """Parse the key of an item: JSON, whose texts stand for themselves."""
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict) or not given:
        raise click.BadParameter(f'{text!r} is not JSON such as {{"pk": "CUSTOMER#1"}}.', param_hint="--key")
    return {name: value if isinstance(value, dict) else {"S": str(value)} for name, value in given.items()}


@contextmanager
def open_file(db: Path) -> Iterator[BackupFile]:
    """Open a file that exists."""
    from solotable.backup import BackupFile

    if not db.exists():
        raise NotFoundError(f"No such file: {db}.")
    with BackupFile(db) as file:
        yield file


def choose_table(file: BackupFile, given: str | None) -> str:
    """Return the table of `--table`, or the only one."""
    names = file.tables()
    if given is not None:
        if given not in names:
            raise NotFoundError(f"No table {given}; the file has: {', '.join(names) or 'none'}.")
        return given
    if len(names) != 1:
        raise click.UsageError(
            f"The file has {len(names)} tables ({', '.join(names)}); choose one with --table."
        )
    return names[0]


def moment(text: str) -> datetime | int | None:
    """Parse `--at`."""
    from solotable.backup import parse_moment

    return parse_moment(text)


def _scope(tenant: str | None, tenant_key: str, tenant_attribute: str, key: str | None) -> Scope:
    from solotable.backup import Scope

    if tenant is not None and key is not None:
        raise click.UsageError("Pass either --tenant or --key.")
    if key is not None:
        return Scope(key=parse_key(key))
    if tenant is None:
        return Scope()
    return Scope.of_tenant(tenant, key=tenant_key, attribute=tenant_attribute)
