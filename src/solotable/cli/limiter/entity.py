"""`solotable limiter entity`: who is limited, by what, and which limits hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.groups import CommandGroup
from solotable.cli.options.database import NotFoundError
from solotable.cli.output import (
    json_option,
    on_one_line,
    output_options,
    print_json,
    print_rows,
    print_table,
    row_of,
)

from .session import confirm, limits_given, list_options, opened, paged, shown, table_options

if TYPE_CHECKING:
    from solotable.systems.limiter import LimitedEntity, Limiter, StoredLimits

_COLUMNS = ("entity_id", "name", "parent_id", "cascade", "created")
#: What `effective_limits` calls a level, in words.
SOURCES = {
    "entity-resource": "this entity on this resource",
    "entity": "this entity",
    "resource": "the resource",
    "system": "the system",
}
_resource = click.option(
    "--resource", metavar="R", help="On this resource alone; all resources unless given."
)


@click.group("entity", cls=CommandGroup)
def entity() -> None:
    """Users, projects, API keys, and the limits of each."""


@entity.command(
    "create",
    epilog="Example: solotable limiter entity create key-7 --parent acme --cascade -d sqlite:///l.db",
)
@click.argument("entity_id", metavar="ENTITY")
@table_options
@click.option("--name", help="What people call it; its id unless given.")
@click.option("--parent", metavar="ENTITY", help="Whom it belongs to; that one has to be there.")
@click.option("--cascade", is_flag=True, help="Charge the parent too with whatever is charged here.")
@click.option("--metadata", metavar="JSON", help='Facts to keep with it, as in \'{"plan": "pro"}\'.')
@json_option
def create(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    entity_id: str,
    db: str | None,
    namespace: str | None,
    name: str | None,
    parent: str | None,
    cascade: bool,
    metadata: str | None,
    as_json: bool,
) -> None:
    """Make an ENTITY, with a parent or by itself.

    Limits and buckets need no entity: only a parent, a name or metadata make it worth while.
    """
    facts = _facts(metadata)
    if cascade and parent is None:
        raise click.UsageError("--cascade charges a parent; name it with --parent.")
    with opened(db, makes=True) as table:
        made = table.limiter(namespace).create_entity(
            entity_id, name=name, parent=parent, cascade=cascade, metadata=facts
        )
        if as_json:
            print_json(_row(made))
            return
        child = (
            "" if parent is None else f", a child of {parent}{', which is charged too' if cascade else ''}"
        )
        click.echo(f"Made {entity_id}{child}.")


@entity.command("show", epilog="Example: solotable limiter entity show key-7 -d sqlite:///l.db")
@click.argument("entity_id", metavar="ENTITY")
@table_options
@_resource
@json_option
def show(entity_id: str, db: str | None, namespace: str | None, resource: str | None, as_json: bool) -> None:
    """Print an ENTITY, the limits that hold for it, and whose they are."""
    with opened(db) as table:
        limiter = table.limiter(namespace)
        found = limiter.get_entity(entity_id)
        own = limiter.limited_resources(entity=entity_id)
        if found is None and not own:
            raise NotFoundError(f"There is no entity {entity_id!r}; it has no limits of its own either.")
        facts = {"entity_id": entity_id} if found is None else _row(found)
        rows = _effective(limiter, entity_id, own, resource)
    if as_json:
        print_json({**facts, "created": facts.get("created"), "limits": rows})
        return
    for name, value in facts.items():
        if value not in (None, {}, False):
            click.echo(f"{name:<10} {on_one_line(value)}")
    if found is None:
        click.echo("It was never made, so it has no parent; its limits hold all the same.")
    click.echo("")
    if rows:
        print_table([_told(row) for row in rows], ("resource", "limits", "set for"))
    else:
        click.echo("No limits hold: none are set for it, for a resource or for the system.")


@entity.command("list", epilog="Example: solotable limiter entity list --all --jsonl -d sqlite:///l.db")
@table_options
@list_options
@output_options
def list_(db: str | None, namespace: str | None, most: int, everything: bool, output: str | None) -> None:
    """Print the entities, each parent before its children."""
    with opened(db) as table:
        limiter = table.limiter(namespace)
        rows = paged(limiter.entities, most, everything=everything, what="entities", row=_row)
        print_rows(rows, output, () if output in ("json", "jsonl") else _COLUMNS)


@entity.command("children", epilog="Example: solotable limiter entity children acme -d sqlite:///l.db")
@click.argument("entity_id", metavar="ENTITY")
@table_options
@list_options
@output_options
def children(
    entity_id: str, db: str | None, namespace: str | None, most: int, everything: bool, output: str | None
) -> None:
    """Print the children of an ENTITY."""
    with opened(db) as table:
        limiter = table.limiter(namespace)
        if limiter.get_entity(entity_id) is None:
            raise NotFoundError(f"There is no entity {entity_id!r}.")

        def ask(*, limit: int, cursor: str | None) -> Any:
            return limiter.children(entity_id, limit=limit, cursor=cursor)

        rows = paged(ask, most, everything=everything, what="children", row=_row)
        print_rows(rows, output, () if output in ("json", "jsonl") else _COLUMNS)


@entity.command("delete", epilog="Example: solotable limiter entity delete key-7 --yes -d sqlite:///l.db")
@click.argument("entity_id", metavar="ENTITY")
@table_options
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def delete(entity_id: str, db: str | None, namespace: str | None, yes: bool) -> int:
    """Remove an ENTITY that has no children, and its limits."""
    with opened(db) as table:
        limiter = table.limiter(namespace)
        if limiter.get_entity(entity_id) is None:
            raise NotFoundError(f"There is no entity {entity_id!r}.")
        if not confirm(f"Remove {entity_id} and its limits?", yes=yes):
            click.echo("Nothing was changed.")
            return 1
        limiter.delete_entity(entity_id)
        click.echo(f"Removed {entity_id} and its limits.")
        return 0


@entity.command(
    "set-limits",
    epilog="Example: solotable limiter entity set-limits u-1 rpm=100/minute tpm=9000/minute+12000",
)
@click.argument("entity_id", metavar="ENTITY")
@click.argument("limits", nargs=-1, required=True, metavar="LIMITS...")
@table_options
@_resource
@json_option
def set_limits(
    entity_id: str,
    limits: tuple[str, ...],
    db: str | None,
    namespace: str | None,
    resource: str | None,
    as_json: bool,
) -> None:
    """Set the LIMITS of an ENTITY, on all resources or on one.

    Those that it had there are replaced. A limit is name=tokens/period: rpm=100/minute, rpd=5000/day,
    rpm=100/60. With +150 behind it, it holds up to 150 tokens, and so lets bursts through.
    """
    given = limits_given(limits)
    with opened(db, makes=True) as table:
        stored = table.limiter(namespace).set_limits(given, entity=entity_id, resource=resource)
        print_stored([stored], as_json=as_json, one=True)


@entity.command("get-limits", epilog="Example: solotable limiter entity get-limits u-1 -d sqlite:///l.db")
@click.argument("entity_id", metavar="ENTITY")
@table_options
@_resource
@json_option
def get_limits(
    entity_id: str, db: str | None, namespace: str | None, resource: str | None, as_json: bool
) -> None:
    """Print an ENTITY's own limits; `show` tells inherited ones too."""
    with opened(db) as table:
        limiter = table.limiter(namespace)
        if resource is None:
            found = list(limiter.limited_resources(entity=entity_id))
        else:
            one = limiter.get_limits(entity=entity_id, resource=resource)
            found = [] if one is None else [one]
        if not found:
            on = "" if resource is None else f" on {resource!r}"
            raise NotFoundError(
                f"{entity_id!r} has no limits of its own{on}; see which hold: "
                f"solotable limiter entity show {entity_id}"
            )
        print_stored(found, as_json=as_json)


