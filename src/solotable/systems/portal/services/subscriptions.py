"""Subscriptions of a user: create, list, get, delete and restore them."""

from __future__ import annotations

from typing import Any

from solotable import AsyncDatabase, Page
from solotable.errors import NotFound
from solotable.systems.errors import validate
from solotable.systems.portal.entities.subscriptions import Subscription
from solotable.systems.portal.entities.values import ANY_PRODUCT
from solotable.systems.portal.errors import TooMany
from solotable.systems.portal.roles import Caller

from .drafts import SubscriptionDraft

#: Of one user. Two requests at the same time may exceed it by one.
MAX_SUBSCRIPTIONS = 100


class Subscriptions:
    """The subscriptions of the caller; a caller reaches no other user's."""

    def __init__(self, db: AsyncDatabase) -> None:
        self._db = db

    async def create(self, caller: Caller, draft: SubscriptionDraft) -> Subscription:
        """Create a subscription; without a suite it matches every suite, without a concept every one."""
        fields: dict[str, Any] = dict(draft)
        for name in ("product_suite", "product_concept"):
            if fields[name] == ANY_PRODUCT:
                fields[name] = None
        subscription = validate(Subscription, user_id=caller.user_id, **fields)
        if await self._db.count(Subscription.of_user(caller.user_id)) >= MAX_SUBSCRIPTIONS:
            text = f"You have {MAX_SUBSCRIPTIONS} subscriptions already; delete one first."
            raise TooMany(text, item=None)
        return await self._db.create(subscription)

    async def list(self, caller: Caller, *, limit: int = 50, cursor: str | None = None) -> Page[Subscription]:
        """Return the subscriptions of the caller, newest first."""
        return await self._db.page(Subscription.of_user(caller.user_id), limit=limit, cursor=cursor)

    async def get(self, caller: Caller, subscription_id: str) -> Subscription:
        """Return a subscription, or raise NotFound."""
        return await self._db.require(Subscription, user_id=caller.user_id, subscription_id=subscription_id)

    async def delete(self, caller: Caller, subscription_id: str) -> None:
        """Stop a subscription, or raise NotFound; it can be restored for 30 days."""
        gone = await self._db.delete(Subscription, user_id=caller.user_id, subscription_id=subscription_id)
        if gone is None:
            raise NotFound(f"Subscription not found: subscription_id={subscription_id!r}.")

    async def restore(self, caller: Caller, subscription_id: str) -> Subscription:
        """Undo the end of a subscription, or raise NotFound."""
        return await self._db.undelete(Subscription, user_id=caller.user_id, subscription_id=subscription_id)


async def forget_user(db: AsyncDatabase, user_id: str) -> int:
    """Stop all subscriptions of a user who left, and return their number.

    The inbox expires with its notifications. Content keeps its owner until an Admin transfers it.
    """
    count = 0
    async for each in db.all(Subscription.of_user(user_id).consistent()):
        count += await db.delete(each) is not None
    return count
