"""Taking tokens from one shard of a bucket: one conditional UpdateItem, and no read (C1.7, S1.7).

What a limit has used is either below the line of a full bucket, and then it is set to that line and what is
taken, or above it, and then what is taken is added. DynamoDB has no maximum, so the writer guesses which from
what it remembers, and the condition says whether it was right. A wrong guess brings the item back; the next
write knows. Nothing is admitted by a guess: each form is right under its own condition.

Not done here: to write an item that is not there except as a whole bucket (C1.6), and to go on with other
limits than the item is reckoned with; those are recast in one write, with the tokens that there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from solotable._expressions.ast import And, Attr, Compare, Condition, Const, Exists, Not, Or
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope, decode_item
from solotable._protocol.requests import GetItem, UpdateItem
from solotable._values import Item
from solotable.errors import ConditionFailed, OutcomeUnknown, ServiceError, TransportError
from solotable.systems.limiter.admin.limits import MICROSECONDS, MOST_LIMITS, render
from solotable.systems.limiter.errors import LimiterUnavailable

from .bucket import TOLERATED_SKEW, Bucket, ShardState, flaw, read, unreadable
from .flat_update import FlatUpdate, number, scalar
from .local_cache import CachedBucket, Lane, LocalCache
from .token_bucket import Rules, rules_of

#: How often others may be quicker, and how often no good answer may come.
_ATTEMPTS = 20
_FAILURES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketWriter:
    """Where tokens are handed out: a store's scope, and what this process remembers."""

    scope: Scope
    cache: LocalCache
    #: For how many microseconds a refusal is believed without asking again.
    remember: int
    #: Writes a second from which on a shard is halved; None: never.
    shard_above: int | None
    #: How often a bucket may be halved.
    most_level: int
    table: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", self.scope.table(Bucket.plan().table))

    def now(self) -> int:
        """Return the time in microseconds."""
        return int(self.scope.clock() * MICROSECONDS)

    def key(self, known: CachedBucket, shard: int) -> Item:
        """Return the key of a shard's item."""
        found = known.keys.get(shard)
        if found is None:
            plan = Bucket.plan()
            given = {"entity": known.entity, "resource": known.resource, "shard": shard}
            found = known.keys[shard] = plan.key_from(self.scope.bind(plan, given))
        return found


@dataclass(frozen=True, slots=True)
class Charge:
    """What is asked of a shard: thousandths of tokens by limit, below zero to give back.

    `admit`: only if there are enough. `part`: the level of the shard whose share this is, where all shards
    are asked together; `counts` is then true for one of them.
    """

    rules: Rules
    amounts: Mapping[str, int]
    admit: bool = True
    part: int = 0
    counts: bool = True
    #: Whether the rules win over those that the item has, though they may be older.
    final: bool = False

    @property
    def only_back(self) -> bool:
        """Whether nothing is asked for, and some is given back."""
        return not self.admit and all(amount < 0 for amount in self.amounts.values())

    def costs(self, level: int) -> dict[str, int]:
        """Return what each limit is charged in a shard of this level."""
        token_buckets, part = self.rules.token_buckets, self.part
        # A price is a multiple of 2 ** 6, so a part has no remainder.
        return {
            name: token_buckets[name].cost(amount, level) >> part for name, amount in self.amounts.items()
        }


@dataclass(frozen=True, slots=True)
class Charged:
    """It is written; the state after it, None where there was nothing to give back to."""

    state: ShardState | None


@dataclass(frozen=True, slots=True)
class ChargeRefused:
    """There was not enough for what was asked of a shard at that moment, and nothing was taken."""

    state: ShardState
    ask: Charge
    now: int

    def wait(self, name: str) -> int:
        """Return in how many microseconds a limit had enough."""
        cost = self.ask.costs(self.state.level).get(name)
        return (
            0
            if cost is None
            else self.ask.rules.token_buckets[name].wait(self.state.used[name], self.now, cost)
        )

    @property
    def longest(self) -> int:
        """In how many microseconds every limit had enough."""
        return max(map(self.wait, self.ask.amounts), default=0)


class ShardGone:
    """The shard is not there, or was halved or joined meanwhile."""


class RulesOutdated:
    """The item has newer limits than the rules."""


