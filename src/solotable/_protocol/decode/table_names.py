"""Check table names and ARNs in requests."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from solotable._protocol.constraints.kinds import NAME_PATTERN, Text
from solotable._protocol.constraints.report import combine_failures, make_failure, text_failures
from solotable._protocol.json_codec import plain_dumps
from solotable._values.limits import LONGEST_TABLE_NAME, SHORTEST_TABLE_NAME
from solotable.errors import ServiceError, invalid

_NAME = Text(pattern=NAME_PATTERN, shortest=SHORTEST_TABLE_NAME, longest=LONGEST_TABLE_NAME)
_IS_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,255}").fullmatch
_ARN = re.compile(r"arn:[^:]+:dynamodb:[^:]*:[^:]*:table/([a-zA-Z0-9_.-]{3,255})").fullmatch


# Programs repeat few names, and a hit costs less than the call of a function.
@lru_cache(maxsize=1024)
def table_name(given: str) -> str:
    """Return the table's name or ARN of a request, or raise DynamoDB's error for it.

    Replies name the table in the same way; `plain_name` returns the name alone.
    """
    if _IS_NAME(given) or _ARN(given):
        return given
    if given.startswith("arn:"):
        raise _bad_arn()
    # DynamoDB: checks the name alone, after every other constraint.
    raise combine_failures(list(text_failures(_NAME, given, "tableName")))


def batch_table_name(given: str, requested: dict[str, Any]) -> str:
    """Return a key of RequestItems, a table's name or ARN, or raise an error that shows all keys."""
    if _IS_NAME(given) or _ARN(given):
        return given
    if given.startswith("arn:"):
        raise _bad_arn()
    keys = (
        f"Member must have length less than or equal to {LONGEST_TABLE_NAME}, "
        f"Member must have length greater than or equal to {SHORTEST_TABLE_NAME}, "
        f"Member must satisfy regular expression pattern: {NAME_PATTERN}"
    )
    constraint = f"Map keys must satisfy constraint: [{keys}]"
    raise combine_failures(
        [make_failure("{" + given + "}", "requestItems", constraint, newer=_format_requested(requested))]
    )


def _format_requested(requested: dict[str, Any]) -> str | None:
    try:
        return plain_dumps(requested).decode()
    except RecursionError:
        return None


def plain_name(given: str) -> str:
    """Return the table's name in a name or ARN.

    >>> plain_name("arn:aws:dynamodb:us-east-1:000000000000:table/Orders")
    'Orders'
    """
    return given.rpartition("/")[2]


def with_plain_name(members: dict[str, Any]) -> dict[str, Any]:
    """Return the members with the plain name of their table, if they have one."""
    given = members.get("TableName")
    if given is None:
        return members
    return {**members, "TableName": plain_name(table_name(given))}


def _bad_arn() -> ServiceError:
    return invalid(
        "Valid ARN format is 'arn:<awsPartition>:<vendor>:<region>:<subscriber>:resourceType/resourceName', "
        f"where Resource name must have length less than or equal to {LONGEST_TABLE_NAME}, "
        f"Resource name must have length greater than or equal to {SHORTEST_TABLE_NAME}, "
        f"Resource name must satisfyregular expression pattern: {NAME_PATTERN}"
    )
