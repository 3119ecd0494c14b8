"""The help of `solotable` and of its groups, and misspelt commands."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from solotable.cli.groups import CommandGroup
from solotable.cli.main import _root, every_command

from .conftest import Run

#: Columns between the margin of the help, the widest command and the edge of a terminal of 80 columns.
SUMMARY_WIDTH = 58


def groups(name: str, command: click.Command) -> Iterator[tuple[str, CommandGroup]]:
    if isinstance(command, click.Group):
        assert isinstance(command, CommandGroup), name
        yield name, command
        for each in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), each)
            assert below is not None
            yield from groups(f"{name} {each}".strip(), below)


GROUPS = dict(groups("", _root))


def test_the_help_lists_commands_in_sections(run: Run) -> None:
    text = run("--help").out
    lines = text.splitlines()
    sections = ["Options:", "Data:", "Models:", "Jobs:", "Server and files:", "Systems:"]
    assert [line for line in lines if line in sections] == sections
    (get,) = (
        line
        for line in lines
        if line.startswith("  get ") and line.endswith("Print the ENTITY with this key.")
    )
    assert lines.index("Data:") < lines.index(get) < lines.index("Models:")


def test_each_summary_of_the_help_fits_on_a_line(run: Run) -> None:
    for name in _root.list_commands(click.Context(_root)):
        command = _root.get_command(click.Context(_root), name)
        assert command is not None
        summary = (command.help or "").partition("\n\n")[0]
        assert len(summary) <= SUMMARY_WIDTH, f"{name}: {summary}"


def test_each_command_that_prints_results_has_json() -> None:
    #: tail and schema export always print JSON, schema diagram a picture; the others print messages only.
    without = {
        *("console", "demo", "init", "tail", "schema export", "schema diagram", "schema apply", "serve"),
    }
    found = {
        path
        for path, command in every_command()
        if not path.startswith("limiter") and not any("--json" in each.opts for each in command.params)
    }
    assert found == without
    for path, command in every_command():
        if path.startswith("limiter") and path.split()[-1] in ("list", "show", "children", "orphans"):
            assert any("--json" in each.opts for each in command.params), path


@pytest.mark.parametrize("group", GROUPS)
def test_summaries_are_not_cut(run: Run, group: str) -> None:
    shown = " ".join(run(*group.split(), "--help").out.split())
    command = GROUPS[group]
    for name in command.list_commands(click.Context(command)):
        below = command.get_command(click.Context(command), name)
        assert below is not None
        summary = " ".join((below.help or "").partition("\n\n")[0].split())
        assert summary
        assert f"{name} {summary}" in shown


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("qurey",), "No such command 'qurey'. Did you mean 'query'?"),
        (("schema", "aply"), "No such command 'aply'. Did you mean 'apply'?"),
        (("limiter", "entty"), "No such command 'entty'. Did you mean 'entity'?"),
        (("limiter", "entity", "lst"), "No such command 'lst'. Did you mean 'list'?"),
        (("xyzzy",), "No such command 'xyzzy'. 'solotable --help' lists the commands."),
        (("schema", "xyzzy"), "No such command 'xyzzy'. 'solotable schema --help' lists the commands."),
    ],
)
def test_a_misspelt_command_is_a_usage_error_with_advice(
    run: Run, arguments: tuple[str, ...], advice: str
) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(f"Error: {advice}\n")
