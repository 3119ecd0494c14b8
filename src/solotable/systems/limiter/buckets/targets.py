"""The buckets of a call, and what each is charged: names, modes and parents are decided here.

A call may name limits of the entity or of its parent. Each bucket is charged for the names that it has, and
an entity or a parent that is denied refuses the call before any bucket is written.

A limit is enforced unless it is soft or its level is in shadow mode. What exceeds a limit that is not
enforced is not taken from it: an overrun does not become a debt.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from solotable.cache import TTLCache
from solotable.errors import DataError, SolotableError
from solotable.flow import Flow
from solotable.systems.limiter.admin.entities import EVERY_LIMIT, Mode, OnUnavailable
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
from solotable.systems.limiter.admin.schedule import Schedule
from solotable.systems.limiter.circuit_breaker import CircuitBreaker
from solotable.systems.limiter.errors import EntityDenied, LimitStatus, NeverSatisfiable, NoLimits
from solotable.systems.limiter.meters.meter import Meter
from solotable.systems.limiter.meters.rules import Rules, rules_of
from solotable.systems.limiter.records import record

from .bucket import TOLERATED_SKEW, ShardState
from .charge import ChargeRefused
from .local_cache import CachedBucket
from .shards import statuses as shard_statuses
from .shards import whole_state
from .writer import BucketWriter
from .writes.charge_request import Charge

#: The most resources of one call.
MOST_RESOURCES = 10

#: What a call takes from each resource.
Consume = Mapping[str, Mapping[str, Amount]]
#: What happens to the name of a limit that neither the entity nor its parent has.
UnknownLimits = Literal["raise", "ignore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterContext:
    """What an acquire needs: the writer of buckets, the stored limits, and the defaults."""

    writer: BucketWriter
    cache: LimitsCache
    #: Names of limits that were ignored and logged lately: entity, resource and limit.
    warned: TTLCache[tuple[str, str, str], bool]
    limits: Limits = ()
    schedule: Schedule | None = None
    on_unavailable: OnUnavailable = "block"
    circuit_breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    #: Called with the soft limits that a call exceeded, and with the error that shadow mode spared it.
    on_soft_limit: Callable[[list[LimitStatus]], Any] | None = None
    on_shadow_refusal: Callable[[SolotableError], Any] | None = None
    #: Called after each acquire with an AcquireObservation.
    observer: Callable[[Any], object] | None = None


@record(frozen=True, slots=True)
class Target:
    """One bucket of a call, and its charge.

    `lenient` are the names of limits that refuse nothing, `skipped` is what one of them can never hold.
    """

    bucket: CachedBucket
    charge: Charge
    lenient: frozenset[str] = frozenset()
    skipped: Mapping[str, int] = field(default_factory=dict)

    def statuses(
        self, state: ShardState | None, now: int, refused: ChargeRefused | None = None
    ) -> Iterator[LimitStatus]:
        """Return the status of every limit by the state of a shard."""
        rules = self.charge.rules
        is_current = state is not None and state.text == rules.text
        for name, meter in rules.meters.items():
            available, reset, more = None, 0, 0
            if state is not None and is_current:
                used = state.used[name]
                available = meter.tokens(used, now) // MILLI
                reset, more = meter.wait(used, now, meter.depth), _until_more(meter, used, now)
            wait = 0 if refused is None else refused.wait(name)
            yield self.status(name, available, wait, reset, more)

    def stored_statuses(self, now: int) -> Iterator[LimitStatus]:
        """Return the status of every limit by all shards, as they were read."""
        rules = self.charge.rules
        whole = whole_state(self.bucket, rules, now)
        for name, (available, wait) in shard_statuses(self.bucket, self.charge, now).items():
            meter = rules.meters[name]
            used = meter.full(now) if whole is None else whole.used[name]
            if name in self.skipped:
                yield replace(self.never(name), available=available // MILLI)
            else:
                reset, more = meter.wait(used, now, meter.depth), _until_more(meter, used, now)
                yield self.status(name, available // MILLI, wait, reset, more)

    def status(
        self, name: str, available: int | None, retry_after: int, reset_after: int = 0, more_after: int = 0
    ) -> LimitStatus:
        """Return the status of one limit; times are in microseconds."""
        return LimitStatus(
            entity=self.bucket.entity,
            resource=self.bucket.resource,
            limit=self.charge.rules.meters[name].limit,
            available=available,
            requested_milli=self.charge.amounts.get(name, 0) or self.skipped.get(name, 0),
            retry_after_seconds=retry_after / MICROSECONDS,
            enforced=name not in self.lenient,
            reset_after_seconds=reset_after / MICROSECONDS,
            more_after_seconds=more_after / MICROSECONDS,
        )

    def never(self, name: str) -> LimitStatus:
        """Return the status of a limit that never holds so much; its wait is until it is full."""
        return self.status(name, None, self.charge.rules.meters[name].fill_seconds * MICROSECONDS)

    def is_known(self, since: int, now: int) -> bool:
        """Return whether this process has read the whole bucket since a time."""
        if since <= self.bucket.read_at <= now:
            return True
        state = self.bucket.shards.get(0)
        return state is not None and not self.bucket.depth and since <= state.seen <= now


def _until_more(meter: Meter, used: int, now: int) -> int:
    """Return the microseconds until one token more is available; an untouched window has them at its end."""
    if used <= meter.full(now) and meter.limit.kind not in ("fixed_window", "calendar"):
        return 0
    whole = max(0, meter.tokens(used, now) // MILLI)
    return meter.wait(used, now, meter.cost((whole + 1) * MILLI))


@record(frozen=True, slots=True)
class Targets:
    """The buckets of a call in the order of their charges, and what it takes from each resource.

    `spared` is the first error that a level in shadow mode does not raise. `ignored` are pairs of a resource
    and a limit that it does not have. `effective` is the look-up that decided everything, if it was one and
    decides until it is made again.
    """

    buckets: tuple[Target, ...]
    amounts: Mapping[str, Mapping[str, int]]
    spared: SolotableError | None = None
    ignored: tuple[tuple[str, str], ...] = ()
    effective: EffectiveLimits | None = None


@dataclass(frozen=True, slots=True)
class _Side:
    """The limits of an entity, or of its parent, for one resource, as a call needs them."""

    entity: str
    names: frozenset[str]
    mode: Mode
    since: datetime | None
    #: None if every limit has capacity 0, and for a disabled level.
    rules: Rules | None
    lenient: frozenset[str]
    #: Limits of capacity 0.
    denying: Limits
    #: Whether limits of the call replace the stored ones.
    final: bool = False


def find_targets(
    context: LimiterContext,
    entity: str,
    consume: Consume,
    limits: Iterable[Limit] | None = None,
    *,
    final: bool = False,
    check: bool = True,
    unknown_limits: UnknownLimits = "raise",
) -> Flow[Targets]:
    """Return the buckets of a call; raise if the entity is denied, or if a limit never holds so much.

    `limits` replace those of the first resource. Without `check`, the buckets of a denied entity and of one
    without limits are returned too.
    """
    if len(consume) > MOST_RESOURCES:
        raise DataError(f"A call takes from at most {MOST_RESOURCES} resources; got {len(consume)}.")
    given = None if limits is None else limits_of(limits)
    found: list[Target] = []
    amounts: dict[str, Mapping[str, int]] = {}
    spared: SolotableError | None = None
    ignored: tuple[tuple[str, str], ...] = ()
    decided: EffectiveLimits | None = None
    for resource, named in consume.items():
        effective = context.cache.get(entity, resource)
        if effective is None:
            effective = yield from resolve(context.writer.scope, entity, resource, cache=context.cache)
        above = None
        if effective.cascade and effective.parent is not None:
            above = context.cache.get(effective.parent, resource)
            if above is None:
                above = yield from resolve(
                    context.writer.scope, effective.parent, resource, cache=context.cache
                )
        if len(consume) == 1 and above is None and given is None:
            decided = effective if _schedule_of(context, effective) is None else None
        sides = _sides(context, entity, resource, effective, above, given, check=check)
        given, wanted = None, named
        if unknown_limits == "ignore" and (unknown := _unknown(sides, named)):
            ignored += tuple((resource, name) for name in unknown)
            wanted = {name: amount for name, amount in named.items() if name not in unknown}
        asked = _amounts(sides, wanted)
        is_metered = bool(sides)
        for side in sides:
            if side.denying:
                spared = spared or _check_denied(side, resource, asked)
            if side.rules is None:
                is_metered = False
            else:
                target, never = _target(context, side, side.rules, resource, asked, final=final)
                found.append(target)
                spared = spared or never
        amounts[resource] = asked if is_metered else _metered(sides, asked)
    return Targets(tuple(found), amounts, spared, ignored, decided)


def _sides(
    context: LimiterContext,
    entity: str,
    resource: str,
    effective: EffectiveLimits,
    above: EffectiveLimits | None,
    given: Limits | None,
    *,
    check: bool,
) -> list[_Side]:
    """Return the limits of an entity and of its parent `above`, if the call charges it."""
    if check and effective.mode == "deny":
        raise EntityDenied(entity, resource, effective.since)
    if check and effective.mode == "bypass":
        return []
    if given is None:
        side = _side(context, entity, resource, effective)
    else:
        side = _given_side(entity, effective, given)
    if side is None:
        raise NoLimits(entity, resource)
    if above is None or effective.parent is None:
        return [side]
    if check and above.mode == "deny":
        raise EntityDenied(effective.parent, resource, above.since)
    # Limits of a call are the child's alone. A parent without limits is not charged.
    parent = None if check and above.mode == "bypass" else _side(context, effective.parent, resource, above)
    return [side] if parent is None else [side, parent]


def _side(context: LimiterContext, entity: str, resource: str, effective: EffectiveLimits) -> _Side | None:
    """Return the stored limits of an entity, or those of the constructor; made once per look-up."""
    limits, revision, key = effective.limits, effective.revision, entity
    schedule = _schedule_of(context, effective)
    if schedule is not None:
        limits, since = _scheduled(context.writer, entity, resource, schedule)
        revision, key = max(revision, since), f"{entity}#{since}"
    found: _Side | None = effective.memo.get(key)
    if found is None:
        # Deleted limits count as older than those of the constructor.
        limits = context.limits if limits is None else limits
        mode = effective.mode if effective.mode in ("shadow", "disabled") else "enforce"
        if limits or mode == "disabled":
            found = _new_side(entity, effective, limits, revision, mode)
            effective.memo[key] = found
    return found


def _schedule_of(context: LimiterContext, effective: EffectiveLimits) -> Schedule | None:
    """Return the stored schedule, or that of the constructor; None if limits are the same at any time."""
    return context.schedule if effective.limits is None else effective.schedule


def _scheduled(writer: BucketWriter, entity: str, resource: str, schedule: Schedule) -> tuple[Limits, int]:
    """Return the limits of now, and since when they apply.

    A process whose clock is a little behind follows one that has moved the bucket to the next window.
    """
    now = writer.now()
    state = writer.cache.bucket(entity, resource).shards.get(0)
    if state is not None and now < state.revision <= now + TOLERATED_SKEW:
        now = state.revision
    current = schedule.at(now)
    return current.limits, current.since or 0


def _given_side(entity: str, effective: EffectiveLimits, given: Limits) -> _Side:
    return replace(_new_side(entity, effective, given, 0, "enforce"), final=True)


def _new_side(entity: str, effective: EffectiveLimits, limits: Limits, revision: int, mode: Mode) -> _Side:
    metered = tuple(_reset(limit, effective.resets) for limit in limits if limit.capacity)
    return _Side(
        entity=entity,
        names=frozenset(limit.name for limit in limits),
        mode=mode,
        since=effective.since,
        rules=rules_of(metered, revision) if metered and mode != "disabled" else None,
        lenient=frozenset(limit.name for limit in metered if mode == "shadow" or limit.soft),
        denying=tuple(limit for limit in limits if not limit.capacity and mode != "disabled"),
    )


def _reset(limit: Limit, resets: tuple[tuple[str, int], ...]) -> Limit:
    """Return a limit with the time of its last reset."""
    times = [at for name, at in resets if name in (limit.name, EVERY_LIMIT)]
    return replace(limit, reset_at=max(times)) if times else limit


def _unknown(sides: list[_Side], wanted: Mapping[str, Amount]) -> list[str]:
    """Return the names that no side has; none if no limits say which names exist."""
    if not sides or any(side.mode == "disabled" and not side.names for side in sides):
        return []
    return [name for name in wanted if not any(name in side.names for side in sides)]


def _amounts(sides: list[_Side], wanted: Mapping[str, Amount]) -> dict[str, int]:
    """Return what a call takes by name; a name that no side has is an error that lists all names."""
    known = sides[0].names if len(sides) == 1 else frozenset[str]().union(*(side.names for side in sides))
    unknown = next((name for name in wanted if name not in known), None)
    if unknown is not None:
        if not sides or any(side.mode == "disabled" and not side.names for side in sides):
            # No limits say which names exist.
            known = known.union(wanted)
        elif len(sides) > 1:
            listed = "; ".join(f"{side.entity!r} has {', '.join(sorted(side.names))}" for side in sides)
            raise DataError(f"Limit {unknown!r} does not exist here: {listed}.")
    return amounts_by_limit(known, wanted)


def _metered(sides: list[_Side], asked: Mapping[str, int]) -> dict[str, int]:
    """Return what is taken from limits that count, without what a disabled level has."""
    names = set[str]().union(*(side.rules.meters for side in sides if side.rules is not None))
    return {name: amount for name, amount in asked.items() if name in names}


def _check_denied(side: _Side, resource: str, amounts: Mapping[str, int]) -> EntityDenied | None:
    """Raise EntityDenied for a limit of capacity 0; return it for a level in shadow mode."""
    for limit in side.denying:
        if limit.name in amounts:
            denied = EntityDenied(side.entity, resource, side.since, limit)
            if side.mode != "shadow":
                raise denied
            return denied
    return None


def _target(
    context: LimiterContext,
    side: _Side,
    rules: Rules,
    resource: str,
    amounts: Mapping[str, int],
    *,
    final: bool,
) -> tuple[Target, NeverSatisfiable | None]:
    """Return the bucket of a side, and the error that a level in shadow mode does not raise."""
    meters = rules.meters
    taken = {name: amount for name, amount in amounts.items() if name in meters}
    skipped: dict[str, int] = {}
    spared: NeverSatisfiable | None = None
    for name, amount in taken.items():
        meter = meters[name]
        if meter.cost(amount) > meter.depth:
            never = NeverSatisfiable(side.entity, resource, meter.limit, amount)
            if name not in side.lenient:
                raise never
            skipped[name] = amount
            if not meter.limit.soft:
                spared = spared or never
    if skipped:
        taken = {name: amount for name, amount in taken.items() if name not in skipped}
    bucket = context.writer.cache.bucket(side.entity, resource)
    hold = secrets.token_hex(4) if rules.held and rules.held.keys() & taken.keys() else ""
    charge = Charge(rules, taken, final=final or side.final, hold=hold)
    return Target(bucket, charge, side.lenient, skipped), spared
