"""Tenants and their users.

Corrections of the written design:

- C0.10: the domain is a unique field: the tenant's transaction writes its lock item, so two tenants never
  have one host, even while `GSI_Domain` is behind.
- C0.11: all tenants are in one partition, `SYSTEM`. Requests do not read it each time: `solotable.web` caches
  the tenant of a host.
- Settings can hold secrets. No list, index or event holds settings. A value is hidden unless its path is in
  `public`, because no list of suspicious names would be complete.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field

from solotable import FROM_SCOPE, Created, Entity, Json, Key, Outbox, Query, Unique, Updated, Version, pattern
from solotable.systems.cms.table import OF_TENANT, SYSTEM, cms
from solotable.systems.formats.json_sizes import max_json_bytes

TenantStatus = Literal["active", "suspended", "closed"]
TenantId = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
TenantName = Annotated[str, Field(min_length=1, max_length=200)]
MAX_SETTINGS = 100_000
PublicPaths = Annotated[list[Annotated[str, Field(min_length=1, max_length=300)]], Field(max_length=200)]
Role = Literal["TENANT_ADMIN", "EDITOR", "CUSTOMER"]


class TenantConfig(Entity, table=cms, scope="global"):
    """A tenant: its name, its domain and its settings. Its `id` is the tenant of all other entities."""

    key = Key(SYSTEM, "TENANT#{id}")
    by_domain = Key("DOMAIN#{domain}", index="GSI_Domain")
    by_type = Key("SYSTEM#TYPE#TENANT", "{id}", index="GSI_Type")
    events = Outbox(title="name", snapshot=("name", "domain", "status", "public"))

    id: TenantId
    name: TenantName
    domain: Annotated[str | None, Unique(normalise="casefold")] = None
    status: TenantStatus = "active"
    settings: Annotated[dict[str, Any], max_json_bytes(MAX_SETTINGS), Json()] = Field(default_factory=dict)
    #: The settings that editors see, as JSON Pointers: `/mail/from`.
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
    def summary_of(cls, id: str) -> Query[TenantSummary]:  # noqa: A002 - the field's name
        """One tenant as in lists."""
        return cls.by_type.query(id=id).select(TenantSummary)


class TenantSummary(BaseModel):
    """A tenant in a list."""

    id: str
    name: str
    domain: str | None = None
    status: TenantStatus = "active"


class User(Entity, table=cms):
    """A user of a tenant, with a role.

    The id is a digest of the address, as for a lead, or the subject of the user's tokens.
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
        """The users of a tenant with all attributes, for an erasure."""
        return cls.key.query()

    @pattern
    @classmethod
    def listed(cls) -> Query[UserSummary]:
        """The users of a tenant."""
        return cls.key.query().select(UserSummary)


class UserSummary(BaseModel):
    """A user in a list."""

    user_id: str
    email: str
    name: str = ""
    role: Role
    enabled: bool
    created: datetime | None = None
    updated: datetime | None = None
    version: int = 0


class Identity(Entity, table=cms):
    """The users of one token subject. Only verified tokens write it."""

    key = Key(OF_TENANT, "IDENTITY#{identity_id}")

    tenant_id: str = FROM_SCOPE
    #: A digest of the issuer and the subject.
    identity_id: str
    user_ids: list[str]
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0
