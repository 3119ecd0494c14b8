"""`/leads`, `/contact`, `/messages`, `/consent(s)`, `/erasures`: data of visitors, and its erasure.

Visitors send forms without a credential. The host name decides the tenant, and the browser's `Origin` must be
a page of it. The response only confirms the receipt: it must not reveal whether an address is known. No path
holds an address (C0.13): a lead has an id, and an erasure has the address in its body.
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
from solotable.systems.cms.routes.access import ADMINS, form_route
from solotable.systems.cms.routes.body_limits import Email, Tree, VisitorId
from solotable.systems.cms.routes.dependencies import ActiveStore, Pepper, VisitorStore
from solotable.systems.cms.routes.rate_limits import SenderLimit
from solotable.systems.cms.services import Consents, Erasures, Leads
from solotable.systems.routes import Id, JsonRoute, allow
from solotable.web import Page, Paging
from solotable.web.http.timestamps import Timestamp

router = APIRouter(tags=["visitors"], route_class=JsonRoute)

Sender = Annotated[SenderLimit, Depends()]


class NewLead(BaseModel):
    """An e-mail address that a visitor leaves."""

    model_config = ConfigDict(extra="forbid")

    email: Email
    name: Annotated[str, Field(max_length=200)] = ""
    #: The audit trail has it and outlives an erasure, so it must not hold an address.
    source: Annotated[str, Field(max_length=200, pattern=r"^[^@]*$")] = ""
    data: Tree = {}


class NewMessage(BaseModel):
    """A message from the contact form."""

    model_config = ConfigDict(extra="forbid")

    email: Email
    name: Annotated[str, Field(max_length=200)] = ""
    message: Annotated[str, Field(min_length=1, max_length=4000)]


class NewConsent(BaseModel):
    """The choices of a visitor, and the version of the policy that was shown."""

    model_config = ConfigDict(extra="forbid")

    visitor_id: VisitorId
    #: Strictly true or false: a legal record must not interpret "yes".
    choices: Annotated[
        dict[Annotated[str, Field(max_length=100)], StrictBool], Field(min_length=1, max_length=50)
    ]
    policy_version: Annotated[str, Field(min_length=1, max_length=100)]
    claimed_at: Timestamp | None = None


class LeadChange(BaseModel):
    """A change of a lead's status."""

    model_config = ConfigDict(extra="forbid")

    status: LeadStatus


class NewErasure(BaseModel):
    """The person to erase: an e-mail address, or a visitor's id."""

    model_config = ConfigDict(extra="forbid")

    email: Email | None = None
    visitor_id: VisitorId | None = None

    @model_validator(mode="after")
    def _one(self) -> NewErasure:
        if (self.email is None) == (self.visitor_id is None):
            raise ValueError("send either email or visitor_id")
        return self


class Receipt(BaseModel):
    """The confirmation that a form was received."""

    received: bool = True


@router.post("/leads", status_code=202, **form_route("leads"))
async def capture_lead(body: NewLead, store: VisitorStore, pepper: Pepper, limit: Sender) -> Receipt:
    """Create a lead; the data of a known lead stays."""
    await limit.acquire(body.email)
    await Leads(store, pepper=pepper).capture(body.email, name=body.name, source=body.source, data=body.data)
    return Receipt()


@router.post("/contact", status_code=202, **form_route("contact"))
async def send_message(body: NewMessage, store: VisitorStore, pepper: Pepper, limit: Sender) -> Receipt:
    """Send a message; its sender becomes a lead, and an erasure of the lead removes it."""
    await limit.acquire(body.email)
    await Leads(store, pepper=pepper).message(body.email, name=body.name, body=body.message)
    return Receipt()


@router.post("/consent", status_code=201, **form_route("consent"))
async def record_consent(
    body: NewConsent, store: VisitorStore, user_agent: Annotated[str, Header(include_in_schema=False)] = ""
) -> Consent:
    """Record a decision with the server's time."""
    return await Consents(store).record(
        body.visitor_id,
        choices=body.choices,
        policy_version=body.policy_version,
        claimed_at=body.claimed_at,
        user_agent=user_agent,
    )


@router.get("/consents/{visitor_id}", **allow(*ADMINS))
async def list_consents(visitor_id: Id, store: ActiveStore, paging: Paging) -> Page[ConsentSummary]:
    """List the decisions of a visitor, the latest first."""
    found = await Consents(store).of_visitor(visitor_id, limit=paging.limit, cursor=paging.cursor)
    return Page[ConsentSummary].of(found)


@router.get("/leads", **allow(*ADMINS))
async def list_leads(store: ActiveStore, paging: Paging) -> Page[LeadDetail]:
    """List leads with their addresses."""
    return Page[LeadDetail].of(await Leads(store).list(limit=paging.limit, cursor=paging.cursor))


@router.get("/leads/{lead_id}", **allow(*ADMINS))
async def get_lead(lead_id: Id, store: ActiveStore) -> Lead:
    """Return a lead."""
    return await Leads(store).get(lead_id)


@router.get("/leads/{lead_id}/messages", **allow(*ADMINS))
async def list_messages_of_lead(lead_id: Id, store: ActiveStore, paging: Paging) -> Page[MessageSummary]:
    """List the messages of a lead, the latest first."""
    found = await Leads(store).messages_of(lead_id, limit=paging.limit, cursor=paging.cursor)
    return Page[MessageSummary].of(found)


@router.get("/messages", **allow(*ADMINS))
async def list_messages(store: ActiveStore, paging: Paging) -> Page[MessageSummary]:
    """List the messages of the contact form, the latest first, without addresses."""
    found = await Leads(store).messages(limit=paging.limit, cursor=paging.cursor)
    return Page[MessageSummary].of(found)


@router.put("/leads/{lead_id}", **allow(*ADMINS))
async def change_lead(lead_id: Id, body: LeadChange, store: ActiveStore) -> Lead:
    """Change the status of a lead."""
    return await Leads(store).set_status(lead_id, body.status)


@router.delete("/leads/{lead_id}", **allow(*ADMINS))
async def erase_lead(lead_id: Id, store: ActiveStore, pepper: Pepper) -> Erasure:
    """Erase a person: delete the lead and its messages, and anonymise the comments."""
    lead = await Leads(store).get(lead_id)
    return await Erasures(store, pepper=pepper).erase_person(lead.email)


@router.post("/erasures", status_code=201, **allow(*ADMINS))
async def erase_visitor_data(body: NewErasure, store: ActiveStore, pepper: Pepper) -> Erasure:
    """Erase the data of an e-mail address, or of a visitor."""
    erasures = Erasures(store, pepper=pepper)
    if body.visitor_id is not None:
        return await erasures.erase_visitor(body.visitor_id)
    return await erasures.erase_person(body.email or "")


@router.get("/erasures", **allow(*ADMINS))
async def list_erasures(store: ActiveStore, paging: Paging) -> Page[ErasureSummary]:
    """List erasures, the latest first."""
    return Page[ErasureSummary].of(await Erasures(store).list(limit=paging.limit, cursor=paging.cursor))