@entity.command(
    "delete-limits", epilog="Example: solotable limiter entity delete-limits u-1 --resource gpt-4"
)
@click.argument("entity_id", metavar="ENTITY")
@table_options
@_resource
def delete_limits(entity_id: str, db: str | None, namespace: str | None, resource: str | None) -> None:
    """Remove the limits of an ENTITY; inherited ones hold then.

    Those on all resources are one set, those on each single resource another: --resource chooses.
    """
    with opened(db) as table:
        limiter = table.limiter(namespace)
        before = limiter.delete_limits(entity=entity_id, resource=resource)
        on = "all resources" if resource is None else resource
        if before is None:
            raise NotFoundError(f"{entity_id!r} has no limits of its own on {on}.")
        click.echo(f"Removed the limits of {entity_id} on {on}: {shown(before.limits)}")


def print_stored(found: list[StoredLimits], *, as_json: bool, one: bool = False) -> None:
    """Print stored limits: a line for each level."""
    rows = [stored_row(each) for each in found]
    if as_json:
        print_json(rows[0] if one else rows)
        return
    print_table(
        [
            {
                "entity": row["entity"] or "(all)",
                "resource": row["resource"] or "(all)",
                "limits": shown(each.limits),
                **({"on_unavailable": each.on_unavailable} if each.on_unavailable else {}),
            }
            for row, each in zip(rows, found, strict=True)
        ]
    )


def stored_row(stored: StoredLimits) -> dict[str, Any]:
    """Return stored limits as JSON has them; None is all entities, or all resources."""
    from solotable.systems.limiter import DEFAULT

    return {
        "entity": stored.entity,
        "resource": None if stored.resource == DEFAULT else stored.resource,
        "limits": None if stored.limits is None else [limit.as_dict() for limit in stored.limits],
        "on_unavailable": stored.on_unavailable,
    }


def _effective(limiter: Limiter, entity_id: str, own: Any, resource: str | None) -> list[dict[str, Any]]:
    """Return which limits hold on every resource that limits are set for, and on all others."""
    from solotable.systems.limiter import DEFAULT

    if resource is not None:
        names = [resource]
    else:
        shared = limiter.limited_resources()
        names = sorted({each.resource for each in (*own, *shared)} - {DEFAULT})
    rows = []
    for name in names:
        found = limiter.effective_limits(entity_id, name)
        if found.limits is not None:
            rows.append(_held(name, found.limits, found.source))
    if resource is None:
        for source, level in (
            ("entity", limiter.get_limits(entity=entity_id)),
            ("system", limiter.get_limits()),
        ):
            if level is not None and level.limits is not None:
                rows.append(_held(None, level.limits, source))
                break
    return rows


def _held(resource: str | None, limits: Any, source: Any) -> dict[str, Any]:
    return {"resource": resource, "limits": [limit.as_dict() for limit in limits], "source": source}


def _told(row: dict[str, Any]) -> dict[str, str]:
    from solotable.systems.limiter import Limit

    limits = [Limit(**each) for each in row["limits"]]
    return {
        "resource": row["resource"] or "(any other)",
        "limits": shown(limits),
        "set for": SOURCES[row["source"]],
    }


def _row(found: LimitedEntity) -> dict[str, Any]:
    row = row_of(found)
    names = ("entity_id", "name", "parent_id", "cascade", "metadata", "created")
    return {name: row.get(name) for name in names}


def _facts(metadata: str | None) -> dict[str, Any] | None:
    if metadata is None:
        return None
    try:
        found = json.loads(metadata)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise click.BadParameter(
            f'{metadata!r} is no JSON object; write one as {{"plan": "pro"}}.', param_hint="--metadata"
        )
    return found
