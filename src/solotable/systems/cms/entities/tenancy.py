"""Tenants and the people who work in them.

Corrections of the written design, and why:

- C0.10: the domain is a unique field: its lock item is written in the transaction of the tenant, so two
  tenants never have one host, whatever `GSI_Domain` has seen yet.
- C0.11: tenants lie in one partition, `SYSTEM`. Requests do not read it each time: whoever asks for the
  tenant of a host keeps the answer for a while (`solotable.web` does).
- Settings hold secrets among them. No list, no index and no event carries them. They are hidden unless their
  path is in `public`: a list of names that look like secrets never has them all.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field

from solotable import FROM_SCOPE, Created, Entity, Json, Key, Outbox, Query, Unique, Updated, Version, pattern
from solotable.systems.cms.formats.json_sizes import at_most
from solotable.systems.cms.table import OF_TENANT, SYSTEM, cms

TenantStatus = Literal["active", "suspended", "closed"]
TenantId = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
TenantName = Annotated[str, Field(min_length=1, max_length=200)]
MOST_SETTINGS = 100_000
PublicPaths = Annotated[list[Annotated[str, Field(min_length=1, max_length=300)]], Field(max_length=200)]
Role = Literal["TENANT_ADMIN", "EDITOR", "CUSTOMER"]


class TenantConfig(Entity, table=cms, scope="global"):
    """A tenant: its name, its host and its settings. `id` is the tenant that all else belongs to."""

    key = Key(SYSTEM, "TENANT#{id}")
    by_domain = Key("DOMAIN#{domain}", index="GSI_Domain")
    by_type = Key("SYSTEM#TYPE#TENANT", "{id}", index="GSI_Type")
    events = Outbox(title="name", snapshot=("name", "domain", "status", "public"))

    id: TenantId
    name: TenantName
    domain: Annotated[str | None, Unique(normalise="casefold")] = None
    status: TenantStatus = "active"
    settings: Annotated[dict[str, Any], at_most(MOST_SETTINGS), Json()] = Field(default_factory=dict)
    #: The settings that editors may see, as JSON Pointers: `/mail/from`.
    public: Annotated[PublicPaths, Json()] = Field(default_factory=list)
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def of_domain(cls, domain: str) -> Query[TenantSummary]:
        """The tenant of a host name."""
        return cls.by_domain.query(domain=domain).select(TenantSummary)

    @pattern
    @classmethod
    def listed(cls) -> Query[TenantSummary]:
        """All tenants, without their settings."""
        return cls.by_type.query().select(TenantSummary)

    @pattern
    @classmethod
    def shown_as(cls, id: str) -> Query[TenantSummary]:  # noqa: A002 - the field's name
        """What lists show of one tenant."""
        return cls.by_type.query(id=id).select(TenantSummary)


class TenantSummary(BaseModel):
    """What a list shows of a tenant."""

    id: str
    name: str
    domain: str | None = None
    status: TenantStatus = "active"


class User(Entity, table=cms):
    """Somebody who works for a tenant, and what they may do there.

    Their id follows from their address as that of a lead does, or is the subject of their tokens.
    """

    key = Key(OF_TENANT, "USER#{user_id}")
    events = Outbox(title="email", snapshot=("email", "name", "role", "enabled"))

    tenant_id: str = FROM_SCOPE
    user_id: str
    email: Annotated[str, Unique(normalise="casefold")]
    name: str = ""
    role: Role = "EDITOR"
    enabled: bool = True
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def of_tenant(cls) -> Query[Self]:
        """The users of a tenant, whole: for an erasure."""
        return cls.key.query()

    @pattern
    @classmethod
    def listed(cls) -> Query[UserSummary]:
        """The users of a tenant."""
        return cls.key.query().select(UserSummary)


class UserSummary(BaseModel):
    """What a list shows of a user."""

    user_id: str
    email: str
    name: str = ""
    role: Role
    enabled: bool
    created: datetime | None = None
    updated: datetime | None = None
    version: int = 0


class Identity(Entity, table=cms):
    """The users that the tokens of one subject have stood for. Made of verified tokens, never by a person."""

    key = Key(OF_TENANT, "IDENTITY#{identity_id}")

    tenant_id: str = FROM_SCOPE
    #: A digest of the issuer and the subject.
    identity_id: str
    user_ids: list[str]
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0
