"""`/content/{id}/versions`, `diff`, `restore`: the former versions of a page."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from solotable.systems.cms.entities import Content
from solotable.systems.cms.routes.access import EDITORS
from solotable.systems.cms.routes.dependencies import ActiveStore
from solotable.systems.cms.routes.site.sitemaps import forget_site
from solotable.systems.cms.services import Versions, VersionSummary
from solotable.systems.routes import ExpectedVersion, Id, JsonRoute, allow, set_etag
from solotable.web import Page, Paging

router = APIRouter(prefix="/content/{node_id}", tags=["versions"], route_class=JsonRoute)

#: A version in a key has six digits.
VersionNumber = Annotated[int, Field(ge=1, le=999_999)]


class VersionRestore(BaseModel):
    """The version to restore."""

    model_config = ConfigDict(extra="forbid")

    version: VersionNumber


class FieldDifference(BaseModel):
    """A field that differs between two versions."""

    field: str
    before: Any = None
    after: Any = None


class VersionDifference(BaseModel):
    """The differences between two versions."""

    before: int
    after: int
    changes: list[FieldDifference]


@router.get("/versions", **allow(*EDITORS))
async def list_versions(node_id: Id, store: ActiveStore, paging: Paging) -> Page[VersionSummary]:
    """List the former versions, newest first, at most 20 on a page."""
    found = await Versions(store).list(node_id, limit=paging.limit, cursor=paging.cursor)
    return Page[VersionSummary].of(found)


@router.get("/versions/{version}", **allow(*EDITORS))
async def get_version(
    node_id: Id, version: Annotated[int, Path(ge=1, le=999_999, examples=[1])], store: ActiveStore
) -> Content:
    """Return one version with its blocks."""
    return await Versions(store).get(node_id, version)


@router.get("/diff", **allow(*EDITORS))
async def diff_versions(
    node_id: Id,
    store: ActiveStore,
    before: Annotated[int, Query(ge=1, le=999_999, examples=[1])],
    after: Annotated[int, Query(ge=1, le=999_999, examples=[2])],
) -> VersionDifference:
    """Compare two versions field by field."""
    found = await Versions(store).diff(node_id, before, after)
    changes = [FieldDifference(field=each.field, before=each.before, after=each.after) for each in found]
    return VersionDifference(before=found.before, after=found.after, changes=changes)


@router.post("/restore", **allow(*EDITORS))
async def restore_version(
    node_id: Id,
    body: VersionRestore,
    store: ActiveStore,
    over: ExpectedVersion,
    request: Request,
    response: Response,
) -> Content:
    """Write an old version's content as a new version; slug and status stay."""
    restored = await Versions(store).restore(node_id, body.version, over=over)
    forget_site(request, store)
    return set_etag(response, restored)
