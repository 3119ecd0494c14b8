"""Charge one shard of a bucket with one conditional UpdateItem and no read (C1.7, S1.7).

`used` of a limit is either below the line of a full bucket, and a write sets it to that line plus the cost;
or above it, and a write adds the cost. DynamoDB has no maximum, so the writer assumes one of the two from
what it remembers, and the condition verifies the assumption. A wrong assumption returns the item, and the
next write is right. Each form is exact under its own condition, so an assumption never admits anything.

An item that does not exist is only written as a whole bucket (C1.6). An item with other limits than the
charge is converted in one write, which keeps its tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from solotable.errors import ConditionFailed, OutcomeUnknown, ServiceError, TransportError
from solotable.flow import Flow, Item, Scope, decode_item, key_of
from solotable.flow.conditions import (
    Condition,
    all_of,
    any_of,
    at_least,
    at_most,
    equals,
    exists,
    less_than,
    missing,
)
from solotable.flow.requests import GetItem, UpdateItem
from solotable.systems.limiter.admin.limits import MICROSECONDS, MOST_LIMITS, render
from solotable.systems.limiter.errors import LimiterUnavailable
from solotable.systems.limiter.meters.rules import Rules, rules_of
from solotable.systems.limiter.table import limiter

from .bucket import TOLERATED_SKEW, Bucket, ShardState, decode_state, find_flaw, unreadable
from .flat_update import FlatUpdate
from .local_cache import CachedBucket, Lane, LocalCache

#: Writes that other writers may precede, and writes that may fail, before an error is raised.
_ATTEMPTS = 20
_FAILURES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketWriter:
    """What every charge needs: the scope, and what this process remembers of buckets."""

    scope: Scope
    cache: LocalCache
    #: The microseconds for which a refusal is repeated without a request.
    refusal_microseconds: int
    #: Writes per second above which a shard is split; None: never.
    shard_above: int | None
    #: How many times a bucket may be split.
    highest_level: int
    table: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", self.scope.table(limiter))

    def now(self) -> int:
        """Return the time in microseconds."""
        return int(self.scope.clock() * MICROSECONDS)

    def key(self, bucket: CachedBucket, shard: int) -> Item:
        """Return the key of a shard's item."""
        found = bucket.keys.get(shard)
        if found is None:
            found = bucket.keys[shard] = key_of(
                self.scope, Bucket, entity=bucket.entity, resource=bucket.resource, shard=shard
            )
        return found


@dataclass(frozen=True, slots=True)
class Charge:
    """Thousandths of tokens by limit to take from a shard, below zero to give back.

    `admit`: only if they are available. `part`: the level of the shard whose part this is, where all shards
    are charged together; `counts` is then true for one of them.
    """

    rules: Rules
    amounts: Mapping[str, int]
    admit: bool = True
    part: int = 0
    counts: bool = True
    #: Whether the rules replace those of the item even if they are older.
    final: bool = False

    @property
    def only_gives_back(self) -> bool:
        """Whether the charge takes nothing."""
        return not self.admit and all(amount < 0 for amount in self.amounts.values())

    def costs(self, level: int) -> dict[str, int]:
        """Return the cost by limit in a shard of this level."""
        meters, part = self.rules.meters, self.part
        # A price is a multiple of 2 ** 6, so a part has no remainder.
        return {name: meters[name].cost(amount, level) >> part for name, amount in self.amounts.items()}


@dataclass(frozen=True, slots=True)
class Charged:
    """The charge is written. The state after it; None if there was no bucket to give back to."""

    state: ShardState | None


@dataclass(frozen=True, slots=True)
class ChargeRefused:
    """The shard had not enough at that time, and nothing was taken."""

    state: ShardState
    charge: Charge
    now: int

    def wait(self, name: str) -> int:
        """Return the microseconds until a limit has enough."""
        cost = self.charge.costs(self.state.level).get(name)
        meter = self.charge.rules.meters[name]
        return 0 if cost is None else meter.wait(self.state.used[name], self.now, cost)

    @property
    def longest_wait(self) -> int:
        """The microseconds until every limit has enough."""
        return max(map(self.wait, self.charge.amounts), default=0)


