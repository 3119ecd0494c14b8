"""Tenants, their members, who may see which survey, and temporary data.

Corrections of the written design:

- C4.17: the access of a user to a survey is an item of the tenant; a user with the same id in another tenant
  has other items.
- C4.12: `editors` of a survey cannot be queried by user. Each editor and viewer has an `Access` item, written
  in the transaction of the survey's metadata.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field

from solotable import FROM_SCOPE, TTL, Created, Entity, Json, Key, Query, Updated, Version, pattern
from solotable.systems.surveys.formats.texts import Name
from solotable.systems.surveys.table import OF_TENANT, surveyor

from .stored import Id

TenantId = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
UserId = Annotated[str, Field(min_length=1, max_length=128)]
SurveyRole = Literal["owner", "editor", "viewer"]
MemberRole = Literal["member", "admin"]
#: What a role in a survey may do includes what lower ones may.
RANKS: dict[SurveyRole, int] = {"viewer": 1, "editor": 2, "owner": 3}


class Tenant(Entity, table=surveyor, scope="global"):
    """A tenant; its `id` is the tenant of all other entities (S4.5)."""

    key = Key("TENANT#{id}", "METADATA")
    by_type = Key("TYPE#TENANT", "{id}", index="GSI1")

    id: TenantId
    name: Name
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def listed(cls) -> Query[TenantSummary]:
        """All tenants."""
        return cls.by_type.query().select(TenantSummary)


class TenantSummary(BaseModel):
    """A tenant in a list."""

    id: str
    name: str
    version: int = 0


class Member(Entity, table=surveyor):
    """A user of a tenant."""

    key = Key(OF_TENANT, "MEMBER#{user_id}")

    tenant_id: str = FROM_SCOPE
    user_id: UserId
    name: Name
    role: MemberRole = "member"
    created: Annotated[datetime | None, Created()] = None
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def of_tenant(cls) -> Query[Self]:
        """The members of a tenant."""
        return cls.key.query()


class Access(Entity, table=surveyor):
    """What a user may do with a survey (S4.18)."""

    key = Key("TENANT#{tenant_id}#USER#{user_id}", "SURVEY#{survey_id}")

    tenant_id: str = FROM_SCOPE
    user_id: UserId
    survey_id: Id
    role: SurveyRole
    created: Annotated[datetime | None, Created()] = None

    @pattern
    @classmethod
    def of_user(cls, user_id: str) -> Query[Self]:
        """The surveys that a user may see."""
        return cls.key.query(user_id=user_id)


class Temp(Entity, table=surveyor):
    """Temporary data, which expires (S4.42); `TempData` writes it for a day."""

    key = Key(OF_TENANT, "TEMP#SYNC#{temp_id}")

    tenant_id: str = FROM_SCOPE
    temp_id: Id
    data: Annotated[dict[str, object], Json()] = Field(default_factory=dict)
    ttl: Annotated[datetime, TTL()]
