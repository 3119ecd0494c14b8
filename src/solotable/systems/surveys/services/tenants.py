"""Tenants and their members, for administrators."""

from __future__ import annotations

from solotable import AsyncDatabase, AsyncStore, Erasure, Page
from solotable.errors import ConditionFailed
from solotable.systems.errors import validate
from solotable.systems.formats.inputs import Input
from solotable.systems.surveys.entities.access import Member, MemberRole, Tenant, TenantSummary
from solotable.systems.surveys.entities.surveys import SurveyMeta, SurveySummary

from .drafts import MemberDraft, TenantDraft


class TenantSurvey(SurveySummary):
    """A survey in a list of all tenants."""

    tenant_id: str


class Tenants:
    """The tenants of an installation."""

    def __init__(self, db: AsyncDatabase) -> None:
        self._db = db

    async def create(self, draft: TenantDraft) -> Tenant:
        """Create a tenant, or raise AlreadyExists."""
        return await self._db.create(validate(Tenant, **dict(draft)))

    async def get(self, tenant: str) -> Tenant:
        """Return a tenant, or raise NotFound."""
        return await self._db.require(Tenant, id=tenant)

    async def list(self, *, limit: int = 100, cursor: str | None = None) -> Page[TenantSummary]:
        """Return all tenants."""
        return await self._db.page(Tenant.listed(), limit=limit, cursor=cursor)

    async def rename(self, tenant: str, patch: Input, *, version: int | None = None) -> Tenant:
        """Change the name of a tenant."""
        current = await self.get(tenant)
        expected = current.version if version is None else version
        return await self._db.update(Tenant, id=tenant, version=expected, set=patch.given())

    async def delete(self, tenant: str, *, most: int = 20_000) -> Erasure:
        """Erase everything of a tenant, then the tenant; repeat the call until the result is done."""
        await self.get(tenant)
        erased = await self._db.admin().erase_tenant(tenant, most=most)
        if erased.done:
            current = await self.get(tenant)
            await self._db.delete(Tenant, id=tenant, version=current.version)
        return erased

    async def surveys(self, *, limit: int = 100, cursor: str | None = None) -> Page[TenantSurvey]:
        """Return the surveys of a page of tenants: one query for each tenant (S4.14)."""
        tenants = await self.list(limit=limit, cursor=cursor)
        found = [
            TenantSurvey(tenant_id=tenant.id, **dict(survey))
            for tenant in tenants
            async for survey in self._db.tenant(tenant.id).all(SurveyMeta.listed())
        ]
        return Page(found, tenants.cursor, len(found))


class Members:
    """The members of one tenant."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def add(self, draft: MemberDraft) -> Member:
        """Add a member, or raise AlreadyExists."""
        return await self._store.create(validate(Member, **dict(draft)))

    async def list(self, *, limit: int = 100, cursor: str | None = None) -> Page[Member]:
        """Return the members."""
        return await self._store.page(Member.of_tenant(), limit=limit, cursor=cursor)

    async def change_role(self, user_id: str, role: MemberRole, *, version: int | None = None) -> Member:
        """Change the role of a member."""
        current = await self._store.require(Member, user_id=user_id, consistent=True)
        expected = current.version if version is None else version
        return await self._store.update(Member, user_id=user_id, version=expected, set={"role": role})

    async def remove(self, user_id: str) -> None:
        """Remove a member, or raise NotFound."""
        current = await self._store.require(Member, user_id=user_id, consistent=True)
        deleted = await self._store.delete(Member, user_id=user_id, version=current.version)
        if deleted is None:
            raise ConditionFailed("Another request removed the member.", item=None)
