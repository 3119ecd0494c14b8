"""`solotable tables`, `entities` and `indexes`: list what the models declare."""

from __future__ import annotations

from typing import Any

import click

from solotable.cli.options.models import load_tables, models_option
from solotable.cli.output import output_options, print_rows


@click.command("tables", epilog="Example: solotable tables -m models.py")
@models_option
@output_options
def tables(models: str | None, output: str | None) -> None:
    """List the declared tables."""
    from solotable._entities.schema.diff import shown_schema

    rows = [
        {
            "table": table.name,
            "key": shown_schema(table.definition()["KeySchema"]),
            "tenant": table.tenant,
            "ttl": table.ttl,
            "indexes": len(table.indexes),
            "entities": len(table.plans),
            "patterns": sum(len(plan.patterns) for plan in table.plans.values()),
        }
        for table in load_tables(models)
    ]
    print_rows(rows, output, list(rows[0]))


@click.command("entities", epilog="Example: solotable entities -m models.py:surveyor --json")
@models_option
@output_options
def entities(models: str | None, output: str | None) -> None:
    """List the entities with their keys, scopes and patterns."""
    rows: list[dict[str, Any]] = [
        {
            "entity": plan.name,
            "table": table.name,
            "tag": plan.tag,
            "key": plan.describe(),
            "scope": "global" if plan.tenant is None else f"tenant ({plan.tenant})",
            "version": plan.version,
            "ttl": plan.ttl,
            "patterns": list(plan.patterns),
        }
        for table in load_tables(models)
        for plan in table.plans.values()
    ]
    print_rows(rows, output, list(rows[0]) if rows else ["entity"])


@click.command("indexes", epilog="Example: solotable indexes -m models.py:surveyor")
@models_option
@output_options
def indexes(models: str | None, output: str | None) -> None:
    """List the indexes with their keys, projections and users."""
    from solotable._entities.schema.diff import shown_projection, shown_schema

    rows: list[dict[str, Any]] = []
    for table in load_tables(models):
        wanted = table.definition()
        for place, kind in (("GlobalSecondaryIndexes", "global"), ("LocalSecondaryIndexes", "local")):
            for index in wanted.get(place, ()):
                users = [
                    f"{plan.name}.{path.name}"
                    for plan in table.plans.values()
                    for path in plan.keys.values()
                    if path.index is not None and path.index.name == index["IndexName"]
                ]
                rows.append(
                    {
                        "index": index["IndexName"],
                        "table": table.name,
                        "kind": kind,
                        "key": shown_schema(index["KeySchema"]),
                        "projection": shown_projection(index["Projection"]),
                        "used by": users,
                    }
                )
    print_rows(rows, output, list(rows[0]) if rows else ["index"])
