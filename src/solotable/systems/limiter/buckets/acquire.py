"""Acquire: all limits of a call or none, of an entity and of its parent. Flows only.

A cascade is two conditional writes, the child's first; the child gets its tokens back if the parent lacks
them. A transaction would cost 4 units instead of 2 and would conflict with every other child's on the
parent's item. The price of two writes: a process that dies between them has taken tokens from the child. So
fewer calls may be admitted than the limits allow, never more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from solotable.errors import SolotableError
from solotable.flow import Flow
from solotable.systems.limiter.admin.entities import OnUnavailable
from solotable.systems.limiter.admin.limits import (
    MICROSECONDS,
    MILLI,
    Amount,
    Limit,
    Limits,
    amounts_by_limit,
    limits_of,
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
from solotable.systems.limiter.meters.rules import Rules, rules_of

from .bucket import ShardState
from .charge import ChargeRefused, RulesOutdated, cached_refusal
from .charge_request import Charge
from .local_cache import CachedBucket
from .shards import TakenTokens, charge_one, read_shards, settle, take
from .shards import statuses as shard_statuses
from .writer import BucketWriter

#: How often the limits of a call may change before it is given up.
_ROUNDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterContext:
    """What an acquire needs: the writer of buckets, the stored limits, and the defaults."""

    writer: BucketWriter
    cache: LimitsCache
    limits: Limits = ()
    on_unavailable: OnUnavailable = "block"
    circuit_breaker: CircuitBreaker = field(default_factory=CircuitBreaker)


@dataclass(frozen=True, slots=True)
class Target:
    """One bucket of a call, and its charge."""

    bucket: CachedBucket
    charge: Charge

    def statuses(
        self, state: ShardState | None, now: int, refused: ChargeRefused | None = None
    ) -> Iterable[LimitStatus]:
        """Return the status of every limit by the state of a shard."""
        rules = self.charge.rules
        is_current = state is not None and state.text == rules.text
        for name, meter in rules.meters.items():
            available = None
            if state is not None and is_current:
                available = meter.tokens(state.used[name], now) // MILLI
            wait = 0.0 if refused is None else refused.wait(name) / MICROSECONDS
            yield self.status(name, available, wait)

    def status(self, name: str, available: int | None, retry_after_seconds: float) -> LimitStatus:
        """Return the status of one limit."""
        return LimitStatus(
            entity=self.bucket.entity,
            resource=self.bucket.resource,
            limit=self.charge.rules.meters[name].limit,
            available=available,
            requested_milli=self.charge.amounts.get(name, 0),
            retry_after_seconds=retry_after_seconds,
        )


@dataclass(frozen=True, slots=True)
class Grant:
    """What a call took from each bucket."""

    taken: tuple[TakenTokens, ...]
    amounts: Mapping[str, int]

    def statuses(self, now: int) -> list[LimitStatus]:
        """Return the status of every limit after the charge."""
        return [
            status
            for each in self.taken
            for status in Target(each.bucket, each.charge).statuses(each.state, now)
        ]


def _effective(context: LimiterContext, entity: str, resource: str) -> Flow[EffectiveLimits]:
    found = context.cache.get(entity, resource)
    if found is None:
        found = yield from resolve(context.writer.scope, entity, resource, cache=context.cache)
    return found


def _find_targets(
    context: LimiterContext,
    entity: str,
    resource: str,
    consume: Mapping[str, Amount],
    limits: Iterable[Limit] | None,
    *,
    final: bool = False,
) -> Flow[list[Target]]:
    """Return the buckets of a call and the charge of each; raise if they can never have so much."""
    effective = yield from _effective(context, entity, resource)
    given = None if limits is None else limits_of(limits)
    rules = _rules(context, effective) if given is None else rules_of(given, 0)
    if rules is None:
        raise NoLimits(entity, resource)
    cache = context.writer.cache
    amounts = amounts_by_limit(rules.meters, consume)
    charge = Charge(rules, amounts, final=final or given is not None)
    found = [Target(cache.bucket(entity, resource), charge)]
    if effective.cascade and effective.parent is not None:
        parent_rules = _rules(context, (yield from _effective(context, effective.parent, resource)))
        if parent_rules is not None:
            # A parent is charged for the limits that it has. Limits of a call are the child's alone.
            shared = {name: amount for name, amount in amounts.items() if name in parent_rules.meters}
            bucket = cache.bucket(effective.parent, resource)
            found.append(Target(bucket, Charge(parent_rules, shared, final=final)))
    for target in found:
        for name, amount in target.charge.amounts.items():
            meter = target.charge.rules.meters[name]
            if meter.cost(amount) > meter.depth:
                raise NeverSatisfiable(target.bucket.entity, resource, meter.limit, amount)
    return found


def _rules(context: LimiterContext, effective: EffectiveLimits) -> Rules | None:
    # Deleted limits count as older than those of the constructor.
    limits = context.limits if effective.limits is None else effective.limits
    return rules_of(limits, effective.revision) if limits else None


def acquire(
    context: LimiterContext,
    entity: str,
    resource: str,
    consume: Mapping[str, Amount],
    limits: Iterable[Limit] | None = None,
) -> Flow[Grant]:
    """Take tokens from every limit of a call, or raise RateLimitExceeded and take none."""
    given = None if limits is None else tuple(limits)
    for attempt in range(_ROUNDS):
        # Limits that are older than the bucket's are read again once; then they are final.
        found = yield from _find_targets(context, entity, resource, consume, given, final=attempt > 0)
        outcome = yield from _take_all(context.writer, found)
        if isinstance(outcome, Grant):
            return outcome
        if outcome is not None:
            raise outcome
        for target in found:
            context.cache.invalidate(target.bucket.entity)
    raise LimiterUnavailable(f"The limits of {entity!r} for {resource!r} keep changing; try again.")


def _take_all(writer: BucketWriter, found: list[Target]) -> Flow[Grant | RateLimitExceeded | None]:
    """Take from each bucket; None if the limits are outdated."""
    now = writer.now()
    done: list[TakenTokens] = []
    # A parent that is known to refuse is not worth a write to the child. Another shard may have enough.
    for target in found[1:]:
        refused = None
        if target.bucket.depth == 0:
            refused = cached_refusal(writer, target.bucket, 0, target.charge, now)
        if refused is not None:
            return _exceeded(found, target, refused, now)
    for target in found:
        outcome: TakenTokens | ChargeRefused | RulesOutdated
        try:
            if target.charge.amounts:
                outcome = yield from take(writer, target.bucket, target.charge)
            else:
                outcome = TakenTokens(target.bucket, target.charge, (0,), target.bucket.shards.get(0))
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
    return Grant(tuple(done), found[0].charge.amounts)


def _undo(writer: BucketWriter, done: Sequence[TakenTokens]) -> Flow[None]:
    for each in reversed(done):
        amounts = {name: -amount for name, amount in each.charge.amounts.items()}
        if amounts:
            yield from settle(writer, each, amounts)


def adjust(writer: BucketWriter, grant: Grant, amounts: Mapping[str, int]) -> Flow[None]:
    """Take more, or give back, in every bucket of a grant; never refused, into debt if necessary."""
    for taken in grant.taken:
        rules = taken.charge.rules
        owed = {name: amount for name, amount in amounts.items() if amount and name in rules.meters}
        if owed:
            yield from settle(writer, taken, owed)


def give_back(writer: BucketWriter, grants: Sequence[Grant]) -> Flow[None]:
    """Give back everything that was taken, to the shards that it came from (C1.14)."""
    for grant in reversed(grants):
        yield from adjust(writer, grant, {name: -amount for name, amount in grant.amounts.items()})


def _exceeded(found: list[Target], target: Target, refused: ChargeRefused, now: int) -> RateLimitExceeded:
    statuses: list[LimitStatus] = []
    for each in found:
        if each is target:
            # As of the refusal: tokens may have come in while other buckets got theirs back.
            statuses += each.statuses(refused.state, refused.now, refused)
        else:
            statuses += each.statuses(each.bucket.shards.get(0), now)
    return RateLimitExceeded(statuses)


def read_statuses(
    context: LimiterContext,
    entity: str,
    resource: str,
    consume: Mapping[str, Amount],
    limits: Iterable[Limit] | None = None,
) -> Flow[list[LimitStatus]]:
    """Return every limit of an entity, and of its parent, as stored now; nothing is taken."""
    statuses: list[LimitStatus] = []
    for target in (yield from _find_targets(context, entity, resource, consume, limits)):
        yield from read_shards(context.writer, target.bucket)
        found = shard_statuses(target.bucket, target.charge, context.writer.now())
        for name, (available, wait) in found.items():
            statuses.append(target.status(name, available // MILLI, wait / MICROSECONDS))
    return statuses


def refresh(context: LimiterContext, entity: str, resource: str) -> Flow[None]:
    """Convert an existing bucket to the limits that are stored now, before its next use."""
    context.cache.invalidate(entity)
    (target, *_) = yield from _find_targets(context, entity, resource, {}, None, final=True)
    yield from read_shards(context.writer, target.bucket, consistent=True)
    for shard, state in list(target.bucket.shards.items()):
        if state.text != target.charge.rules.text:
            yield from charge_one(context.writer, target.bucket, shard, target.charge)
