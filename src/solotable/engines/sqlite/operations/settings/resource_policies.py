"""PutResourcePolicy, GetResourcePolicy and DeleteResourcePolicy, on tables and streams.

The table's definition stores a policy, under "" or under the label of a stream; it is deleted with the table.
No operation evaluates it. AWS allows one change in 15 seconds; here a change takes effect immediately.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from solotable._protocol.constraints.resource_policies import Policy, parse_policy, render_policy
from solotable.engines.sqlite.items import streams
from solotable.engines.sqlite.tables.catalog import Definition, Table
from solotable.engines.sqlite.tables.definitions import (
    Change,
    change_definition,
    load_current_table,
    table_arn,
)
from solotable.errors import ServiceError, TableNotFound, invalid_parameter

from .arns import check_resource

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

_RESOURCE = re.compile(
    r"arn:[^:]+:dynamodb:[^:]*:[^:]*:table/([a-zA-Z0-9_.-]{3,255})(?:/stream/([^/]+))?"
).fullmatch
#: The ExpectedRevisionId for a resource without a policy.
_NO_POLICY: Final = "NO_POLICY"
_NOT_FOUND: Final = "Resource-based policy not found for the provided ResourceArn: "

#: The stored policy of one resource: RevisionId, and Policy unless it was deleted.
StoredPolicy = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Resource:
    """A table, or a stream of it by label."""

    arn: str
    table: str
    label: str


def put_resource_policy(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Attach a policy; the same policy in another format keeps its revision."""
    resource = _resource(members)
    policy = parse_policy(members["Policy"])

    def action(connection: sqlite3.Connection, _table: Table, definition: Definition) -> None:
        stored = _read_policy(engine, connection, resource, definition)
        _check_revision(members.get("ExpectedRevisionId"), stored, resource.table)
        if stored.get("Policy") != policy:
            _store(definition, resource, new_policy(engine.now_micros(), policy, stored))

    return {"RevisionId": _change_policy(engine, resource, action)["RevisionId"]}


def get_resource_policy(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Return the policy of a table or stream."""
    resource = _resource(members)
    try:
        table = load_current_table(engine, resource.table)
    except TableNotFound:
        if resource.label:
            # DynamoDB: a stream outlives its table, without a policy.
            raise _not_found(resource.arn) from None
        raise
    with engine.database.read() as connection:
        stored = _read_policy(engine, connection, resource, table.definition)
    if "Policy" not in stored:
        raise _not_found(resource.arn)
    return {"Policy": render_policy(stored["Policy"]), "RevisionId": stored["RevisionId"]}


def delete_resource_policy(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Remove the policy of a table or stream."""
    resource = _resource(members)
    removed: list[str] = []

    def action(connection: sqlite3.Connection, _table: Table, definition: Definition) -> None:
        stored = _read_policy(engine, connection, resource, definition)
        _check_revision(members.get("ExpectedRevisionId"), stored, resource.table)
        removed[:] = [stored["RevisionId"]] if stored else []
        if "Policy" in stored:
            # DynamoDB: the deletion has a revision too, which a second deletion returns.
            _store(definition, resource, new_policy(engine.now_micros(), None, stored))

    _change_policy(engine, resource, action)
    return {"RevisionId": removed[0]} if removed else {}


def new_policy(now_micros: int, policy: Policy | None, before: StoredPolicy | None = None) -> StoredPolicy:
    """Return a policy to store; its revision is the time of the change in milliseconds."""
    revision = max(now_micros // 1000, int((before or {}).get("RevisionId", 0)) + 1)
    return {"RevisionId": str(revision), **({} if policy is None else {"Policy": policy})}


def _resource(members: dict[str, Any]) -> Resource:
    arn: str = members["ResourceArn"]
    check_resource(arn)
    found = _RESOURCE(arn)
    if found is None:
        raise invalid_parameter(f"Provided Arn is not a DynamoDB resource arn: {arn}")
    return Resource(arn=arn, table=found[1], label=found[2] or "")


def _read_policy(
    engine: SqliteEngine, connection: sqlite3.Connection, resource: Resource, definition: Definition
) -> StoredPolicy:
    if resource.label:
        arn = f"{table_arn(resource.table)}/stream/{resource.label}"
        if streams.find(connection, arn, engine.now_micros()) is None:
            raise TableNotFound(
                f"Requested resource not found: Stream: {resource.label} not found for "
                f"Table: {resource.table}"
            )
    found: StoredPolicy = definition.get("ResourcePolicies", {}).get(resource.label, {})
    return found


def _store(definition: Definition, resource: Resource, stored: StoredPolicy) -> None:
    definition.setdefault("ResourcePolicies", {})[resource.label] = stored


def _change_policy(engine: SqliteEngine, resource: Resource, action: Change) -> StoredPolicy:
    table = change_definition(engine, resource.table, action)
    found: StoredPolicy = table.definition.get("ResourcePolicies", {}).get(resource.label, {})
    return found


def _check_revision(expected: str | None, stored: StoredPolicy, table: str) -> None:
    if expected is None:
        return
    if expected == _NO_POLICY:
        if "Policy" in stored:
            raise _not_found(
                f"Requested policy update expecting none to be present for table {table}, but a policy "
                f"exists with revision id {stored['RevisionId']}."
            )
        return
    if not stored:
        raise _not_found(
            f"Requested update for policy with revision id {expected}, but table {table} has no associated "
            "policy."
        )
    if expected != stored["RevisionId"]:
        raise _not_found(
            f"Requested update for policy with revision id {expected}, but the policy associated to target "
            f"table {table} has revision id {stored['RevisionId']}."
        )


def _not_found(what: str) -> ServiceError:
    return ServiceError("PolicyNotFoundException", _NOT_FOUND + what)
