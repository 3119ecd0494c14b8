"""The portal for one test, on a recording engine, with its services and a few users."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.entities.notifications import Notification
from solotable.systems.portal.entities.subscriptions import Subscription
from solotable.systems.portal.roles import Caller
from solotable.systems.portal.services.contents import Contents
from solotable.systems.portal.services.drafts import ContentDraft, SubscriptionDraft
from solotable.systems.portal.services.expiry import ExpiryReport, expire_due
from solotable.systems.portal.services.files import Files
from solotable.systems.portal.services.lifecycle import Lifecycle
from solotable.systems.portal.services.notifications.announcements import Announced, Announcer
from solotable.systems.portal.services.notifications.inbox import Inbox
from solotable.systems.portal.services.subscriptions import Subscriptions
from solotable.systems.signed_folder import SignedFolderStorage
from tests.systems.harness import Harness

ANN = Caller(user_id="ann", role="Contributor")
BEN = Caller(user_id="ben", role="Contributor")
EVA = Caller(user_id="eva", role="Approver")
ADA = Caller(user_id="ada", role="Admin")
VIC = Caller(user_id="vic", role="Viewer")


@dataclass
class Studio(Harness):
    """The portal: ann and ben contribute, eva approves, ada administers, vic reads."""

    storage: SignedFolderStorage = field(init=False)

    @property
    def contents(self) -> Contents:
        return Contents(self.db, now=self.now)

    @property
    def lifecycle(self) -> Lifecycle:
        return Lifecycle(self.db, now=self.now)

    @property
    def files(self) -> Files:
        return Files(self.db, self.storage, bucket="portal-files", now=self.now)

    @property
    def subscriptions(self) -> Subscriptions:
        return Subscriptions(self.db)

    @property
    def inbox(self) -> Inbox:
        return Inbox(self.db, now=self.now)

    def announce(self) -> Announced:
        """Run the worker once."""
        return Announcer(self.blocking, self.storage).run_once()

    def expire_due(self) -> ExpiryReport:
        return expire_due(self.blocking, self.now())

    def draft(self, caller: Caller = ANN, **fields: Any) -> Content:
        """Create a Draft."""
        return self.run(self.contents.create(caller, ContentDraft(**{"title": "Pricing 101", **fields})))

    def approved(self, caller: Caller = ANN, **fields: Any) -> Content:
        """Create content and approve it."""
        made = self.draft(caller, **fields)
        return self.run(self.lifecycle.approve(EVA, made.content_id))

    def subscribe(self, caller: Caller, **fields: Any) -> Subscription:
        return self.run(self.subscriptions.create(caller, SubscriptionDraft(**fields)))

    def inbox_of(self, caller: Caller) -> list[Notification]:
        """Return the newest notifications of a user."""
        return list(self.run(self.inbox.list(caller, limit=100)))

    def unread(self, caller: Caller) -> int:
        return self.run(self.inbox.unread(caller))

    def pass_time(self, **amount: float) -> None:
        """Move the clock."""
        self.clock.seconds += timedelta(**amount).total_seconds()
