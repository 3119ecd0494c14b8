"""Leases: exclusive holders, with an internal item whose fencing token only grows.

A holder uses the lease until its expiry on the holder's clock. Another owner takes it over after the
expiry plus the allowed skew on its own clock. So two holders never overlap while their clocks differ by
less than the skew. A transaction that checks the lease succeeds only while its token is the current one,
even if the clocks differ more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from solotable._entities.declare.table import Table
from solotable._expressions.ast import (
    And,
    Arithmetic,
    Assign,
    Attr,
    Compare,
    Condition,
    Const,
    Exists,
    IfNotExists,
    Not,
    Or,
    Remove,
    Update,
)
from solotable._flows.internal_items import internal_key, internal_partition, only_table
from solotable._flows.retry import Flow, Sleep, send
from solotable._flows.scope import Scope, decode_item
from solotable._flows.transactions.write import DerivedWrite
from solotable._protocol.requests import ConditionCheck, GetItem, UpdateItem
from solotable._values import Item
from solotable.errors import (
    ConditionFailed,
    DataError,
    LeaseHeld,
    LeaseLost,
    OutcomeUnknown,
    SolotableError,
    TenantViolation,
)

TAG = "_lease"
_TOKEN, _OWNER, _UNTIL = ("token",), ("owner",), ("until",)
_POLL_SECONDS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """The name, owner and duration of a lease."""

    name: str
    owner: str
    seconds: float
    skew_seconds: float
    table: Table
    tenant: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLease:
    """An acquired lease: its fencing token, and its expiry on the holder's clock."""

    terms: LeaseTerms
    token: int
    until: float


def lease_terms(
    scope: Scope,
    name: str,
    *,
    seconds: float,
    owner: str | None,
    skew_seconds: float,
    table: Table | None,
) -> LeaseTerms:
    """Check the arguments of a lease; without an owner, use a random one."""
    if not name:
        raise DataError("lease() takes a non-empty name, got ''.")
    if seconds <= 0 or skew_seconds < 0:
        raise DataError(
            f"Lease {name!r}: seconds= must be above 0 and skew_seconds= at least 0, "
            f"got {seconds} and {skew_seconds}."
        )
    return LeaseTerms(
        name=name,
        owner=owner or scope.tokens(),
        seconds=seconds,
        skew_seconds=skew_seconds,
        table=only_table(scope, table, "has the lease"),
        tenant=scope.tenant,
    )


def acquire(scope: Scope, terms: LeaseTerms, *, wait_seconds: float = 0.0) -> Flow[HeldLease]:
    """Acquire the lease, waiting up to `wait_seconds`; raise LeaseHeld with its owner."""
    deadline = scope.clock() + wait_seconds
    while True:
        try:
            return (yield from _take(scope, terms))
        except LeaseHeld:
            if scope.clock() >= deadline:
                raise
        yield Sleep(min(_POLL_SECONDS, wait_seconds))


def renew(scope: Scope, held: HeldLease) -> Flow[HeldLease]:
    """Extend the lease to its full duration from now; raise LeaseLost if another owner has acquired it."""
    until = scope.clock() + held.terms.seconds
    update = Update((Assign(_UNTIL, _number(until)),), creates=True)
    try:
        yield from send(_update(scope, held.terms, update, _is_mine(held)), scope.retries)
    except ConditionFailed as error:
        raise lost(held, error.item) from error
    return replace(held, until=until)


def release(scope: Scope, held: HeldLease) -> Flow[None]:
    """Release the lease, unless it is lost. The item keeps its token for the next holder."""
    update = Update((Assign(_UNTIL, Const({"N": "0"})), Remove(_OWNER)), creates=True)
    try:
        yield from send(_update(scope, held.terms, update, _is_mine(held)), scope.retries)
    except ConditionFailed:
        return


