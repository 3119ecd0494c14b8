"""The status of content: which changes are legal, who makes them, and who hears of them (C3.12).

| change | from | to | role | notifies |
|---|---|---|---|---|
| approve | Draft, Deprecated | Approved | Approver | subscribers |
| deprecate | Approved | Deprecated | Approver | subscribers |
| expire | Approved, Deprecated | Expired | Approver, or the expiry job | subscribers, downloaders |
| expire | Draft | Expired | Approver, or the expiry job | no user |
| reopen | Expired | Draft | Admin | no user |

A Draft is for its owner and Approvers, so no other user hears its title, also after it was reopened.

`soft_expire`, the default, keeps the file, and an Admin can download it. `hard_expire` removes it. Each
change and its announcement are one transaction: its time does not depend on the number of subscribers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypeVar

from solotable import AsyncDatabase, Entity
from solotable.systems.errors import InvalidInput, unwrap_failure
from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.entities.notifications import Announcement, AnnouncementKind, FileRemoval
from solotable.systems.portal.entities.values import Status
from solotable.systems.portal.errors import IllegalTransition
from solotable.systems.portal.roles import Caller, Role

from .access import check_visible
from .drafts import utc_now

EntityT = TypeVar("EntityT", bound=Entity)
Change = Literal["approve", "deprecate", "expire", "reopen"]
_NO_FILE: dict[str, Any] = dict.fromkeys(
    ("s3_uri", "file_name", "content_type", "size_bytes", "s3_bucket", "s3_key", "uploaded_at")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A legal change of the status; `kind` is what subscribers hear of it, unless it was a Draft's expiry."""

    sources: frozenset[Status]
    target: Status
    role: Role
    kind: AnnouncementKind | None


class EntityWriter(Protocol):
    """A transaction, of a blocking or an asynchronous database."""

    def put(self, entity: EntityT) -> EntityT:
        """Add a put."""

    def create(self, entity: EntityT) -> EntityT:
        """Add a put of an entity that does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChange:
    """Content after a change, and what its transaction writes for the worker."""

    content: Content
    announcement: Announcement | None = None
    removal: FileRemoval | None = None

    def write(self, tx: EntityWriter) -> Content:
        """Add the change to a transaction, and return the content."""
        stored = tx.put(self.content)
        if self.announcement is not None:
            tx.create(self.announcement)
        if self.removal is not None:
            tx.put(self.removal)
        return stored


TRANSITIONS: dict[Change, Transition] = {
    "approve": Transition(
        sources=frozenset({"Draft", "Deprecated"}), target="Approved", role="Approver", kind="approved"
    ),
    "deprecate": Transition(
        sources=frozenset({"Approved"}), target="Deprecated", role="Approver", kind="deprecated"
    ),
    "expire": Transition(
        sources=frozenset({"Draft", "Approved", "Deprecated"}),
        target="Expired",
        role="Approver",
        kind="expired",
    ),
    "reopen": Transition(sources=frozenset({"Expired"}), target="Draft", role="Admin", kind=None),
}


def plan_change(content: Content, change: Change, now: datetime, *, by: str | None = None) -> StatusChange:
    """Return what a change writes, or raise IllegalTransition."""
    transition = TRANSITIONS[change]
    if content.status not in transition.sources:
        allowed = " or ".join(sorted(transition.sources))
        raise IllegalTransition(
            f"Cannot {change} content that is {content.status}; it must be {allowed}.", item=None
        )
    is_over = content.expiry_date is not None and content.expiry_date <= now
    changes: dict[str, Any] = {"status": transition.target}
    removal = None
    if change == "approve" and is_over:
        raise InvalidInput("expiry_date: has passed; set a later one before the approval.")
    if change == "reopen" and is_over:
        changes["expiry_date"] = None
    if change == "expire" and content.expiry_policy == "hard_expire":
        changes |= _NO_FILE
        if content.s3_key is not None:
            removal = FileRemoval(s3_key=content.s3_key, requested_at=now)
    # Two changes never have one time, whatever the clock does: their notifications have different ids.
    previous = content.status_changed_at
    at = now if previous is None or now > previous else previous + timedelta(microseconds=1)
    changed = content.model_copy(update={**changes, "status_changed_at": at, "status_changed_by": by})
    if transition.kind is None or (change == "expire" and content.status == "Draft"):
        return StatusChange(content=changed, removal=removal)
    announcement = Announcement(
        kind=transition.kind,
        content_id=content.content_id,
        at=at,
        title=content.title,
        product_suite=content.product_suite,
        product_concept=content.product_concept,
        tags=content.tags,
    )
    return StatusChange(content=changed, announcement=announcement, removal=removal)


class Lifecycle:
    """Changes of the status of content."""

    def __init__(self, db: AsyncDatabase, *, now: Callable[[], datetime] = utc_now) -> None:
        self._db = db
        self._now = now

    async def approve(self, caller: Caller, content_id: str, *, revision: int | None = None) -> Content:
        """Approve a Draft, or Deprecated content again; both notify."""
        return await self._change(caller, content_id, "approve", revision)

    async def deprecate(self, caller: Caller, content_id: str, *, revision: int | None = None) -> Content:
        """Mark Approved content as superseded; it stays in lists of Deprecated content."""
        return await self._change(caller, content_id, "deprecate", revision)

    async def expire(self, caller: Caller, content_id: str, *, revision: int | None = None) -> Content:
        """End content before its expiry date."""
        return await self._change(caller, content_id, "expire", revision)

    async def reopen(self, caller: Caller, content_id: str, *, revision: int | None = None) -> Content:
        """Make Expired content a Draft again; an expiry date that has passed is removed."""
        return await self._change(caller, content_id, "reopen", revision)

    async def _change(self, caller: Caller, content_id: str, change: Change, revision: int | None) -> Content:
        caller.require(TRANSITIONS[change].role)
        found = await self._db.require(Content, content_id=content_id, consistent=True)
        check_visible(caller, found)
        if revision is not None:
            found = found.model_copy(update={"revision": revision})
        planned = plan_change(found, change, self._now(), by=caller.user_id)
        with unwrap_failure():
            async with self._db.transaction() as tx:
                return planned.write(tx)
