"""Schema: keys, indexes, time to live and stream of a table, the linter's findings, and exports."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from solotable._entities.schema.diff import compare
from solotable._entities.schema.export import cloudformation, requests, terraform
from solotable._entities.schema.workbench import workbench
from solotable._protocol.requests import Control
from solotable.console.data.catalog import LiveTable
from solotable.console.state import Console, PageRequest, View
from solotable.console.table_links import TableLinks

from .facets import find_table
from .shown import lint_findings, show_facet

_EXPORTS = {
    "cfn": "CloudFormation",
    "terraform": "Terraform",
    "workbench": "NoSQL Workbench",
    "requests": "Requests",
}


def schema(console: Console, asked: PageRequest) -> View:
    """Show how a table is declared, and how it is."""
    table = find_table(console, asked.segments[0])
    links = TableLinks(table.name, asked.tenant)
    described = table.description
    ttl = _time_to_live(console, table)
    stream = described.get("StreamSpecification") or {}
    tab = asked.get("tab") if asked.get("tab") in _EXPORTS else "cfn"
    data: dict[str, Any] = {
        "table": table.name,
        "keys": [
            {"name": part.name, "kind": part.kind, "role": role}
            for part, role in zip(table.keys, ("partition", "sort"), strict=False)
        ],
        "billing": described.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED"),
        "status": described.get("TableStatus", ""),
        "ttl": ttl.get("AttributeName") if ttl.get("TimeToLiveStatus") == "ENABLED" else None,
        "stream": stream.get("StreamViewType") if stream.get("StreamEnabled") else None,
        "indexes": [
            {
                "name": index.name,
                "partition": [[part.name, part.kind] for part in index.partition],
                "sort": [[part.name, part.kind] for part in index.sort],
                "local": index.local,
                "projection": index.projection,
                "items": index.item_count,
                "bytes": index.bytes,
            }
            for index in table.indexes
        ],
        "entities": [
            show_facet(facet) | {"templates": [list(each) for each in facet.templates]}
            for facet in table.facets
        ],
        "declared": table.declared is not None,
        "findings": _findings(table),
        "differences": _differences(table, ttl),
        "exports": _EXPORTS if table.declared is not None else {},
        "tab": tab,
        "export": _export(table, tab),
        "models": "" if table.declared is not None else console.catalog.suggested_models(table.name),
    }
    return View(
        template="schema.html",
        title=f"Schema, {table.name}",
        data=data,
        table=table,
        section="schema",
        crumbs=((table.name, links.home()), ("Schema", "")),
    )


def _time_to_live(console: Console, table: LiveTable) -> dict[str, Any]:
    request = Control(operation="DescribeTimeToLive", members={"TableName": table.name})
    found: dict[str, Any] = console.engine.handle(request)["TimeToLiveDescription"]
    return found


def _findings(table: LiveTable) -> list[dict[str, str]]:
    if table.declared is None:
        return []
    return [
        {
            "code": each.code,
            "severity": each.severity,
            "entity": each.entity or "",
            "message": each.message,
            "where": each.where or "",
        }
        for each in lint_findings(table.declared)
    ]


def _differences(table: LiveTable, ttl: dict[str, Any]) -> list[str]:
    if table.declared is None:
        return []
    wanted = table.declared.definition(table.name)
    return [each.sentence for each in compare(wanted, table.declared.ttl, dict(table.description), ttl)]


def _export(table: LiveTable, tab: str) -> str:
    if table.declared is None:
        return ""
    writers: dict[str, Callable[..., dict[str, Any]]] = {
        "cfn": cloudformation,
        "terraform": terraform,
        "workbench": workbench,
        "requests": requests,
    }
    return json.dumps(writers[tab]([(table.declared, table.name)]), indent=2)
