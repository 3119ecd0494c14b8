"""The command `solotable`: its sections, its global options, and how it prints errors.

Each command is imported when it is called, so that `solotable --version` stays fast.
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
from .groups import CommandGroup

#: The sections of `solotable --help`: each command, and the module that holds it. The name after a colon is
#: the command's name in the module; without one it is `command`.
SECTIONS = {
    "Start": {
        "demo": "solotable.cli.project.demo",
        "init": "solotable.cli.project.init",
    },
    "Data": {
        "get": "solotable.cli.data.reads:get",
        "query": "solotable.cli.data.reads:query",
        "list": "solotable.cli.data.reads:list_items",
        "count": "solotable.cli.data.reads:count",
        "put": "solotable.cli.data.writes:put",
        "update": "solotable.cli.data.writes:update",
        "delete": "solotable.cli.data.writes:delete",
        "delete-partition": "solotable.cli.data.delete_partition",
        "export": "solotable.cli.data.export:export",
        "import": "solotable.cli.data.export:import_",
        "seed": "solotable.cli.data.seed",
        "tail": "solotable.cli.jobs.deliver:tail",
    },
    "Models": {
        "tables": "solotable.cli.design.listings:tables",
        "entities": "solotable.cli.design.listings:entities",
        "indexes": "solotable.cli.design.listings:indexes",
        "patterns": "solotable.cli.design.patterns",
        "lint": "solotable.cli.design.lint",
        "explain": "solotable.cli.data.explain",
        "schema": "solotable.cli.design.schema",
        "adopt": "solotable.cli.design.adopt",
    },
    "Jobs": {
        "backfill": "solotable.cli.jobs.backfill:backfill",
        "tag": "solotable.cli.jobs.tag:tag",
        "deliver": "solotable.cli.jobs.deliver:deliver",
        "export-daily": "solotable.cli.jobs.export_daily",
        "purge": "solotable.cli.jobs.purge",
        "forget": "solotable.cli.jobs.forget",
        "collect-blobs": "solotable.cli.jobs.collect_blobs",
        "recount": "solotable.cli.jobs.repair:recount",
        "locks": "solotable.cli.jobs.repair:locks",
        "migrate": "solotable.cli.migrate",
    },
    "Server and files": {
        "serve": "solotable.cli.server.serve",
        "console": "solotable.cli.server.console",
        "heat": "solotable.cli.traffic.heat",
        "cost": "solotable.cli.traffic.cost",
        "doctor": "solotable.cli.server.doctor",
        "compact": "solotable.cli.server.compact",
        "backup": "solotable.cli.backup",
    },
    "Systems": {
        "community": "solotable.cli.community",
        "limiter": "solotable.cli.limiter",
        "portal": "solotable.cli.portal",
        "surveys": "solotable.cli.surveys",
    },
}
_COMMANDS = {name: module for section in SECTIONS.values() for name, module in section.items()}


class _RootGroup(CommandGroup):
    """Commands that are imported when they are called, listed in sections."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name or "command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                self.write_commands(ctx, formatter, list(commands))


def every_command() -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its words after `solotable`; a group yields its commands."""
    context = click.Context(_root)
    for name in _root.list_commands(context):
        command = _root.get_command(context, name)
        if command is not None:
            yield from _leaves(name, command)


def _leaves(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for each, subcommand in command.commands.items():
            yield from _leaves(f"{name} {each}", subcommand)
    else:
        yield name, command


def _show_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        click.echo(
            f"solotable {__version__} (SQLite {sqlite3.sqlite_version}, Python {sys.version.split()[0]})"
        )
        ctx.exit()


@click.group(cls=_RootGroup, context_settings={"help_option_names": ["-h", "--help"]})
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
    """Single-table DynamoDB in Python: models, an embedded engine, and a server.

    Run 'solotable COMMAND --help' for the options and an example of a command.
    """
    del debug  # main() reads it from the arguments: an error may come before they are parsed


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its code."""
    given = sys.argv[1:] if arguments is None else arguments
    color = False if os.environ.get("NO_COLOR") else None  # https://no-color.org
    try:
        code: Any = _root.main(args=given, standalone_mode=False, prog_name="solotable", color=color)
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
        # The reader closed the pipe; keep Python from flushing to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except Exception as error:  # process edge: print one line instead of a traceback
        if "--debug" in given:
            raise
        click.echo(f"Error: {type(error).__name__}: {error}. Run it with --debug to see where.", err=True)
        sys.exit(FAILED)
    sys.exit(code if isinstance(code, int) else 0)
