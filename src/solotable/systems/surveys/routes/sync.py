"""`GET /sync`: what a user's devices can have, and what waits on the server."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import cast

from fastapi import APIRouter, HTTPException, Request

from solotable import AsyncStore
from solotable.sync import Sync
from solotable.systems.formats.inputs import Input
from solotable.systems.routes import JsonRoute, allow
from solotable.systems.surveys.entities.access import Access, SurveyRole
from solotable.systems.surveys.entities.queues import waiting
from solotable.systems.surveys.entities.stored import SyncStatus
from solotable.systems.surveys.sync.rights import survey_space
from solotable.web import CurrentPrincipal, Principal, get_database
from solotable.web.auth.dependencies import authenticate
from solotable.web.replicache.router import tenant_of_request

from .access import MEMBERS
from .dependencies import ActiveStore, known_tenants

router = APIRouter(tags=["sync"], route_class=JsonRoute)
#: Items that wait are counted up to this number.
MOST_COUNTED = 1000


class SyncedSurvey(Input):
    """A survey on the user's devices: its version is the number of its commits."""

    survey_id: str
    role: SurveyRole
    version: int
    #: The time of the last commit; None for a survey that was not written since the sync began.
    changed: datetime | None


class SyncState(Input):
    """The state of the sync for the caller."""

    tenant_id: str
    user_id: str
    surveys: list[SyncedSurvey]
    #: Items of the tenant whose transfer from another system is pending, or failed (S4.16).
    pending: int
    failed: int


@router.get("/sync", **allow(*MEMBERS))
async def get_sync_state(store: ActiveStore, principal: CurrentPrincipal, request: Request) -> SyncState:
    """Return the surveys that the caller's devices can have, with their versions, and what waits."""
    sync = cast(Sync, request.app.state.sync)
    tenant = store.tenant_id or ""
    versions = await asyncio.to_thread(sync.versions, tenant, principal.id)
    surveys = []
    async for access in store.all(Access.of_user(principal.id)):
        found = versions.get(survey_space(access.survey_id))
        if found is not None:
            row = SyncedSurvey(
                survey_id=access.survey_id, role=access.role, version=found.version, changed=found.at
            )
            surveys.append(row)
    return SyncState(
        tenant_id=tenant,
        user_id=principal.id,
        surveys=surveys,
        pending=await _count(store, "pending"),
        failed=await _count(store, "failed"),
    )


async def authenticate_member(request: Request) -> Principal:
    """Return the caller of the sync protocol: a member of a tenant that exists, as on every other route."""
    principal = await authenticate(request)
    if principal.kind != "anonymous":
        if not principal.roles.intersection(MEMBERS):
            raise HTTPException(403, f"The sync needs one of the roles {', '.join(MEMBERS)}.")
        tenant = tenant_of_request(request, principal)
        await known_tenants(request).check(get_database(request), tenant)
    return principal


async def _count(store: AsyncStore, status: SyncStatus) -> int:
    return len((await store.page(waiting(status), limit=MOST_COUNTED)).items)
