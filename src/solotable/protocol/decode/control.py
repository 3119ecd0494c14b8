"""Operations on tables, tags, time to live, backups and streams: members -> one Control record.

Their members travel as DynamoDB names them; a table given by ARN arrives by its name.
"""

from __future__ import annotations

import re

from solotable.errors import invalid
from solotable.protocol.constraints import aggregated, failure
from solotable.protocol.names import named
from solotable.protocol.requests import Control

from .parameters import Members

_ARN = re.compile(r"arn:[^:]+:dynamodb:.+:\d+:table/[^/]{3,}").fullmatch


def control(operation: str, members: Members) -> Control:
    """Decode a control or streams operation."""
    match operation:
        case "TagResource":
            _judge_resource(members, needed="Tags", empty="Atleast one Tag needs to be provided as Input.")
        case "UntagResource":
            _judge_resource(
                members, needed="TagKeys", empty="Atleast one Tag Key needs to be provided as Input."
            )
        case "ListTagsOfResource":
            _judge_resource(members, needed=None, empty="")
        case "UpdateTable":
            _judge_update_table(members)
        case _:
            pass
    return Control(operation=operation, members=named(members))


def _judge_resource(members: Members, *, needed: str | None, empty: str) -> None:
    arn = members.get("ResourceArn")
    if arn is None:
        raise invalid("Invalid TableArn")
    if needed is not None and needed not in members:
        raise aggregated([failure(None, needed[0].lower() + needed[1:], "Member must not be null")])
    if not _ARN(arn):
        raise invalid(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")
    if needed is not None and not members[needed]:
        raise invalid(empty)


def _judge_update_table(members: Members) -> None:
    if all(name == "TableName" or part == [] for name, part in members.items()):
        raise invalid(
            "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
            "GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required"
        )