def check(scope: Scope, held: HeldLease) -> DerivedWrite:
    """Return the condition check of a transaction that the lease's token is the current one."""
    if held.terms.tenant not in (None, scope.tenant):
        raise TenantViolation(
            f"The lease {held.terms.name!r} belongs to tenant {held.terms.tenant!r} and cannot guard a "
            f"transaction of {scope.tenant!r}; acquire it with the store of the transaction."
        )
    action = ConditionCheck(
        table=scope.table(held.terms.table),
        key=_key(held.terms),
        condition=_is_mine(held),
        returns_on_failure=True,
    )

    def explain(found: Item | None) -> SolotableError:
        return lost(held, found)

    return DerivedWrite(action=action, title=f"the lease {held.terms.name!r}", explain=explain)


def lost(held: HeldLease, found: dict[str, Any] | None) -> LeaseLost:
    """Return the error for a lease that is no longer held, given its stored item."""
    token = None if found is None else found.get("token", {}).get("N")
    owner = None if found is None else found.get("owner", {}).get("S")
    state = "it was released" if owner is None else f"{owner!r} holds it with token {token}"
    return LeaseLost(
        f"Lease {held.terms.name!r} with token {held.token} was lost: {state}; stop, and acquire it again.",
        name=held.terms.name,
        token=held.token,
    )


def _take(scope: Scope, terms: LeaseTerms) -> Flow[HeldLease]:
    now = scope.clock()
    until = now + terms.seconds
    partition = terms.table.partition.name
    free: Condition = Or(
        (
            Not(Exists((partition,))),
            Compare("<", Attr(_UNTIL), _number(now - terms.skew_seconds)),
            Compare("=", Attr(_OWNER), Const({"S": terms.owner})),
        )
    )
    update = Update(
        (
            Assign((terms.table.internal_tag,), Const({"S": TAG})),
            Assign(_TOKEN, Arithmetic("+", IfNotExists(_TOKEN, Const({"N": "0"})), Const({"N": "1"}))),
            Assign(_OWNER, Const({"S": terms.owner})),
            Assign(_UNTIL, _number(until)),
        ),
        creates=True,
    )
    try:
        reply = yield from send(_update(scope, terms, update, free), scope.retries)
        item = decode_item(reply.attributes or {})
    except ConditionFailed as error:
        raise _held(terms, error.item or {}) from error
    except OutcomeUnknown:
        # The write may have acquired the lease: read the item to find out.
        read = GetItem(table=scope.table(terms.table), key=_key(terms), consistent=True)
        current = yield from send(read, scope.retries)
        item = {} if current.item is None else decode_item(current.item)
        if item.get("owner") != {"S": terms.owner}:
            raise
        until = float(item["until"]["N"])
    return HeldLease(terms=terms, token=int(item["token"]["N"]), until=until)


def _update(scope: Scope, terms: LeaseTerms, update: Update, condition: Condition) -> UpdateItem:
    return UpdateItem(
        table=scope.table(terms.table),
        key=_key(terms),
        update=update,
        condition=condition,
        returns="ALL_NEW",
        returns_on_failure=True,
    )


def _is_mine(held: HeldLease) -> Condition:
    token = Compare("=", Attr(_TOKEN), Const({"N": str(held.token)}))
    return And((token, Compare("=", Attr(_OWNER), Const({"S": held.terms.owner}))))


def _held(terms: LeaseTerms, item: Item) -> LeaseHeld:
    owner = item.get("owner", {}).get("S")
    until = datetime.fromtimestamp(float(item.get("until", {}).get("N", "0")), UTC)
    return LeaseHeld(
        f"Lease {terms.name!r} is held by {owner!r} until {until:%Y-%m-%d %H:%M:%S}Z; "
        f"pass wait_seconds= to wait for it, or try again later.",
        name=terms.name,
        owner=owner,
        until=until,
    )


def _key(terms: LeaseTerms) -> Item:
    return internal_key(terms.table, internal_partition("LEASE", terms.tenant, terms.name), "LEASE")


def _number(moment: float) -> Const:
    return Const({"N": f"{moment:.3f}".rstrip("0").rstrip(".")})
