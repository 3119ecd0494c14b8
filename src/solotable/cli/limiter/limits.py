"""`solotable limiter limits`: compare a file of limits with the stored ones, and apply it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from solotable.cli.exit_codes import FAILED, USAGE
from solotable.cli.groups import CommandGroup
from solotable.cli.output import json_option, note, plural, print_json, print_table
from solotable.cli.progress import progress

from .session import DEFAULT_NAMESPACE, LimiterTable, confirm, limiter_command, yes_option

if TYPE_CHECKING:
    from solotable.systems.limiter import Limiter
    from solotable.systems.limiter.manifest import Change, Level, LevelContent, Manifest, Plan

_SIGNS = {"add": "+", "change": "~", "remove": "-"}
_file = click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
_prune = click.option("--prune", is_flag=True, help="Also remove limits that are not in the file.")
_show_prune = click.option(
    "--prune", is_flag=True, help="Also show limits that are not in the file: apply --prune removes them."
)


class InvalidManifest(click.ClickException):
    """A file of limits is not valid; each line says why."""

    exit_code = USAGE

    def show(self, file: object = None) -> None:
        """Print the lines without a prefix: editors jump to FILE:LINE."""
        note(self.message)


@click.group("limits", cls=CommandGroup)
def limits() -> None:
    """Limits from a file: plan, apply, diff."""


@limiter_command(limits, "plan", example="limits plan limits.yaml -d sqlite:///l.db")
@_file
@_show_prune
@json_option
def plan(table: LimiterTable, file: Path, prune: bool, as_json: bool) -> None:
    """Print what applying a FILE would add, change and remove; nothing is written."""
    found = _make_plan(table, read(file), prune=prune)
    if as_json:
        print_json(found.as_dict())
    else:
        _print_plan(found)


@limiter_command(limits, "diff", example="limits diff limits.yaml -d sqlite:///l.db")
@_file
@_show_prune
@json_option
def diff(table: LimiterTable, file: Path, prune: bool, as_json: bool) -> int:
    """Compare a FILE with the stored limits; exit with 1 if they differ.

    Stored limits that are not in the file count with --prune only.
    """
    found = _make_plan(table, read(file), prune=prune)
    if as_json:
        print_json(found.as_dict())
    elif found.changes:
        click.echo(f"--- stored at {table.url.text}, namespace {table.namespace}")
        click.echo(f"+++ {file}")
        for change in found.changes:
            click.echo("\n".join(_diff_lines(change)))
    return FAILED if found.changes else 0


@limiter_command(limits, "apply", create=True, example="limits apply limits.yaml --yes -d sqlite:///l.db")
@_file
@_prune
@yes_option
@json_option
def apply(table: LimiterTable, file: Path, prune: bool, yes: bool, as_json: bool) -> int:
    """Store the limits of a FILE, after printing what changes; applied twice it changes nothing.

    After an interruption, run it again.
    """
    found = _make_plan(table, read(file), prune=prune)
    if not as_json:
        _print_plan(found)
    if found.changes and not confirm(f"Apply it to namespace {table.namespace}?", yes=yes):
        return FAILED
    # Few changes take less time than drawing a bar.
    with progress("limits", quiet=as_json or len(found.changes) < 20) as update:
        for number, change in enumerate(found.changes, 1):
            _write(table.limiter, change)
            update(number, len(found.changes))
    if as_json:
        print_json(found.as_dict())
    elif found.changes:
        counts = found.count("add"), found.count("change"), found.count("remove")
        click.echo("Applied: {} added, {} changed, {} removed.".format(*counts))
    return 0


def read(file: Path) -> Manifest:
    """Read a file, or report its problems by line."""
    from solotable.systems.limiter.manifest import ManifestError, read_manifest
    from solotable.systems.limiter.manifest.source import YamlNotInstalled

    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise click.BadParameter(f"{file} does not exist.", param_hint="FILE") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise click.BadParameter(f"Cannot read {file}: {reason}.", param_hint="FILE") from None
    try:
        return read_manifest(text, str(file))
    except ManifestError as error:
        raise InvalidManifest(str(error)) from error
    except YamlNotInstalled as error:
        raise click.UsageError(str(error)) from error


def _make_plan(table: LimiterTable, manifest: Manifest, *, prune: bool) -> Plan:
    """Return what a file would change in the namespace of the option or of the file."""
    given, named = table.namespace, manifest.namespace
    if given is not None and named is not None and given != named:
        raise click.UsageError(f"The file is for namespace {named!r}, but --namespace is {given!r}.")
    # An empty name is a mistake, as of an unset variable, and not the default.
    table.namespace = next((name for name in (given, named) if name is not None), DEFAULT_NAMESPACE)
    if not table.exists:
        # A new database: everything is to be added.
        from solotable.systems.limiter.manifest import compare

        return compare(manifest, {}, prune=prune)
    return planned(table.limiter, manifest, prune=prune)


def planned(limiter: Limiter, manifest: Manifest, *, prune: bool) -> Plan:
    """Return what a file would change.

    An index lists all levels and may lag behind, so each level that seems to differ is read again.
    """
    from solotable.systems.limiter.manifest import compare
    from solotable.systems.limiter.manifest.plan import content_of

    stored = _stored(limiter)
    for change in compare(manifest, stored, prune=prune).changes:
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
    level, after = change.level._asdict(), change.after
    if after is None:
        limiter.delete_limits(**level)
    else:
        mode = after.mode or "enforce"
        limiter.set_limits(after.rules, on_unavailable=after.on_unavailable, mode=mode, **level)


def _print_plan(found: Plan) -> None:
    from solotable.systems.limiter.manifest.plan import lines

    if found.changes:
        rows = [
            {
                "": _SIGNS[change.action],
                "level": str(change.level),
                "stored": " ".join(lines(change.before)) or "(none)",
                "planned": " ".join(lines(change.after)) or "(none)",
            }
            for change in found.changes
        ]
        print_table(rows, ("", "level", "stored", "planned"))
        counts = found.count("add"), found.count("change"), found.count("remove"), found.same
        click.echo("\nPlan: {} to add, {} to change, {} to remove; {} unchanged.".format(*counts))
    else:
        click.echo(f"Nothing to do: the stored limits match the file ({plural(found.same, 'level')}).")
    if found.unnamed:
        few = ", ".join(map(str, found.unnamed[:3]))
        more = f" and {len(found.unnamed) - 3} more" if len(found.unnamed) > 3 else ""
        count = plural(len(found.unnamed), "stored level")
        note(f"{count} not in the file; --prune removes: {few}{more}")


def _diff_lines(change: Change) -> list[str]:
    from solotable.systems.limiter.manifest.plan import lines

    before, after = lines(change.before), lines(change.after)
    found = [f"  {change.level}"]
    found += [f"-   {each}" for each in before if each not in after]
    found += [f"+   {each}" for each in after if each not in before]
    return found
