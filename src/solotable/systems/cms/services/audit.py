"""Read the audit trail, and erase the data of a person.

Every write of an audited entity stores an event; `solotable.jobs.deliver` with `audit_sink()` turns events
into the trail. Requests do not wait for the delivery.

An erasure (C0.14) of an address deletes the lead and its messages, and removes name and address from
comments. An erasure of a visitor deletes all consents. An `Erasure` with a digest stays as proof.
"""

from __future__ import annotations

from solotable import AsyncStore, Page, Query
from solotable.errors import NotFound, SolotableError, VersionConflict
from solotable.jobs.sinks import AuditSink
from solotable.systems.cms.entities.audit import AuditEvent, AuditSummary, Erasure, ErasureSummary
from solotable.systems.cms.entities.visitors import Comment, Consent, Lead, Message
from solotable.systems.cms.formats.timestamps import Now, now_ms
from solotable.systems.errors import unwrap_failure
from solotable.systems.formats.email_addresses import digest, pseudonym

from .visitors import tenant_of

DELETED_AUTHOR = "Deleted"


def audit_sink() -> AuditSink:
    """Return the sink that stores delivered events as AuditEvents, each once."""
    return AuditSink(AuditEvent.of)


class AuditTrail:
    """The audit trail of one tenant."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[AuditSummary]:
        """Return audit events, newest first, by one Query."""
        return await self._store.page(AuditEvent.of_tenant(), limit=limit, cursor=cursor)


class Erasures:
    """The erasure of personal data, for one tenant.

    On AWS indexes are eventually consistent: repeat an erasure if a comment is only seconds old.
    """

    def __init__(self, store: AsyncStore, *, now: Now = now_ms, pepper: bytes = b"") -> None:
        self._store = store
        self._now = now
        self._pepper = pepper

    async def erase_person(self, email: str) -> Erasure:
        """Delete the lead and messages of an address, and anonymise its comments. It can be repeated."""
        lead_id = pseudonym(tenant_of(self._store), email, self._pepper)
        comments = 0
        async for comment in self._store.all(Comment.of_author(lead_id)):
            await self._store.update(
                comment, set={"author_name": DELETED_AUTHOR}, remove=["author_email", "author_id"]
            )
            comments += 1
        messages = 0

        async def attempt() -> Erasure:
            nonlocal messages
            lead = await self._store.get(Lead, lead_id=lead_id, consistent=True)
            messages += await self._delete_all(Message.all_of_lead(lead_id).consistent())
            removed = {"leads": 0 if lead is None else 1, "messages": messages, "comments": comments}
            with unwrap_failure():
                async with self._store.transaction() as tx:
                    if lead is not None:
                        tx.delete(lead)
                    return tx.create(Erasure(at=self._now(), subject="lead", digest=lead_id, removed=removed))

        def may_retry(error: SolotableError) -> bool:
            # A new message has changed the lead since the read.
            return isinstance(error, (VersionConflict, NotFound))

        return await self._store.retry_conflicts(attempt, when=may_retry)

    async def erase_visitor(self, visitor_id: str) -> Erasure:
        """Delete all consents of a visitor. It can be repeated."""
        consents = await self._delete_all(Consent.of_visitor(visitor_id))
        hashed = digest(tenant_of(self._store), visitor_id, self._pepper)
        return await self._store.create(
            Erasure(at=self._now(), subject="visitor", digest=hashed, removed={"consents": consents})
        )

    async def _delete_all(self, query: Query[Message] | Query[Consent]) -> int:
        count = 0
        async with self._store.batch() as batch:
            async for each in self._store.all(query):
                batch.delete(each)
                count += 1
        return count

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[ErasureSummary]:
        """Return erasures, the latest first."""
        return await self._store.page(Erasure.of_tenant(), limit=limit, cursor=cursor)
