"""Acquire: all limits of a call or none, of an entity and its parent, on every resource.

Each bucket is one conditional write, in the order of the resources, the child's before its parent's. If one
lacks tokens, those before it get theirs back. A transaction would cost twice as much and would conflict with
every other child's on the parent's item. The price: a process that dies between two writes has taken tokens
from the first. So fewer calls may be admitted than the limits allow, never more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from solotable.errors import ServiceError, SolotableError, TransportError
from solotable.flow import Flow, decode_item
from solotable.systems.limiter.admin.limits import MILLI, MOST_TOKENS, Amount, Limit, limits_of
from solotable.systems.limiter.errors import (
    EntityDenied,
    LeaseExpired,
    LimiterUnavailable,
    LimitStatus,
    NeverSatisfiable,
    NoLimits,
    RateLimitExceeded,
)
from solotable.systems.limiter.meters.concurrency import holds_of
from solotable.systems.limiter.records import record

from .charge import (
    Charged,
    ChargeRefused,
    FailedWrite,
    RulesOutdated,
    cached_refusal,
    extend_expiry,
)
from .repeated_charge import begin, remember
from .shards import (
    TakenTokens,
    charge_one,
    extend_holds,
    plan_settlement,
    read_shards,
    read_whole,
    rebalance,
    settle,
    take,
)
from .targets import Consume, LimiterContext, Target, Targets, UnknownLimits, find_targets
from .writer import BucketWriter
from .writes.charge_request import Charge

__all__ = ["Decision", "Grant", "LimiterContext", "acquire", "adjust", "check", "give_back", "merge"]

#: How often the limits of a call may change before it is given up.
_ROUNDS = 4
#: One bucket whose limits are all enforced.
_NOT_LENIENT: tuple[frozenset[str], ...] = (frozenset(),)


@record(frozen=True, slots=True)
class Grant:
    """What a call took from each bucket, and what it asked for by resource.

    `exceeded` are the soft limits that had too few tokens; `spared` is the error that a level in shadow mode
    did not raise.
    """

    taken: tuple[TakenTokens, ...]
    amounts: Mapping[str, Mapping[str, int]]
    exceeded: tuple[LimitStatus, ...] = ()
    spared: SolotableError | None = None
    #: The names of limits that are not enforced, for each bucket.
    lenient: tuple[frozenset[str], ...] = ()
    #: Pairs of a resource and a limit that it does not have.
    ignored: tuple[tuple[str, str], ...] = ()

    def statuses(self, now: int) -> list[LimitStatus]:
        """Return the status of every limit after the charge."""
        return [
            status
            for each, lenient in zip(self.taken, self.lenient, strict=True)
            for status in Target(each.bucket, each.charge, lenient).statuses(each.state, now)
        ]

    def names(self, resource: str) -> set[str]:
        """Return the names of the limits that a resource has, of the entity or of its parent."""
        return {
            name
            for each in self.taken
            if each.bucket.resource == resource
            for name in each.charge.rules.meters
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What an acquire would do: `refusal` is the error that it would raise, None if it is admitted."""

    statuses: tuple[LimitStatus, ...]
    refusal: SolotableError | None = None

    @property
    def admitted(self) -> bool:
        """Whether the call would be admitted."""
        return self.refusal is None

    @property
    def retry_after_seconds(self) -> float:
        """The seconds until the call would be admitted; 0 also if waiting does not help."""
        return self.refusal.retry_after_seconds if isinstance(self.refusal, RateLimitExceeded) else 0.0


