"""`/leads`, `/contact`, `/messages`, `/consent(s)`, `/erasures`: what visitors send, and forgetting it.

Visitors send without a credential, to the tenant of the host name and from a page of it: their browser's
`Origin` says which. Their answers say that something was
received and nothing else: who is known here already is not a stranger's to learn. No path holds an
address (C0.13): a lead has an id, and an erasure names the address in its body.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Header
from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator

from solotable.systems.cms.entities import (
    Consent,
    ConsentSummary,
    Erasure,
    ErasureSummary,
    Lead,
    LeadDetail,
    LeadStatus,
    MessageSummary,
)
from solotable.systems.cms.routes.access import ADMINS, allow, form
from solotable.systems.cms.routes.body_limits import Email, JsonRoute, Tree, VisitorId
from solotable.systems.cms.routes.dependencies import Id, Pepper, SiteStore, VisitorStore
from solotable.systems.cms.routes.rate_limits import Mails
from solotable.systems.cms.services import Consents, Erasures, Leads
from solotable.web import Page, Paging
from solotable.web.http.timestamps import Moment

router = APIRouter(tags=["visitors"], route_class=JsonRoute)

Sender = Annotated[Mails, Depends()]


class NewLead(BaseModel):
    """An address that somebody leaves."""

    model_config = ConfigDict(extra="forbid")

    email: Email
    name: Annotated[str, Field(max_length=200)] = ""
    #: It comes into the audit trail, which outlives an erasure: no address.
    source: Annotated[str, Field(max_length=200, pattern=r"^[^@]*$")] = ""
    data: Tree = {}


class NewMessage(BaseModel):
    """What somebody writes in the contact form."""

    model_config = ConfigDict(extra="forbid")

    email: Email
    name: Annotated[str, Field(max_length=200)] = ""
    message: Annotated[str, Field(min_length=1, max_length=4000)]


class NewConsent(BaseModel):
    """What a visitor agreed to or refused, and which words were shown."""

    model_config = ConfigDict(extra="forbid")

    visitor_id: VisitorId
    #: Strictly true or false: a legal record holds no reading of "yes".
    choices: Annotated[
        dict[Annotated[str, Field(max_length=100)], StrictBool], Field(min_length=1, max_length=50)
    ]
    policy_version: Annotated[str, Field(min_length=1, max_length=100)]
    claimed_at: Moment | None = None


class LeadChange(BaseModel):
    """How far things are with somebody."""

    model_config = ConfigDict(extra="forbid")

    status: LeadStatus


class NewErasure(BaseModel):
    """Whom to forget: an address, or a visitor's id."""

    model_config = ConfigDict(extra="forbid")

    email: Email | None = None
    visitor_id: VisitorId | None = None

    @model_validator(mode="after")
    def _one(self) -> NewErasure:
        if (self.email is None) == (self.visitor_id is None):
            raise ValueError("name an e-mail address or a visitor, one of the two")
        return self


class Received(BaseModel):
    """That something was received."""

    received: bool = True


@router.post("/leads", status_code=202, **form("leads"))
async def capture_lead(body: NewLead, store: VisitorStore, pepper: Pepper, mails: Sender) -> Received:
    """Leave an address; somebody who is known already stays who they are."""
    await mails.count(body.email)
    await Leads(store, pepper=pepper).capture(body.email, name=body.name, source=body.source, data=body.data)
    return Received()


@router.post("/contact", status_code=202, **form("contact"))
async def send_message(body: NewMessage, store: VisitorStore, pepper: Pepper, mails: Sender) -> Received:
    """Send a message; its sender becomes a lead, and it is erased with that."""
    await mails.count(body.email)
    await Leads(store, pepper=pepper).message(body.email, name=body.name, body=body.message)
    return Received()


@router.post("/consent", status_code=201, **form("consent"))
async def record_consent(
    body: NewConsent, store: VisitorStore, user_agent: Annotated[str, Header(include_in_schema=False)] = ""
) -> Consent:
    """Record a decision under the time of the server."""
    return await Consents(store).record(
        body.visitor_id,
        choices=body.choices,
        policy_version=body.policy_version,
        claimed_at=body.claimed_at,
        user_agent=user_agent,
    )


@router.get("/consents/{visitor_id}", **allow(*ADMINS))
async def list_consents(visitor_id: Id, store: SiteStore, paging: Paging) -> Page[ConsentSummary]:
    """List the decisions of a visitor, the latest first."""
    found = await Consents(store).of_visitor(visitor_id, limit=paging.limit, cursor=paging.cursor)
    return Page[ConsentSummary].of(found)


@router.get("/leads", **allow(*ADMINS))
async def list_leads(store: SiteStore, paging: Paging) -> Page[LeadDetail]:
    """List leads with their addresses."""
    return Page[LeadDetail].of(await Leads(store).list(limit=paging.limit, cursor=paging.cursor))


@router.get("/leads/{lead_id}", **allow(*ADMINS))
async def get_lead(lead_id: Id, store: SiteStore) -> Lead:
    """Return a lead."""
    return await Leads(store).get(lead_id)


@router.get("/leads/{lead_id}/messages", **allow(*ADMINS))
async def list_messages_of_lead(lead_id: Id, store: SiteStore, paging: Paging) -> Page[MessageSummary]:
    """List what a lead wrote, the latest first."""
    found = await Leads(store).messages_of(lead_id, limit=paging.limit, cursor=paging.cursor)
    return Page[MessageSummary].of(found)


@router.get("/messages", **allow(*ADMINS))
async def list_messages(store: SiteStore, paging: Paging) -> Page[MessageSummary]:
    """List what was written in the contact form, the latest first, without addresses."""
    found = await Leads(store).messages(limit=paging.limit, cursor=paging.cursor)
    return Page[MessageSummary].of(found)


@router.put("/leads/{lead_id}", **allow(*ADMINS))
async def change_lead(lead_id: Id, body: LeadChange, store: SiteStore) -> Lead:
    """Say how far things are with somebody."""
    return await Leads(store).set_status(lead_id, body.status)


@router.delete("/leads/{lead_id}", **allow(*ADMINS))
async def erase_lead(lead_id: Id, store: SiteStore, pepper: Pepper) -> Erasure:
    """Forget somebody: the lead and its messages go, and their comments become nobody's."""
    lead = await Leads(store).get(lead_id)
    return await Erasures(store, pepper=pepper).person(lead.email)


@router.post("/erasures", status_code=201, **allow(*ADMINS))
async def erase(body: NewErasure, store: SiteStore, pepper: Pepper) -> Erasure:
    """Forget an address, or a visitor."""
    erasures = Erasures(store, pepper=pepper)
    if body.visitor_id is not None:
        return await erasures.visitor(body.visitor_id)
    return await erasures.person(body.email or "")


@router.get("/erasures", **allow(*ADMINS))
async def list_erasures(store: SiteStore, paging: Paging) -> Page[ErasureSummary]:
    """List what was erased, the latest first."""
    return Page[ErasureSummary].of(await Erasures(store).list(limit=paging.limit, cursor=paging.cursor))
