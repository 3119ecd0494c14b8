"""A bucket's item, and the state that a writer decodes from it.

Each limit adds two attributes to the item, `used_<limit>` and `consumed_<limit>`. Writers add up
to seventeen lanes, `~0` to `~f` and `~r` (see `local_cache`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field

from solotable import FROM_SCOPE, TTL, Entity, Key
from solotable.errors import DataError
from solotable.flow import AttributeValue, Item
from solotable.systems.limiter.admin.limits import MICROSECONDS
from solotable.systems.limiter.errors import UnreadableBucket
from solotable.systems.limiter.meters.concurrency import HOLD, Concurrency, Held, Hold, holds_of
from solotable.systems.limiter.meters.meter import Meter
from solotable.systems.limiter.meters.rules import Rules, rules_from
from solotable.systems.limiter.records import record
from solotable.systems.limiter.table import limiter

#: The attribute names of lanes (see `local_cache`), and their first character.
LANE = "~"
LANES = tuple(f"{LANE}{digit}" for digit in "0123456789abcdef")
#: The lane of all who give back and have no lane; the numbers in it only rise.
RETURNS_LANE = f"{LANE}r"
#: DynamoDB: a request whose signature is further from the service's time than this is rejected.
TOLERATED_SKEW = 300 * MICROSECONDS
#: The bits of a shard number. `most_shards` of one installation may be lower than that of another.
HIGHEST_LEVEL = 6
#: In the text of rules that have a concurrency limit.
_CONCURRENCY = "/concurrency:"
#: Attributes that are whole numbers, and prefixes of the names of others.
_NUMBERS = ("level", "revision", "at", "writes", "shard", "expires", "split", "moved")
_WHOLE: dict[str, Any] = {}
_NUMBER_PREFIXES = ("used_", "half_", "consumed_", LANE, HOLD)
#: A shard of a split bucket is kept so much longer for each bit that its number is shorter.
SHARD_GRACE_SECONDS = 2 * 3600


class Bucket(Entity, table=limiter):
    """The tokens of one entity for one resource, or one shard of them."""

    key = Key("{namespace}#BUCKET#{entity}#{resource}#{shard:02d}", "BUCKET")

    namespace: str = FROM_SCOPE
    entity: str
    resource: str
    shard: int = 0
    #: How many splits of the bucket made this shard.
    level: Annotated[int, Field(ge=0, le=HIGHEST_LEVEL)] = 0
    #: The limits that `used_*` is counted by, and when they were set, in microseconds; 0: by a call.
    rules: str
    revision: int = 0
    #: Former limits that were not full when they were removed; `used_*` of them stays in case they return.
    past: str | None = None
    #: The time of the last write, in microseconds, and the number of writes.
    at: int
    writes: int
    #: When a split was begun, in microseconds. Until it is finished, `half_*` is `used_*` of the other half.
    split: int | None = None
    expires: Annotated[datetime | None, TTL()] = None

    def amount(self, attribute: str) -> int | None:
        """Return a number that a limit added to the item, None if it is absent."""
        value = self.unknown_attributes.get(attribute)
        if value is None:
            return None
        if not _is_whole(value):
            partition = f"{self.namespace}#BUCKET#{self.entity}#{self.resource}#{self.shard:02d}"
            raise UnreadableBucket(partition, f"attribute {attribute!r} is not a whole number")
        return int(value["N"])

    def used(self, meter: Meter) -> int | None:
        """Return `used` of a limit, with the holds of a concurrency limit; None if it is absent."""
        found, prefix = self.amount(meter.used), f"{HOLD}{meter.limit.name}:"
        holds = [
            Hold(name, int(value["N"]))
            for name, value in self.unknown_attributes.items()
            if name.startswith(prefix) and _is_whole(value)
        ]
        return Held(found, holds) if found is not None and holds else found


@record(frozen=True, slots=True)
class ShardState:
    """The content of a shard's item."""

    level: int
    text: str
    revision: int
    used: Mapping[str, int]
    at: int
    writes: int
    #: When this process read it, by its own clock.
    seen: int
    #: The number of the last write in each lane.
    lanes: Mapping[str, int]
    past: str = ""
    shard: int = 0
    #: Of a split bucket: when the item expires, in seconds.
    expires_at: int = 0
    #: When the split was begun that is not finished yet, and what the other half has used.
    split: int = 0
    half: Mapping[str, int] = field(default_factory=dict)
    #: The time to which a process moved the item back that a clock far ahead had written.
    moved: int = 0
    #: Lanes of a former release, which had one per writer.
    former_lanes: tuple[str, ...] = ()

    @property
    def rules(self) -> Rules:
        """The limits that the item is counted by."""
        return rules_from(self.text, self.revision)

    def is_ahead(self, now: int) -> bool:
        """Return whether a clock far ahead wrote the item: then its tokens are those of the time `at`."""
        return self.at > now + TOLERATED_SKEW

    def used_under(self, name: str, rules: Rules, now: int) -> int:
        """Return `used` of a limit of other rules, for the tokens that the item has."""
        meter = rules.meters[name]
        if name not in self.used:
            return meter.full(now)
        own = self.meter(name)
        if meter.limit.reset_at > own.limit.reset_at and not isinstance(own, Concurrency):
            # A reset does not end leases, which hold the tokens of concurrency limits.
            return meter.full(now)
        then = self.at if self.is_ahead(now) else now
        return own.convert(self.used[name], then, meter, now)

    def is_reset_after(self, rules: Rules) -> bool:
        """Return whether a limit of the item was reset later than these rules know."""
        return any(
            name in rules.meters and meter.limit.reset_at > rules.meters[name].limit.reset_at
            for name, meter in self.rules.meters.items()
        )

    def under(self, rules: Rules, now: int) -> ShardState:
        """Return the shard as it would be under other rules, with the tokens that it has."""
        if self.text == rules.text and not self.is_ahead(now):
            return self
        used = {name: self.used_under(name, rules, now) for name in rules.meters}
        return replace(self, text=rules.text, revision=rules.revision, used=used, at=now, seen=now, past="")

    def has_hold(self, name: str = "") -> bool:
        """Return whether a lease, or any lease, holds tokens of the bucket."""
        end = f":{name}" if name else ""
        return any(hold.attribute.endswith(end) for used in self.used.values() for hold in holds_of(used))

    def meter(self, name: str) -> Meter:
        """Return the meter of a limit, also of a former one."""
        found = self.rules.meters.get(name)
        return rules_from(self.past, 0).meters[name] if found is None else found

    def expires(self, now: int, used: Mapping[str, int]) -> int:
        """Return when the item may expire, in seconds, if this is used."""
        until = self.rules.expires(now, used)
        if self.past:
            until = max(until, rules_from(self.past, 0).expires(now, used))
        if self.level:
            until += (HIGHEST_LEVEL + 1 - self.shard.bit_length()) * SHARD_GRACE_SECONDS
        return until

    def lacks(self, rules: Rules, costs: Mapping[str, int], now: int) -> bool:
        """Return whether any limit has less than its cost now."""
        for name, cost in costs.items():
            used = self.used.get(name)
            if used is not None and cost > rules.meters[name].credits(used, now):
                return True
        return False