def acquire(
    context: LimiterContext,
    entity: str,
    consume: Consume,
    limits: Iterable[Limit] | None = None,
    *,
    unknown_limits: UnknownLimits = "raise",
) -> Flow[Grant]:
    """Take tokens from every limit of a call, or raise RateLimitExceeded and take none."""
    given = None if limits is None else limits_of(limits)
    found = failed = None
    first = begin(context, entity, consume) if given is None and len(consume) == 1 else None
    if first is not None:
        try:
            reply = yield first.request
        except (ServiceError, TransportError) as error:
            found, failed = first.targets, FailedWrite(first.lane, first.now, error)
        except BaseException:
            first.bucket.free_lane(first.lane)
            raise
        else:
            writer, item = context.writer, decode_item(reply.attributes)
            state = first.note_applied(writer, item)
            if first.may_owe and (until := state.expires(first.now, state.used)) > int(item["expires"]["N"]):
                yield from extend_expiry(writer, first.bucket, 0, state, until)
            if writer.shard_above is not None:
                yield from rebalance(writer, first.bucket, 0, state, first.charge, applied=1, failed=0)
            taken = TakenTokens(first.bucket, first.charge, (0,), state)
            return Grant((taken,), {first.bucket.resource: first.charge.amounts}, lenient=_NOT_LENIENT)
    for attempt in range(_ROUNDS):
        if found is None:
            # Limits that are older than the bucket's are read again once; then they are final.
            found = yield from find_targets(
                context, entity, consume, given, final=attempt > 0, unknown_limits=unknown_limits
            )
        outcome = yield from _take_all(context.writer, found, failed)
        if isinstance(outcome, Grant):
            remember(found, consume)
            return outcome
        if outcome is not None:
            raise outcome
        for target in found.buckets:
            context.cache.invalidate(target.bucket.entity)
        found = failed = None
    raise LimiterUnavailable(f"The limits of {entity!r} for {', '.join(consume)} keep changing; try again.")


def _take_all(
    writer: BucketWriter, found: Targets, failed: FailedWrite | None = None
) -> Flow[Grant | RateLimitExceeded | None]:
    """Take from each bucket; None if the limits are outdated. `failed` is a write to the first."""
    begun = writer.now()
    done: list[TakenTokens] = []
    notes = _Notes()
    # A bucket that is known to refuse is not worth a write to those before it. Another shard may have enough.
    for target in found.buckets[1:]:
        refused = None
        if target.bucket.depth == 0 and target.charge.amounts:
            refused = cached_refusal(writer, target.bucket, 0, target.charge, begun)
        if refused is not None and not _lacking(refused) <= target.lenient:
            return (yield from _exceeded(writer, found, target, refused, begun))
    for target in found.buckets:
        try:
            outcome = yield from _take(writer, target, notes, failed)
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
        return (yield from _exceeded(writer, found, target, outcome, begun))
    lenient = tuple(target.lenient for target in found.buckets)
    spared = found.spared or notes.spared()
    return Grant(tuple(done), found.amounts, tuple(notes.exceeded), spared, lenient, found.ignored)


class _Notes:
    """What limits that are not enforced would have refused."""

    __slots__ = ("_shadow", "exceeded")

    def __init__(self) -> None:
        self.exceeded: list[LimitStatus] = []
        self._shadow: list[LimitStatus] = []

    def add(self, statuses: Iterable[LimitStatus]) -> None:
        for status in statuses:
            (self.exceeded if status.limit.soft else self._shadow).append(status)

    def spared(self) -> SolotableError | None:
        """Return the error of an acquire that enforces."""
        statuses = [replace(status, enforced=True) for status in self._shadow]
        return RateLimitExceeded(statuses) if statuses else None


def _lacking(refused: ChargeRefused) -> set[str]:
    """Return the names of the limits that refused; all if it was the crowd and not a limit."""
    return {name for name in refused.charge.amounts if refused.wait(name)} or set(refused.charge.amounts)


def _take(
    writer: BucketWriter, target: Target, notes: _Notes, failed: FailedWrite | None
) -> Flow[TakenTokens | ChargeRefused | RulesOutdated]:
    """Take from one bucket; what exceeds a limit that is not enforced is skipped and noted."""
    charge, skipped = target.charge, dict(target.skipped)
    if skipped:
        notes.add(target.never(name) for name in skipped if target.charge.rules.meters[name].limit.soft)
    while charge.amounts:
        outcome = yield from take(writer, target.bucket, charge, failed)
        failed = None
        if isinstance(outcome, TakenTokens):
            return replace(outcome, skipped=skipped) if skipped else outcome
        if isinstance(outcome, RulesOutdated):
            return outcome
        lacking = _lacking(outcome)
        if not lacking <= target.lenient:
            return outcome
        refusing = replace(target, charge=charge).statuses(outcome.state, outcome.now, outcome)
        notes.add(each for each in refusing if each.limit.name in lacking)
        skipped |= {name: charge.amounts[name] for name in lacking}
        left = {name: amount for name, amount in charge.amounts.items() if name not in lacking}
        charge = replace(charge, amounts=left)
    return TakenTokens(target.bucket, charge, (0,), target.bucket.shards.get(0), skipped=skipped)


