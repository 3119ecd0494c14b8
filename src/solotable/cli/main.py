"""The command `solotable`: its groups, its options for all, and how errors reach a person.

Every command is imported when it is run, so that `solotable --version` stays quick.
"""

from __future__ import annotations

import importlib
import os
import sqlite3
import sys
from collections.abc import Iterator
from typing import Any

import click

from solotable import __version__
from solotable.errors import SolotableError

from .exit_codes import FAILED, INTERRUPTED, exit_code, sentence

#: Which module holds which command; behind the colon the command's name there, `command` without one.
_COMMANDS = {
    "backfill": "solotable.cli.jobs.backfill:backfill",
    "compact": "solotable.cli.server.compact",
    "count": "solotable.cli.data.reads:count",
    "delete": "solotable.cli.data.writes:delete",
    "deliver": "solotable.cli.jobs.deliver:deliver",
    "doctor": "solotable.cli.server.doctor",
    "entities": "solotable.cli.design.listings:entities",
    "explain": "solotable.cli.data.explain",
    "get": "solotable.cli.data.reads:get",
    "indexes": "solotable.cli.design.listings:indexes",
    "limiter": "solotable.cli.limiter",
    "lint": "solotable.cli.design.lint",
    "locks": "solotable.cli.jobs.repair:locks",
    "patterns": "solotable.cli.design.patterns",
    "purge": "solotable.cli.jobs.purge",
    "put": "solotable.cli.data.writes:put",
    "query": "solotable.cli.data.reads:query",
    "recount": "solotable.cli.jobs.repair:recount",
    "schema": "solotable.cli.design.schema",
    "serve": "solotable.cli.server.serve",
    "shapes": "solotable.cli.jobs.backfill:shapes",
    "tables": "solotable.cli.design.listings:tables",
    "tail": "solotable.cli.jobs.deliver:tail",
    "update": "solotable.cli.data.writes:update",
}


class _Commands(click.Group):
    """Commands that are imported by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name or "command")
        return command


def every_command() -> Iterator[tuple[str, click.Command]]:
    """Give every command with its words behind `solotable`, those of groups one by one."""
    context = click.Context(_root)
    for name in _root.list_commands(context):
        command = _root.get_command(context, name)
        if command is not None:
            yield from _leaves(name, command)


def _leaves(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for each, below in command.commands.items():
            yield from _leaves(f"{name} {each}", below)
    else:
        yield name, command


def _show_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        click.echo(
            f"solotable {__version__} (SQLite {sqlite3.sqlite_version}, Python {sys.version.split()[0]})"
        )
        ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the versions and exit.",
)
def _root(debug: bool) -> None:
    """DynamoDB's behaviour on one SQLite file."""
    del debug  # main() looks at the arguments, as an error may come before they are parsed


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        code: Any = _root.main(args=given, standalone_mode=False, prog_name="solotable")
    except click.exceptions.Abort:
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except SolotableError as error:
        if "--debug" in given:
            raise
        click.echo(f"Error: {sentence(error)}", err=True)
        sys.exit(exit_code(error))
    except BrokenPipeError:
        # Whoever read the output has seen enough; Python must not write to it once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except Exception as error:  # the edge of the process: a person sees one line
        if "--debug" in given:
            raise
        click.echo(f"Error: {type(error).__name__}: {error}. Run it with --debug to see where.", err=True)
        sys.exit(FAILED)
    sys.exit(code if isinstance(code, int) else 0)
