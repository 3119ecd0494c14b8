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
from solotable.systems.limiter.admin.resolve import Settings, SettingsCache, resolve
from solotable.systems.limiter.circuit_breaker import Outage
from solotable.systems.limiter.errors import (
    LimiterUnavailable,
    LimitStatus,
    NeverSatisfiable,
    NoLimits,
    RateLimitExceeded,
)

from .bucket import State
from .charge import Ask, Desk, Outdated, Refused, remembered
from .local_cache import Known
from .shards import Taken, look, settle, take, touch
from .token_bucket import Rules, rules_of

_ROUNDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What an acquire needs: where tokens are, which limits hold, and those to fall back on."""

    desk: Desk
    cache: SettingsCache
    limits: Limits = ()
    on_unavailable: OnUnavailable = "block"
    outage: Outage = field(default_factory=Outage)


@dataclass(frozen=True, slots=True)
class Target:
    """One bucket that a call takes from."""

    known: Known
    ask: Ask


@dataclass(frozen=True, slots=True)
class Grant:
    """What was taken for a call, from each bucket."""

    taken: tuple[Taken, ...]
    amounts: Mapping[str, int]

    def statuses(self, now: int) -> list[LimitStatus]:
        """Return every limit as it was left."""
        return [
            status
            for each in self.taken
            for status in _statuses(Target(each.known, each.ask), each.state, now)
        ]


def settings_of(room: Room, entity: str, resource: str) -> Flow[Settings]:
    """Return the settings of an entity for a resource, from the cache if they are there."""
    found = room.cache.get(entity, resource)
    if found is None:
        found = yield from resolve(room.desk.scope, entity, resource, cache=room.cache)
    return found


def targets(
    room: Room,
    entity: str,
    resource: str,
    consume: Mapping[str, Amount],
    limits: Iterable[Limit] | None,
    *,
    final: bool = False,
) -> Flow[list[Target]]:
    """Return the buckets that a call takes from, and what from each."""
    settings = yield from settings_of(room, entity, resource)
    given = None if limits is None else limits_of(limits)
    rules = _rules(room, settings, given)
    if rules is None:
        raise NoLimits(entity, resource)
    memory = room.desk.memory
    amounts = wanted(rules.limits, consume)
    found = [Target(memory.of(entity, resource), Ask(rules, amounts, final=final or given is not None))]
    if settings.cascade and settings.parent is not None:
        above = yield from settings_of(room, settings.parent, resource)
        theirs = _rules(room, above, None)
        if theirs is not None:
            # A parent limits what it has limits for; a call's own limits are the child's alone.
            shared = {name: amount for name, amount in amounts.items() if name in theirs.gauges}
            found.append(Target(memory.of(settings.parent, resource), Ask(theirs, shared, final=final)))
    for target in found:
        _judge(target)
    return found


def _rules(room: Room, settings: Settings, given: Limits | None) -> Rules | None:
    if given is not None:
        return rules_of(given, 0)
    if settings.limits is not None:
        return rules_of(settings.limits, settings.revision)
    # Stored limits that were deleted count as older than these.
    return rules_of(room.limits, settings.revision) if room.limits else None


def _judge(target: Target) -> None:
    for name, amount in target.ask.amounts.items():
        limit = target.ask.rules.gauges[name].limit
        if amount > limit.capacity * MILLI:
            raise NeverSatisfiable(target.known.entity, target.known.resource, limit, amount)


def acquire(
    room: Room,
    entity: str,
    resource: str,
    consume: Mapping[str, Amount],
    limits: Iterable[Limit] | None = None,
) -> Flow[Grant]:
    """Take tokens from every limit of a call, or raise RateLimitExceeded and take none."""
    given = None if limits is None else tuple(limits)
    for round_ in range(_ROUNDS):
        # Limits that are older than a bucket's are read again once; then they are what they are.
        found = yield from targets(room, entity, resource, consume, given, final=round_ > 0)
        outcome = yield from _take_all(room.desk, found)
        if isinstance(outcome, Grant):
            return outcome
        if outcome is not None:
            raise outcome
        for target in found:
            room.cache.invalidate(target.known.entity)
    raise LimiterUnavailable(f"The limits of {entity!r} for {resource!r} keep changing; try again.")


def _take_all(desk: Desk, found: list[Target]) -> Flow[Grant | RateLimitExceeded | None]:
    """Take from each bucket; None where the limits are not the newest."""
    now = desk.now()
    done: list[Taken] = []
    # A parent that is known to refuse is not worth a write to the child.
    for target in found[1:]:
        # Of one that is sharded another shard may have enough.
        refused = None if target.known.depth else remembered(desk, target.known, 0, target.ask, now)
        if refused is not None:
            return _exceeded(found, target, refused, now)
    for target in found:
        try:
            outcome = yield from _taken(desk, target)
        except SolotableError:
            with suppress(SolotableError):
                yield from _undo(desk, done)
            raise
        if isinstance(outcome, Taken):
            done.append(outcome)
            continue
        yield from _undo(desk, done)
        if isinstance(outcome, Outdated):
            return None
        return _exceeded(found, target, outcome, desk.now())
    return Grant(tuple(done), found[0].ask.amounts)


def _taken(desk: Desk, target: Target) -> Flow[Taken | Refused | Outdated]:
    if target.ask.amounts:
        return (yield from take(desk, target.known, target.ask))
    return Taken(target.known, target.ask, (0,), target.known.shards.get(0))


def _undo(desk: Desk, done: Sequence[Taken]) -> Flow[None]:
    for each in reversed(done):
        back = {name: -amount for name, amount in each.ask.amounts.items()}
        if back:
            yield from settle(desk, each, back)


def adjust(desk: Desk, grant: Grant, amounts: Mapping[str, int]) -> Flow[None]:
    """Take more, or give back, in every bucket of a grant; never refused, if need be into debt."""
    for taken in grant.taken:
        theirs = {
            name: amount for name, amount in amounts.items() if amount and name in taken.ask.rules.gauges
        }
        if theirs:
            yield from settle(desk, taken, theirs)


def back(desk: Desk, grants: Sequence[Grant]) -> Flow[None]:
    """Give back everything that was taken, to where it was taken from (C1.14)."""
    for grant in reversed(grants):
        yield from adjust(desk, grant, {name: -amount for name, amount in grant.amounts.items()})


def _exceeded(found: list[Target], target: Target, refused: Refused, now: int) -> RateLimitExceeded:
    statuses: list[LimitStatus] = []
    for each in found:
        if each is target:
            # As of then: giving back what others had granted took time, and it may have come in meanwhile.
            statuses += _statuses(each, refused.state, refused.now, refused)
        else:
            statuses += _statuses(each, each.known.shards.get(0), now)
    return RateLimitExceeded(statuses)


def _statuses(
    target: Target, state: State | None, now: int, refused: Refused | None = None
) -> Iterable[LimitStatus]:
    known, ask = target.known, target.ask
    fits = state is not None and state.text == ask.rules.text
    for name, gauge in ask.rules.gauges.items():
        yield LimitStatus(
            entity=known.entity,
            resource=known.resource,
            limit=gauge.limit,
            available=gauge.tokens(state.used[name], now, 0) // MILLI if state is not None and fits else None,
            requested_milli=ask.amounts.get(name, 0),
            retry_after_seconds=0.0 if refused is None else refused.wait(name) / MICROSECONDS,
        )


def levels(
    room: Room, entity: str, resource: str, asked: Mapping[str, Amount], limits: Iterable[Limit] | None = None
) -> Flow[list[LimitStatus]]:
    """Return every limit of an entity, and of its parent, as the table has them now; nothing is taken."""
    found = yield from targets(room, entity, resource, asked, limits)
    statuses: list[LimitStatus] = []
    for target in found:
        yield from look(room.desk, target.known)
        now = room.desk.now()
        shards = target.known.shards
        for name, gauge in target.ask.rules.gauges.items():
            held = gauge.depth
            if shards:
                # Each shard has the part of the whole that its level says.
                held = sum(
                    _held(state, name, target.ask.rules, now) >> state.level for state in shards.values()
                )
            amount = target.ask.amounts.get(name, 0)
            missing = gauge.cost(amount) - held
            statuses.append(
                LimitStatus(
                    entity=target.known.entity,
                    resource=resource,
                    limit=gauge.limit,
                    available=held // gauge.price // MILLI,
                    requested_milli=amount,
                    retry_after_seconds=max(0, -(-missing // gauge.rate)) / MICROSECONDS,
                )
            )
    return statuses


def _held(state: State, name: str, rules: Rules, now: int) -> int:
    """Return the credits of a shard as the rules count them, though it may be stored under others."""
    same = state.text == rules.text and not state.is_ahead(now)
    return rules.gauges[name].credits(state.used[name] if same else state.moved(name, rules, now), now)


def refresh(room: Room, entity: str, resource: str) -> Flow[None]:
    """Bring a bucket that is there under the limits that are stored now, without waiting for its next use."""
    room.cache.invalidate(entity)
    (target, *_) = yield from targets(room, entity, resource, {}, None, final=True)
    yield from look(room.desk, target.known, consistent=True)
    for shard, state in list(target.known.shards.items()):
        if state.text != target.ask.rules.text:
            yield from touch(room.desk, target.known, shard, target.ask)
