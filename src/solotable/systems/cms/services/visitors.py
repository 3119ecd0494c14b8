"""Data of visitors: comments, leads, messages, consents. Addresses are normalised, and not in keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from solotable import AsyncStore, Page
from solotable.errors import AlreadyExists, NotFound, SolotableError, VersionConflict
from solotable.systems.cms.entities.pages import Content, is_public
from solotable.systems.cms.entities.visitors import (
    MAX_DATA,
    Comment,
    CommentDetail,
    CommentStatus,
    CommentSummary,
    Consent,
    ConsentSummary,
    Lead,
    LeadDetail,
    LeadStatus,
    LeadSummary,
    Message,
    MessageSummary,
)
from solotable.systems.cms.formats.timestamps import Now, now_ms
from solotable.systems.errors import InvalidInput, unwrap_failure, validate
from solotable.systems.formats.email_addresses import mask_email, normalise_email, pseudonym
from solotable.systems.formats.json_sizes import check_json_size

T = TypeVar("T")


def tenant_of(store: AsyncStore) -> str:
    """Return the tenant of a store, or raise InvalidInput for a store without one."""
    if store.tenant_id is None:
        raise InvalidInput("This needs the store of a tenant: db.tenant(...).")
    return store.tenant_id


class Comments:
    """The comments of one tenant."""

    def __init__(self, store: AsyncStore, *, now: Now = now_ms, pepper: bytes = b"") -> None:
        self._store = store
        self._now = now
        self._pepper = pepper

    async def post(
        self, page_id: str, *, author_name: str, body: str, author_email: str | None = None
    ) -> Comment:
        """Create a comment on a published page; it is shown after its approval."""
        page = await self._store.get(Content, node_id=page_id)
        if page is None or not is_public(page, self._now()):
            raise NotFound(f"Page {page_id!r} does not exist or is not published.")
        email = None if author_email is None else normalise_email(author_email)
        author = None if email is None else pseudonym(tenant_of(self._store), email, self._pepper)
        return await self._store.create(
            validate(
                Comment,
                page_id=page_id,
                at=self._now(),
                page_title=page.title,
                author_id=author,
                author_name=author_name,
                author_email=email,
                body=body,
            )
        )

    async def shown(
        self, page_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> Page[CommentSummary]:
        """Return the approved comments on a page, the oldest first, without addresses."""
        return await self._store.page(Comment.shown(page_id), limit=limit, cursor=cursor)

    async def of_page(
        self, page_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> Page[CommentDetail]:
        """Return all comments on a page, the oldest first, for editors."""
        return await self._store.page(Comment.of_page(page_id), limit=limit, cursor=cursor)

    async def inbox(
        self, status: CommentStatus = "pending", *, limit: int = 50, cursor: str | None = None
    ) -> Page[CommentSummary]:
        """Return the comments in a status."""
        return await self._store.page(Comment.in_status(status), limit=limit, cursor=cursor)

    async def moderate(self, page_id: str, at: datetime, comment_id: str, status: CommentStatus) -> Comment:
        """Set the status of a comment."""
        found = await self._store.require(
            Comment, page_id=page_id, at=at, comment_id=comment_id, consistent=True
        )
        return await self._store.update(found, set={"status": status})


class Leads:
    """The leads of one tenant."""

    def __init__(self, store: AsyncStore, *, now: Now = now_ms, pepper: bytes = b"") -> None:
        self._store = store
        self._now = now
        self._pepper = pepper

    def id_of(self, email: str) -> str:
        """Return the id of the lead with this address."""
        return pseudonym(tenant_of(self._store), email, self._pepper)

    async def capture(
        self, email: str, *, name: str = "", source: str = "", data: Mapping[str, Any] | None = None
    ) -> Lead:
        """Create or complete the lead of an address; known values stay."""
        lead = self._lead(email, name=name, source=source, data=dict(data or {}))

        async def write(known: Lead | None) -> Lead:
            if known is None:
                return await self._store.create(lead)
            return await self._store.update(known, set=self._changes(known, lead), add={"submissions": 1})

        return await self._retry(lead.lead_id, write)

    async def message(self, email: str, *, body: str, name: str = "") -> Message:
        """Store a message, and its sender as a lead, in one transaction."""
        lead = self._lead(email, name=name, source="contact")
        message = validate(
            Message, lead_id=lead.lead_id, at=self._now(), label=lead.label, name=name, body=body
        )

        async def write(known: Lead | None) -> Message:
            with unwrap_failure():
                async with self._store.transaction() as tx:
                    if known is None:
                        tx.create(lead)
                    else:
                        # A concurrent erasure then meets another version of the lead, and starts again.
                        tx.update(known, set=self._changes(known, lead), add={"submissions": 1})
                    return tx.create(message)

        return await self._retry(lead.lead_id, write)

    def _lead(self, email: str, **about: Any) -> Lead:
        address = normalise_email(email)
        identity = {"lead_id": self.id_of(address), "email": address, "label": mask_email(address)}
        return validate(Lead, last_submitted=self._now(), **identity, **about)

    def _changes(self, known: Lead, lead: Lead) -> dict[str, Any]:
        try:
            data = check_json_size(MAX_DATA)({**lead.data, **known.data})
        except ValueError:
            # An error would reveal to a visitor that the address is known.
            data = known.data
        changes: dict[str, Any] = {"last_submitted": lead.last_submitted, "data": data}
        if lead.name and not known.name:
            changes["name"] = lead.name
        return changes

    async def _retry(self, lead_id: str, write: Callable[[Lead | None], Awaitable[T]]) -> T:
        async def attempt() -> T:
            return await write(await self._store.get(Lead, lead_id=lead_id, consistent=True))

        def may_retry(error: SolotableError) -> bool:
            # NotFound: an erasure removed the lead after the read.
            return isinstance(error, (AlreadyExists, VersionConflict, NotFound))

        return await self._store.retry_conflicts(attempt, when=may_retry)

    async def find(self, email: str) -> Lead | None:
        """Return the lead of an address by one GetItem, or None."""
        return await self._store.get(Lead, lead_id=self.id_of(email))

    async def get(self, lead_id: str) -> Lead:
        """Return a lead, or raise NotFound."""
        return await self._store.require(Lead, lead_id=lead_id)

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[LeadDetail]:
        """Return leads, with their addresses."""
        return await self._store.page(Lead.of_tenant(), limit=limit, cursor=cursor)

    async def inbox(
        self, status: LeadStatus = "new", *, limit: int = 50, cursor: str | None = None
    ) -> Page[LeadSummary]:
        """Return the leads in a status, without addresses."""
        return await self._store.page(Lead.in_status(status), limit=limit, cursor=cursor)

    async def messages(self, *, limit: int = 50, cursor: str | None = None) -> Page[MessageSummary]:
        """Return the messages of all leads, the latest first, without addresses."""
        return await self._store.page(Message.listed(), limit=limit, cursor=cursor)

    async def messages_of(
        self, lead_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> Page[MessageSummary]:
        """Return the messages of a lead, the latest first, by one Query."""
        return await self._store.page(Message.of_lead(lead_id), limit=limit, cursor=cursor)

    async def set_status(self, lead_id: str, status: LeadStatus) -> Lead:
        """Set the status of a lead."""
        found = await self._store.require(Lead, lead_id=lead_id, consistent=True)
        return await self._store.update(found, set={"status": status})


class Consents:
    """The consents of one tenant: recorded and read, never changed."""

    def __init__(self, store: AsyncStore, *, now: Now = now_ms) -> None:
        self._store = store
        self._now = now

    async def record(
        self,
        visitor_id: str,
        *,
        choices: Mapping[str, bool],
        policy_version: str,
        claimed_at: datetime | None = None,
        user_agent: str = "",
    ) -> Consent:
        """Record a decision with the server's time; `claimed_at` is the browser's time."""
        return await self._store.create(
            validate(
                Consent,
                visitor_id=visitor_id,
                at=self._now(),
                choices=dict(choices),
                policy_version=policy_version,
                claimed_at=claimed_at,
                user_agent=user_agent[:400],
            )
        )

    async def of_visitor(
        self, visitor_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> Page[ConsentSummary]:
        """Return the decisions of a visitor, the latest first, by one Query."""
        return await self._store.page(Consent.listed(visitor_id), limit=limit, cursor=cursor)

    async def current(self, visitor_id: str) -> Consent | None:
        """Return the latest decision of a visitor, or None."""
        return await self._store.first(Consent.of_visitor(visitor_id))
