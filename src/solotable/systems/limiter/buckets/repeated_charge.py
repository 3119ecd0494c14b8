"""The charge of a call that repeats: the same names, limits and bucket, with other numbers.

Most acquires find the bucket as this process left it. For these, `begin` fills numbers into a write that is
known, without the steps that find out which buckets a call has and what their writes are. It gives no result
for a call that differs in anything, or that may be refused: the general flow decides then. The request is the
same in both cases, which a test verifies.
"""

from __future__ import annotations

from dataclasses import dataclass

from solotable.flow import Item, PreparedUpdate
from solotable.flow.requests import UpdateItem
from solotable.systems.limiter.admin.limits import MILLI, MOST_TOKENS
from solotable.systems.limiter.admin.resolve import EffectiveLimits
from solotable.systems.limiter.meters.meter import Meter
from solotable.systems.limiter.records import record

from .bucket import ShardState
from .charge import note_written
from .local_cache import CachedBucket, Lane
from .targets import Consume, LimiterContext, Target, Targets
from .writer import BucketWriter
from .writes.charge_request import Charge, build_next, lane_form

_NOTHING_USED: dict[str, int] = {}


@dataclass(frozen=True, slots=True)
class RepeatedCharge:
    """What the calls of one bucket with the same names share."""

    #: The look-up that decided the limits.
    effective: EffectiveLimits
    #: The first charge with these names.
    charge: Charge
    names: tuple[str, ...]
    meters: tuple[Meter, ...]
    #: By the name and the form of the lane, which limits are untouched, and whether the item was moved back.
    writes: dict[tuple[str, str, int, bool], PreparedUpdate]

    def write(
        self, charge: Charge, lane: Lane, state: ShardState, untouched: int, now: int
    ) -> PreparedUpdate:
        """Return the write of a form."""
        key = lane.name, lane_form(charge, lane), untouched, state.moved > 0
        found = self.writes.get(key)
        if found is None:
            found = self.writes[key] = build_next(charge, lane, state, now).prepared()
        return found


@record(frozen=True, slots=True)
class FirstWrite:
    """The first write of a call that repeats; its lane is in use."""

    bucket: CachedBucket
    charge: Charge
    lane: Lane
    now: int
    request: UpdateItem
    #: Whether a limit that the call does not name may be in debt.
    may_owe: bool

    @property
    def targets(self) -> Targets:
        """The bucket and the charge for the general flow."""
        return Targets((Target(self.bucket, self.charge),), {self.bucket.resource: self.charge.amounts})

    def note_applied(self, writer: BucketWriter, item: Item) -> ShardState:
        """Remember the bucket after the write, and free its lane."""
        try:
            return note_written(writer, self.bucket, 0, self.lane, item, self.now)
        finally:
            self.bucket.free_lane(self.lane)


def remember(found: Targets, consume: Consume) -> None:
    """Remember the charge of an admitted call if the next one may repeat it."""
    if found.effective is None or len(found.buckets) != 1:
        return
    target, names = found.buckets[0], tuple(*consume.values())
    charge = target.charge
    meters = charge.rules.meters
    if not names or names != tuple(charge.amounts):
        # Nothing is taken, and nothing written; or an amount is 0, or a name is ignored.
        return
    if target.lenient or charge.rules.held:
        return
    if any(meters[name].turns for name in names):
        return
    target.bucket.repeated = RepeatedCharge(
        found.effective, charge, names, tuple(meters[name] for name in names), {}
    )


def begin(context: LimiterContext, entity: str, consume: Consume) -> FirstWrite | None:
    """Return the write of a call that repeats the last one of its bucket; None for any other call."""
    ((resource, named),) = consume.items()
    writer = context.writer
    # Calls that are denied, or have no limits, must not evict buckets.
    bucket = writer.cache.find(entity, resource)
    repeated = None if bucket is None else bucket.repeated
    if bucket is None or repeated is None or tuple(named) != repeated.names:
        return None
    rules, state, now = repeated.charge.rules, bucket.shards.get(0), writer.now()
    if state is None or state.text != rules.text or state.is_ahead(now):
        return None
    if bucket.depth or state.past or state.former_lanes:
        return None
    if state.moved and bucket.may_be_ahead(None, state.moved):
        return None
    amounts: dict[str, int] = {}
    values: list[int | str] = []
    untouched = 0
    for meter, (name, amount) in zip(repeated.meters, named.items(), strict=True):
        if amount.__class__ is not int or not 0 < amount <= MOST_TOKENS:
            return None
        amounts[name] = amount * MILLI
        cost, before, full = meter.cost(amounts[name]), state.used[name], meter.full(now)
        untouched <<= 1
        if before <= full:
            if cost > meter.depth:
                return None
            untouched += 1
            values += (meter.charged(full, now, cost), full)
        else:
            highest = meter.ceiling(before, now) - cost
            if before > highest:
                return None
            values += (cost, meter.floor(before, now), highest)
    if not context.cache.is_current(entity, resource, repeated.effective):
        return None
    may_owe = len(amounts) < len(rules.meters)
    # A limit that the write takes from is not in debt after it.
    values.append(rules.expires(now, state.used if may_owe else _NOTHING_USED))
    values += amounts.values()
    charge = Charge(rules, amounts)
    lane = bucket.take_lane(now)
    lane.before = bucket.numbers.get((0, lane.name), state.lanes.get(lane.name, 0))
    head: tuple[int | str, ...] = (now, lane.number, rules.text, 0)
    if lane.before and not lane.shared:
        head = (*head, lane.before)
    if state.moved:
        head = (*head, state.moved)
    prepared = repeated.write(charge, lane, state, untouched, now)
    request = prepared.request(
        writer.table, writer.key(bucket, 0), (*head, *values), returns="ALL_NEW", returns_on_failure=True
    )
    bucket.send(lane, now, state.moved)
    return FirstWrite(bucket, charge, lane, now, request, may_owe)