class ShardGone:
    """The shard does not exist, or was split or merged."""


class RulesOutdated:
    """The item has newer limits than the charge."""


Outcome = Charged | ChargeRefused | ShardGone | RulesOutdated


def charge_shard(
    writer: BucketWriter, bucket: CachedBucket, shard: int, charge: Charge, lane: Lane
) -> Flow[Outcome]:
    """Charge one shard, or return why not. However often it is sent in one lane, it is done once.

    A charge that continues in the shard that its own was merged with keeps its lane: it may be known there.
    """
    now = writer.now()
    if charge.admit and (refused := cached_refusal(writer, bucket, shard, charge, now)) is not None:
        return refused
    failures = 0
    for attempt in range(_ATTEMPTS):
        state = bucket.shards.get(shard) or _assumed_state(bucket, shard, charge, now)
        if charge.admit and charge.part and (state is None or state.level != charge.part):
            return ShardGone()
        request, takes = _build_request(writer, bucket, shard, charge, lane, state, now)
        lane.answered = False
        try:
            reply = yield request
        except ConditionFailed as failed:
            lane.answered = True
            level = 0 if state is None else state.level
            outcome = _examine(bucket, shard, charge, lane, level, failed.item, writer.now())
            if outcome is not None:
                return outcome
            if attempt > 2:
                yield writer.scope.retries.wait(attempt - 2)
        except (ServiceError, TransportError) as failed:
            lane.lost = True
            failures += 1
            if isinstance(failed, ServiceError) and failed.code == "ValidationException":
                yield from _explain(writer, bucket, shard, failed)
            if not _may_resend(failed) or failures == _FAILURES:
                raise
            yield writer.scope.retries.wait(failures)
        else:
            lane.answered = True
            item = decode_item(reply.attributes)
            state = decode_state(item, now)
            bucket.store(shard, state)
            if state.level == 0 and (until := state.expires(now, state.used)) > int(item["expires"]["N"]):
                yield from _extend_expiry(writer, bucket, shard, state, until)
            return Charged(state) if takes else ChargeRefused(state, charge, now)
        now = writer.now()
    raise LimiterUnavailable(
        f"The bucket of {bucket.entity!r} for {bucket.resource!r} changed {_ATTEMPTS} times between two "
        f"writes; try again."
    )


def _explain(writer: BucketWriter, bucket: CachedBucket, shard: int, failed: ServiceError) -> Flow[None]:
    """Raise UnreadableBucket if the stored item makes an update invalid, as a counter that is a string."""
    reply = yield GetItem(table=writer.table, key=writer.key(bucket, shard), consistent=True)
    if (item := decode_item(reply.item)) and find_flaw(item) is not None:
        raise unreadable(item) from failed


def _extend_expiry(
    writer: BucketWriter, bucket: CachedBucket, shard: int, state: ShardState, until: int
) -> Flow[None]:
    """Keep an item for as long as a debt lasts that the write before did not know."""
    request = UpdateItem(
        table=writer.table,
        key=writer.key(bucket, shard),
        update=FlatUpdate().set("expires", until).build(),
        condition=all_of(equals("rules", state.text), equals("level", 0)),
    )
    with suppress(ServiceError, TransportError):
        yield request


def _may_resend(failed: ServiceError | TransportError) -> bool:
    """Return whether to send a write again; its lane shows whether it was applied."""
    return failed.retryable or isinstance(failed, OutcomeUnknown)


def cached_refusal(
    writer: BucketWriter, bucket: CachedBucket, shard: int, charge: Charge, now: int
) -> ChargeRefused | None:
    """Refuse by a state that was read a moment ago: another request would cost and not help."""
    state = bucket.shards.get(shard)
    if state is None or state.text != charge.rules.text:
        return None
    if not 0 <= now - state.seen <= writer.refusal_microseconds or state.is_ahead(now):
        return None
    if not state.lacks(charge.rules, charge.costs(state.level), now):
        return None
    return ChargeRefused(state, charge, now)


