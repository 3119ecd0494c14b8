"""A bucket's item in the table, and what a reader makes of it.

The entity has what every bucket has. Each limit adds two attributes, `used_<limit>` and `consumed_<limit>`,
and each writer one that begins with `~` and goes again after some minutes (see `memory`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from solotable import FROM_SCOPE, TTL, Entity, Key
from solotable._values import AttributeValue, Item
from solotable.errors import DataError
from solotable.systems.limiter.admin.limits import MICROSECONDS
from solotable.systems.limiter.errors import UnreadableBucket
from solotable.systems.limiter.table import limiter

from .token_bucket import Rules, TokenBucket, rules_from

#: How the attributes of writers begin.
LANE = "~"
#: DynamoDB: a request that is signed at another time than this close to its own is refused.
TOLERATED_SKEW = 300 * MICROSECONDS
#: A number of a shard has so many bits, whatever an installation allows: others may allow more.
HIGHEST_LEVEL = 6
#: Attributes of a bucket that hold whole numbers, and how the names of others begin.
_NUMBERS = ("level", "revision", "at", "writes", "shard", "expires")
_NUMBERED = ("used_", "consumed_", LANE)


class Bucket(Entity, table=limiter):
    """The tokens of one entity for one resource, or one shard of them."""

    key = Key("{namespace}#BUCKET#{entity}#{resource}#{shard:02d}", "BUCKET")

    namespace: str = FROM_SCOPE
    entity: str
    resource: str
    shard: int = 0
    #: How often the bucket was halved to make this shard.
    level: Annotated[int, Field(ge=0, le=HIGHEST_LEVEL)] = 0
    #: The limits that it is reckoned with, and when they were set, in microseconds; 0: by a call.
    rules: str
    revision: int = 0
    #: Limits that it had before and that were not full then: what they have used is kept, should they return.
    past: str | None = None
    #: When it was last written, in microseconds, and how often.
    at: int
    writes: int
    expires: Annotated[datetime | None, TTL()] = None

    def amount(self, attribute: str) -> int | None:
        """Return an attribute that a limit has added, None if it is absent."""
        value = self.unknown_attributes.get(attribute)
        if value is None:
            return None
        if not _is_whole(value):
            place = f"{self.namespace}#BUCKET#{self.entity}#{self.resource}#{self.shard:02d}"
            raise UnreadableBucket(place, f"attribute {attribute!r} is not a whole number")
        return int(value["N"])


@dataclass(frozen=True, slots=True)
class ShardState:
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
        token_bucket = rules.token_buckets[name]
        if name not in self.used:
            return token_bucket.full(now)
        then = self.at if self.is_ahead(now) else now
        return self.token_bucket(name).moved(self.used[name], then, token_bucket, now)

    def token_bucket(self, name: str) -> TokenBucket:
        """Return how a limit is reckoned, also one of the past."""
        found = self.rules.token_buckets.get(name)
        return rules_from(self.past, 0).token_buckets[name] if found is None else found

    def expires(self, now: int, used: Mapping[str, int]) -> int:
        """Return when the item may be forgotten, in seconds, if this is what is used."""
        until = self.rules.expires(now, used)
        return max(until, rules_from(self.past, 0).expires(now, used)) if self.past else until

    def short(self, rules: Rules, costs: Mapping[str, int], now: int) -> list[str]:
        """Return the limits that do not have enough now."""
        found = []
        for name, cost in costs.items():
            token_bucket = rules.token_buckets[name]
            used = self.used.get(name)
            if used is not None and max(used, token_bucket.full(now)) + cost > now * token_bucket.rate:
                found.append(name)
        return found


def read(item: Item, now: int) -> ShardState:
    """Decode a stored item, or raise UnreadableBucket for one of another layout."""
    used: dict[str, int] = {}
    lanes: dict[str, int] = {}
    try:
        for name, value in item.items():
            if name[:5] == "used_":
                used[name[5:]] = int(value["N"])
            elif name[0] == LANE:
                lanes[name] = int(value["N"])
        state = ShardState(
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
        limits = set(rules_from(state.text, state.revision).token_buckets)
        known = limits.union(rules_from(state.past, 0).token_buckets) if state.past else limits
    except (KeyError, ValueError, DataError):
        raise unreadable(item) from None
    if not (limits <= used.keys() <= known and 0 <= state.level <= HIGHEST_LEVEL):
        raise unreadable(item)
    return state


def unreadable(item: Item) -> UnreadableBucket:
    """Return the error for an item that is not a bucket; it names the first attribute that is wrong."""
    return UnreadableBucket(item[limiter.partition.name].get("S", "?"), flaw(item) or "its layout is unknown")


def flaw(item: Item) -> str | None:
    """Return what is wrong with a stored item, None for a bucket: what `read` and every update need."""
    for name in ("level", "rules", "revision", "at", "writes"):
        if name not in item:
            return f"attribute {name!r} is missing"
    for name, value in item.items():
        if name in ("rules", "past"):
            if not _parses(value):
                return f"attribute {name!r} is not a list of limits"
        elif (name in _NUMBERS or name.startswith(_NUMBERED)) and not _is_whole(value):
            return f"attribute {name!r} is not a whole number"
    if not 0 <= int(item["level"]["N"]) <= HIGHEST_LEVEL:
        return f"attribute 'level' is not between 0 and {HIGHEST_LEVEL}"
    limits = set(rules_from(item["rules"]["S"], 0).token_buckets)
    used = {name[5:] for name in item if name.startswith("used_")}
    if missing := sorted(limits - used):
        return f"attribute 'used_{missing[0]}' is missing"
    past = rules_from(item["past"]["S"], 0).token_buckets if "past" in item else {}
    if unknown := sorted(used - limits - past.keys()):
        return f"attribute 'used_{unknown[0]}' belongs to no limit of 'rules' or 'past'"
    return None


def _parses(value: AttributeValue) -> bool:
    try:
        return bool(rules_from(value["S"], 0))
    except (KeyError, DataError):
        return False


def _is_whole(value: AttributeValue) -> bool:
    try:
        return isinstance(int(value["N"]), int)
    except (KeyError, ValueError):
        return False
