"""TagResource, UntagResource and ListTagsOfResource for tables."""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, Any

from solotable._values.limits import MOST_TAGS
from solotable.engines.sqlite.tables.catalog import Definition, Table
from solotable.engines.sqlite.tables.definitions import ACCOUNT, change_definition, load_current_table
from solotable.errors import ServiceError, TableNotFound, invalid

from .arns import check_resource

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

_NULL = (
    "1 validation error detected: Value null at '{}' failed to satisfy constraint: Member must not be null"
)
_TABLE = re.compile(r"arn:[^:]+:dynamodb:[^:]+:\d+:table/([a-zA-Z0-9_.-]{3,255})").fullmatch
# Letters and digits of any script, white space, and these characters.
_ALLOWED = re.compile(r"[\w\s+\-=.:/@]*").fullmatch


def tag_resource(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Add tags to a table, or change them."""
    name = _table(members)
    if members.get("Tags") is None:
        raise invalid(_NULL.format("tags"))
    given: list[dict[str, str]] = members["Tags"]
    if not given:
        raise invalid("Atleast one Tag needs to be provided as Input.")
    check_tags(given)

    def action(_connection: sqlite3.Connection, _table: Table, definition: Definition) -> None:
        tags = {tag["Key"]: tag["Value"] for tag in definition["Tags"]}
        tags.update({tag["Key"]: tag["Value"] for tag in given})
        if len(tags) > MOST_TAGS:
            raise _too_many()
        definition["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]

    try:
        change_definition(engine, name, action)
    except TableNotFound:
        raise _missing("TagResource", members) from None
    return {}


def untag_resource(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """Remove tags from a table; ignore missing tags."""
    name = _table(members)
    if members.get("TagKeys") is None:
        raise invalid(_NULL.format("tagKeys"))
    if not members["TagKeys"]:
        raise invalid("Atleast one Tag Key needs to be provided as Input.")
    if len(members["TagKeys"]) > MOST_TAGS:
        raise _too_many()

    def action(_connection: sqlite3.Connection, _table: Table, definition: Definition) -> None:
        definition["Tags"] = [tag for tag in definition["Tags"] if tag["Key"] not in members["TagKeys"]]

    try:
        change_definition(engine, name, action)
    except TableNotFound:
        # DynamoDB: the other two operations name the ARN here.
        raise _foreign("UntagResource", members) or TableNotFound() from None
    return {}


def list_tags_of_resource(engine: SqliteEngine, members: dict[str, Any]) -> dict[str, Any]:
    """List the tags of a table, all in one page."""
    name = _table(members)
    try:
        table = load_current_table(engine, name)
    except TableNotFound:
        raise _missing("ListTagsOfResource", members) from None
    return {"Tags": table.definition["Tags"]}


def check_tags(tags: list[dict[str, str]]) -> None:
    """Reject invalid tags."""
    seen: set[str] = set()
    for tag in tags:
        key, value = tag["Key"], tag["Value"]
        if not _ALLOWED(key):
            raise invalid(f"The Tag Key provided is invalid, Key: {key}")
        if not _ALLOWED(value):
            raise invalid(f"The Tag Value provided is invalid, Value: {value}")
        if key.lower().startswith("aws:"):
            raise invalid(f"Tag Key cannot be prefixed with aws:, Key: {key}")
        if key in seen:
            raise invalid(f"Duplicate Tag Keys provided as input: Duplicate Tag Key found {key}")
        seen.add(key)
    if len(tags) > MOST_TAGS:
        raise _too_many()


def _too_many() -> ServiceError:
    return invalid("Number of Tags exceed the current limit for the provided ResourceArn")


def _missing(operation: str, members: dict[str, Any]) -> ServiceError:
    return _foreign(operation, members) or TableNotFound(
        f"Requested resource not found: ResourceArn: {members['ResourceArn']} not found"
    )


def _foreign(operation: str, members: dict[str, Any]) -> ServiceError | None:
    # DynamoDB: AWS does not say whether another account has the table; ExtendDB 227, nubo-db/dynoxide.
    arn: str = members["ResourceArn"]
    if arn.split(":")[4] == ACCOUNT:
        return None
    return ServiceError(
        "AccessDeniedException",
        f"User: arn:aws:iam::{ACCOUNT}:root is not authorized to perform: dynamodb:{operation} "
        f"on resource: {arn}",
    )


def _table(members: dict[str, Any]) -> str:
    arn: str | None = members.get("ResourceArn")
    if arn is None:
        raise invalid("Invalid TableArn")
    check_resource(arn)
    found = _TABLE(arn)
    if found is None:
        raise invalid(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")
    return found[1]
