"""Usage as stored, one row per window, entity and resource; and as reported.

What is added to a row, `events` and `tokens_<limit>` in thousandths, is written by ADD alone (see `ledger`).
The kind of the window is in the key: the hour and the day that begin at 00:00 are two rows (C1.9).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Self

from solotable import FROM_SCOPE, TTL, Entity, Key, Query, pattern
from solotable.systems.limiter.admin.limits import in_tokens
from solotable.systems.limiter.table import limiter

from .windows import Window, following

#: The prefix of the attributes of limits.
TOKENS = "tokens_"


class UsageRow(Entity, table=limiter, tag="Usage"):
    """What one entity used of one resource in one window."""

    key = Key("{namespace}#USAGE#{entity}", "{window}#{start:s}#{resource}")
    # DynamoDB: a partition of an index takes 1,000 write units per second, which bounds how fast the usage of
    # a resource is counted. Buckets are not in the index, so no acquire waits for it.
    by_resource = Key("{namespace}#USAGE#{resource}", "{window}#{start:s}#{entity}", index="GSI1")

    namespace: str = FROM_SCOPE
    entity: str
    resource: str
    window: Window
    start: datetime
    #: Writes of buckets that changed what is consumed: acquires, adjustments, tokens given back.
    events: int = 0
    expires: Annotated[datetime | None, TTL()] = None

    @pattern
    @classmethod
    def of_entity(cls, entity: str, window: Window) -> Query[Self]:
        """What an entity used of all resources, by window."""
        return cls.key.query(entity=entity, window=window)

    @pattern
    @classmethod
    def of_resource(cls, resource: str, window: Window) -> Query[Self]:
        """What all entities used of a resource, by window."""
        return cls.by_resource.query(resource=resource, window=window)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one entity used of one resource in one window, by limit, in thousandths of a token.

    Tokens that are given back count in the window of that time, which may be below zero then.
    """

    entity: str
    resource: str
    window: Window
    start: datetime
    events: int
    millitokens: Mapping[str, int]

    @classmethod
    def of(cls, row: UsageRow) -> Self:
        """Return the usage of a stored row."""
        millitokens = {
            name.removeprefix(TOKENS): int(value["N"])
            for name, value in sorted(row.unknown_attributes.items())
            if name.startswith(TOKENS)
        }
        return cls(
            entity=row.entity,
            resource=row.resource,
            window=row.window,
            start=row.start,
            events=row.events,
            millitokens=millitokens,
        )

    @property
    def end(self) -> datetime:
        """The end of the window, which is the start of the next one."""
        return following(self.window, self.start)

    @property
    def tokens(self) -> dict[str, int | float]:
        """The usage in tokens."""
        return {name: in_tokens(amount) for name, amount in self.millitokens.items()}

    def as_dict(self) -> dict[str, Any]:
        """Return the usage as JSON has it."""
        return {
            "entity": self.entity,
            "resource": self.resource,
            "window": self.window,
            "start": self.start.isoformat(),
            "end": self.end.isoformat(),
            "events": self.events,
            "tokens": self.tokens,
        }