def _assumed_state(bucket: CachedBucket, shard: int, charge: Charge, now: int) -> ShardState | None:
    """Return a full shard of the level that others have; None for a bucket that the write may create."""
    if bucket.depth == 0 and shard == 0 and not charge.only_gives_back:
        return None
    rules = charge.rules
    used = {name: meter.full(now) for name, meter in rules.meters.items()}
    return ShardState(bucket.depth, rules.text, rules.revision, used, now, 0, 0, {})


def _examine(
    bucket: CachedBucket, shard: int, charge: Charge, lane: Lane, level: int, item: Item | None, now: int
) -> Outcome | None:
    """Return the outcome that the item of a failed condition implies; None: write again, knowing it."""
    if item is None:
        bucket.forget(shard)
        if shard:
            return ShardGone()
        bucket.depth = 0
        # C1.6: a bucket that does not exist is full; giving back must not create one.
        return Charged(None) if charge.only_gives_back else None
    state = decode_state(item, now)
    bucket.store(shard, state)
    written = state.lanes.get(lane.name, 0)
    if written == lane.number:
        return Charged(state)
    if written > lane.number:
        lane.renumber(written)
        return None
    if state.text != charge.rules.text:
        # A settlement uses the limits of the item; an acquire may bring newer ones.
        older = state.revision > charge.rules.revision and not charge.final
        # Limits from before a reset must not undo it, whatever their revision: those of a call have none.
        older = older or state.is_reset_after(charge.rules)
        return RulesOutdated() if older or not charge.admit else None
    if charge.admit and state.level != level:
        return ShardGone()
    may_refuse = charge.admit and not state.is_ahead(now)
    if may_refuse and state.lacks(charge.rules, charge.costs(state.level), now):
        return ChargeRefused(state, charge, now)
    return None


def _build_request(
    writer: BucketWriter,
    bucket: CachedBucket,
    shard: int,
    charge: Charge,
    lane: Lane,
    state: ShardState | None,
    now: int,
) -> tuple[UpdateItem, bool]:
    """Return the write of a charge, and whether it takes the tokens."""
    takes = True
    if state is None:
        update, condition = _build_first(writer, bucket, shard, charge, lane, now)
    elif state.text != charge.rules.text or state.is_ahead(now):
        update, condition, takes = _build_conversion(charge, lane, state, now)
    else:
        update, condition = _build_next(charge, lane, state, now)
    request = UpdateItem(
        table=writer.table,
        key=writer.key(bucket, shard),
        update=update.build(),
        condition=condition,
        returns="ALL_NEW",
        returns_on_failure=True,
    )
    return request, takes


def _unwritten(lane: Lane) -> Condition:
    return any_of(missing(lane.name), less_than(lane.name, lane.number))


def _stamp(lane: Lane, now: int) -> FlatUpdate:
    return FlatUpdate().set("at", now).add("writes", 1).set(lane.name, lane.number)


def _count_consumed(update: FlatUpdate, charge: Charge) -> None:
    # S1.10: consumption has its own counter and is never derived from what is left.
    if charge.counts:
        for name, amount in charge.amounts.items():
            update.add(charge.rules.meters[name].consumed, amount)


def _build_first(
    writer: BucketWriter, bucket: CachedBucket, shard: int, charge: Charge, lane: Lane, now: int
) -> tuple[FlatUpdate, Condition]:
    """Write as if the bucket were full: it is new, or was idle for long, or the assumption is wrong."""
    plan, rules, costs = Bucket.plan(), charge.rules, charge.costs(0)
    update = _stamp(lane, now)
    update.set_if_missing(plan.table.internal_tag, plan.tag)
    update.set_if_missing("entity", bucket.entity).set_if_missing("resource", bucket.resource)
    update.set_if_missing("namespace", writer.scope.tenant or "").set_if_missing("shard", shard)
    update.set("level", 0).set("rules", rules.text).set("revision", rules.revision)
    terms = [equals("rules", rules.text), equals("level", 0), _unwritten(lane)]
    used: dict[str, int] = {}
    for name, meter in rules.meters.items():
        full = meter.full(now)
        if name in costs:
            used[name] = meter.fresh(now) + costs[name]
            update.set(meter.used, used[name])
            terms.append(at_most(meter.used, full))
        else:
            used[name] = full
            update.set_if_missing(meter.used, full)
    update.set("expires", rules.expires(now, used))
    _count_consumed(update, charge)
    return update, any_of(missing(plan.table.partition.name), all_of(*terms))