def _undo(writer: BucketWriter, done: Sequence[TakenTokens]) -> Flow[None]:
    for each in reversed(done):
        amounts = {name: -amount for name, amount in each.charge.amounts.items()}
        if amounts:
            yield from settle(writer, each, amounts)


def adjust(writer: BucketWriter, grant: Grant, amounts: Mapping[str, Mapping[str, int]]) -> Flow[None]:
    """Take more, or give back, by resource and limit; never refused, into debt if necessary.

    What a soft limit did not give is not given back to it.
    """
    for taken in grant.taken:
        resource = taken.bucket.resource
        before = grant.amounts.get(resource, {})
        owed: dict[str, int] = {}
        for name, amount in amounts.get(resource, {}).items():
            if name in taken.charge.rules.meters:
                skipped, consumed = taken.skipped.get(name, 0), before.get(name, 0)
                owed[name] = max(0, consumed + amount - skipped) - max(0, consumed - skipped)
        owed = {name: amount for name, amount in owed.items() if amount}
        if owed:
            yield from settle(writer, taken, owed)


def give_back(writer: BucketWriter, grants: Sequence[Grant]) -> Flow[None]:
    """Give back everything that was taken, to the shards that it came from (C1.14)."""
    for grant in reversed(grants):
        yield from _undo(writer, grant.taken)


def release_holds(writer: BucketWriter, grants: Sequence[Grant]) -> Flow[None]:
    """End the holds of a lease in concurrency limits."""
    for taken in _with_holds(grants):
        held = taken.charge.rules.held.keys() & taken.charge.amounts.keys()
        yield from settle(writer, taken, dict.fromkeys(held, -MOST_TOKENS * MILLI))


def extend(writer: BucketWriter, grants: Sequence[Grant]) -> Flow[int | None]:
    """Extend the holds of a lease to their whole time from now, or raise LeaseExpired if one has ended.

    Return when the first of them expires, in microseconds; None without concurrency limits.
    """
    first: int | None = None
    for taken in _with_holds(grants):
        names = taken.charge.rules.held.keys() & taken.charge.amounts.keys()
        expires = yield from extend_holds(writer, taken.bucket, taken.shards[0], taken.charge.hold, names)
        if expires is None:
            raise LeaseExpired
        first = expires if first is None else min(first, expires)
    return first


def held_until(grant: Grant) -> int | None:
    """Return when the first tokens of concurrency limits are free, in microseconds, unless it is extended."""
    return min(
        (
            hold.expires
            for taken in _with_holds([grant])
            if taken.shard_state is not None
            for name in taken.charge.rules.held
            for hold in holds_of(taken.shard_state.used.get(name, 0))
            if hold.attribute == taken.charge.rules.held[name].attribute(taken.charge.hold)
        ),
        default=None,
    )


def _with_holds(grants: Sequence[Grant]) -> list[TakenTokens]:
    return [
        taken
        for grant in grants
        for taken in grant.taken
        if taken.charge.hold and taken.charge.rules.held.keys() & taken.charge.amounts.keys()
    ]