def decode_state(item: Item, now: int) -> ShardState:
    """Decode a stored item, or raise UnreadableBucket if it has another layout."""
    try:
        text, level = item["rules"]["S"], int(item["level"]["N"])
        past = item["past"]["S"] if "past" in item else ""
        has_holds = _CONCURRENCY in text or _CONCURRENCY in past
        layout = _layout(text, past, _lasting_names(item) if has_holds else tuple(item))
        for name in layout.former_lanes:
            int(item[name]["N"])
        state = ShardState(
            level=level,
            text=text,
            revision=int(item["revision"]["N"]),
            used=_decode_held(item, text, past, layout) if has_holds else _decode_used(item, layout),
            at=int(item["at"]["N"]),
            writes=int(item["writes"]["N"]),
            seen=now,
            lanes={name: int(item[name]["N"]) for name in layout.lanes},
            past=past,
            **(_decode_tree(item) if level else _WHOLE),
            moved=int(item["moved"]["N"]) if "moved" in item else 0,
            former_lanes=layout.former_lanes,
        )
    except (KeyError, ValueError, DataError):
        raise unreadable(item) from None
    if state.split and state.half.keys() != state.used.keys():
        raise unreadable(item)
    if not (layout.is_known and 0 <= level <= HIGHEST_LEVEL):
        raise unreadable(item)
    return state


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which attributes of a bucket's item hold what; whether it has those of its limits and no others."""

    used: tuple[tuple[str, str], ...]
    lanes: tuple[str, ...]
    former_lanes: tuple[str, ...]
    is_known: bool