def _build_next(charge: Charge, lane: Lane, state: ShardState, now: int) -> tuple[FlatUpdate, Condition]:
    """Write by what is remembered: a limit that was used to above the full line is still above it."""
    rules = charge.rules
    update = _stamp(lane, now)
    terms = [equals("rules", rules.text), equals("level", state.level), _unwritten(lane)]
    used = dict(state.used)
    for name, cost in charge.costs(state.level).items():
        meter = rules.meters[name]
        full = meter.full(now)
        if cost < 0:
            # What is given back to a full bucket has no effect.
            update.add(meter.used, cost)
            terms.append(exists(meter.used))
        elif used[name] <= full:
            used[name] = meter.fresh(now) + cost
            update.set(meter.used, used[name])
            terms.append(at_most(meter.used, full))
        else:
            before = used[name]
            used[name] += cost
            update.add(meter.used, cost)
            terms.append(at_least(meter.used, meter.floor(before, now)))
            if charge.admit:
                terms.append(at_most(meter.used, meter.ceiling(before, now) - cost))
    if not charge.admit:
        # `used` of a clock far ahead must stay recognisable.
        terms.append(at_most("at", now + TOLERATED_SKEW))
    if state.level == 0:
        update.set("expires", state.expires(now, used))
    _count_consumed(update, charge)
    for name in lane.stale(state, now):
        update.remove(name)
    return update, all_of(*terms)


def _build_conversion(
    charge: Charge, lane: Lane, state: ShardState, now: int
) -> tuple[FlatUpdate, Condition, bool]:
    """Write under other limits, or after a clock that was far ahead: the tokens stay, in the new credits.

    Without enough tokens the item is only converted, so that it refills by the new limits.
    """
    rules, old = charge.rules, state.rules
    used = {name: state.used_under(name, rules, now) for name in rules.meters}
    converted = ShardState(state.level, rules.text, rules.revision, used, now, state.writes, now, state.lanes)
    costs = charge.costs(state.level)
    takes = not (charge.admit and converted.lacks(rules, costs, now))
    update = FlatUpdate().set("at", now).add("writes", 1)
    if takes:
        update.set(lane.name, lane.number)
        for name, cost in costs.items():
            used[name] = rules.meters[name].charged(used[name], now, cost)
        _count_consumed(update, charge)
    update.set("rules", rules.text).set("revision", rules.revision)
    for name, meter in rules.meters.items():
        update.set(meter.used, used[name])
    for name in old.meters.keys() - rules.meters.keys():
        update.remove(old.meters[name].consumed)
    past = _keep_removed_limits(update, state, rules, now)
    if state.level == 0:
        update.set("expires", replace(converted, past=past).expires(now, {**state.used, **used}))
    terms = [equals("rules", state.text), equals("level", state.level), _unwritten(lane)]
    terms += [equals(state.meter(name).used, value) for name, value in state.used.items()]
    return update, all_of(*terms), takes


def _keep_removed_limits(update: FlatUpdate, state: ShardState, rules: Rules, now: int) -> str:
    """Keep `used` of removed limits that are not full, in case they return; return the text of `past`."""
    removed = {name: state.meter(name) for name in state.used if name not in rules.meters}
    used = {name: state.used_under(name, rules_of((each.limit,), 0), now) for name, each in removed.items()}
    waits = {name: each.wait(used[name], now, each.depth) for name, each in removed.items()}
    # Beyond the bound, those that are full soonest are dropped.
    slowest = sorted((name for name in removed if waits[name]), key=lambda name: -waits[name])
    kept = sorted(slowest[:MOST_LIMITS])
    for name, each in removed.items():
        if name in kept:
            update.set(each.used, used[name])
        else:
            update.remove(each.used)
    if not kept:
        update.remove("past")
        return ""
    past = render(tuple(removed[name].limit for name in kept))
    update.set("past", past)
    return past