Outcome = Charged | ChargeRefused | ShardGone | RulesOutdated


def through(writer: BucketWriter, known: CachedBucket, shard: int, ask: Charge, lane: Lane) -> Flow[Outcome]:
    """Charge one shard, or say why not. However often it is sent in one lane, it is done once.

    Whoever is sent from a shard to the one that it was joined with stays in the lane: it may be known there.
    """
    now = writer.now()
    if ask.admit and (refused := cached_refusal(writer, known, shard, ask, now)) is not None:
        return refused
    return (yield from _sent(writer, known, shard, ask, lane, now))


def _sent(
    writer: BucketWriter, known: CachedBucket, shard: int, ask: Charge, lane: Lane, now: int
) -> Flow[Outcome]:
    failures = 0
    for attempt in range(_ATTEMPTS):
        state = known.shards.get(shard) or _assumed_state(known, shard, ask, now)
        if ask.admit and ask.part and (state is None or state.level != ask.part):
            return ShardGone()
        request, takes = _request(writer, known, shard, ask, lane, state, now)
        lane.answered = False
        try:
            reply = yield request
        except ConditionFailed as refused:
            lane.answered = True
            level = 0 if state is None else state.level
            outcome = _met(known, shard, ask, lane, level, refused.item, writer.now())
            if outcome is not None:
                return outcome
            if attempt > 2:
                yield writer.scope.retries.wait(attempt - 2)
        except (ServiceError, TransportError) as failed:
            lane.lost = True
            failures += 1
            if isinstance(failed, ServiceError) and failed.code == "ValidationException":
                yield from _explain(writer, known, shard, failed)
            if not _passes(failed) or failures == _FAILURES:
                raise
            yield writer.scope.retries.wait(failures)
        else:
            lane.answered = True
            item = decode_item(reply.attributes)
            state = read(item, now)
            known.learn(shard, state)
            if state.level == 0 and (until := state.expires(now, state.used)) > int(item["expires"]["N"]):
                yield from _keep(writer, known, shard, state, until)
            return Charged(state) if takes else ChargeRefused(state, ask, now)
        now = writer.now()
    raise LimiterUnavailable(
        f"The bucket of {known.entity!r} for {known.resource!r} changed {_ATTEMPTS} times between two "
        f"writes; try again."
    )


def _explain(writer: BucketWriter, known: CachedBucket, shard: int, failed: ServiceError) -> Flow[None]:
    """Raise UnreadableBucket if the stored item makes an update invalid: a counter that is a string."""
    reply = yield GetItem(table=writer.table, key=writer.key(known, shard), consistent=True)
    if (item := decode_item(reply.item)) and flaw(item) is not None:
        raise unreadable(item) from failed


def _keep(writer: BucketWriter, known: CachedBucket, shard: int, state: ShardState, until: int) -> Flow[None]:
    """Keep an item for as long as a debt lasts that the write before did not know of."""
    request = UpdateItem(
        table=writer.table,
        key=writer.key(known, shard),
        update=FlatUpdate().set("expires", until).update(),
        condition=And((_is("rules", state.text), _is("level", 0))),
    )
    with suppress(ServiceError, TransportError):
        yield request


def _passes(failed: ServiceError | TransportError) -> bool:
    """Whether it may be sent again; what was perhaps applied may, because its lane tells."""
    if isinstance(failed, ServiceError):
        return failed.retryable
    return failed.retryable or isinstance(failed, OutcomeUnknown)


def cached_refusal(
    writer: BucketWriter, known: CachedBucket, shard: int, ask: Charge, now: int
) -> ChargeRefused | None:
    """Refuse by a state that was seen just now and has not enough: asking again would cost and not help."""
    state = known.shards.get(shard)
    if state is None or state.text != ask.rules.text or not 0 <= now - state.seen <= writer.remember:
        return None
    if state.is_ahead(now) or not state.short(ask.rules, ask.costs(state.level), now):
        return None
    return ChargeRefused(state, ask, now)


def _assumed_state(known: CachedBucket, shard: int, ask: Charge, now: int) -> ShardState | None:
    """Return a full shard of the level that others have; None for a bucket that may be made."""
    if known.depth == 0 and shard == 0 and not ask.only_back:
        return None
    rules = ask.rules
    used = {name: token_bucket.full(now) for name, token_bucket in rules.token_buckets.items()}
    return ShardState(known.depth, rules.text, rules.revision, used, now, 0, 0, {})