# An item keeps its attributes from one write to the next.
@lru_cache(maxsize=1024)
def _layout(text: str, past: str, names: tuple[str, ...]) -> _Layout:
    used = {name[5:]: name for name in names if name.startswith("used_")}
    limits = set(rules_from(text, 0).meters)
    known = limits.union(rules_from(past, 0).meters) if past else limits
    return _Layout(
        tuple(used.items()),
        tuple(name for name in names if name[0] == LANE and len(name) == 2),
        tuple(name for name in names if name[0] == LANE and len(name) != 2),
        limits <= used.keys() <= known,
    )


def _lasting_names(item: Item) -> tuple[str, ...]:
    """Return the attributes that an item keeps from one write to the next: all but the holds of leases."""
    return tuple(name for name in item if name[0] != HOLD)


def _decode_used(item: Item, layout: _Layout) -> dict[str, int]:
    return {limit: int(item[name]["N"]) for limit, name in layout.used}


def _decode_held(item: Item, text: str, past: str, layout: _Layout) -> dict[str, int]:
    """Decode `used`, with the holds of concurrency limits, also of former ones."""
    used, holds = _decode_used(item, layout), dict[str, list[Hold]]()
    for name, value in item.items():
        if name[0] == HOLD:
            holds.setdefault(name[1:].partition(":")[0], []).append(Hold(name, int(value["N"])))
    held = set(rules_from(text, 0).held).union(rules_from(past, 0).held if past else ())
    for name in held & holds.keys():
        used[name] = Held(used[name], holds[name])
    return used


def _decode_tree(item: Item) -> dict[str, Any]:
    """Decode what only a split bucket has."""
    found: dict[str, Any] = {"shard": int(item["shard"]["N"])}
    if "expires" in item:
        found["expires_at"] = int(item["expires"]["N"])
    if "split" in item:
        found["split"] = int(item["split"]["N"])
        found["half"] = {name[5:]: int(value["N"]) for name, value in item.items() if name[:5] == "half_"}
    return found


def unreadable(item: Item) -> UnreadableBucket:
    """Return the error for an item that is not a bucket; it names the first wrong attribute."""
    partition = item[limiter.partition.name].get("S", "?")
    return UnreadableBucket(partition, find_flaw(item) or "its layout is unknown")


def find_flaw(item: Item) -> str | None:
    """Return what is wrong with a stored item, None for a bucket that can be decoded and updated."""
    for name in ("level", "rules", "revision", "at", "writes"):
        if name not in item:
            return f"attribute {name!r} is missing"
    for name, value in item.items():
        if name in ("rules", "past"):
            if not _is_rules(value):
                return f"attribute {name!r} is not a list of limits"
        elif (name in _NUMBERS or name.startswith(_NUMBER_PREFIXES)) and not _is_whole(value):
            return f"attribute {name!r} is not a whole number"
    if not 0 <= int(item["level"]["N"]) <= HIGHEST_LEVEL:
        return f"attribute 'level' is not between 0 and {HIGHEST_LEVEL}"
    limits = set(rules_from(item["rules"]["S"], 0).meters)
    used = {name[5:] for name in item if name.startswith("used_")}
    if lacking := sorted(limits - used):
        return f"attribute 'used_{lacking[0]}' is missing"
    past = rules_from(item["past"]["S"], 0).meters if "past" in item else {}
    if unknown := sorted(used - limits - past.keys()):
        return f"attribute 'used_{unknown[0]}' belongs to no limit of 'rules' or 'past'"
    return None


def _is_rules(value: AttributeValue) -> bool:
    try:
        return bool(rules_from(value["S"], 0))
    except (KeyError, DataError):
        return False


def _is_whole(value: AttributeValue) -> bool:
    try:
        return isinstance(int(value["N"]), int)
    except (KeyError, ValueError):
        return False
