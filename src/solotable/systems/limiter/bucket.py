"""A bucket's item in the table, and what a reader makes of it.

The entity has what every bucket has. Each limit adds two attributes, `used_<limit>` and `consumed_<limit>`,
and each writer one that begins with `~` and goes again after some minutes (see `memory`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from solotable import FROM_SCOPE, TTL, Entity, Key
from solotable.values import Item

from .gauge import Gauge, Rules, rules_from
from .limits import MICROSECONDS
from .table import limiter

#: How the attributes of writers begin.
LANE = "~"
#: DynamoDB: a request that is signed at another time than this close to its own is refused.
TOLERATED_SKEW = 300 * MICROSECONDS


class Bucket(Entity, table=limiter):
    """The tokens of one entity for one resource, or one shard of them."""

    key = Key("{namespace}#BUCKET#{entity}#{resource}#{shard:02d}", "BUCKET")

    namespace: str = FROM_SCOPE
    entity: str
    resource: str
    shard: int = 0
    #: How often the bucket was halved to make this shard.
    level: int = 0
    #: The limits that it is reckoned with, and when they were set, in microseconds; 0: by a call.
    rules: str
    revision: int = 0
    #: Limits that it had before and that were not full then: what they have used is kept, should they return.
    past: str | None = None
    #: When it was last written, in microseconds, and how often.
    at: int
    writes: int
    expires: Annotated[datetime | None, TTL()] = None


@dataclass(frozen=True, slots=True)
class State:
    """What is known of a shard's item."""

    level: int
    text: str
    revision: int
    used: Mapping[str, int]
    at: int
    writes: int
    #: When it was seen, by our own clock.
    seen: int
    #: The attributes of writers, with the number of each one's last write.
    lanes: Mapping[str, int]
    past: str = ""

    @property
    def rules(self) -> Rules:
        """The limits that the item is reckoned with."""
        return rules_from(self.text, self.revision)

    def is_ahead(self, now: int) -> bool:
        """Whether a clock that is far ahead has written it: what it has is then to be reckoned as of `at`."""
        return self.at > now + TOLERATED_SKEW

    def moved(self, name: str, rules: Rules, now: int) -> int:
        """Return what a limit of the rules has used, with the tokens that there are under the item's own."""
        gauge = rules.gauges[name]
        if name not in self.used:
            return gauge.full(now)
        then = self.at if self.is_ahead(now) else now
        return self.gauge(name).moved(self.used[name], then, gauge, now)

    def gauge(self, name: str) -> Gauge:
        """Return how a limit is reckoned, also one of the past."""
        found = self.rules.gauges.get(name)
        return rules_from(self.past, 0).gauges[name] if found is None else found

    def expires(self, now: int, used: Mapping[str, int]) -> int:
        """Return when the item may be forgotten, in seconds, if this is what is used."""
        until = self.rules.expires(now, used)
        return max(until, rules_from(self.past, 0).expires(now, used)) if self.past else until

    def short(self, rules: Rules, costs: Mapping[str, int], now: int) -> list[str]:
        """Return the limits that do not have enough now."""
        found = []
        for name, cost in costs.items():
            gauge = rules.gauges[name]
            used = self.used.get(name)
            if used is not None and max(used, gauge.full(now)) + cost > now * gauge.rate:
                found.append(name)
        return found


def read(item: Item, now: int) -> State:
    """Return what a stored item says."""
    used: dict[str, int] = {}
    lanes: dict[str, int] = {}
    for name, value in item.items():
        if name[:5] == "used_":
            used[name[5:]] = int(value["N"])
        elif name[0] == LANE:
            lanes[name] = int(value["N"])
    return State(
        level=int(item["level"]["N"]),
        text=item["rules"]["S"],
        revision=int(item["revision"]["N"]),
        used=used,
        at=int(item["at"]["N"]),
        writes=int(item["writes"]["N"]),
        seen=now,
        lanes=lanes,
        past=item["past"]["S"] if "past" in item else "",
    )