def merge(grants: Sequence[Grant]) -> Grant:
    """Return one grant for several of one lease: the shards of the first, and the amounts of all."""
    first, *others = grants
    if not others:
        return first
    amounts = {resource: dict(each) for resource, each in first.amounts.items()}
    taken = {(each.bucket.entity, each.bucket.resource): each for each in first.taken}
    for grant in others:
        for resource, given in grant.amounts.items():
            _add(amounts.setdefault(resource, {}), given)
        for each in grant.taken:
            key = (each.bucket.entity, each.bucket.resource)
            if key in taken and each.skipped:
                skipped = dict(taken[key].skipped)
                _add(skipped, each.skipped)
                taken[key] = replace(taken[key], skipped=skipped)
            taken.setdefault(key, each)
    return replace(first, taken=tuple(taken.values()), amounts=amounts)


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _exceeded(
    writer: BucketWriter, found: Targets, target: Target, refused: ChargeRefused, begun: int
) -> Flow[RateLimitExceeded]:
    """Return the refusal with the waits of all buckets; one that was not read lately is read now (L9)."""
    statuses: list[LimitStatus] = []
    since = begun - writer.refusal_microseconds
    for each in found.buckets:
        if each is target:
            # As of the refusal: tokens may have come in while other buckets got theirs back.
            statuses += each.statuses(refused.state, refused.now, refused)
            continue
        known = each.is_known(since, writer.now())
        if each.charge.amounts and not known:
            # The refusal is certain; it has the waits that are known.
            with suppress(SolotableError):
                yield from read_shards(writer, each.bucket, consistent=True)
                known = True
        if known:
            statuses += each.stored_statuses(writer.now())
        else:
            statuses += each.statuses(each.bucket.shards.get(0), writer.now())
    return RateLimitExceeded(statuses)


def read_statuses(
    context: LimiterContext,
    entity: str,
    consume: Consume,
    limits: Iterable[Limit] | None = None,
    *,
    check: bool = True,
) -> Flow[list[LimitStatus]]:
    """Return every limit of an entity, and of its parent, as stored now; nothing is taken.

    Without `check`, those of a denied entity too.
    """
    found = yield from find_targets(context, entity, consume, limits, check=check)
    statuses: list[LimitStatus] = []
    for target in found.buckets:
        yield from read_shards(context.writer, target.bucket)
        statuses += target.stored_statuses(context.writer.now())
    return statuses


def check(
    context: LimiterContext, entity: str, consume: Consume, limits: Iterable[Limit] | None = None
) -> Flow[Decision]:
    """Return whether an acquire would be admitted now, and every limit; nothing is taken."""
    given = None if limits is None else limits_of(limits)
    try:
        statuses = yield from read_statuses(context, entity, consume, given)
    except (EntityDenied, NeverSatisfiable) as refusal:
        nothing: dict[str, dict[str, Amount]] = {resource: {} for resource in consume}
        known: list[LimitStatus] = []
        with suppress(NoLimits):
            known = yield from read_statuses(context, entity, nothing, given, check=False)
        return Decision(statuses=tuple(known), refusal=refusal)
    if any(status.exceeded and status.enforced for status in statuses):
        return Decision(statuses=tuple(statuses), refusal=RateLimitExceeded(statuses))
    return Decision(statuses=tuple(statuses))


def refresh(context: LimiterContext, entity: str, resource: str) -> Flow[None]:
    """Convert an existing bucket to the limits that are stored now, before its next use."""
    context.cache.invalidate(entity)
    found = yield from find_targets(context, entity, {resource: {}}, final=True, check=False)
    for target in found.buckets:
        if target.bucket.entity != entity:
            continue
        yield from read_whole(context.writer, target.bucket)
        for shard, state in list(target.bucket.shards.items()):
            if state.text != target.charge.rules.text:
                yield from charge_one(context.writer, target.bucket, shard, target.charge)


def top_up(context: LimiterContext, entity: str, resource: str, amounts: Mapping[str, int]) -> Flow[None]:
    """Give tokens to every shard of an entity's bucket, up to the capacity; usage does not change."""
    yield from refresh(context, entity, resource)
    writer = context.writer
    bucket = writer.cache.bucket(entity, resource)
    added = {name: -amount for name, amount in amounts.items()}
    for shard, part in plan_settlement(bucket, added, writer.now()).items():
        for _ in range(_ROUNDS):
            state = bucket.shards.get(shard)
            if state is None:
                # A bucket that does not exist is full.
                break
            outcome = yield from charge_one(
                writer, bucket, shard, Charge(state.rules, part, admit=False, counts=False)
            )
            if isinstance(outcome, Charged):
                break