def _met(
    known: CachedBucket, shard: int, ask: Charge, lane: Lane, level: int, item: Item | None, now: int
) -> Outcome | None:
    """Judge the item that a write met; None: write again, knowing it."""
    if item is None:
        known.forget(shard)
        if shard:
            return ShardGone()
        known.depth = 0
        # C1.6: a bucket that is gone is full; there is nothing to give back to, and no ghost is made.
        return Charged(None) if ask.only_back else None
    state = read(item, now)
    known.learn(shard, state)
    mine = state.lanes.get(lane.name, 0)
    if mine == lane.number:
        return Charged(state)
    if mine > lane.number:
        lane.renumber(mine)
        return None
    if state.text != ask.rules.text:
        # Whoever settles does so by the limits that there are; whoever asks may bring newer ones.
        older = state.revision > ask.rules.revision and not ask.final
        return RulesOutdated() if older or not ask.admit else None
    if ask.admit and state.level != level:
        return ShardGone()
    if ask.admit and not state.is_ahead(now) and state.short(ask.rules, ask.costs(state.level), now):
        return ChargeRefused(state, ask, now)
    return None


def _request(
    writer: BucketWriter,
    known: CachedBucket,
    shard: int,
    ask: Charge,
    lane: Lane,
    state: ShardState | None,
    now: int,
) -> tuple[UpdateItem, bool]:
    takes = True
    if state is None:
        update, condition = _first(writer, known, shard, ask, lane, now)
    elif state.text != ask.rules.text or state.is_ahead(now):
        update, condition, takes = _build_conversion(ask, lane, state, now)
    else:
        update, condition = _next(ask, lane, state, now)
    request = UpdateItem(
        table=writer.table,
        key=writer.key(known, shard),
        update=update.update(),
        condition=condition,
        returns="ALL_NEW",
        returns_on_failure=True,
    )
    return request, takes


def _is(name: str, value: str | int) -> Compare:
    return Compare("=", Attr((name,)), Const(scalar(value)))


def _at_most(name: str, value: int) -> Compare:
    return Compare("<=", Attr((name,)), Const(number(value)))


def _at_least(name: str, value: int) -> Compare:
    return Compare(">=", Attr((name,)), Const(number(value)))


def _unwritten(lane: Lane) -> Condition:
    older = Compare("<", Attr((lane.name,)), Const(number(lane.number)))
    return Or((Not(Exists((lane.name,))), older))


def _stamped(flat: FlatUpdate, lane: Lane, now: int) -> FlatUpdate:
    return flat.set("at", now).add("writes", 1).set(lane.name, lane.number)


def _counted(flat: FlatUpdate, ask: Charge) -> None:
    # S1.10: what was consumed is counted by itself, never derived from what is left.
    if ask.counts:
        for name, amount in ask.amounts.items():
            flat.add(ask.rules.token_buckets[name].consumed, amount)


def _first(
    writer: BucketWriter, known: CachedBucket, shard: int, ask: Charge, lane: Lane, now: int
) -> tuple[FlatUpdate, Condition]:
    """Write as if the bucket were full: it is new, or was idle for long, or the guess was wrong."""
    plan, rules, costs = Bucket.plan(), ask.rules, ask.costs(0)
    flat = _stamped(FlatUpdate(), lane, now)
    flat.first(plan.table.tag, plan.tag).first("entity", known.entity).first("resource", known.resource)
    flat.first("namespace", writer.scope.tenant or "").first("shard", shard)
    flat.set("level", 0).set("rules", rules.text).set("revision", rules.revision)
    terms: list[Condition] = [_is("rules", rules.text), _is("level", 0), _unwritten(lane)]
    used: dict[str, int] = {}
    for name, token_bucket in rules.token_buckets.items():
        full = token_bucket.full(now)
        used[name] = full + costs.get(name, 0)
        if name in costs:
            flat.set(token_bucket.used, used[name])
            terms.append(_at_most(token_bucket.used, full))
        else:
            flat.first(token_bucket.used, full)
    flat.set("expires", rules.expires(now, used))
    _counted(flat, ask)
    return flat, Or((Not(Exists((plan.table.partition.name,))), And(tuple(terms))))


