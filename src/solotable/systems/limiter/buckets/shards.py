"""Hot buckets: which shard a call takes from, and how shards are halved and joined.

A shard is halved when it is written more often than a partition of DynamoDB bears, and joined with its other
half when that has long passed. Its number is the low `level` bits of a throw of dice, so a bucket's shards
may have different levels and still every throw has one shard.

The bound: all shards together never have more tokens than the bucket has, at any time. A new half begins
with what its other half has or less, both under one condition in one transaction; joined halves have the
mean. What sharding costs is on the other side: a shard may refuse while others have tokens left. A call
looks into three shards before it is refused, and one that asks for more than a shard's part takes a part
from every shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from solotable._expressions.ast import And, Attr, Compare, Condition, Const, Exists, Not
from solotable._flows.retry import Flow, send
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import (
    BatchGetItem,
    DeleteItem,
    PutItem,
    TableKeys,
    TransactWriteItems,
    UpdateItem,
)
from solotable._values import Item
from solotable.errors import SolotableError
from solotable.systems.limiter.admin.limits import MICROSECONDS
from solotable.systems.limiter.errors import LimiterUnavailable
from solotable.systems.limiter.table import limiter

from .bucket import HIGHEST_LEVEL, Bucket, ShardState, read
from .charge import BucketWriter, Charge, Charged, ChargeRefused, Outcome, RulesOutdated, ShardGone, through
from .flat_update import FlatUpdate, number, scalar
from .local_cache import CachedBucket, Lane, RateSample, fresh

#: How many shards a call looks into before it is refused, and how often it is sent elsewhere.
_LOOKS = 3
_DETOURS = 12
#: A half must hold so many of what is asked at once, or the shard is not halved.
_ROOM = 8
#: How long writes are counted before a shard is halved, and before it is joined.
_HEAT = MICROSECONDS
_REST = 10 * MICROSECONDS
#: A shard is joined when it is written this many times less often than what would split it.
_COLD = 8
#: A new half begins with this part of a bucket less, for what is taken while it is made.
_SLACK = 16


@dataclass(frozen=True, slots=True)
class TakenTokens:
    """What was taken, and from which shards: it is given back to the same ones (C1.14)."""

    known: CachedBucket
    ask: Charge
    shards: tuple[int, ...]
    state: ShardState | None = None


def take(
    writer: BucketWriter, known: CachedBucket, ask: Charge
) -> Flow[TakenTokens | ChargeRefused | RulesOutdated]:
    """Take tokens from a bucket, whatever shards it has."""
    lane = known.lane(writer.now())
    try:
        return (yield from _taken(writer, known, ask, lane))
    finally:
        known.leave(lane)


def touch(writer: BucketWriter, known: CachedBucket, shard: int, ask: Charge) -> Flow[Outcome]:
    """Charge one shard and no other."""
    lane = known.lane(writer.now())
    try:
        return (yield from through(writer, known, shard, ask, lane))
    finally:
        known.leave(lane)


def _taken(
    writer: BucketWriter, known: CachedBucket, ask: Charge, lane: Lane
) -> Flow[TakenTokens | ChargeRefused | RulesOutdated]:
    roll = int(writer.scope.retries.random() * (1 << HIGHEST_LEVEL)) if known.depth else 0
    refused: dict[int, ChargeRefused] = {}
    for _ in range(_DETOURS):
        if known.depth and _exceeds_shard(known, ask):
            return (yield from _take_from_all(writer, known, ask))
        shard = roll & ((1 << known.depth) - 1)
        outcome = yield from through(writer, known, shard, ask, lane)
        if isinstance(outcome, Charged):
            if outcome.state is not None and writer.shard_above is not None:
                yield from _rebalance(writer, known, shard, outcome.state, ask)
            return TakenTokens(known, ask, (shard,), outcome.state)
        if isinstance(outcome, RulesOutdated):
            return outcome
        if isinstance(outcome, ShardGone):
            if shard not in known.shards:
                known.depth = max(0, shard.bit_length() - 1)
            continue
        refused[shard] = outcome
        if known.depth == 0:
            return outcome
        if not _has_room(ask, known.depth):
            # So much at once is more often in all shards together than in one.
            return (yield from _take_from_all(writer, known, ask))
        if len(refused) >= min(_LOOKS, 1 << known.depth):
            return min(refused.values(), key=lambda one: one.longest)
        roll = _other(roll, refused, known.depth)
    raise _resharding_error(known)


def settle(writer: BucketWriter, taken: TakenTokens, amounts: Mapping[str, int]) -> Flow[None]:
    """Take more, into debt if need be, or give back, where the tokens were taken from."""
    if len(taken.shards) == 1:
        return (yield from _settled(writer, taken, taken.shards[0], amounts))
    # What was taken from all shards is settled with those that there are now.
    whole = (yield from _whole(writer, taken.known)) or {0: 0}
    for place, (shard, level) in enumerate(whole.items()):
        yield from _settled(writer, taken, shard, amounts, part=level, counts=place == 0)


def _settled(
    writer: BucketWriter,
    taken: TakenTokens,
    shard: int,
    amounts: Mapping[str, int],
    *,
    part: int = 0,
    counts: bool = True,
) -> Flow[None]:
    """Settle with one shard, or with what became of it."""
    lane = taken.known.lane(writer.now())
    try:
        yield from _settled_in(writer, taken, shard, amounts, lane, part=part, counts=counts)
    finally:
        taken.known.leave(lane)


def _settled_in(
    writer: BucketWriter,
    taken: TakenTokens,
    shard: int,
    amounts: Mapping[str, int],
    lane: Lane,
    *,
    part: int,
    counts: bool,
) -> Flow[None]:
    for _ in range(_DETOURS):
        state = taken.known.shards.get(shard)
        rules = taken.ask.rules if state is None else state.rules
        # A limit that was taken away meanwhile is settled by that.
        left = {name: amount for name, amount in amounts.items() if name in rules.token_buckets}
        if not left:
            return
        ask = Charge(rules, left, admit=False, part=part, counts=counts)
        outcome = yield from through(writer, taken.known, shard, ask, lane)
        if isinstance(outcome, ShardGone):
            # It was joined with the half that has all but its highest bit, and what it had with it.
            shard &= (1 << max(0, shard.bit_length() - 1)) - 1
        elif not isinstance(outcome, RulesOutdated):
            return


def _exceeds_shard(known: CachedBucket, ask: Charge) -> bool:
    token_buckets = ask.rules.token_buckets
    return any(cost > token_buckets[name].depth for name, cost in ask.costs(known.depth).items())


def _take_from_all(
    writer: BucketWriter, known: CachedBucket, ask: Charge
) -> Flow[TakenTokens | ChargeRefused | RulesOutdated]:
    """Take a part from every shard, or from none."""
    for attempt in range(_DETOURS):
        if attempt:
            yield writer.scope.retries.wait(attempt)
        whole = yield from _whole(writer, known)
        outcome = yield from _take_parts(writer, known, ask, whole)
        if not isinstance(outcome, ShardGone):
            return outcome
    raise _resharding_error(known)


def _take_parts(
    writer: BucketWriter, known: CachedBucket, ask: Charge, whole: Mapping[int, int]
) -> Flow[TakenTokens | ChargeRefused | RulesOutdated | ShardGone]:
    """Take from these shards, while they have these levels: then it is all of what is asked, and no more."""
    parts = {
        shard: replace(ask, part=level, counts=place == 0)
        for place, (shard, level) in enumerate(whole.items())
    }
    done: list[int] = []
    failed: ChargeRefused | RulesOutdated | ShardGone = ShardGone()
    try:
        for shard, part in parts.items():
            outcome = yield from touch(writer, known, shard, part)
            if not isinstance(outcome, Charged):
                failed = outcome
                break
            done.append(shard)
    except SolotableError:
        with suppress(SolotableError):
            yield from _parts_back(writer, known, parts, done)
        raise
    if parts and len(done) == len(parts):
        return TakenTokens(known, ask, tuple(whole), known.shards.get(done[0]))
    yield from _parts_back(writer, known, parts, done)
    if isinstance(failed, ChargeRefused):
        # It has to wait for the shard that takes longest.
        there = [(known.shards[shard], part) for shard, part in parts.items() if shard in known.shards]
        others = [
            ChargeRefused(state, part, failed.now) for state, part in there if state.text == ask.rules.text
        ]
        return max([failed, *others], key=lambda one: one.longest)
    return failed


def _parts_back(
    writer: BucketWriter, known: CachedBucket, parts: Mapping[int, Charge], done: Iterable[int]
) -> Flow[None]:
    for shard in done:
        part = parts[shard]
        back = {name: -amount for name, amount in part.amounts.items()}
        taken = TakenTokens(known, part, (shard,))
        yield from _settled(writer, taken, shard, back, part=part.part, counts=part.counts)


def _whole(writer: BucketWriter, known: CachedBucket) -> Flow[dict[int, int]]:
    """Return all shards of a bucket with their levels; none where they changed while they were looked at."""
    yield from look(writer, known, consistent=True)
    found = {shard: known.shards[shard].level for shard in sorted(known.shards)} or {0: 0}
    return found if sum(1 << HIGHEST_LEVEL >> level for level in found.values()) == 1 << HIGHEST_LEVEL else {}


def _resharding_error(known: CachedBucket) -> LimiterUnavailable:
    return LimiterUnavailable(
        f"The bucket of {known.entity!r} for {known.resource!r} is being sharded; try again."
    )


def _other(roll: int, refused: Mapping[int, ChargeRefused], depth: int) -> int:
    mask = (1 << depth) - 1
    return next(other for step in range(1, mask + 2) if (other := (roll + step) & mask) not in refused)


def look(writer: BucketWriter, known: CachedBucket, *, consistent: bool = False) -> Flow[None]:
    """Read every shard of a bucket: most have one, and that costs one read of one item."""
    found: dict[int, ShardState] = {}
    depth = deepest = 0
    while True:
        numbers = [each for each in range(1 << depth) if depth == 0 or each >= 1 << deepest]
        found |= yield from _read(writer, known, numbers, consistent=consistent)
        deepest, depth = depth, max((state.level for state in found.values()), default=0)
        if depth <= deepest:
            break
    known.shards = found
    known.depth = depth


def _read(
    writer: BucketWriter, known: CachedBucket, numbers: Iterable[int], *, consistent: bool
) -> Flow[dict[int, ShardState]]:
    shards = {writer.key(known, each)[limiter.partition.name]["S"]: each for each in numbers}
    keys = tuple(writer.key(known, each) for each in shards.values())
    part = TableKeys(
        table=writer.table, keys=keys, consistent=consistent, wire={"ConsistentRead": consistent}
    )
    found: dict[int, ShardState] = {}
    for attempt in range(writer.scope.retries.attempts):
        reply = yield from send(BatchGetItem(tables=(part,)), writer.scope.retries)
        now = writer.now()
        for item in decode_items(reply.responses.get(writer.table, ())):
            found[shards[item[limiter.partition.name]["S"]]] = read(item, now)
        left = tuple(reply.unprocessed.get(writer.table, {}).get("Keys", ()))
        if not left:
            return found
        part = replace(part, keys=left)
        yield writer.scope.retries.wait(attempt + 1)
    raise LimiterUnavailable(f"The bucket of {known.entity!r} could not be read: the table is throttled.")


def _rebalance(
    writer: BucketWriter, known: CachedBucket, shard: int, state: ShardState, ask: Charge
) -> Flow[None]:
    """Halve a shard that is written too often, join one that is not any more."""
    anchor = known.anchors.get(shard)
    if anchor is None or state.writes < anchor.writes:
        known.anchors[shard] = RateSample(state.seen, state.writes)
        return
    passed = state.seen - anchor.at
    if passed < _HEAT or writer.shard_above is None:
        return
    written = (state.writes - anchor.writes) * MICROSECONDS
    try:
        if written > writer.shard_above * passed:
            known.anchors[shard] = RateSample(state.seen, state.writes)
            if state.level < writer.most_level and _has_room(ask, state.level + 1):
                yield from split(writer, known, shard, state)
        elif passed >= (_REST if state.level else _HEAT):
            known.anchors[shard] = RateSample(state.seen, state.writes)
            if state.level and written * _COLD < writer.shard_above * passed:
                yield from join(writer, known, shard, state)
    except SolotableError:
        # Somebody else was quicker, or the table is busy: there is another time. What is taken is taken.
        known.forget(shard)


def _has_room(ask: Charge, level: int) -> bool:
    token_buckets = ask.rules.token_buckets
    return all(cost * _ROOM <= token_buckets[name].depth for name, cost in ask.costs(level).items())


def split(writer: BucketWriter, known: CachedBucket, shard: int, state: ShardState) -> Flow[None]:
    """Make two shards of one, in one transaction."""
    plan, rules, now = Bucket.plan(), state.rules, writer.now()
    half = shard | 1 << state.level
    line = {
        name: max(state.used[name], token_bucket.full(now)) + token_bucket.depth // _SLACK
        for name, token_bucket in rules.token_buckets.items()
    }
    past = {f"used_{name}": used for name, used in state.used.items() if name not in line}
    terms: list[Condition] = [_is("level", state.level), _is("rules", state.text)]
    terms += [_is(name, used) for name, used in past.items()]
    terms += [Compare("<=", Attr((f"used_{name}",)), Const(number(used))) for name, used in line.items()]
    kept = UpdateItem(
        table=writer.table,
        key=writer.key(known, shard),
        update=FlatUpdate()
        .set("level", state.level + 1)
        .set("at", now)
        .add("writes", 1)
        .remove("expires")
        .update(),
        condition=And(tuple(terms)),
    )
    item: Item = {**writer.key(known, half), plan.table.tag: plan.tag_value}
    content: dict[str, str | int] = {
        "namespace": writer.scope.tenant or "",
        "entity": known.entity,
        "resource": known.resource,
        "shard": half,
        "level": state.level + 1,
        "rules": state.text,
        "revision": state.revision,
        "at": now,
        "writes": 0,
        **{f"used_{name}": used for name, used in line.items()},
        **past,
        **({"past": state.past} if past else {}),
    }
    item |= {name: scalar(value) for name, value in content.items()}
    absent = Not(Exists((plan.table.partition.name,)))
    made = PutItem(table=writer.table, item=item, condition=absent)
    yield TransactWriteItems(actions=(kept, made))
    known.learn(shard, replace(state, level=state.level + 1))
    known.learn(half, read(item, now))


def join(writer: BucketWriter, known: CachedBucket, shard: int, state: ShardState) -> Flow[None]:
    """Make one shard of two halves, in one transaction, if neither has been written meanwhile."""
    top = 1 << (state.level - 1)
    pair = yield from _read(writer, known, (shard & ~top, shard | top), consistent=True)
    low, high = pair.get(shard & ~top), pair.get(shard | top)
    if low is None or high is None or not low.level == high.level == state.level or low.text != high.text:
        return
    rules, now, level = low.rules, writer.now(), low.level - 1
    if low.is_ahead(now) or high.is_ahead(now):
        return
    flat = FlatUpdate().set("level", level).set("at", now).add("writes", 1)
    # Limits of the past that only the other half knows are forgotten with it.
    used = {name: max(line, high.used.get(name, line)) for name, line in low.used.items()}
    for name, token_bucket in rules.token_buckets.items():
        full = token_bucket.full(now)
        used[name] = -(-(max(low.used[name], full) + max(high.used[name], full)) // 2)
    for name, line in used.items():
        flat.set(f"used_{name}", line)
    # Who has written to the half that goes and got no answer asks the one that stays.
    lanes = fresh(high.lanes, now)
    lanes = {name: number for name, number in lanes.items() if number > low.lanes.get(name, 0)}
    for name, number_ in lanes.items():
        flat.set(name, number_)
    joined = replace(low, level=level, used=used, seen=now, lanes={**low.lanes, **lanes})
    if level == 0:
        flat.set("expires", joined.expires(now, used))
    yield TransactWriteItems(
        actions=(
            UpdateItem(
                table=writer.table,
                key=writer.key(known, shard & ~top),
                update=flat.update(),
                condition=_unchanged(low),
            ),
            DeleteItem(table=writer.table, key=writer.key(known, shard | top), condition=_unchanged(high)),
        )
    )
    known.forget(shard | top)
    known.learn(shard & ~top, joined)
    known.depth = max((each.level for each in known.shards.values()), default=0)


def _unchanged(state: ShardState) -> Condition:
    terms = [_is("level", state.level), _is("rules", state.text)]
    return And((*terms, *(_is(f"used_{name}", used) for name, used in state.used.items())))


def _is(name: str, value: str | int) -> Compare:
    return Compare("=", Attr((name,)), Const(scalar(value)))
