"""The conditional UpdateItem of a charge: a first write, a next one, or a conversion to other limits.

`used` of a limit is either below the line of an untouched limit, and a write sets it to that line plus the
cost; or above it, and a write adds the cost. DynamoDB has no maximum, so the writer assumes one of the two
from what it remembers, and the condition verifies the assumption. Each form is exact under its own condition,
so an assumption never admits anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from solotable.flow.conditions import (
    Condition,
    all_of,
    any_of,
    at_most,
    equals,
    missing,
)
from solotable.flow.requests import UpdateItem
from solotable.systems.limiter.admin.limits import MOST_LIMITS, render
from solotable.systems.limiter.buckets.bucket import TOLERATED_SKEW, Bucket, ShardState
from solotable.systems.limiter.buckets.local_cache import CachedBucket, Lane
from solotable.systems.limiter.buckets.writer import BucketWriter
from solotable.systems.limiter.meters.concurrency import (
    MOST_REMOVED,
    Concurrency,
    Hold,
    expired_holds,
    holds_of,
)
from solotable.systems.limiter.meters.meter import Meter, Settlement
from solotable.systems.limiter.meters.rules import Rules, rules_from, rules_of
from solotable.systems.limiter.records import record

from .flat_update import FlatUpdate
from .next_write import LaneForm, NextWrite, lane_condition


@record(frozen=True, slots=True)
class Charge:
    """Thousandths of tokens by limit to take from a shard, below zero to give back.

    `admit`: only if they are available. `counts`: whether they are consumed, or given back, by a call.
    """

    rules: Rules
    amounts: Mapping[str, int]
    admit: bool = True
    counts: bool = True
    #: Whether the rules replace those of the item even if they are older.
    final: bool = False
    #: By limit, the period in which what is given back was taken; without one, the current period.
    periods: Mapping[str, int] = field(default_factory=dict)
    #: The name of the hold in concurrency limits.
    hold: str = ""
    #: By level: a charge is checked against what is remembered, then built.
    _costs: dict[int, Mapping[str, int]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def gives_back(self) -> bool:
        """Whether the charge gives anything back."""
        return not self.admit and any(amount < 0 for amount in self.amounts.values())

    @property
    def only_gives_back(self) -> bool:
        """Whether the charge takes nothing."""
        return not self.admit and all(amount < 0 for amount in self.amounts.values())

    def costs(self, level: int) -> Mapping[str, int]:
        """Return the cost by limit in a shard of this level."""
        found = self._costs.get(level)
        if found is None:
            meters = self.rules.meters
            found = {name: meters[name].cost(amount, level) for name, amount in self.amounts.items()}
            self._costs[level] = found
        return found


def build_request(
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
    if charge.gives_back:
        lane.use_for_returns()
    if not lane.lost:
        known = bucket.shards.get(shard)
        before = 0 if known is None else known.lanes.get(lane.name, 0)
        lane.before = None if known is None else bucket.numbers.get((shard, lane.name), before)
    if state is None:
        update, condition = _build_first(writer, bucket, shard, charge, lane, now)
    elif state.text != charge.rules.text or state.is_ahead(now):
        update, condition, takes = _build_conversion(charge, lane, state, now)
    else:
        return build_next(charge, lane, state, now).request(writer.table, writer.key(bucket, shard)), True
    request = UpdateItem(
        table=writer.table,
        key=writer.key(bucket, shard),
        update=update.build(),
        condition=condition,
        returns="ALL_NEW",
        returns_on_failure=True,
    )
    return request, takes


def build_sweep(
    writer: BucketWriter, bucket: CachedBucket, shard: int, charge: Charge, state: ShardState, now: int
) -> UpdateItem | None:
    """Return a write that only removes holds, if a charge has to remove more than one write can."""
    is_other, held = state.text != charge.rules.text, charge.rules.held
    for name, used in state.used.items():
        holds = holds_of(used)
        if len(holds) <= MOST_REMOVED:
            continue
        if is_other and name in charge.rules.meters and name not in held:
            # Another kind of limit has no holds.
            removed: Sequence[Hold] = holds[:MOST_REMOVED]
        else:
            lacking = 0 if is_other or name not in held else used - held[name].depth
            lacking += charge.costs(state.level).get(name, 0) if charge.admit else 0
            expired = [hold for hold in holds if hold.expires <= now]
            removed = sorted(expired, key=lambda hold: -hold.amount)[:MOST_REMOVED]
            if len(expired) <= MOST_REMOVED or (
                not is_other and lacking <= sum(hold.amount for hold in removed)
            ):
                continue
        update = FlatUpdate().add("writes", 1)
        update.add(state.meter(name).used, -sum(hold.amount for hold in removed))
        for hold in removed:
            update.remove(hold.attribute)
        terms = [equals("rules", state.text), equals("level", state.level)]
        return UpdateItem(
            table=writer.table,
            key=writer.key(bucket, shard),
            update=update.build(),
            condition=all_of(*terms, *(equals(*hold) for hold in removed)),
            returns="ALL_NEW",
            returns_on_failure=True,
        )
    return None


def lane_form(charge: Charge, lane: Lane) -> LaneForm:
    """Return how a write requires that it was not applied before."""
    if lane.shared:
        return "below" if charge.gives_back else "differs"
    if lane.before is None and not (lane.lost and charge.gives_back):
        return "below"
    return "equals" if lane.before else "missing"


def _unwritten(charge: Charge, lane: Lane) -> Condition:
    """Return the condition that the write was not applied before."""
    return lane_condition(lane_form(charge, lane), lane.name, lane.number, lane.before)


def _stamp(lane: Lane, now: int) -> FlatUpdate:
    return FlatUpdate().set("at", now).add("writes", 1).set(lane.name, lane.number)


def _count_consumed(update: FlatUpdate, charge: Charge) -> None:
    # S1.10: consumption has its own counter and is never derived from what is left.
    for attribute, amount in _consumed(charge):
        update.add(attribute, amount)


def _consumed(charge: Charge) -> Iterator[tuple[str, int]]:
    """Return what each counter is changed by; the end of a lease does not undo its use."""
    if charge.counts:
        for name, amount in charge.amounts.items():
            if amount > 0 or name not in charge.rules.held:
                yield charge.rules.meters[name].consumed, amount


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
    terms = [equals("rules", rules.text), equals("level", 0), _unwritten(charge, lane), missing("moved")]
    used: dict[str, int] = {}
    for name, meter in rules.meters.items():
        full = meter.full(now)
        if name in costs:
            used[name] = meter.charged(full, now, costs[name])
            update.set(meter.used, used[name])
            terms.append(at_most(meter.used, full))
            if name in rules.held and charge.hold:
                update.set(*rules.held[name].hold(charge.hold, costs[name], now))
        else:
            used[name] = full
            update.set_if_missing(meter.used, full)
    update.set("expires", rules.expires(now, used))
    _count_consumed(update, charge)
    return update, any_of(missing(plan.table.partition.name), all_of(*terms))


def build_next(charge: Charge, lane: Lane, state: ShardState, now: int) -> NextWrite:
    """Write by what is remembered: a limit that was used to above the full line is still above it."""
    rules = charge.rules
    write = NextWrite(lane.name, [now, lane.number, rules.text, state.level])
    write.require_lane(lane_form(charge, lane), lane.before)
    # A process whose clock is ahead must not write before it has found out.
    if state.moved:
        write.equals("moved", state.moved)
    else:
        write.missing("moved")
    used = dict(state.used)
    for name, cost in charge.costs(state.level).items():
        meter = rules.meters[name]
        full = meter.full(now)
        before = used[name]
        if rules.held and name in rules.held:
            _change_hold(write, charge, rules.held[name], before, cost, now)
            continue
        if cost > 0 and before <= full:
            used[name] = meter.charged(full, now, cost)
            write.set(meter.used, used[name])
            write.at_most(meter.used, full)
        elif cost > 0 and meter.turns and (turned := meter.turned(before, now)) != before:
            used[name] = meter.charged(before, now, cost)
            write.set(meter.used, used[name])
            write.equals(meter.used, before)
            if charge.admit:
                write.at_most(meter.used, before + meter.ceiling(turned, now) - cost - turned)
        elif charge.admit:
            used[name] += cost
            write.add(meter.used, cost)
            write.at_least(meter.used, meter.floor(before, now))
            write.at_most(meter.used, meter.ceiling(before, now) - cost)
        else:
            settlement = meter.settle(before, now, cost, charge.periods.get(name))
            used[name] += _settle(write, meter, settlement)
    if not charge.admit:
        # `used` of a clock far ahead must stay recognisable.
        write.at_most("at", now + TOLERATED_SKEW)
    write.set("expires", state.expires(now, used))
    # S1.10: consumption has its own counter and is never derived from what is left.
    if charge.counts and not rules.held:
        for name, amount in charge.amounts.items():
            write.add(rules.meters[name].consumed, amount)
    else:
        for attribute, amount in _consumed(charge):
            write.add(attribute, amount)
    if state.former_lanes:
        write.removed = (*write.removed, *state.former_lanes)
    return write


def _settle(write: NextWrite, meter: Meter, settlement: Settlement) -> int:
    """Add what a settlement adds, and return it; what is given back to another period has no effect."""
    delta, lowest, highest = settlement
    if delta:
        write.add(meter.used, delta)
    if lowest is not None:
        write.at_least(meter.used, lowest)
    if highest is not None:
        write.at_most(meter.used, highest)
    if lowest is highest is None:
        write.exists(meter.used)
    return delta


def _change_hold(
    write: NextWrite, charge: Charge, meter: Concurrency, used: int, cost: int, now: int
) -> None:
    """Begin the hold of a lease and remove expired ones, or change a hold, or end it."""
    write.is_unique = True
    own = meter.attribute(charge.hold)
    if charge.admit:
        expired = expired_holds(used, now, used + cost - meter.depth)
        freed = sum(hold.amount for hold in expired)
        write.add(meter.used, cost - freed)
        write.at_most(meter.used, meter.depth - cost + freed)
        write.missing(own)
        write.set(*meter.hold(charge.hold, cost, now))
        for hold in expired:
            write.equals(*hold)
        write.removed = (*write.removed, *(hold.attribute for hold in expired))
        return
    if not charge.hold:
        return
    found = next((hold for hold in holds_of(used) if hold.attribute == own), None)
    if found is None:
        # It has expired, and its tokens are free.
        write.missing(own)
        return
    delta = max(cost, -found.amount)
    write.equals(*found)
    write.add(meter.used, delta)
    if found.amount + delta:
        write.set(own, found.value + delta)
    else:
        write.removed = (*write.removed, own)


def _build_conversion(
    charge: Charge, lane: Lane, state: ShardState, now: int
) -> tuple[FlatUpdate, Condition, bool]:
    """Write under other limits, or after a clock that was far ahead: the tokens stay, in the new credits.

    Without enough tokens the item is only converted, so that it refills by the new limits.
    """
    rules, old = charge.rules, state.rules
    converted = state.under(rules, now)
    used = dict(converted.used)
    costs = charge.costs(state.level)
    takes = not (charge.admit and converted.lacks(rules, costs, now))
    update = FlatUpdate().set("at", now).add("writes", 1)
    if takes:
        update.set(lane.name, lane.number)
        for name, cost in costs.items():
            if name in rules.held:
                used[name] += _convert_hold(update, charge, rules.held[name], used[name], cost, now)
            else:
                used[name] = rules.meters[name].charged(used[name], now, cost)
        _count_consumed(update, charge)
    if state.is_ahead(now):
        # The next write of each process requires another value. It fails, and finds out whose clock is ahead.
        update.set("moved", max(now, state.moved + 1))
    update.set("rules", rules.text).set("revision", rules.revision)
    for name, meter in rules.meters.items():
        update.set(meter.used, int(used[name]))
    for name in old.meters.keys() - rules.meters.keys():
        update.remove(old.meters[name].consumed)
    past = _keep_removed_limits(update, state, rules, now)
    lasting = {*rules.held, *(rules_from(past, 0).held if past else ())}
    ended = [hold for name, value in state.used.items() if name not in lasting for hold in holds_of(value)]
    for hold in ended:
        update.remove(hold.attribute)
    update.set("expires", replace(converted, past=past).expires(now, {**state.used, **used}))
    terms = [equals("rules", state.text), equals("level", state.level), _unwritten(charge, lane)]
    if state.level:
        # `half_*` of an unfinished split is counted by the rules of the item.
        terms.append(missing("split"))
    terms += [equals(state.meter(name).used, int(value)) for name, value in state.used.items()]
    if ended:
        # The same sum may be that of other leases.
        terms.append(equals("writes", state.writes))
    return update, all_of(*terms), takes


def _convert_hold(
    update: FlatUpdate, charge: Charge, meter: Concurrency, used: int, cost: int, now: int
) -> int:
    """Begin or change the hold of a lease in a write that requires `used` as it was; return the change."""
    if charge.admit:
        update.set(*meter.hold(charge.hold, cost, now))
        return cost
    own = meter.attribute(charge.hold)
    found = next((hold for hold in holds_of(used) if hold.attribute == own), None)
    if found is None:
        return 0
    delta = max(cost, -found.amount)
    if found.amount + delta:
        update.set(own, found.value + delta)
    else:
        update.remove(own)
    return delta


def _keep_removed_limits(update: FlatUpdate, state: ShardState, rules: Rules, now: int) -> str:
    """Keep `used` of removed limits that are not full, in case they return; return the text of `past`."""
    removed = {name: state.meter(name) for name in state.used if name not in rules.meters}
    used = {name: state.used_under(name, rules_of((each.limit,), 0), now) for name, each in removed.items()}
    # Of a concurrency limit, until the last lease expires.
    waits = {name: each.wait(used[name], now, each.depth) for name, each in removed.items()}
    # Beyond the bound, those that are full soonest are dropped.
    slowest = sorted((name for name in waits if waits[name]), key=lambda name: -waits[name])
    kept = sorted(slowest[:MOST_LIMITS])
    for name, each in removed.items():
        if name in kept:
            update.set(each.used, int(used[name]))
        else:
            update.remove(each.used)
    if not kept:
        update.remove("past")
        return ""
    past = render(tuple(removed[name].limit for name in kept))
    update.set("past", past)
    return past