def _next(ask: Charge, lane: Lane, state: ShardState, now: int) -> tuple[FlatUpdate, Condition]:
    """Write by what is cached_refusal: a limit that was used up to above the full line is still above it."""
    rules = ask.rules
    flat = _stamped(FlatUpdate(), lane, now)
    terms: list[Condition] = [_is("rules", rules.text), _is("level", state.level), _unwritten(lane)]
    used = dict(state.used)
    for name, cost in ask.costs(state.level).items():
        token_bucket = rules.token_buckets[name]
        full = token_bucket.full(now)
        if cost < 0:
            # What is given back to a full bucket is lost by itself.
            flat.add(token_bucket.used, cost)
            terms.append(Exists((token_bucket.used,)))
        elif used[name] <= full:
            used[name] = full + cost
            flat.set(token_bucket.used, used[name])
            terms.append(_at_most(token_bucket.used, full))
        else:
            used[name] += cost
            flat.add(token_bucket.used, cost)
            terms.append(_at_least(token_bucket.used, full))
            if ask.admit:
                terms.append(_at_most(token_bucket.used, now * token_bucket.rate - cost))
    if not ask.admit:
        # What a clock that is far ahead has used up must stay known as such.
        terms.append(_at_most("at", now + TOLERATED_SKEW))
    if state.level == 0:
        flat.set("expires", state.expires(now, used))
    _counted(flat, ask)
    for name in lane.stale(state, now):
        flat.remove(name)
    return flat, And(tuple(terms))


def _build_conversion(
    ask: Charge, lane: Lane, state: ShardState, now: int
) -> tuple[FlatUpdate, Condition, bool]:
    """Write under other limits, or after a clock that was far ahead: the tokens stay, in the new units.

    Without enough of them the item is recast alone, so that time begins to count for it.
    """
    rules, old = ask.rules, state.rules
    used = {name: state.moved(name, rules, now) for name in rules.token_buckets}
    moved = ShardState(state.level, rules.text, rules.revision, used, now, state.writes, now, state.lanes)
    costs = ask.costs(state.level)
    takes = not (ask.admit and moved.short(rules, costs, now))
    flat = FlatUpdate().set("at", now).add("writes", 1)
    if takes:
        flat.set(lane.name, lane.number)
        used = {name: line + costs.get(name, 0) for name, line in used.items()}
        _counted(flat, ask)
    flat.set("rules", rules.text).set("revision", rules.revision)
    for name, token_bucket in rules.token_buckets.items():
        flat.set(token_bucket.used, used[name])
    for name in old.token_buckets.keys() - rules.token_buckets.keys():
        flat.remove(old.token_buckets[name].consumed)
    past = _keep_removed_limits(flat, state, rules, now)
    if state.level == 0:
        flat.set("expires", replace(moved, past=past).expires(now, {**state.used, **used}))
    terms = [_is("rules", state.text), _is("level", state.level), _unwritten(lane)]
    terms += [_is(state.token_bucket(name).used, value) for name, value in state.used.items()]
    return flat, And(tuple(terms)), takes


def _keep_removed_limits(flat: FlatUpdate, state: ShardState, rules: Rules, now: int) -> str:
    """Keep what limits have used that are taken away before they are full: they may return (see `Bucket`)."""
    gone = {name: state.token_bucket(name) for name in state.used if name not in rules.token_buckets}
    lines = {
        name: state.moved(name, rules_of((token_bucket.limit,), 0), now)
        for name, token_bucket in gone.items()
    }
    waits = {
        name: token_bucket.wait(lines[name], now, token_bucket.depth) for name, token_bucket in gone.items()
    }
    # Of too many those that are full soonest are forgotten.
    kept = sorted(sorted((name for name in gone if waits[name]), key=lambda name: -waits[name])[:MOST_LIMITS])
    for name, token_bucket in gone.items():
        if name in kept:
            flat.set(token_bucket.used, lines[name])
        else:
            flat.remove(token_bucket.used)
    if kept:
        flat.set("past", past := render(tuple(gone[name].limit for name in kept)))
        return past
    flat.remove("past")
    return ""
