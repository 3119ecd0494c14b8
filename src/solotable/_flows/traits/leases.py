"""Leases: one holder at a time, by an internal item whose fencing token only grows.

A holder counts on the lease until its own clock says so; another takes it over only when that moment
and the allowed skew have passed on the taker's clock. So two holders never overlap while their clocks
differ by less than the skew. Whatever the clocks say, a transaction that checks the lease is done only
while its token is the current one.
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
from solotable.errors import ConditionFailed, DataError, LeaseHeld, LeaseLost, OutcomeUnknown, SolotableError

TAG = "_lease"
_TOKEN, _OWNER, _UNTIL = ("token",), ("owner",), ("until",)
_POLL_SECONDS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """What a lease is for, and for how long."""

    name: str
    owner: str
    seconds: float
    skew_seconds: float
    table: Table
    tenant: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLease:
    """A lease that was taken: its fencing token, and until when its holder counts on it."""

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
    """Check what is wanted; an owner that is not given is a random one."""
    if not name:
        raise DataError("A lease has a name that is not empty.")
    if seconds <= 0 or skew_seconds < 0:
        raise DataError(f"Lease {name!r}: seconds is above 0 and skew_seconds not below; got {seconds}.")
    return LeaseTerms(
        name=name,
        owner=owner or scope.tokens(),
        seconds=seconds,
        skew_seconds=skew_seconds,
        table=only_table(scope, table, "has the lease"),
        tenant=scope.tenant,
    )


def acquire(scope: Scope, terms: LeaseTerms, *, wait_seconds: float = 0.0) -> Flow[HeldLease]:
    """Take the lease, waiting for it for a while, or raise LeaseHeld with its owner."""
    deadline = scope.clock() + wait_seconds
    while True:
        try:
            return (yield from _take(scope, terms))
        except LeaseHeld:
            if scope.clock() >= deadline:
                raise
        yield Sleep(min(_POLL_SECONDS, wait_seconds))


def renew(scope: Scope, held: HeldLease) -> Flow[HeldLease]:
    """Hold the lease for its whole time from now on; raise LeaseLost if another owner has taken it."""
    until = scope.clock() + held.terms.seconds
    update = Update((Assign(_UNTIL, _number(until)),), creates=True)
    try:
        yield from send(_update(scope, held.terms, update, _is_mine(held)), scope.retries)
    except ConditionFailed as refused:
        raise lost(held, refused.item) from refused
    return replace(held, until=until)


def release(scope: Scope, held: HeldLease) -> Flow[None]:
    """Release the lease, unless it is lost. Its token stays, for the next holder."""
    update = Update((Assign(_UNTIL, Const({"N": "0"})), Remove(_OWNER)), creates=True)
    try:
        yield from send(_update(scope, held.terms, update, _is_mine(held)), scope.retries)
    except ConditionFailed:
        return


def check(scope: Scope, held: HeldLease) -> DerivedWrite:
    """Return the part of a transaction that requires the lease's token to be the current one."""
    action = ConditionCheck(
        table=scope.table(held.terms.table),
        key=_key(held.terms),
        condition=_is_mine(held),
        returns_on_failure=True,
    )

    def explain(met: Item | None) -> SolotableError:
        return lost(held, met)

    return DerivedWrite(action=action, title=f"the lease {held.terms.name!r}", explain=explain)


def lost(held: HeldLease, met: dict[str, Any] | None) -> LeaseLost:
    """Return the error for a token that another holder has replaced."""
    now = None if met is None else met.get("token", {}).get("N")
    owner = None if met is None else met.get("owner", {}).get("S")
    stands = "it was given back" if owner is None else f"{owner!r} has it with token {now}"
    return LeaseLost(
        f"Lease {held.terms.name!r} with token {held.token} was lost: {stands}; stop, and acquire it again.",
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
            Assign((terms.table.tag,), Const({"S": TAG})),
            Assign(_TOKEN, Arithmetic("+", IfNotExists(_TOKEN, Const({"N": "0"})), Const({"N": "1"}))),
            Assign(_OWNER, Const({"S": terms.owner})),
            Assign(_UNTIL, _number(until)),
        ),
        creates=True,
    )
    try:
        reply = yield from send(_update(scope, terms, update, free), scope.retries)
        item = decode_item(reply.attributes or {})
    except ConditionFailed as refused:
        raise _held(terms, refused.item or {}) from refused
    except OutcomeUnknown:
        # The lost write may have taken the lease: a read tells.
        read = GetItem(table=scope.table(terms.table), key=_key(terms), consistent=True)
        there = yield from send(read, scope.retries)
        item = {} if there.item is None else decode_item(there.item)
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
        f"Lease {terms.name!r} is held by {owner!r} until {until:%Y-%m-%d %H:%M:%S}Z; wait for it, "
        f"or do the work another time.",
        name=terms.name,
        owner=owner,
        until=until,
    )


def _key(terms: LeaseTerms) -> Item:
    return internal_key(terms.table, internal_partition("LEASE", terms.tenant, terms.name), "LEASE")


def _number(moment: float) -> Const:
    return Const({"N": f"{moment:.3f}".rstrip("0").rstrip(".")})
