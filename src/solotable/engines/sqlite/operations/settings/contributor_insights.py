"""DescribeContributorInsights, UpdateContributorInsights and ListContributorInsights.

The table's definition stores the setting, under "" or under the name of a global index. On AWS, CloudWatch
evaluates the rules of a description; this engine does not count keys.
"""

from __future__ import annotations

import base64
import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from solotable._values.limits import MOST_LISTED_INSIGHTS
from solotable.engines.sqlite.tables import definitions
from solotable.engines.sqlite.tables.catalog import Definition, Table
from solotable.engines.sqlite.tables.definitions import change_definition, load_current_table
from solotable.errors import TableNotFound, invalid

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

_ALL_KEYS: Final = "ACCESSED_AND_THROTTLED_KEYS"

#: The setting of a table or index: Status, Mode, and the times of its last change and of its rules.
Setting = dict[str, Any]


def describe_contributor_insights(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Return whether a table or index has insights, and its rules."""
    table = load_current_table(engine, members["TableName"])
    index = _index(table, members)
    setting = _settings(table.definition).get(index)
    described = _named(table.name, index) | _shown(setting)
    if setting is not None:
        described["LastUpdateDateTime"] = setting["UpdatedMicros"] / 1_000_000
        if setting["Status"] == "ENABLED":
            described["ContributorInsightsRuleList"] = list(_rules(table, index, setting))
    return described


def update_contributor_insights(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Enable or disable the insights of a table or index, with immediate effect."""
    enables = members["ContributorInsightsAction"] == "ENABLE"
    # DynamoDB: a missing mode is the default, not the current mode.
    mode = members.get("ContributorInsightsMode", _ALL_KEYS)
    now = engine.now_micros()

    def action(_connection: sqlite3.Connection, table: Table, definition: Definition) -> None:
        index = _index(table, members)
        if enables and index and table.index(index).status != "ACTIVE":
            raise invalid(
                "Table or Index is not in a valid state to update Key Access Insights: "
                "IndexStatus must be ACTIVE to enable ContributorInsights."
            )
        before = _settings(definition).get(index)
        after = _enabled(before, mode, now) if enables else _disabled(before, now)
        if after is not None:
            definition.setdefault("ContributorInsights", {})[index] = after

    table = change_definition(engine, members["TableName"], action)
    index = members.get("IndexName", "")
    return _named(table.name, index) | _shown(_settings(table.definition).get(index))


def list_contributor_insights(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """List tables and indexes with insights, each table before its indexes."""
    name, limit = members.get("TableName"), members.get("MaxResults", MOST_LISTED_INSIGHTS)
    if name is None:
        with engine.database.read() as connection:
            tables = definitions.read_definitions(connection)
    else:
        tables = [(name, load_current_table(engine, name).definition)]
    after = _parse_token(members["NextToken"]) if "NextToken" in members else ("", "")
    found = [
        (owner, _named(*owner) | _shown(setting))
        for owner, setting in _enabled_settings(tables)
        if owner > after
    ]
    page = found[:limit]
    answer: dict[str, Any] = {"ContributorInsightsSummaries": [entry for _, entry in page]}
    if len(found) > len(page):
        answer["NextToken"] = _token(page[-1][0])
    return answer


def forget_index(definition: Definition, index: str) -> None:
    """Remove the setting of a deleted index."""
    _settings(definition).pop(index, None)


def _settings(definition: Definition) -> dict[str, Setting]:
    found: dict[str, Setting] = definition.get("ContributorInsights", {})
    return found


def _index(table: Table, members: dict[str, Any]) -> str:
    name: str = members.get("IndexName", "")
    if name and not any(index.name == name and index.is_global for index in table.indexes):
        raise TableNotFound(f"Requested resource not found: Index: {name} not found for table: {table.name}")
    return name


def _enabled(before: Setting | None, mode: str, now_micros: int) -> Setting:
    if before is None or before["Status"] != "ENABLED":
        return {"Status": "ENABLED", "Mode": mode, "UpdatedMicros": now_micros, "RulesMicros": now_micros}
    # DynamoDB: a change of mode keeps the rules that both modes have.
    return before if before["Mode"] == mode else before | {"Mode": mode, "UpdatedMicros": now_micros}


def _disabled(before: Setting | None, now_micros: int) -> Setting | None:
    if before is None or before["Status"] == "DISABLED":
        return before
    return before | {"Status": "DISABLED", "UpdatedMicros": now_micros}


def _named(table: str, index: str) -> dict[str, Any]:
    return {"TableName": table, **({"IndexName": index} if index else {})}


def _shown(setting: Setting | None) -> dict[str, Any]:
    if setting is None:
        return {"ContributorInsightsStatus": "DISABLED"}
    return {"ContributorInsightsStatus": setting["Status"], "ContributorInsightsMode": setting["Mode"]}


def _rules(table: Table, index: str, setting: Setting) -> Iterator[str]:
    """Yield the names of the rules that AWS would create for partition and sort keys."""
    schema = table.index(index).schema if index else table.schema
    resource = f"{table.name}-{index}" if index else table.name
    for keys in ("PK", "SK") if schema.sort else ("PK",):
        for kind in ("C", "T") if setting["Mode"] == _ALL_KEYS else ("T",):
            yield f"DynamoDBContributorInsights-{keys}{kind}-{resource}-{setting['RulesMicros'] // 1000}"


def _enabled_settings(tables: list[tuple[str, Definition]]) -> Iterator[tuple[tuple[str, str], Setting]]:
    for name, definition in tables:
        for index, setting in sorted(_settings(definition).items()):
            if setting["Status"] == "ENABLED":
                yield (name, index), setting


def _token(owner: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode("/".join(owner).encode()).decode()


def _parse_token(token: str) -> tuple[str, str]:
    try:
        table, index = base64.urlsafe_b64decode(token.encode()).decode().split("/")
    except ValueError:
        raise invalid("Invalid NextToken") from None
    return table, index
