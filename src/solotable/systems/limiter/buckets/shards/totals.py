"""What the shards of a bucket have together, when they have more, and who gives how much; pure.

A small charge needs one shard that has it all. A large one takes parts of several, in whole thousandths of a
token from each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from solotable.systems.limiter.buckets.bucket import HIGHEST_LEVEL, ShardState
from solotable.systems.limiter.buckets.charge import ChargeRefused
from solotable.systems.limiter.buckets.local_cache import CachedBucket
from solotable.systems.limiter.buckets.writes.charge_request import Charge
from solotable.systems.limiter.meters.meter import Meter
from solotable.systems.limiter.meters.rules import Rules

from .reshard import has_headroom
from .tree import leaves

#: The reported wait of a charge that other writers preceded each time.
_CONTENTION_MICROSECONDS = 10_000
#: A large charge leaves a quarter of what the shards have, unless it needs all of them.
_RESERVE = 4


def known_shards(bucket: CachedBucket, rules: Rules, now: int) -> list[ShardState]:
    """Return the shards that this process remembers, as they are under these rules."""
    return [state.under(rules, now) for state in leaves(bucket.shards).values() if state is not None]


def statuses(bucket: CachedBucket, charge: Charge, now: int) -> dict[str, tuple[int, int]]:
    """Return the thousandths of a token that each limit has, and the microseconds until it has the charge."""
    states = known_shards(bucket, charge.rules, now)
    waits = _waits(states, charge, now)
    meters = charge.rules.meters
    if not states:
        return {name: (meter.depth // meter.price, 0) for name, meter in meters.items()}
    return {name: (_sum(states, meter, now), waits.get(name, 0)) for name, meter in meters.items()}


def refusal(bucket: CachedBucket, charge: Charge, now: int) -> ChargeRefused | None:
    """Return the refusal of a charge by all shards that are known; None if they would not refuse it.

    Its state has what a call can take now: the tokens of all shards if it may take parts, or of the best one.
    """
    states = known_shards(bucket, charge.rules, now)
    waits = _waits(states, charge, now)
    if not any(waits.values()):
        return None
    if _is_large(states, charge):
        whole = _whole(states, charge.rules, now)
    else:
        whole = _alone(_soonest(states, charge, now), charge.rules, now)
    return ChargeRefused(whole, charge, now, waits=waits)


def contended_refusal(bucket: CachedBucket, charge: Charge, now: int) -> ChargeRefused:
    """Return the refusal of a charge that other writers preceded each time: the next one may have it."""
    states = known_shards(bucket, charge.rules, now)
    used = {name: meter.full(now) for name, meter in charge.rules.meters.items()}
    full = ShardState(0, charge.rules.text, charge.rules.revision, used, now, 0, now, {})
    waits = dict.fromkeys(charge.amounts, _CONTENTION_MICROSECONDS)
    return ChargeRefused(_whole(states or [full], charge.rules, now), charge, now, waits=waits)


def whole_state(bucket: CachedBucket, rules: Rules, now: int) -> ShardState | None:
    """Return a bucket as one shard, with the tokens of all shards as far as they are known."""
    states = known_shards(bucket, rules, now)
    return _whole(states, rules, now) if states else None


def _whole(states: list[ShardState], rules: Rules, now: int) -> ShardState:
    if len(states) == 1 and states[0].level == 0:
        return states[0]
    known = sum(1 << HIGHEST_LEVEL >> state.level for state in states)
    used = {}
    for name, meter in rules.meters.items():
        available = _sum(states, meter, now) * meter.price
        used[name] = meter.used_for((available << HIGHEST_LEVEL) // known, now)
    return replace(states[0], level=0, used=used, lanes={}, shard=0, split=0, half={})


def _alone(state: ShardState, rules: Rules, now: int) -> ShardState:
    if state.level == 0:
        return state
    used = {
        name: meter.used_for(meter.credits(state.used[name], now) >> state.level, now)
        for name, meter in rules.meters.items()
    }
    return replace(state, level=0, used=used, lanes={}, shard=0, split=0, half={})


def _is_large(states: Iterable[ShardState], charge: Charge) -> bool:
    """Return whether a charge may take parts of several shards: one of them holds it only a few times."""
    deepest = max((state.level for state in states), default=0)
    return deepest > 0 and not has_headroom(charge, deepest)


def _waits(states: list[ShardState], charge: Charge, now: int) -> dict[str, int]:
    """Return the microseconds until each limit has the charge."""
    if not states:
        return {}
    if not _is_large(states, charge):
        return _shard_waits(_soonest(states, charge, now), charge, now)
    meters = charge.rules.meters
    return {
        name: _wait_together(states, meters[name], amount, now) for name, amount in charge.amounts.items()
    }


def _shard_waits(state: ShardState, charge: Charge, now: int) -> dict[str, int]:
    meters, costs = charge.rules.meters, charge.costs(state.level)
    return {name: meters[name].wait(state.used[name], now, cost) for name, cost in costs.items()}


def _soonest(states: list[ShardState], charge: Charge, now: int) -> ShardState:
    return min(states, key=lambda state: max(_shard_waits(state, charge, now).values(), default=0))


def _wait_together(states: list[ShardState], meter: Meter, amount: int, now: int) -> int:
    """Return the microseconds until shards together have an amount: each fills at its own pace to its depth.

    The sum never falls, so halving finds the moment.
    """
    if _sum(states, meter, now) >= amount:
        return 0
    name = meter.limit.name
    low, high = 0, max(meter.wait(state.used[name], now, meter.depth) for state in states)
    while high - low > 1:
        middle = (low + high) // 2
        if _sum(states, meter, now + middle) >= amount:
            high = middle
        else:
            low = middle
    return high


def _sum(states: Iterable[ShardState], meter: Meter, now: int) -> int:
    return sum(_tokens(state, meter, now) for state in states)


def _tokens(state: ShardState, meter: Meter, now: int) -> int:
    return meter.tokens(state.used[meter.limit.name], now, state.level)


def plan_parts(
    bucket: CachedBucket, rules: Rules, amounts: Mapping[str, int], now: int
) -> dict[int, dict[str, int]] | None:
    """Return what to take from which shards; None if all that are known have too little.

    The fewest shards that have it and a reserve for charges at the same time, each in proportion to what it
    has.
    """
    available = {
        shard: {name: max(0, _tokens(state.under(rules, now), rules.meters[name], now)) for name in amounts}
        for shard, state in bucket.shards.items()
    }
    richest = sorted(
        available,
        key=lambda shard: -min((available[shard][name] / amounts[name] for name in amounts), default=0),
    )
    chosen: list[int] = []
    total = dict.fromkeys(amounts, 0)
    for shard in richest:
        chosen.append(shard)
        for name in amounts:
            total[name] += available[shard][name]
        if all(total[name] * (_RESERVE - 1) >= amount * _RESERVE for name, amount in amounts.items()):
            break
    if any(total[name] < amount for name, amount in amounts.items()):
        return None
    plan: dict[int, dict[str, int]] = {shard: {} for shard in chosen}
    for name, amount in amounts.items():
        for shard, part in _share(amount, {shard: available[shard][name] for shard in chosen}).items():
            plan[shard][name] = part
    return {shard: parts for shard, parts in plan.items() if parts}


def plan_settlement(bucket: CachedBucket, amounts: Mapping[str, int], now: int) -> dict[int, dict[str, int]]:
    """Return what to take from each shard, or to give it: the richest give, and the poorest get."""
    plan: dict[int, dict[str, int]] = {shard: {} for shard in bucket.shards or (0,)}
    for name, amount in amounts.items():
        known = {shard: state for shard, state in bucket.shards.items() if name in state.rules.meters}
        if not known:
            plan[0][name] = amount
            continue
        over = abs(amount)
        room = {shard: _room(state, name, now, gives=amount > 0) for shard, state in known.items()}
        inside = min(over, sum(room.values()))
        shares = _share(inside, room)
        # Debt, and what a full bucket does not hold, by size.
        sizes = {shard: 1 << HIGHEST_LEVEL >> state.level for shard, state in known.items()}
        for shard, part in _share(over - inside, sizes).items():
            shares[shard] = shares.get(shard, 0) + part
        for shard, part in shares.items():
            plan[shard][name] = part if amount > 0 else -part
    return {shard: parts for shard, parts in plan.items() if parts}


def _room(state: ShardState, name: str, now: int, *, gives: bool) -> int:
    meter = state.rules.meters[name]
    has = meter.credits(state.used[name], now)
    return max(0, has if gives else meter.depth - has) // (meter.price << state.level)


def _share(amount: int, by: Mapping[int, int]) -> dict[int, int]:
    """Return an amount in parts in proportion to these numbers, and no greater than them if they suffice."""
    shares, left, rest = {}, amount, sum(by.values())
    for shard, size in by.items():
        # What is rounded up here is not asked of the others.
        part = -(-left * size // rest) if rest else 0
        left, rest = left - part, rest - size
        if part:
            shares[shard] = part
    return shares
