"""Groups of commands: whole summaries in the help, and a suggestion for a misspelt command."""

from __future__ import annotations

import difflib
import inspect

import click


class CommandGroup(click.Group):
    """A group that lists whole summaries and suggests the command that a misspelt name resembles."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first argument; a name that does not exist is a usage error."""
        name, known = args[0], self.list_commands(ctx)
        if name in known or name.startswith("-"):
            return super().resolve_command(ctx, args)
        close = difflib.get_close_matches(name, known, n=1)
        advice = (
            f"Did you mean '{close[0]}'?" if close else f"'{ctx.command_path} --help' lists the commands."
        )
        raise click.UsageError(f"No such command '{name}'. {advice}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands and their summaries."""
        with formatter.section("Commands"):
            self.write_commands(ctx, formatter, self.list_commands(ctx))

    def write_commands(self, ctx: click.Context, formatter: click.HelpFormatter, names: list[str]) -> None:
        """Write some of the commands; the summaries of all of them start at the same column."""
        width = max(map(len, self.list_commands(ctx)))
        formatter.write_dl([(f"{name:<{width}}", self._summary(ctx, name)) for name in names])

    def _summary(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        assert command is not None
        # click's own summary is cut at the width of the terminal.
        return inspect.cleandoc(command.help or "").partition("\n\n")[0].replace("\n", " ")
