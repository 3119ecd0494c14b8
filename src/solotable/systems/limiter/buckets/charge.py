"""Charge one shard of a bucket with one conditional UpdateItem and no read (C1.7, S1.7).

A wrong assumption of the write returns the item, and the next write is right. An item that does not exist is
only written as a whole bucket (C1.6). An item with other limits than the charge is converted in one write,
which keeps its tokens.

A failed condition is checked as of the time of that write. If the item lacked the cost at that time, the
charge is refused at once; tokens that came in since then stay in the bucket. Otherwise the assumption was
wrong, and the charge is written again at once, knowing the item, and as of the same time: other charges only
raise `used`, so the same line is not crossed twice. Other writers are not an outage: a charge that they
precede too often is refused, and never waits for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from solotable.errors import ConditionFailed, OutcomeUnknown, ServiceError, TransportError
from solotable.flow import Flow, Item, decode_item, is_conflict
from solotable.flow.conditions import all_of, equals
from solotable.flow.requests import GetItem, UpdateItem
from solotable.systems.limiter.errors import LimiterUnavailable
from solotable.systems.limiter.meters.rules import Rules
from solotable.systems.limiter.records import record

from .bucket import ShardState, find_flaw, unreadable
from .local_cache import CachedBucket, Lane
from .writer import BucketWriter
from .writes.charge_request import Charge, build_request, build_sweep
from .writes.flat_update import FlatUpdate

#: Writes that other writers may precede before an acquire is refused, and the wait of that refusal.
_ATTEMPTS = 6
_CONTENTION_MICROSECONDS = 10_000
#: The same for a settlement, which must not be refused; after the first of them it waits before each.
_SETTLEMENT_ATTEMPTS = 40
#: How long a write is repeated as of the time of the first.
REPEAT_MICROSECONDS = 50_000
#: Writes that may fail, and for how long they are sent again, before the error is raised.
_FAILURES = 5
_DEADLINE_MICROSECONDS = 3_000_000


@record(frozen=True, slots=True)
class Charged:
    """The charge is written. The state after it; None if there was no bucket to give back to."""

    state: ShardState | None


@dataclass(frozen=True, slots=True)
class ChargeRefused:
    """The shard had not enough at that time, and nothing was taken."""

    state: ShardState
    charge: Charge
    now: int
    #: Whether other writers preceded every attempt, whatever the shard had.
    contended: bool = False
    #: The waits by limit, where several shards together decide.
    waits: Mapping[str, int] | None = None

    def wait(self, name: str) -> int:
        """Return the microseconds until a limit has enough."""
        if self.waits is not None:
            return self.waits.get(name, 0)
        cost = self.charge.costs(self.state.level).get(name)
        if cost is None:
            return 0
        wait = self.charge.rules.meters[name].wait(self.state.used[name], self.now, cost)
        return max(wait, _CONTENTION_MICROSECONDS) if self.contended else wait

    @property
    def longest_wait(self) -> int:
        """The microseconds until every limit has enough."""
        return max(map(self.wait, self.charge.amounts), default=0)


class ShardGone:
    """The shard does not exist, or was split or merged."""


class RulesOutdated:
    """The item has newer limits than the charge."""


Outcome = Charged | ChargeRefused | ShardGone | RulesOutdated


@dataclass(frozen=True, slots=True)
class FailedWrite:
    """A first write that was sent as of a time, and failed; its lane is in use."""

    lane: Lane
    now: int
    error: ServiceError | TransportError


def charge_shard(
    writer: BucketWriter,
    bucket: CachedBucket,
    shard: int,
    charge: Charge,
    lane: Lane,
    first: FailedWrite | None = None,
) -> Flow[Outcome]:
    """Charge one shard, or return why not. However often it is sent in one lane, it is done once.

    A charge that continues in the shard that its own was merged with keeps its lane: it may be known there.
    """
    now = writer.now() if first is None else first.now
    if charge.admit and first is None:
        refused = cached_refusal(writer, bucket, shard, charge, now)
        if refused is not None:
            return refused
    started, level = now, 0
    failed = None if first is None else first.error
    failures = lane.attempt = 0
    while lane.attempt < (_ATTEMPTS if charge.admit else _SETTLEMENT_ATTEMPTS):
        if failed is None:
            if lane.attempt >= _ATTEMPTS:
                yield writer.scope.retries.wait(0)
                now = writer.now()
            state = bucket.shards.get(shard) or _assumed_state(bucket, shard, charge, now)
            if state is not None and state.moved:
                now = writer.clock.past(now)
                if bucket.may_be_ahead(lane, state.moved):
                    # As of now, it could take the tokens of a time that has not come.
                    lane.attempt += 1
                    yield writer.scope.retries.wait(0)
                    now = writer.now()
                    continue
            if state is not None and (obstacle := _find_obstacle(charge, lane, state, now)) is not None:
                return obstacle
            level = 0 if state is None else state.level
            sweep = None
            if state is not None and (charge.hold or state.text != charge.rules.text):
                sweep = build_sweep(writer, bucket, shard, charge, state, now)
            if sweep is not None:
                request, takes = sweep, False
            else:
                request, takes = build_request(writer, bucket, shard, charge, lane, state, now)
            bucket.send(lane, now, 0 if state is None else state.moved)
            try:
                reply = yield request
            except (ServiceError, TransportError) as error:
                failed = error
            else:
                item = decode_item(reply.attributes)
                if sweep is not None:
                    bucket.store(shard, writer.observe(bucket, shard, item, now))
                    continue
                state = note_written(writer, bucket, shard, lane if takes else None, item, now)
                if (until := state.expires(now, state.used)) > int(item["expires"]["N"]):
                    yield from extend_expiry(writer, bucket, shard, state, until)
                return Charged(state) if takes else ChargeRefused(state, charge, now)
        if not _is_unknown(failed):
            bucket.confirm(lane)
        if isinstance(failed, ConditionFailed):
            lane.attempt += 1
            found = None if failed.item is None else writer.observe(bucket, shard, failed.item, now)
            outcome = _examine(bucket, shard, charge, lane, level, found, now)
            if outcome is not None:
                return outcome
            if 0 <= writer.now() - now <= REPEAT_MICROSECONDS:
                # As of the same time: `used` that was above its line then is still above it.
                failed = None
                continue
        elif is_conflict(failed):
            # The shard is being split or merged, and nothing was written.
            lane.attempt += 1
        else:
            lane.lost = lane.lost or _is_unknown(failed)
            if lane.lost and lane.shared and charge.gives_back:
                # It may have been applied, and giving back twice would admit more.
                return Charged(bucket.shards.get(shard))
            failures += 1
            yield from wait_after(writer, bucket, shard, failed, failures, started)
        failed = None
        now = writer.now()
    if charge.admit:
        state = bucket.shards.get(shard) or _full_state(bucket, shard, charge.rules, now)
        return ChargeRefused(state.under(charge.rules, now), charge, now, contended=True)
    raise LimiterUnavailable(
        f"The bucket of {bucket.entity!r} for {bucket.resource!r} changed before each of "
        f"{_SETTLEMENT_ATTEMPTS} writes; try again."
    )


def _find_obstacle(
    charge: Charge, lane: Lane, state: ShardState, now: int
) -> RulesOutdated | ShardGone | None:
    """Return why a shard cannot be written as it is known."""
    is_other = state.text != charge.rules.text
    if is_other and not lane.lost and _is_outdated(charge, state):
        return RulesOutdated()
    if state.split and (is_other or state.is_ahead(now)):
        # Its split is finished before it is converted.
        return ShardGone()
    return None


def note_written(
    writer: BucketWriter, bucket: CachedBucket, shard: int, lane: Lane | None, item: Item, now: int
) -> ShardState:
    """Remember a shard after a write of this process, in this lane if it took tokens."""
    state = writer.observe(bucket, shard, item, now, written=True)
    bucket.store(shard, state)
    if lane is not None:
        bucket.numbers[shard, lane.name] = lane.number
    return state


def _is_unknown(failed: ServiceError | TransportError) -> bool:
    """Return whether a failed write may have been applied."""
    if isinstance(failed, ServiceError):
        return failed.status >= 500
    return isinstance(failed, OutcomeUnknown)


def wait_after(
    writer: BucketWriter,
    bucket: CachedBucket,
    shard: int,
    failed: ServiceError | TransportError,
    failures: int,
    started: int,
) -> Flow[None]:
    """Wait before a failed write is sent again; raise its error if that is too often, too late or no use."""
    if isinstance(failed, ServiceError) and failed.code == "ValidationException":
        # The stored item may make the update invalid, as a counter that is a string.
        reply = yield GetItem(table=writer.table, key=writer.key(bucket, shard), consistent=True)
        if (item := decode_item(reply.item)) and find_flaw(item) is not None:
            raise unreadable(item) from failed
    # Its lane shows whether a write was applied whose response was lost.
    may_resend = failed.retryable or isinstance(failed, OutcomeUnknown)
    if not may_resend or failures == _FAILURES or writer.now() - started > _DEADLINE_MICROSECONDS:
        raise failed
    yield writer.scope.retries.wait(failures)


def extend_expiry(
    writer: BucketWriter, bucket: CachedBucket, shard: int, state: ShardState, until: int
) -> Flow[None]:
    """Keep an item for as long as a debt lasts that the write before did not know."""
    request = UpdateItem(
        table=writer.table,
        key=writer.key(bucket, shard),
        update=FlatUpdate().set("expires", until).build(),
        condition=all_of(equals("rules", state.text), equals("level", state.level)),
    )
    with suppress(ServiceError, TransportError):
        yield request


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
    return _full_state(bucket, shard, charge.rules, now)


def _full_state(bucket: CachedBucket, shard: int, rules: Rules, now: int) -> ShardState:
    used = {name: meter.full(now) for name, meter in rules.meters.items()}
    return ShardState(bucket.depth, rules.text, rules.revision, used, now, 0, 0, {}, shard=shard)


def _examine(
    bucket: CachedBucket,
    shard: int,
    charge: Charge,
    lane: Lane,
    level: int,
    state: ShardState | None,
    now: int,
) -> Outcome | None:
    """Return the outcome that the item of a failed condition implies; None: write again, knowing it."""
    if state is None:
        bucket.forget(shard)
        if shard:
            return ShardGone()
        # C1.6: a bucket that does not exist is full; giving back must not create one.
        return Charged(None) if charge.only_gives_back else None
    bucket.store(shard, state)
    written = state.lanes.get(lane.name, 0)
    if written == lane.number or (charge.admit and charge.hold and state.has_hold(charge.hold)):
        return Charged(state)
    if not lane.is_foreign(written):
        if written > lane.number:
            lane.renumber(written)
    elif lane.lost and charge.gives_back:
        if written != lane.before:
            # The lost write may have been applied. Giving back twice would admit more.
            return Charged(state)
    elif lane.lost or not lane.shared:
        # If a lost charge was applied, it counts twice: that admits less.
        bucket.change_lane(lane, state)
    elif charge.gives_back and written > lane.number:
        lane.renumber(written)
    lane.before = bucket.numbers[shard, lane.name] = state.lanes.get(lane.name, 0)
    if state.text != charge.rules.text:
        return RulesOutdated() if _is_outdated(charge, state) else None
    if charge.admit and state.level != level:
        return ShardGone()
    may_refuse = charge.admit and not state.is_ahead(now)
    if may_refuse and state.lacks(charge.rules, charge.costs(state.level), now):
        return ChargeRefused(state, charge, now)
    return None


def _is_outdated(charge: Charge, state: ShardState) -> bool:
    """Return whether the item's limits must stay: those of the charge are older."""
    # A settlement uses the limits of the item, unless it has newer ones; an acquire may bring others.
    if not charge.admit and state.revision >= charge.rules.revision:
        return True
    # Limits from before a reset must not undo it, whatever their revision: those of a call have none.
    is_older = state.revision > charge.rules.revision and not charge.final
    return is_older or state.is_reset_after(charge.rules)
