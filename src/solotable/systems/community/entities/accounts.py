"""Accounts that wait for their purge, and receipts of purged ones (S2.22).

A receipt has no DID: a user keeps its id, which the request of the deletion returns.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import BaseModel, Field

from solotable import Entity, Key, Query, Version, pattern
from solotable.systems.community.table import SHARDS, community

from .values import Did, Id


class AccountDeletion(Entity, table=community, tag="DELETION"):
    """An account that its user deleted, until the purge or the recovery."""

    key = Key("USER#{did}", "DELETION")
    queue = Key("DELETIONS", "{due_at:us}#{did}", index="GSI6", shards=SHARDS)

    did: Did
    receipt_id: Id
    requested_at: datetime
    #: The account can be recovered before this time.
    due_at: datetime
    #: What replaces the DID in the history of memberships.
    pseudonym: Did
    #: When the purge began; from then on the account cannot be recovered.
    started_at: datetime | None = None
    #: What the purge removes, by kind, counted before it begins.
    purged: dict[str, int] = Field(default_factory=dict)
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def due(cls, now: datetime) -> Query[DeletionReference]:
        """The accounts whose grace period is over, the longest overdue first."""
        return cls.queue.query().until(due_at=now).select(DeletionReference)


class DeletionReference(BaseModel):
    """The account of a deletion."""

    did: str


class DeletionReceipt(Entity, table=community, tag="RECEIPT"):
    """What the purge of an account removed."""

    key = Key("PURGED#{receipt_id}", "RECEIPT")
    by_created = Key("RECEIPT", "{purged_at:us}#{receipt_id}", index="GSI1", shards=SHARDS)

    receipt_id: Id
    requested_at: datetime
    purged_at: datetime
    #: Items by their kind.
    removed: dict[str, int] = Field(default_factory=dict)

    @pattern
    @classmethod
    def newest(cls) -> Query[Self]:
        """All receipts, newest first."""
        return cls.by_created.query().descending()
