"""`solotable limiter entity`: limited entities, their limits, and which limits apply."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.groups import CommandGroup
from solotable.cli.options.database import NotFoundError
from solotable.cli.output import json_option, on_one_line, print_json, print_table, row_of

from .session import (
    LimiterTable,
    confirm,
    dry_run_option,
    format_limits,
    limiter_command,
    list_options,
    mode_option,
    parse_rules,
    print_pages,
    schedule_options,
    yes_option,
)

if TYPE_CHECKING:
    from solotable.systems.limiter import LimitedEntity, Limiter, Mode, StoredLimits

_COLUMNS = ("entity_id", "name", "parent_id", "cascade", "created")
#: The levels of `effective_limits` in words.
SOURCES = {
    "entity-resource": "this entity on this resource",
    "entity": "this entity",
    "resource": "the resource",
    "system": "the system",
}
_entity = click.argument("entity_id", metavar="ENTITY")
_resource = click.option("--resource", metavar="R", help="Only on this resource. Default: all resources.")


@click.group("entity", cls=CommandGroup)
def entity() -> None:
    """Users, projects, API keys, and the limits of each."""


@limiter_command(
    entity, "create", create=True, example="entity create key-7 --parent acme --cascade -d sqlite:///l.db"
)
@_entity
@click.option("--name", help="Name for users. Default: the id.")
@click.option("--parent", metavar="ENTITY", help="Parent, which must exist.")
@click.option("--cascade", is_flag=True, help="Also charge the parent.")
@click.option("--metadata", metavar="JSON", help='Facts to store with it, as in \'{"plan": "pro"}\'.')
@json_option
def create(table: LimiterTable, entity_id: str, metadata: str | None, as_json: bool, **given: Any) -> None:
    """Create an ENTITY, with or without a parent.

    Limits and buckets do not need it: create an entity for a parent, a name or metadata.
    """
    facts, parent = _parse_metadata(metadata), given["parent"]
    if given["cascade"] and parent is None:
        raise click.UsageError("--cascade charges a parent; name it with --parent.")
    created = table.limiter.create_entity(entity_id, metadata=facts, **given)
    if as_json:
        print_json(_row(created))
        return
    charged = ", which is charged too" if given["cascade"] else ""
    click.echo(f"Created {entity_id}{'' if parent is None else f', a child of {parent}{charged}'}.")


@limiter_command(entity, "show", example="entity show key-7 -d sqlite:///l.db")
@_entity
@_resource
@json_option
def show(table: LimiterTable, entity_id: str, resource: str | None, as_json: bool) -> None:
    """Print an ENTITY, the limits that apply to it, and where each is set."""
    found = table.limiter.get_entity(entity_id)
    own = table.limiter.limited_resources(entity=entity_id)
    if found is None and not own:
        raise NotFoundError(f"Entity {entity_id!r} does not exist, and no limits are set for it.")
    facts = {"entity_id": entity_id} if found is None else _row(found)
    rows = _effective(table.limiter, entity_id, own, resource)
    if as_json:
        print_json({**facts, "created": facts.get("created"), "limits": rows})
        return
    for name, value in facts.items():
        if value not in (None, {}, False):
            click.echo(f"{name:<10} {on_one_line(value)}")
    if found is None:
        click.echo("It was not created, so it has no parent; its limits apply all the same.")
    click.echo("")
    if rows:
        has_modes = any(row["mode"] != "enforce" for row in rows)
        columns = ("resource", "limits", "set for", *(("mode",) if has_modes else ()))
        print_table([_readable(row) for row in rows], columns)
    else:
        click.echo("No limits apply: none are set for it, for a resource or for the system.")


@limiter_command(entity, "list", example="entity list --all --jsonl -d sqlite:///l.db")
@list_options
def list_(table: LimiterTable, **options: Any) -> None:
    """Print the entities, each parent before its children."""
    print_pages(table.limiter.entities, _row, what="entities", columns=_COLUMNS, **options)


@limiter_command(entity, "children", example="entity children acme -d sqlite:///l.db")
@_entity
@list_options
def children(table: LimiterTable, entity_id: str, **options: Any) -> None:
    """Print the children of an ENTITY."""
    _require(table, entity_id)

    def ask(*, limit: int, cursor: str | None) -> Any:
        return table.limiter.children(entity_id, limit=limit, cursor=cursor)

    print_pages(ask, _row, what="children", columns=_COLUMNS, **options)


@limiter_command(entity, "delete", example="entity delete key-7 --yes -d sqlite:///l.db")
@_entity
@yes_option
def delete(table: LimiterTable, entity_id: str, yes: bool) -> int:
    """Delete an ENTITY that has no children, and its limits."""
    _require(table, entity_id)
    if not confirm(f"Delete {entity_id} and its limits?", yes=yes):
        return 1
    table.limiter.delete_entity(entity_id)
    click.echo(f"Deleted {entity_id} and its limits.")
    return 0


@limiter_command(
    entity, "set-limits", create=True, example="entity set-limits u-1 rpm=100/minute tpm=9000/minute+12000"
)
@_entity
@click.argument("limits", nargs=-1, required=True, metavar="LIMITS...")
@_resource
@schedule_options
@mode_option
@json_option
def set_limits(  # noqa: PLR0913 - options of a command, each by name
    table: LimiterTable,
    entity_id: str,
    *,
    limits: tuple[str, ...],
    resource: str | None,
    windows: tuple[str, ...],
    timezone: str,
    mode: Mode | None,
    as_json: bool,
) -> None:
    """Set the LIMITS of an ENTITY, on all resources or on one.

    They replace its limits there. A limit is name=tokens/period: rpm=100/minute, rpd=5000/day, rpm=100/60.
    With +150 after it, it holds up to 150 tokens and allows bursts. Other kinds are rpm=100/fixed:minute,
    rpm=100/sliding:minute, chat=50/session:hour, quota=1000/calendar:month:15,Europe/Berlin.
    """
    given = parse_rules(limits, windows, timezone)
    stored = table.limiter.set_limits(given, entity=entity_id, resource=resource, mode=mode)
    print_stored([stored], as_json=as_json, one=True)


@limiter_command(entity, "get-limits", example="entity get-limits u-1 -d sqlite:///l.db")
@_entity
@_resource
@json_option
def get_limits(table: LimiterTable, entity_id: str, resource: str | None, as_json: bool) -> None:
    """Print an ENTITY's own limits; `show` also prints inherited ones."""
    if resource is None:
        found = list(table.limiter.limited_resources(entity=entity_id))
    else:
        one = table.limiter.get_limits(entity=entity_id, resource=resource)
        found = [] if one is None else [one]
    if not found:
        on = "" if resource is None else f" on {resource!r}"
        raise NotFoundError(
            f"No limits are set for {entity_id!r}{on}; see which apply: "
            f"solotable limiter entity show {entity_id}"
        )
    print_stored(found, as_json=as_json)


