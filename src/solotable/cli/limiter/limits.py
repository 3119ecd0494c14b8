"""`solotable limiter limits`: a file of limits against what is stored."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from solotable.cli.exit_codes import FAILED, USAGE
from solotable.cli.groups import CommandGroup
from solotable.cli.output import json_option, note, print_json, print_table

from .session import DEFAULT_NAMESPACE, Table, confirm, opened, table_options

if TYPE_CHECKING:
    from solotable.systems.limiter import Limiter
    from solotable.systems.limiter.manifest import Change, Level, LevelContent, Manifest, Plan

_SIGNS = {"add": "+", "change": "~", "remove": "-"}
_file = click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
_prune = click.option("--prune", is_flag=True, help="Also remove limits that the file does not name.")


class InvalidManifest(click.ClickException):
    """A file of limits cannot be used; every line says why."""

    exit_code = USAGE

    def show(self, file: object = None) -> None:
        """Print the lines as they are: editors jump to FILE:LINE."""
        note(self.message)


@click.group("limits", cls=CommandGroup)
def limits() -> None:
    """Limits from a file: plan, apply, diff."""


@limits.command("plan", epilog="Example: solotable limiter limits plan limits.yaml -d sqlite:///l.db")
@_file
@table_options
@_prune
@json_option
def plan(file: Path, db: str | None, namespace: str | None, prune: bool, as_json: bool) -> None:
    """Print what applying a FILE would add, change and remove; nothing is written."""
    manifest = read(file)
    with opened(db) as table:
        limiter = _limiter(table, manifest, namespace)
        found = planned(limiter, manifest, prune=prune)
    if as_json:
        print_json(found.as_dict())
    else:
        _print_plan(found)


@limits.command("diff", epilog="Example: solotable limiter limits diff limits.yaml -d sqlite:///l.db")
@_file
@table_options
@_prune
@json_option
def diff(file: Path, db: str | None, namespace: str | None, prune: bool, as_json: bool) -> int:
    """Compare a FILE with what is stored; exit with 1 when anything differs.

    Limits that are stored and that the file does not name differ with --prune only.
    """
    manifest = read(file)
    with opened(db) as table:
        limiter = _limiter(table, manifest, namespace)
        found = planned(limiter, manifest, prune=prune)
        if as_json:
            print_json(found.as_dict())
        elif found.changes:
            click.echo(f"--- stored at {table.url.text}, namespace {_name(manifest, namespace)}")
            click.echo(f"+++ {file}")
            for change in found.changes:
                click.echo("\n".join(_diff_lines(change)))
    return FAILED if found.changes else 0


@limits.command("apply", epilog="Example: solotable limiter limits apply limits.yaml --yes -d sqlite:///l.db")
@_file
@table_options
@_prune
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
def apply(file: Path, db: str | None, namespace: str | None, prune: bool, yes: bool, as_json: bool) -> int:
    """Store the limits of a FILE, after showing what changes; applied twice it changes nothing.

    Broken off anywhere it can be run again.
    """
    manifest = read(file)
    with opened(db, makes=True) as table:
        limiter = _limiter(table, manifest, namespace)
        found = planned(limiter, manifest, prune=prune)
        if not as_json:
            _print_plan(found)
        if found.changes and not confirm(f"Apply it to namespace {_name(manifest, namespace)}?", yes=yes):
            note("Nothing was changed.")
            return FAILED
        with _showing(len(found.changes), quiet=as_json) as told:
            for change in found.changes:
                _write(limiter, change)
                told()
    if as_json:
        print_json(found.as_dict())
    elif found.changes:
        click.echo(f"Applied: {_counts(found, '')}.")
    return 0


def read(file: Path) -> Manifest:
    """Read a file, or say by line what is wrong with it."""
    from solotable.systems.limiter.manifest import ManifestError, read_manifest
    from solotable.systems.limiter.manifest.source import YamlNotInstalled

    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise click.BadParameter(f"There is no file {file}.", param_hint="FILE") from None
    except (OSError, UnicodeDecodeError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise click.BadParameter(f"{file} cannot be read: {told}.", param_hint="FILE") from None
    try:
        return read_manifest(text, str(file))
    except ManifestError as refused:
        raise InvalidManifest(str(refused)) from refused
    except YamlNotInstalled as refused:
        raise click.UsageError(str(refused)) from refused


def planned(limiter: Limiter, manifest: Manifest, *, prune: bool) -> Plan:
    """Return what a file would change.

    All levels are listed from an index, which may lag behind; so whatever seems to differ is read again.
    """
    from solotable.systems.limiter.manifest import compare
    from solotable.systems.limiter.manifest.plan import content_of

    stored = _stored(limiter)
    seen = compare(manifest, stored, prune=prune)
    for change in seen.changes:
        level = change.level
        now = content_of(limiter.get_limits(entity=level.entity, resource=level.resource))
        stored.pop(level, None)
        if now is not None:
            stored[level] = now
    return compare(manifest, stored, prune=prune)


def _stored(limiter: Limiter) -> dict[Level, LevelContent]:
    from solotable.systems.limiter.manifest.plan import content_of, level_of

    found: dict[Level, LevelContent] = {}
    cursor = None
    while True:
        page = limiter.stored_limits(limit=1_000, cursor=cursor)
        for each in page:
            content = content_of(each)
            if content is not None:
                found[level_of(each)] = content
        cursor = page.cursor
        if cursor is None:
            return found


def _write(limiter: Limiter, change: Change) -> None:
    level, after = change.level, change.after
    if after is None:
        limiter.delete_limits(entity=level.entity, resource=level.resource)
    else:
        limiter.set_limits(
            after.limits,
            entity=level.entity,
            resource=level.resource,
            on_unavailable=after.on_unavailable,
        )


def _name(manifest: Manifest, namespace: str | None) -> str:
    # An empty name is a mistake, as of a variable that is not set, and not the default.
    return next((name for name in (namespace, manifest.namespace) if name is not None), DEFAULT_NAMESPACE)


def _limiter(table: Table, manifest: Manifest, namespace: str | None) -> Limiter:
    if namespace is not None and manifest.namespace is not None and namespace != manifest.namespace:
        raise click.UsageError(
            f"The file is for namespace {manifest.namespace!r}, and {namespace!r} was asked for."
        )
    return table.limiter(_name(manifest, namespace))


def _print_plan(found: Plan) -> None:
    from solotable.systems.limiter.manifest.plan import lines

    if found.changes:
        print_table(
            [
                {
                    "": _SIGNS[change.action],
                    "level": str(change.level),
                    "stored": " ".join(lines(change.before)) or "(none)",
                    "planned": " ".join(lines(change.after)) or "(none)",
                }
                for change in found.changes
            ],
            ("", "level", "stored", "planned"),
        )
        click.echo("")
        click.echo(f"Plan: {_counts(found, 'to ')}; {found.same} as they are.")
    else:
        click.echo(f"Nothing to do: {_plural(found.same)} stored as the file says.")
    if found.unnamed:
        note(f"{_plural(len(found.unnamed))} stored but not in the file; --prune removes: {_some(found)}")


def _plural(count: int) -> str:
    return "1 level is" if count == 1 else f"{count} levels are"


def _some(found: Plan) -> str:
    few = ", ".join(map(str, found.unnamed[:3]))
    return few if len(found.unnamed) <= 3 else f"{few} and {len(found.unnamed) - 3} more"


def _counts(found: Plan, to: str) -> str:
    words: Sequence[tuple[str, str]] = (
        (("add", "add"), ("change", "change"), ("remove", "remove"))
        if to
        else (("add", "added"), ("change", "changed"), ("remove", "removed"))
    )
    return ", ".join(f"{found.count(action)} {to}{word}" for action, word in words)  # type: ignore[arg-type]  # the three actions


def _diff_lines(change: Change) -> list[str]:
    from solotable.systems.limiter.manifest.plan import lines

    before, after = lines(change.before), lines(change.after)
    found = [f"  {change.level}"]
    found += [f"-   {each}" for each in before if each not in after]
    found += [f"+   {each}" for each in after if each not in before]
    return found


@contextmanager
def _showing(total: int, *, quiet: bool) -> Iterator[Callable[[], object]]:
    """Show on a terminal how far it has come; a few changes are done before anybody could look."""
    if quiet or total < 20 or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("limits"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("limits", total=total)
        yield lambda: bar.advance(task)
