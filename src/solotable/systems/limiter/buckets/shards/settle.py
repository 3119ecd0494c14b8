"""Settle what was charged: take more, into debt if necessary, or give back."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field

from solotable.errors import SolotableError
from solotable.flow import Flow
from solotable.systems.limiter.buckets.bucket import ShardState
from solotable.systems.limiter.buckets.charge import Charged, Outcome, RulesOutdated, ShardGone, charge_shard
from solotable.systems.limiter.buckets.local_cache import CachedBucket, Lane
from solotable.systems.limiter.buckets.writer import BucketWriter
from solotable.systems.limiter.buckets.writes.charge_request import Charge
from solotable.systems.limiter.meters.rules import Rules
from solotable.systems.limiter.records import record

from .expiry import extend_ancestors
from .holds import end_past_holds
from .read import read_some
from .reshard import finish_splits, has_headroom, read_whole
from .totals import plan_settlement, whole_state
from .tree import parent_of

#: How often a settlement may be redirected.
_REDIRECTS = 12


@record(frozen=True, slots=True)
class TakenTokens:
    """What was charged, and from which shards: what one gave is given back to it (C1.14)."""

    bucket: CachedBucket
    charge: Charge
    shards: tuple[int, ...]
    #: A shard after the charge.
    shard_state: ShardState | None = None
    #: By limit, the period that it was charged in; None: that of `shard_state`.
    periods: Mapping[str, int] | None = None
    #: What was asked for and not taken, by limits that are not enforced.
    skipped: Mapping[str, int] = field(default_factory=dict)

    @property
    def state(self) -> ShardState | None:
        """The bucket after the charge, as one shard."""
        state = self.shard_state
        if state is None or state.level == 0:
            return state
        return whole_state(self.bucket, self.charge.rules, state.seen)

    def periods_under(self, rules: Rules) -> Mapping[str, int]:
        """Return the periods that limits of these rules still have."""
        own = self.charge.rules.meters
        return {
            name: period
            for name, period in self.charged_periods.items()
            if name in rules.meters and name in own and own[name].limit.same_periods(rules.meters[name].limit)
        }

    @property
    def charged_periods(self) -> Mapping[str, int]:
        """The periods that it was charged in."""
        state = self.shard_state
        if self.periods is not None or state is None:
            return self.periods or {}
        return {name: meter.period(state.used[name], state.at) for name, meter in state.rules.meters.items()}


def charge_one(writer: BucketWriter, bucket: CachedBucket, shard: int, charge: Charge) -> Flow[Outcome]:
    """Charge one shard and no other."""
    lane = bucket.take_lane(writer.now())
    try:
        return (yield from charge_in_tree(writer, bucket, shard, charge, lane))
    finally:
        bucket.free_lane(lane)


def charge_in_tree(
    writer: BucketWriter, bucket: CachedBucket, shard: int, charge: Charge, lane: Lane
) -> Flow[Outcome]:
    """Charge one shard if those that it was split from exist, and keep them for longer than it."""
    if shard and not (yield from extend_ancestors(writer, bucket, shard)):
        return ShardGone()
    outcome = yield from charge_shard(writer, bucket, shard, charge, lane)
    if shard and isinstance(outcome, Charged):
        with suppress(SolotableError):
            yield from extend_ancestors(writer, bucket, shard)
    return outcome


def settle(writer: BucketWriter, taken: TakenTokens, amounts: Mapping[str, int]) -> Flow[None]:
    """Take more, into debt if necessary, or give back: in the shard that was charged, or in several."""
    if len(taken.shards) == 1 and not _is_large(taken, amounts):
        return (yield from settle_shard(writer, taken, taken.shards[0], amounts))
    yield from read_whole(writer, taken.bucket)
    for shard, part in plan_settlement(taken.bucket, amounts, writer.now()).items():
        yield from settle_shard(writer, taken, shard, part)


def _is_large(taken: TakenTokens, amounts: Mapping[str, int]) -> bool:
    """Return whether one shard would be in debt for long while others have tokens."""
    state = taken.bucket.shards.get(taken.shards[0])
    if state is None or state.level == 0:
        return False
    more = {name: amount for name, amount in amounts.items() if amount > 0 and name in state.rules.meters}
    return not has_headroom(Charge(state.rules, more), state.level)


def settle_shard(
    writer: BucketWriter, taken: TakenTokens, shard: int, amounts: Mapping[str, int]
) -> Flow[None]:
    """Settle with one shard, or with the one that it was merged with."""
    bucket = taken.bucket
    lane = bucket.take_lane(writer.now())
    is_current = False
    try:
        for _ in range(_REDIRECTS):
            state = bucket.shards.get(shard)
            rules = taken.charge.rules if state is None else state.rules
            if state is not None and not amounts.keys() <= rules.meters.keys():
                if not is_current:
                    # Another process may have changed the limits: the item itself shows which it has.
                    bucket.shards.pop(shard)
                    bucket.shards |= yield from read_some(writer, bucket, (shard,), consistent=True)
                    is_current = True
                    continue
                if taken.charge.rules.revision > state.revision:
                    rules = taken.charge.rules
            # A limit that was removed in between needs no settlement.
            held = taken.charge.rules.held
            left = {
                name: amount
                for name, amount in amounts.items()
                if name in rules.meters and (name in rules.held) is (name in held)
            }
            if is_current and taken.charge.hold and (past := held.keys() & amounts.keys() - left.keys()):
                # Released although the item does not have the limit now: it may have it again.
                given = {name: -amounts[name] for name in past}
                yield from end_past_holds(writer, bucket, shard, taken.charge.hold, given)
            if not left:
                return
            charge = Charge(
                rules, left, admit=False, periods=taken.periods_under(rules), hold=taken.charge.hold
            )
            outcome = yield from charge_in_tree(writer, bucket, shard, charge, lane)
            if isinstance(outcome, ShardGone):
                shard, is_current = (yield from _survivor(writer, bucket, shard)), False
            elif isinstance(outcome, RulesOutdated):
                is_current = True
            else:
                return
    finally:
        bucket.free_lane(lane)


def _survivor(writer: BucketWriter, bucket: CachedBucket, shard: int) -> Flow[int]:
    """Return the shard that another one was merged into, after its split is finished if one was begun."""
    if shard in bucket.shards:
        yield from finish_splits(writer, bucket)
        return shard
    above = parent_of(shard)
    bucket.shards |= yield from read_some(writer, bucket, (above,), consistent=True)
    return above
