"""The purge: accounts that were deleted 30 days ago, then other deleted entities that are due.

An account is purged in steps, each of which can be repeated, so that an interrupted run continues:

1. Count what will go, and store the counts: the receipt has them whatever happens later.
2. Leave every neighbourhood. The creator's place goes to an admin, else to the longest member. A
   neighbourhood without another member is deleted.
3. Replace the DID in the history of memberships by a random pseudonym (C2.7).
4. Remove the user with sites, posts, builds, logs, records, templates and sessions.
5. Replace the deletion by its receipt.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from solotable import ANY, Database
from solotable.errors import (
    AlreadyExists,
    SolotableError,
    TransactionFailed,
    TransportError,
    VersionConflict,
)
from solotable.jobs.purge import Deleted, Purged, purge
from solotable.systems.community.entities.accounts import AccountDeletion, DeletionReceipt
from solotable.systems.community.entities.neighbourhoods import Membership, MembershipEvent, Neighbourhood
from solotable.systems.community.entities.users import User
from solotable.systems.community.entities.values import MemberStatus
from solotable.systems.community.membership_changes import (
    MembershipChange,
    explain_failure,
    is_membership_conflict,
    moment_after,
)
from solotable.systems.community.services.drafts import utc_now
from solotable.systems.errors import unwrap_failure

_log = logging.getLogger("solotable.community")
_STATUSES: tuple[MemberStatus, ...] = ("pending", "invited", "left")


class PurgeReport(BaseModel):
    """What a run of the purge did."""

    model_config = ConfigDict(frozen=True)

    accounts: int = 0
    #: Accounts and other entities that a hold keeps.
    held: int = 0
    #: Removed items by their kind, those of accounts included.
    removed: dict[str, int] = Field(default_factory=dict)
    errors: int = 0


class AccountPurge:
    """The purge of accounts; several runs at the same time do no harm."""

    def __init__(self, db: Database, *, now: Callable[[], datetime] = utc_now) -> None:
        self._db = db
        self._now = now

    def run_once(self, *, dry_run: bool = False) -> PurgeReport:
        """Purge all that is due, accounts first; an error of one account leaves the others alone."""
        counts = {"accounts": 0, "held": 0, "errors": 0}
        removed: dict[str, int] = {}
        counted: set[str] = set()
        for due in list(self._db.all(AccountDeletion.due(self._now()), unknown="skip")):
            try:
                found = self.purge(due.did, dry_run=dry_run)
            except TransportError:
                raise
            except SolotableError:
                _log.exception("cannot purge an account")
                counts["errors"] += 1
                continue
            if found is None:
                counts["held"] += 1
                continue
            counts["accounts"] += 1 if found else 0
            counted.add(due.did)
            _add(removed, found)

        def others(deleted: Deleted) -> str | None:
            # A user leaves the neighbourhoods first. A dry run has counted what the accounts have.
            is_of_account = deleted.entity == "User" or deleted.key.get("did") in counted
            return "account" if is_of_account else None

        rest = purge(self._db.admin(), dry_run=dry_run, hold=others)
        _add(removed, dict(rest.removed))
        for problem in rest.problems:
            _log.error("purge: %s", problem)
        counts["errors"] += len(rest.problems)
        counts["held"] += len([each for each in rest.held if each.held != "account"])
        return PurgeReport(removed=removed, **counts)

    def purge(self, did: str, *, dry_run: bool = False) -> dict[str, int] | None:
        """Purge one account that is due, and return what was removed: nothing if another run did it.

        Returns None if the account is held or not due.
        """
        deletion = self._db.get(AccountDeletion, did=did, consistent=True)
        if deletion is None or deletion.due_at > self._now():
            return None
        if deletion.started_at is None:
            planned = self._purge_user(did, dry_run=True)
            if planned.held:
                return None
            counts = self._count(did, planned)
            if dry_run:
                return counts
            # From here on the account cannot be recovered.
            deletion = self._db.put(deletion.model_copy(update={"started_at": self._now(), "purged": counts}))
        if dry_run:
            return deletion.purged
        for membership in self._memberships(did):
            self._leave(membership, deletion)
        self._pseudonymise(deletion)
        if self._purge_user(did, dry_run=False).held:
            return None
        receipt = DeletionReceipt(
            receipt_id=deletion.receipt_id,
            requested_at=deletion.requested_at,
            purged_at=self._now(),
            removed=deletion.purged,
        )
        try:
            with unwrap_failure(), self._db.transaction() as tx:
                tx.delete(deletion)
                tx.create(receipt)
        except (AlreadyExists, VersionConflict):
            if self._db.get(AccountDeletion, did=did, consistent=True) is not None:
                raise
            # Another run finished this account.
            return {}
        return deletion.purged

    def _count(self, did: str, planned: Purged) -> dict[str, int]:
        counts = dict(planned.removed)
        counts["Membership"] = sum(1 for _ in self._memberships(did))
        counts["MembershipEvent"] = sum(1 for _ in self._db.all(MembershipEvent.of_user(did), unknown="skip"))
        return {name: count for name, count in sorted(counts.items()) if count}

    def _purge_user(self, did: str, *, dry_run: bool) -> Purged:
        """Purge the user of a deletion with everything below it, and no other entity."""

        def others(deleted: Deleted) -> str | None:
            return None if deleted.entity == "User" and deleted.key.get("did") == did else "other"

        report = purge(self._db.admin(), dry_run=dry_run, hold=others)
        report.held = [each for each in report.held if each.held != "other"]
        return report

    def _memberships(self, did: str) -> Iterator[Membership]:
        yield from list(self._db.all(Membership.of_user(did), unknown="skip"))
        for status in _STATUSES:
            yield from list(self._db.all(Membership.of_user_with_status(did, status), unknown="skip"))

    def _leave(self, listed: Membership, deletion: AccountDeletion) -> None:
        """Remove a membership; its neighbourhood keeps a creator and the right counts."""
        nid, did = listed.neighbourhood_id, listed.user_did

        def attempt() -> None:
            found = self._db.get(Neighbourhood, neighbourhood_id=nid, consistent=True)
            member = self._db.get(Membership, neighbourhood_id=nid, user_did=did, consistent=True)
            if member is None:
                return
            is_needed = found is not None and member.is_admin
            if found is not None and is_needed and (member.role == "creator" or found.admin_count <= 1):
                heir = self._heir(found, did)
                if heir is None:
                    # The last member: the neighbourhood goes too, and its purge has no membership to remove.
                    # Until then it must not name its creator (C2.7).
                    self._db.put(found.model_copy(update={"creator_did": deletion.pseudonym}))
                    self._db.delete(Neighbourhood, neighbourhood_id=nid, version=ANY)
                    found = None
                else:
                    self._succeed(found, member, heir, deletion)
                    return
            if found is None:
                # A deleted neighbourhood counts nothing; the item has the DID in its key.
                key = Membership.key.query(neighbourhood_id=nid, user_did=did)
                self._db.delete_partition(key, raw=True)
                return
            self._remove(member, deletion)

        self._db.retry_conflicts(attempt, when=is_membership_conflict)

    def _remove(self, member: Membership, deletion: AccountDeletion) -> None:
        try:
            with self._db.transaction() as tx:
                tx.delete(member)
                if member.status != "left":
                    tx.create(self._farewell(member, deletion))
        except TransactionFailed as failed:
            raise explain_failure(failed) from failed

    def _succeed(
        self, found: Neighbourhood, member: Membership, heir: Membership, deletion: AccountDeletion
    ) -> None:
        """Remove a creator or last admin, and give the place to an heir, in one transaction."""
        promoted = MembershipChange(
            before=heir,
            after=heir.model_copy(update={"role": member.role}),
            kind="promoted",
            actor_did=None,
        )
        creator = heir.user_did if member.role == "creator" else found.creator_did
        try:
            with self._db.transaction() as tx:
                tx.put(found.model_copy(update={"creator_did": creator}))
                promoted.write(tx, now=self._now())
                tx.delete(member)
                tx.create(self._farewell(member, deletion))
        except TransactionFailed as failed:
            raise explain_failure(failed) from failed

    def _heir(self, found: Neighbourhood, did: str) -> Membership | None:
        """Return the member who takes over: an admin, else the longest member; no account in deletion."""
        query = Membership.of_neighbourhood(found.neighbourhood_id).consistent()
        others = [
            each for each in self._db.all(query, unknown="skip") if each.is_active and each.user_did != did
        ]
        others.sort(key=lambda each: (not each.is_admin, each.joined_at or each.changed_at))
        for each in others:
            if self._db.get(User, did=each.user_did, consistent=True) is not None:
                return each
        return None if not others else others[0]

    def _farewell(self, member: Membership, deletion: AccountDeletion) -> MembershipEvent:
        return MembershipEvent(
            neighbourhood_id=member.neighbourhood_id,
            at=moment_after(member, self._now()),
            kind="left" if member.is_active else "declined",
            user_did=deletion.pseudonym,
            role=member.role,
            previous_role=member.role if member.is_active else None,
        )

    def _pseudonymise(self, deletion: AccountDeletion) -> None:
        """Replace the DID in the events of the user, and in those of what the user did to others."""
        did, pseudonym = deletion.did, deletion.pseudonym
        for event in list(self._db.all(MembershipEvent.of_user(did), unknown="skip")):
            changes = {"user_did": pseudonym}
            if event.actor_did == did:
                changes["actor_did"] = pseudonym
            self._replace(event.neighbourhood_id, event.at, event.event_id, changes)
        for acted in list(self._db.all(MembershipEvent.of_actor(did), unknown="skip")):
            self._replace(acted.neighbourhood_id, acted.at, acted.event_id, {"actor_did": pseudonym})

    def _replace(self, neighbourhood_id: str, at: datetime, event_id: str, changes: dict[str, str]) -> None:
        self._db.update(
            MembershipEvent, neighbourhood_id=neighbourhood_id, at=at, event_id=event_id, set=changes
        )


def _add(totals: dict[str, int], more: dict[str, int]) -> None:
    for name, count in more.items():
        totals[name] = totals.get(name, 0) + count
