"""The audit trail as it is read, and the erasure of somebody's data.

Every entity that people change leaves an event in its own write; `solotable.jobs.deliver` with
`audit_sink()` makes the trail of them. No request waits for that, or fails on it.

What an erasure does (C0.14): of an address, the lead and its messages are deleted, and comments lose the
author's name and address; of a visitor, all consents are deleted. What remains is an `Erasure` with a
digest, as proof.
"""

from __future__ import annotations

import hashlib
import hmac

from solotable import AsyncStore, Page, Query
from solotable.errors import NotFound, VersionConflict
from solotable.jobs.sinks import AuditSink
from solotable.systems.cms.entities.audit import AuditEvent, AuditSummary, Erasure, ErasureSummary
from solotable.systems.cms.entities.visitors import Comment, Consent, Lead, Message
from solotable.systems.cms.errors import first_reason
from solotable.systems.cms.formats.email_addresses import pseudonym
from solotable.systems.cms.formats.timestamps import Now, now_ms

from .visitors import tenant_of

NOBODY = "Deleted"
#: How often an erasure that meets another message of its address is done again.
_ATTEMPTS = 10


def audit_sink() -> AuditSink:
    """Return the sink that keeps delivered events as AuditEvents, each once."""
    return AuditSink(AuditEvent.of)


class Trail:
    """The audit trail of one tenant."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[AuditSummary]:
        """Return what was done, newest first, by one Query."""
        return await self._store.page(AuditEvent.of_tenant(), limit=limit, cursor=cursor)


class Erasures:
    """Forgetting people, for one tenant.

    On AWS an index is some moments behind: repeat an erasure if the last comment is as young as that.
    """

    def __init__(self, store: AsyncStore, *, now: Now = now_ms, pepper: bytes = b"") -> None:
        self._store = store
        self._now = now
        self._pepper = pepper

    async def person(self, email: str) -> Erasure:
        """Forget an address: its lead and messages go, its comments become nobody's. May be repeated."""
        digest = pseudonym(tenant_of(self._store), email, self._pepper)
        comments = 0
        async for comment in self._store.all(Comment.of_author(digest)):
            await self._store.update(
                comment, set={"author_name": NOBODY}, remove=["author_email", "author_id"]
            )
            comments += 1
        messages = 0
        for attempt in range(1, _ATTEMPTS + 1):
            lead = await self._store.get(Lead, lead_id=digest, consistent=True)
            messages += await self._forget_all(Message.whole_of_lead(digest).consistent())
            removed = {"leads": 0 if lead is None else 1, "messages": messages, "comments": comments}
            try:
                with first_reason():
                    async with self._store.transaction() as tx:
                        if lead is not None:
                            tx.delete(lead)
                        done = tx.create(
                            Erasure(at=self._now(), subject="lead", digest=digest, removed=removed)
                        )
            except (VersionConflict, NotFound):
                # A message that came meanwhile has changed the lead.
                if attempt == _ATTEMPTS:
                    raise
            else:
                return done
        raise AssertionError("the last attempt returns or raises")

    async def visitor(self, visitor_id: str) -> Erasure:
        """Forget a visitor: all consents go. May be repeated."""
        consents = await self._forget_all(Consent.of_visitor(visitor_id))
        said = f"{tenant_of(self._store)}\0{visitor_id}".encode()
        digest = hmac.new(self._pepper, said, hashlib.sha256).hexdigest()[:40]
        return await self._store.create(
            Erasure(at=self._now(), subject="visitor", digest=digest, removed={"consents": consents})
        )

    async def _forget_all(self, query: Query[Message] | Query[Consent]) -> int:
        count = 0
        async with self._store.batch() as batch:
            async for each in self._store.all(query):
                batch.delete(each)
                count += 1
        return count

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[ErasureSummary]:
        """Return what was erased, the latest first."""
        return await self._store.page(Erasure.of_tenant(), limit=limit, cursor=cursor)
