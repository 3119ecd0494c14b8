"""Operations on tables, tags, time to live, backups and streams: members -> one Control record.

Their members travel as DynamoDB names them; a table given by ARN arrives by its name. What a table's
definition may say is the engine's to judge, beside the definitions it knows.
"""

from __future__ import annotations

from solotable._protocol.decode.table_names import named
from solotable._protocol.requests import Control
from solotable._values.limits import LONGEST_TAG_KEY, LONGEST_TAG_VALUE
from solotable.errors import invalid

from .parameters import Members


def control(operation: str, members: Members) -> Control:
    """Decode a control or streams operation."""
    for tag in members.get("Tags", ()):
        _judge_tag_key(tag.get("Key"))
        _judge_tag_value(tag.get("Value"))
    for key in members.get("TagKeys", ()):
        _judge_tag_key(key)
    return Control(operation=operation, members=named(members))


# DynamoDB: tags have texts of their own where other members have constraints.
def _judge_tag_key(key: str | None) -> None:
    if key is None or not 1 <= len(key) <= LONGEST_TAG_KEY:
        raise invalid(f"The Tag Key provided is invalid, Key: {'null' if key is None else key}")


def _judge_tag_value(value: str | None) -> None:
    if value is None or len(value) > LONGEST_TAG_VALUE:
        raise invalid(f"The Tag Value provided is invalid, Value: {'null' if value is None else value}")
