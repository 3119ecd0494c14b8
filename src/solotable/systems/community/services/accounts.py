"""Deletion of one's account with 30 days of grace, recovery, and the export of one's data (S2.22).

A deleted account is hidden at once, its sessions end and its sites are offline. Its memberships stay until
the purge (`jobs.account_purge`), so that a recovery restores everything. Purged data stays in backups and in
point-in-time recovery for up to 35 days more (C2.9).
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any

from solotable import AsyncDatabase
from solotable.errors import NotFound, TransactionFailed, VersionConflict
from solotable.systems.community.entities.accounts import AccountDeletion, DeletionReceipt
from solotable.systems.community.entities.builds import CustomTemplate
from solotable.systems.community.entities.neighbourhoods import Membership, MembershipEvent, Neighbourhood
from solotable.systems.community.entities.records import Record
from solotable.systems.community.entities.sites import Post, Site
from solotable.systems.community.entities.users import GRACE_DAYS, Session, User
from solotable.systems.community.entities.values import ADMINS, MemberStatus
from solotable.systems.community.errors import LastAdmin, NotRecoverable
from solotable.systems.community.formats.content_ids import content_id
from solotable.systems.community.roles import Caller
from solotable.systems.errors import first_error

from .drafts import utc_now
from .sites import site_document

EXPORT_FORMAT = "solotable-community-1"
POST_TYPE = "city.nbhd.post"
PROFILE_TYPE = "city.nbhd.profile"
_STATUSES: tuple[MemberStatus, ...] = ("pending", "invited", "left")
#: The store's purge counts whole seconds, and may be due a second later than this deletion.
_MARGIN = timedelta(seconds=2)


class Accounts:
    """The accounts of users."""

    def __init__(self, db: AsyncDatabase, *, now: Callable[[], datetime] = utc_now) -> None:
        self._db = db
        self._now = now

    async def delete(self, caller: Caller) -> AccountDeletion:
        """Delete the caller's account; it can be recovered until `due_at`. Keep the `receipt_id`.

        Raises LastAdmin if a neighbourhood with other members would have no creator or admin: hand it over
        or delete it first.
        """
        did, now = caller.require_user(), self._now()
        await self._check_admins(did)
        user = await self._db.require(User, did=did, consistent=True)
        deletion = AccountDeletion(
            did=did,
            receipt_id=secrets.token_hex(16),
            requested_at=now,
            due_at=now + timedelta(days=GRACE_DAYS) + _MARGIN,
            pseudonym=f"did:pseudonym:{secrets.token_hex(12)}",
        )
        try:
            async with self._db.transaction() as tx:
                tx.delete(user)
                stored = tx.create(deletion)
        except TransactionFailed as failed:
            raise first_error(failed) from failed
        await self.revoke_sessions(did)
        return stored

    async def pending(self, did: str) -> AccountDeletion | None:
        """Return the deletion of an account in its grace period; None for any other account."""
        return await self._db.get(AccountDeletion, did=did, consistent=True)

    async def recover(self, did: str) -> User:
        """Recover a deleted account within 30 days, or raise NotRecoverable."""
        waiting = await self.pending(did)
        if waiting is None:
            raise NotRecoverable("The account is not deleted, or its data is purged.")
        if waiting.due_at - _MARGIN <= self._now() or waiting.started_at is not None:
            raise NotRecoverable(f"The {GRACE_DAYS} days in which the account could be recovered are over.")
        try:
            async with self._db.transaction() as tx:
                tx.undelete(User, did=did)
                tx.delete(waiting)
        except TransactionFailed as failed:
            cause = first_error(failed)
            if isinstance(cause, (NotFound, VersionConflict)):
                raise NotRecoverable("The purge of the account has begun.") from failed
            raise cause from failed
        return await self._db.require(User, did=did, consistent=True)

    async def revoke_sessions(self, did: str) -> int:
        """End all sessions of a user, and return how many there were."""
        count = 0
        async for session in self._db.all(Session.of_user(did).consistent(), unknown="skip"):
            count += await self._db.delete(session) is not None
        return count

    async def receipt(self, receipt_id: str) -> DeletionReceipt:
        """Return the receipt of a purged account, or raise NotFound."""
        return await self._db.require(DeletionReceipt, receipt_id=receipt_id)

    async def export(self, caller: Caller) -> dict[str, Any]:
        """Return everything that the caller stored, as JSON values."""
        did = caller.require_user()
        user = await self._db.require(User, did=did, consistent=True)
        sites = []
        async for site in self._db.all(Site.of_user(did), unknown="skip"):
            posts = [post async for post in self._db.all(Post.of_site(site.site_id), unknown="skip")]
            sites.append(site_document(site, posts))
        templates = [each async for each in self._db.all(CustomTemplate.of_user(did), unknown="skip")]
        sessions = [each async for each in self._db.all(Session.of_user(did), unknown="skip")]
        return {
            "format": EXPORT_FORMAT,
            "exported_at": self._now().isoformat(),
            "profile": user.model_dump(mode="json"),
            "memberships": [each.model_dump(mode="json") async for each in self._memberships(did)],
            "membership_history": [
                each.model_dump(mode="json")
                async for each in self._db.all(MembershipEvent.of_user(did), unknown="skip")
            ],
            "sites": sites,
            "templates": [each.model_dump(mode="json") for each in templates],
            "records": [each async for each in self._records(did)],
            "sessions": [each.model_dump(mode="json", exclude={"digest"}) for each in sessions],
        }

    async def export_atproto(self, caller: Caller) -> dict[str, Any]:
        """Return the caller's profile, posts and records in the form of AT Protocol: uri, cid and value.

        The content ids are of canonical JSON (`formats.content_ids`).
        """
        did = caller.require_user()
        user = await self._db.require(User, did=did, consistent=True)
        found = [_profile_record(user)]
        async for site in self._db.all(Site.of_user(did), unknown="skip"):
            found += [
                _post_record(post) async for post in self._db.all(Post.of_site(site.site_id), unknown="skip")
            ]
        found += [each async for each in self._records(did)]
        return {"format": EXPORT_FORMAT, "did": did, "handle": user.bluesky_handle, "records": found}

    async def _records(self, did: str) -> AsyncIterator[dict[str, Any]]:
        async for each in self._db.all(Record.of_user(did), unknown="skip"):
            record = await self._db.get(Record, did=did, type=each.type, rkey=each.rkey)
            if record is not None:
                yield {"uri": record.uri, "cid": record.cid, "value": {"$type": record.type, **record.value}}

    async def _memberships(self, did: str) -> AsyncIterator[Membership]:
        async for active in self._db.all(Membership.of_user(did), unknown="skip"):
            yield active
        for status in _STATUSES:
            async for other in self._db.all(Membership.of_user_with_status(did, status), unknown="skip"):
                yield other

    async def _check_admins(self, did: str) -> None:
        """Raise LastAdmin if a neighbourhood needs the user."""
        needed = []
        async for member in self._db.all(Membership.of_user(did), unknown="skip"):
            if member.role not in ADMINS:
                continue
            found = await self._db.get(
                Neighbourhood, neighbourhood_id=member.neighbourhood_id, consistent=True
            )
            is_last = found is not None and (member.role == "creator" or found.admin_count <= 1)
            if found is not None and is_last and found.member_count > 1:
                needed.append(found.name)
        if needed:
            names = ", ".join(repr(name) for name in sorted(needed))
            text = f"You are the creator or the last admin of {names}; hand it over or delete it first."
            raise LastAdmin(text, item=None)


def _profile_record(user: User) -> dict[str, Any]:
    value: dict[str, Any] = {
        "$type": PROFILE_TYPE,
        "displayName": user.display_name,
        "description": user.bio,
        "location": user.location,
    }
    avatar = user.profile_images.avatar
    if avatar is not None:
        value["avatar"] = avatar.url
    if user.website is not None:
        value["website"] = user.website
    return _record(user.did, PROFILE_TYPE, "self", value)


def _post_record(post: Post) -> dict[str, Any]:
    value = {
        "$type": POST_TYPE,
        "site": post.site_id,
        "title": post.title,
        "text": post.body,
        "summary": post.summary,
        "tags": post.tags,
        "status": post.status,
        "createdAt": None if post.created_at is None else post.created_at.isoformat(),
    }
    return _record(post.did, POST_TYPE, post.rkey, value)


def _record(did: str, record_type: str, rkey: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"uri": f"at://{did}/{record_type}/{rkey}", "cid": content_id(value), "value": value}
