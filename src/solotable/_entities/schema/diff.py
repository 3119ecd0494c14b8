"""Compare a declared table with a live one; report the differences and the requests that remove them.

The comparison covers keys and their types, indexes with keys and projections, the time to live, and a
declared stream. It ignores capacity, backups, other streams and tags, which the operator controls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from solotable._values.lazy_dataclass import dataclass

Remedy = Literal[
    "create", "add", "replace", "delete", "enable-ttl", "disable-ttl", "enable-stream", "replace-stream"
]
#: Changes that delete data; the operator must request them explicitly.
DESTRUCTIVE: frozenset[Remedy] = frozenset({"replace", "delete", "disable-ttl", "replace-stream"})
_GLOBAL, _LOCAL = "GlobalSecondaryIndexes", "LocalSecondaryIndexes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A difference between the declared table and the live one."""

    subject: str
    declared: str | None
    live: str | None
    #: None if DynamoDB cannot change it on an existing table.
    remedy: Remedy | None
    #: The index to change: its definition for UpdateTable, or only its name.
    index: Mapping[str, Any] | None = None

    @property
    def sentence(self) -> str:
        """The difference as one sentence."""
        if self.live is None:
            text = f"{self.subject} is missing: {self.declared}"
        elif self.declared is None:
            text = f"{self.subject} is not in the model: {self.live}"
        else:
            text = f"{self.subject} is {self.live}; the model says {self.declared}"
        return text if self.remedy else f"{text} (only a new table can change it)"


def compare(
    wanted: Mapping[str, Any],
    ttl: str | None,
    live: Mapping[str, Any] | None,
    live_ttl: Mapping[str, Any] | None = None,
) -> list[Difference]:
    """Compare CreateTable's members and the TTL attribute with DescribeTable and DescribeTimeToLive.

    `live` is None for a table that does not exist.
    """
    if live is None:
        keys = shown_schema(wanted["KeySchema"])
        return [Difference(subject="the table", declared=keys, live=None, remedy="create")]
    return [
        *_keys(wanted, live),
        *_types(wanted, live),
        *_indexes(wanted, live, _GLOBAL),
        *_indexes(wanted, live, _LOCAL),
        *_stream(wanted, live),
        *_time_to_live(ttl, live_ttl or {}),
    ]


def shown_schema(schema: Iterable[Mapping[str, str]]) -> str:
    """Format a key schema as one line: `PK, SK`, or `(a, b), (c, d)` for multi-attribute keys."""
    names_by_role = {
        role: [each["AttributeName"] for each in schema if each["KeyType"] == role] for role in _ROLES
    }
    return ", ".join(
        names[0] if len(names) == 1 else f"({', '.join(names)})" for names in names_by_role.values() if names
    )


def shown_projection(projection: Mapping[str, Any]) -> str:
    """Format a projection as one line."""
    kind = str(projection.get("ProjectionType", "ALL"))
    names = sorted(projection.get("NonKeyAttributes", ()))
    return f"{kind} {', '.join(names)}" if names else kind


_ROLES = ("HASH", "RANGE")


def _keys(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> list[Difference]:
    declared, actual = shown_schema(wanted["KeySchema"]), shown_schema(live["KeySchema"])
    if declared == actual:
        return []
    return [Difference(subject="the key", declared=declared, live=actual, remedy=None)]


def _types(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> list[Difference]:
    actual = {each["AttributeName"]: each["AttributeType"] for each in live.get("AttributeDefinitions", ())}
    return [
        Difference(
            subject=f"the type of {each['AttributeName']}",
            declared=each["AttributeType"],
            live=actual[each["AttributeName"]],
            remedy=None,
        )
        for each in wanted["AttributeDefinitions"]
        if actual.get(each["AttributeName"], each["AttributeType"]) != each["AttributeType"]
    ]


def _indexes(wanted: Mapping[str, Any], live: Mapping[str, Any], member: str) -> list[Difference]:
    declared = {each["IndexName"]: each for each in wanted.get(member, ())}
    actual = {
        each["IndexName"]: each for each in live.get(member, ()) if each.get("IndexStatus") != "DELETING"
    }
    kind = "index" if member == _GLOBAL else "local index"
    found = []
    for name in (*declared, *(name for name in actual if name not in declared)):
        mine, theirs = _shown(declared.get(name)), _shown(actual.get(name))
        if mine == theirs:
            continue
        remedy: Remedy = "add" if theirs is None else "delete" if mine is None else "replace"
        found.append(
            Difference(
                subject=f"{kind} {name}",
                declared=mine,
                live=theirs,
                # DynamoDB: local indexes are created with their table and cannot change.
                remedy=remedy if member == _GLOBAL else None,
                index=declared.get(name, {"IndexName": name}),
            )
        )
    return found


def _shown(index: Mapping[str, Any] | None) -> str | None:
    if index is None:
        return None
    return f"{shown_schema(index['KeySchema'])}; {shown_projection(index.get('Projection', {}))}"


def _stream(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> list[Difference]:
    declared = wanted.get("StreamSpecification", {}).get("StreamViewType")
    actual = live.get("StreamSpecification", {}).get("StreamViewType")
    if declared is None or declared == actual:
        return []
    remedy: Remedy = "enable-stream" if actual is None else "replace-stream"
    return [Difference(subject="stream", declared=declared, live=actual, remedy=remedy)]


def _time_to_live(ttl: str | None, live: Mapping[str, Any]) -> list[Difference]:
    on = live.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    actual = str(live.get("AttributeName")) if on else None
    if ttl == actual:
        return []
    remedy: Remedy | None = "enable-ttl" if actual is None else "disable-ttl"
    return [Difference(subject="time to live", declared=ttl, live=actual, remedy=remedy)]
