"""Acquiring: all limits of a call or none, of an entity and of its parent. Generators; no time is spent here.

A cascade is two conditional writes, the child's first, and the child gets its tokens back if the parent has
not enough. A transaction would be charged twice as much (4 units instead of 2) and would collide with every
other child's on the parent's item. What two writes cost is that somebody who dies between them has taken
tokens from the child: fewer are admitted then, never more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from solotable._flows.retry import Flow
from solotable.errors import SolotableError
from solotable.systems.limiter.admin.entities import OnUnavailable
from solotable.systems.limiter.admin.limits import (
    MICROSECONDS,
    MILLI,
    Amount,
    Limit,
    Limits,
    limits_of,
    wanted,
)
from solotable.systems.limiter.admin.resolve import EffectiveLimits, LimitsCache, resolve
from solotable.systems.limiter.circuit_breaker import CircuitBreaker
from solotable.systems.limiter.errors import (
    LimiterUnavailable,
    LimitStatus,
    NeverSatisfiable,
    NoLimits,
    RateLimitExceeded,
)

from .bucket import ShardState
from .charge import BucketWriter, Charge, ChargeRefused, RulesOutdated, cached_refusal
from .local_cache import CachedBucket
from .shards import TakenTokens, look, settle, take, touch
from .token_bucket import Rules, rules_of

_ROUNDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterContext:
    """What an acquire needs: where tokens are, which limits hold, and those to fall back on."""

    writer: BucketWriter
    cache: LimitsCache
    limits: Limits = ()
    on_unavailable: OnUnavailable = "block"
    outage: CircuitBreaker = field(default_factory=CircuitBreaker)


@dataclass(frozen=True, slots=True)
class Target:
    """One bucket that a call takes from."""

    known: CachedBucket
    ask: Charge


@dataclass(frozen=True, slots=True)
class Grant:
    """What was taken for a call, from each bucket."""

    taken: tuple[TakenTokens, ...]
    amounts: Mapping[str, int]

    def statuses(self, now: int) -> list[LimitStatus]:
        """Return every limit as it was left."""
        return [
            status
            for each in self.taken
            for status in _statuses(Target(each.known, each.ask), each.state, now)
        ]


def settings_of(context: LimiterContext, entity: str, resource: str) -> Flow[EffectiveLimits]:
    """Return the settings of an entity for a resource, from the cache if they are there."""
    found = context.cache.get(entity, resource)
    if found is None:
        found = yield from resolve(context.writer.scope, entity, resource, cache=context.cache)
    return found


def targets(
    context: LimiterContext,
    entity: str,
    resource: str,
    consume: Mapping[str, Amount],
    limits: Iterable[Limit] | None,
    *,
    final: bool = False,
) -> Flow[list[Target]]:
    """Return the buckets that a call takes from, and what from each."""
    settings = yield from settings_of(context, entity, resource)
    given = None if limits is None else limits_of(limits)
    rules = _rules(context, settings, given)
    if rules is None:
        raise NoLimits(entity, resource)
    cache = context.writer.cache
    amounts = wanted(rules.limits, consume)
    found = [Target(cache.of(entity, resource), Charge(rules, amounts, final=final or given is not None))]
    if settings.cascade and settings.parent is not None:
        above = yield from settings_of(context, settings.parent, resource)
        theirs = _rules(context, above, None)
        if theirs is not None:
            # A parent limits what it has limits for; a call's own limits are the child's alone.
            shared = {name: amount for name, amount in amounts.items() if name in theirs.token_buckets}
            found.append(Target(cache.of(settings.parent, resource), Charge(theirs, shared, final=final)))
    for target in found:
        _judge(target)
    return found


def _rules(context: LimiterContext, settings: EffectiveLimits, given: Limits | None) -> Rules | None:
    if given is not None:
        return rules_of(given, 0)
    if settings.limits is not None:
        return rules_of(settings.limits, settings.revision)
    # Stored limits that were deleted count as older than these.
    return rules_of(context.limits, settings.revision) if context.limits else None


def _judge(target: Target) -> None:
    for name, amount in target.ask.amounts.items():
        limit = target.ask.rules.token_buckets[name].limit
        if amount > limit.capacity * MILLI:
            raise NeverSatisfiable(target.known.entity, target.known.resource, limit, amount)


def acquire(
    context: LimiterContext,
    entity: str,
    resource: str,
    consume: Mapping[str, Amount],
    limits: Iterable[Limit] | None = None,
) -> Flow[Grant]:
    """Take tokens from every limit of a call, or raise RateLimitExceeded and take none."""
    given = None if limits is None else tuple(limits)
    for round_ in range(_ROUNDS):
        # Limits that are older than a bucket's are read again once; then they are what they are.
        found = yield from targets(context, entity, resource, consume, given, final=round_ > 0)
        outcome = yield from _take_all(context.writer, found)
        if isinstance(outcome, Grant):
            return outcome
        if outcome is not None:
            raise outcome
        for target in found:
            context.cache.invalidate(target.known.entity)
    raise LimiterUnavailable(f"The limits of {entity!r} for {resource!r} keep changing; try again.")


def _take_all(writer: BucketWriter, found: list[Target]) -> Flow[Grant | RateLimitExceeded | None]:
    """Take from each bucket; None where the limits are not the newest."""
    now = writer.now()
    done: list[TakenTokens] = []
    # A parent that is known to refuse is not worth a write to the child.
    for target in found[1:]:
        # Of one that is sharded another shard may have enough.
        refused = None if target.known.depth else cached_refusal(writer, target.known, 0, target.ask, now)
        if refused is not None:
            return _exceeded(found, target, refused, now)
    for target in found:
        try:
            outcome = yield from _taken(writer, target)
        except SolotableError:
            with suppress(SolotableError):
                yield from _undo(writer, done)
            raise
        if isinstance(outcome, TakenTokens):
            done.append(outcome)
            continue
        yield from _undo(writer, done)
        if isinstance(outcome, RulesOutdated):
            return None
        return _exceeded(found, target, outcome, writer.now())
    return Grant(tuple(done), found[0].ask.amounts)


def _taken(writer: BucketWriter, target: Target) -> Flow[TakenTokens | ChargeRefused | RulesOutdated]:
    if target.ask.amounts:
        return (yield from take(writer, target.known, target.ask))
    return TakenTokens(target.known, target.ask, (0,), target.known.shards.get(0))


def _undo(writer: BucketWriter, done: Sequence[TakenTokens]) -> Flow[None]:
    for each in reversed(done):
        back = {name: -amount for name, amount in each.ask.amounts.items()}
        if back:
            yield from settle(writer, each, back)


def adjust(writer: BucketWriter, grant: Grant, amounts: Mapping[str, int]) -> Flow[None]:
    """Take more, or give back, in every bucket of a grant; never refused, if need be into debt."""
    for taken in grant.taken:
        theirs = {
            name: amount
            for name, amount in amounts.items()
            if amount and name in taken.ask.rules.token_buckets
        }
        if theirs:
            yield from settle(writer, taken, theirs)


def back(writer: BucketWriter, grants: Sequence[Grant]) -> Flow[None]:
    """Give back everything that was taken, to where it was taken from (C1.14)."""
    for grant in reversed(grants):
        yield from adjust(writer, grant, {name: -amount for name, amount in grant.amounts.items()})


def _exceeded(found: list[Target], target: Target, refused: ChargeRefused, now: int) -> RateLimitExceeded:
    statuses: list[LimitStatus] = []
    for each in found:
        if each is target:
            # As of then: giving back what others had granted took time, and it may have come in meanwhile.
            statuses += _statuses(each, refused.state, refused.now, refused)
        else:
            statuses += _statuses(each, each.known.shards.get(0), now)
    return RateLimitExceeded(statuses)


def _statuses(
    target: Target, state: ShardState | None, now: int, refused: ChargeRefused | None = None
) -> Iterable[LimitStatus]:
    known, ask = target.known, target.ask
    fits = state is not None and state.text == ask.rules.text
    for name, token_bucket in ask.rules.token_buckets.items():
        yield LimitStatus(
            entity=known.entity,
            resource=known.resource,
            limit=token_bucket.limit,
            available=token_bucket.tokens(state.used[name], now, 0) // MILLI
            if state is not None and fits
            else None,
            requested_milli=ask.amounts.get(name, 0),
            retry_after_seconds=0.0 if refused is None else refused.wait(name) / MICROSECONDS,
        )


def levels(
    context: LimiterContext,
    entity: str,
    resource: str,
    asked: Mapping[str, Amount],
    limits: Iterable[Limit] | None = None,
) -> Flow[list[LimitStatus]]:
    """Return every limit of an entity, and of its parent, as the table has them now; nothing is taken."""
    found = yield from targets(context, entity, resource, asked, limits)
    statuses: list[LimitStatus] = []
    for target in found:
        yield from look(context.writer, target.known)
        now = context.writer.now()
        shards = target.known.shards
        for name, token_bucket in target.ask.rules.token_buckets.items():
            held = token_bucket.depth
            if shards:
                # Each shard has the part of the whole that its level says.
                held = sum(
                    _held(state, name, target.ask.rules, now) >> state.level for state in shards.values()
                )
            amount = target.ask.amounts.get(name, 0)
            missing = token_bucket.cost(amount) - held
            statuses.append(
                LimitStatus(
                    entity=target.known.entity,
                    resource=resource,
                    limit=token_bucket.limit,
                    available=held // token_bucket.price // MILLI,
                    requested_milli=amount,
                    retry_after_seconds=max(0, -(-missing // token_bucket.rate)) / MICROSECONDS,
                )
            )
    return statuses


def _held(state: ShardState, name: str, rules: Rules, now: int) -> int:
    """Return the credits of a shard as the rules count them, though it may be stored under others."""
    same = state.text == rules.text and not state.is_ahead(now)
    return rules.token_buckets[name].credits(state.used[name] if same else state.moved(name, rules, now), now)


def refresh(context: LimiterContext, entity: str, resource: str) -> Flow[None]:
    """Bring a bucket that is there under the limits that are stored now, without waiting for its next use."""
    context.cache.invalidate(entity)
    (target, *_) = yield from targets(context, entity, resource, {}, None, final=True)
    yield from look(context.writer, target.known, consistent=True)
    for shard, state in list(target.known.shards.items()):
        if state.text != target.ask.rules.text:
            yield from touch(context.writer, target.known, shard, target.ask)