@limiter_command(entity, "delete-limits", example="entity delete-limits u-1 --resource gpt-4")
@_entity
@_resource
def delete_limits(table: LimiterTable, entity_id: str, resource: str | None) -> None:
    """Delete the limits of an ENTITY; inherited ones apply then.

    Limits on all resources are one set, those on each single resource another: --resource selects.
    """
    before = table.limiter.delete_limits(entity=entity_id, resource=resource)
    print_deleted(before, f"{entity_id} on {'all resources' if resource is None else resource}")


@limiter_command(entity, "set-mode", create=True, example="entity set-mode u-1 deny -d sqlite:///l.db")
@_entity
@click.argument("mode", type=click.Choice(["enforce", "shadow", "disabled", "bypass", "deny"]))
@_resource
@dry_run_option
@json_option
def set_mode(
    table: LimiterTable, *, entity_id: str, mode: Mode, resource: str | None, dry_run: bool, as_json: bool
) -> None:
    """Deny an ENTITY, let it bypass all limits, or set how its own limits apply.

    The limits stay. `enforce` ends every other mode.
    """
    print_mode(table, entity_id, mode, resource, dry_run=dry_run, as_json=as_json)


@limiter_command(entity, "reset", example="entity reset u-1 --resource gpt-4 --yes -d sqlite:///l.db")
@_entity
@_resource
@click.option("--limit", "limits", multiple=True, metavar="NAME", help="Only this limit. May be repeated.")
@yes_option
@dry_run_option
@json_option
def reset(
    table: LimiterTable,
    *,
    entity_id: str,
    resource: str | None,
    limits: tuple[str, ...],
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Make the limits of an ENTITY full again, whatever was taken, on all resources or on one."""
    which = f"{' '.join(limits) or 'all limits'} of {entity_id} on {resource or 'all resources'}"
    if dry_run:
        click.echo(f"Would reset {which}.")
        return 0
    if not confirm(f"Reset {which}?", yes=yes):
        return 1
    stored = table.limiter.reset(entity_id, resource=resource, limits=limits or None)
    if as_json:
        print_json({"entity": entity_id, "resource": resource, "resets": stored.resets})
    else:
        click.echo(f"Reset {which}.")
    return 0


@limiter_command(entity, "top-up", example="entity top-up u-1 gpt-4 tpm=5000 --key ticket-7")
@_entity
@click.argument("resource", metavar="RESOURCE")
@click.argument("amounts", nargs=-1, required=True, metavar="AMOUNTS...")
@click.option("--key", metavar="TEXT", help="The same key again adds nothing, for a week.")
@dry_run_option
@json_option
def top_up(
    table: LimiterTable,
    *,
    entity_id: str,
    resource: str,
    amounts: tuple[str, ...],
    key: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Add tokens to limits of an ENTITY for a RESOURCE, up to their capacity. AMOUNTS are name=tokens."""
    from .bucket import parse_amounts

    tokens = parse_amounts(amounts)
    before = table.limiter.available(entity_id, resource)
    after = before if dry_run else table.limiter.top_up(entity_id, resource, tokens, key=key)
    if as_json:
        print_json({"entity": entity_id, "resource": resource, "before": before, "available": after})
        return
    added = " ".join(f"{name}={amount}" for name, amount in tokens.items())
    click.echo(f"{'Would add' if dry_run else 'Added'} {added} to {entity_id} on {resource}.\n")
    rows = [
        {"limit": name, "before": f"{before.get(name, 0):,}", "available": f"{left:,}"}
        for name, left in after.items()
    ]
    print_table(rows)


@limiter_command(entity, "set-parent", example="entity set-parent key-7 acme --cascade -d sqlite:///l.db")
@_entity
@click.argument("parent", required=False, metavar="[PARENT]")
@click.option("--cascade/--no-cascade", default=None, help="Whether the parent is charged too.")
@dry_run_option
@json_option
def set_parent(
    table: LimiterTable,
    *,
    entity_id: str,
    parent: str | None,
    cascade: bool | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Give an ENTITY another PARENT, or none."""
    _require(table, entity_id)
    if dry_run:
        after = "have no parent" if parent is None else f"be a child of {parent}"
        click.echo(f"{entity_id} would {after}.")
        return
    changed = table.limiter.set_parent(entity_id, parent, cascade=cascade)
    if as_json:
        print_json(_row(changed))
        return
    charged = ", which is charged too" if changed.cascade else ""
    click.echo(
        f"{entity_id} has no parent." if parent is None else f"{entity_id} is a child of {parent}{charged}."
    )


def print_mode(
    table: LimiterTable,
    entity_id: str | None,
    mode: Mode,
    resource: str | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Set the mode of a level, and print the level."""
    if dry_run:
        level = " on ".join(filter(None, (entity_id, resource))) or "the system"
        before = table.limiter.get_limits(entity=entity_id, resource=resource)
        now = "enforce" if before is None or before.mode is None else before.mode
        click.echo(f"Would change the mode of {level} from {now} to {mode}.")
        return
    stored = table.limiter.set_mode(entity_id, mode, resource=resource)
    print_stored([stored], as_json=as_json, one=True)


def print_stored(found: list[StoredLimits], *, as_json: bool, one: bool = False) -> None:
    """Print stored limits, one line per level."""
    if as_json:
        rows = [each.as_dict() for each in found]
        print_json(rows[0] if one else rows)
        return
    print_table(
        [
            {
                "entity": each.entity or "(all)",
                "resource": each.resource_name or "(all)",
                "limits": format_limits(each.schedule or each.limits),
                **({"on_unavailable": each.on_unavailable} if each.on_unavailable else {}),
                **({"mode": each.mode} if each.mode else {}),
            }
            for each in found
        ]
    )


def print_deleted(before: StoredLimits | None, level: str) -> None:
    """Print the limits that were deleted from a level, or report that there were none."""
    if before is None:
        raise NotFoundError(f"No limits are set for {level}.")
    click.echo(f"Deleted the limits of {level}: {format_limits(before.schedule or before.limits)}")


def _require(table: LimiterTable, entity_id: str) -> None:
    if table.limiter.get_entity(entity_id) is None:
        raise NotFoundError(f"Entity {entity_id!r} does not exist.")


def _effective(limiter: Limiter, entity_id: str, own: Any, resource: str | None) -> list[dict[str, Any]]:
    """Return which limits apply on every resource with limits, and on all others."""
    names = [resource]
    if resource is None:
        shared = limiter.limited_resources()
        names = sorted({each.resource_name for each in (*own, *shared)} - {None})
    found: list[tuple[str | None, Any, str | None, str]] = []
    for name in names:
        effective = limiter.effective_limits(entity_id, name or "")
        found.append((name, effective.limits, effective.source, effective.mode))
    if resource is None:
        levels = [("entity", limiter.get_limits(entity=entity_id)), ("system", limiter.get_limits())]
        own_mode = levels[0][1].mode if levels[0][1] is not None else None
        override = own_mode if own_mode in ("bypass", "deny") else None
        others = [
            (None, each.limits, source, override or each.mode or "enforce")
            for source, each in levels
            if each is not None and each.limits
        ]
        found += others[:1]
    return [
        {"resource": name, "limits": [limit.as_dict() for limit in limits], "source": source, "mode": mode}
        for name, limits, source, mode in found
        if limits is not None
    ]


def _readable(row: dict[str, Any]) -> dict[str, str]:
    from solotable.systems.limiter import Limit

    return {
        "resource": row["resource"] or "(any other)",
        "limits": format_limits([Limit.from_dict(each) for each in row["limits"]]),
        "set for": SOURCES[row["source"]],
        **({"mode": row["mode"]} if row["mode"] != "enforce" else {}),
    }


def _row(found: LimitedEntity) -> dict[str, Any]:
    row = row_of(found)
    names = ("entity_id", "name", "parent_id", "cascade", "metadata", "created")
    return {name: row.get(name) for name in names}


def _parse_metadata(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise click.BadParameter(
            f'{text!r} is not a JSON object; write one as {{"plan": "pro"}}.', param_hint="--metadata"
        )
    return found
