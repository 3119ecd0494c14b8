"""What a change of a membership writes: the membership, an event, and the check that an admin stays.

All of it is one transaction, in which the store also changes the numbers of members and admins (C2.6). A
service with an event loop and the purge job use the same changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from solotable import Entity
from solotable.errors import (
    AlreadyExists,
    ConditionFailed,
    NotFound,
    SolotableError,
    TransactionFailed,
    VersionConflict,
)
from solotable.systems.errors import first_error

from .entities.neighbourhoods import (
    EventKind,
    Membership,
    MembershipEvent,
    Neighbourhood,
)
from .entities.users import User
from .entities.values import MemberStatus, Role
from .errors import Forbidden, LastAdmin

EntityT = TypeVar("EntityT", bound=Entity)


class TransactionWriter(Protocol):
    """A transaction of a blocking or an asynchronous database."""

    def put(self, entity: EntityT) -> EntityT:
        """Add a put."""

    def create(self, entity: EntityT) -> EntityT:
        """Add a put of an entity that does not exist."""

    def check(self, entity: Any, /, *, where: Any = None, **key: Any) -> None:
        """Add a check."""

    def update(self, entity: Any, /, *, set: Any, version: Any = None, **key: Any) -> None:  # noqa: A002
        """Add an update."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipChange:
    """A membership before and after a change; `before` is None for a user who never was a member."""

    before: Membership | None
    after: Membership
    kind: EventKind
    #: Who changes it; None for a job.
    actor_did: str | None

    @property
    def removes_admin(self) -> bool:
        """Whether the neighbourhood has one admin fewer afterwards."""
        return self.before is not None and self.before.is_admin and not self.after.is_admin

    def write(self, tx: TransactionWriter, *, now: datetime) -> Membership:
        """Add the change to a transaction and return the membership."""
        at = moment_after(self.before, now)
        after = self.after.model_copy(update={"changed_at": at})
        nid = after.neighbourhood_id
        if after.is_active and (self.before is None or not self.before.is_active):
            after.joined_at = at
            # An account that is deleted at the same time does not become a member.
            tx.check(User, did=after.user_did)
        stored = tx.create(after) if self.before is None else tx.put(after)
        previous = None if self.before is None or not self.before.is_active else self.before.role
        tx.create(
            MembershipEvent(
                neighbourhood_id=nid,
                at=at,
                kind=self.kind,
                user_did=after.user_did,
                actor_did=self.actor_did,
                role=after.role,
                previous_role=previous,
            )
        )
        if self.removes_admin:
            # The condition is part of the write that lowers the number: of two admins who leave at the
            # same time, one stays (C2.13).
            tx.check(Neighbourhood, neighbourhood_id=nid, where=lambda found: found.admin_count > 1)
        elif not (self.after.is_active or (self.before is not None and self.before.is_active)):
            # Without a change of the numbers, nothing else reads the neighbourhood.
            tx.check(Neighbourhood, neighbourhood_id=nid)
        return stored


def next_membership(
    before: Membership | None,
    *,
    neighbourhood_id: str,
    user_did: str,
    status: MemberStatus,
    role: Role,
    now: datetime,
) -> Membership:
    """Return a membership after a change of its status or role; `MembershipChange` sets the times."""
    return Membership(
        neighbourhood_id=neighbourhood_id,
        user_did=user_did,
        role=role,
        status=status,
        joined_at=None if before is None else before.joined_at,
        changed_at=now,
        version=0 if before is None else before.version,
    )


def moment_after(before: Membership | None, now: datetime) -> datetime:
    """Return the time of a change: later than the change before, whatever the clocks of processes say."""
    if before is None or now > before.changed_at:
        return now
    return before.changed_at + timedelta(microseconds=1)


class _MembershipChanged(ConditionFailed):
    """Another request changed the membership after it was read."""


def is_membership_conflict(error: SolotableError) -> bool:
    """Return whether a change can be repeated after a new read."""
    return isinstance(error, _MembershipChanged)


def explain_failure(failed: TransactionFailed) -> SolotableError:
    """Return the error of a failed change."""
    for each in failed.failures:
        cause = each.error
        found = getattr(cause, "found", None)
        if isinstance(cause, (VersionConflict, AlreadyExists)):
            return _MembershipChanged("Another request changed the membership; try again.", item=None)
        if isinstance(cause, ConditionFailed) and isinstance(found, Neighbourhood):
            return LastAdmin(
                "The neighbourhood would have no admin left; make another member an admin first.", item=None
            )
        if isinstance(cause, NotFound) and "User not found" in str(cause):
            return Forbidden("The account was deleted.")
        if isinstance(cause, NotFound):
            return NotFound("The neighbourhood does not exist.")
    return first_error(failed)
