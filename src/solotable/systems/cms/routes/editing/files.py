"""`/assets`, `/resources`: register files, upload their bytes, serve and download them.

Bytes are served with the type that was registered and checked, never as something that a browser runs.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from solotable.systems.cms.entities import Asset, AssetSummary, Resource, ResourceSummary
from solotable.systems.cms.routes.access import ADMINS, EDITORS, READERS
from solotable.systems.cms.routes.dependencies import ActiveStore, Pepper, StorageDep
from solotable.systems.cms.services import Assets, Leads, Resources, UploadTarget
from solotable.systems.routes import PUBLIC, Id, JsonRoute, allow
from solotable.web import CurrentPrincipal, HostStore, Page, Paging

router = APIRouter(tags=["files"], route_class=JsonRoute)
#: Without the limit of JSON bodies; the app's limit, the size of a video, counts.
bytes_router = APIRouter(tags=["files"])

BYTES_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/octet-stream": {
                "schema": {"type": "string", "format": "binary"},
                "example": "GIF89a",
            }
        },
    }
}
BYTES_RESPONSE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The bytes.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    },
}


class NewAsset(BaseModel):
    """An asset to register, before its bytes are uploaded."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=255)]
    mime: Annotated[str, Field(min_length=1, max_length=100)]
    size: Annotated[int, Field(ge=1, le=10**9)]
    alt: Annotated[str, Field(max_length=1000)] = ""


class NewResource(BaseModel):
    """A resource to register, before its bytes are uploaded."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=255)]
    mime: Annotated[str, Field(min_length=1, max_length=100)]
    size: Annotated[int, Field(ge=1, le=10**9)]
    gate: Literal["lead", "purchase"] = "lead"


@router.get("/assets", **allow(*READERS))
async def list_assets(store: ActiveStore, files: StorageDep, paging: Paging) -> Page[AssetSummary]:
    """List assets, newest first."""
    return Page[AssetSummary].of(await Assets(store, files).list(limit=paging.limit, cursor=paging.cursor))


@router.post("/assets", status_code=201, **allow(*EDITORS))
async def register_asset(body: NewAsset, store: ActiveStore, files: StorageDep) -> UploadTarget:
    """Register an image or video; without an `upload_url` send its bytes to `/assets/{id}/bytes`."""
    return await Assets(store, files).register(name=body.name, mime=body.mime, size=body.size, alt=body.alt)


@router.get("/assets/{asset_id}", **allow(*READERS))
async def get_asset(asset_id: Id, store: ActiveStore, files: StorageDep) -> Asset:
    """Return the metadata of an asset."""
    return await Assets(store, files).get(asset_id)


@bytes_router.put("/assets/{asset_id}/bytes", **allow(*EDITORS, **BYTES_BODY))
async def upload_asset(asset_id: Id, request: Request, store: ActiveStore, files: StorageDep) -> Asset:
    """Upload the bytes of a registered asset."""
    return await Assets(store, files).upload(asset_id, await request.body())


@router.post("/assets/{asset_id}/confirm", **allow(*EDITORS))
async def confirm_asset(asset_id: Id, store: ActiveStore, files: StorageDep) -> Asset:
    """Confirm that the bytes are at the `upload_url`; the server checks them."""
    return await Assets(store, files).confirm(asset_id)


@router.delete("/assets/{asset_id}", status_code=204, **allow(*EDITORS))
async def delete_asset(asset_id: Id, store: ActiveStore, files: StorageDep) -> None:
    """Delete an asset and its bytes."""
    await Assets(store, files).delete(asset_id)


@router.get("/public/assets/{asset_id}", response_class=Response, responses=BYTES_RESPONSE, **PUBLIC)
async def serve_asset(asset_id: Id, store: HostStore, files: StorageDep) -> Response:
    """Serve an asset of the site."""
    asset, chunks = await Assets(store, files).stream(asset_id)
    # The bytes of an id never change; another file has another id.
    headers = {"cache-control": "public, max-age=31536000, immutable", "content-length": str(asset.size)}
    return StreamingResponse(chunks, media_type=asset.mime, headers=headers)


@router.get("/resources/list", **allow(*EDITORS))
async def list_resources(store: ActiveStore, files: StorageDep, paging: Paging) -> Page[ResourceSummary]:
    """List resources, newest first."""
    return Page[ResourceSummary].of(
        await Resources(store, files).list(limit=paging.limit, cursor=paging.cursor)
    )


@router.post("/resources/upload", status_code=201, **allow(*ADMINS))
async def register_resource(body: NewResource, store: ActiveStore, files: StorageDep) -> UploadTarget:
    """Register a file; without an `upload_url` send its bytes to `/resources/{id}/bytes`."""
    return await Resources(store, files).register(
        name=body.name, mime=body.mime, size=body.size, gate=body.gate
    )


@bytes_router.put("/resources/{resource_id}/bytes", **allow(*ADMINS, **BYTES_BODY))
async def upload_resource(
    resource_id: Id, request: Request, store: ActiveStore, files: StorageDep
) -> Resource:
    """Upload the bytes of a registered resource."""
    return await Resources(store, files).upload(resource_id, await request.body())


@router.post("/resources/{resource_id}/confirm", **allow(*ADMINS))
async def confirm_resource(resource_id: Id, store: ActiveStore, files: StorageDep) -> Resource:
    """Confirm that the bytes are at the `upload_url`; the server checks them."""
    return await Resources(store, files).confirm(resource_id)


@router.delete("/resources/{resource_id}", status_code=204, **allow(*ADMINS))
async def delete_resource(resource_id: Id, store: ActiveStore, files: StorageDep) -> None:
    """Delete a resource and its bytes."""
    await Resources(store, files).delete(resource_id)


@router.get(
    "/resources/{resource_id}/download",
    response_class=Response,
    responses={**BYTES_RESPONSE, 307: {"description": "To a URL that is valid for some minutes."}},
    **allow("CUSTOMER", *ADMINS),
)
async def download_resource(
    resource_id: Id, store: ActiveStore, files: StorageDep, principal: CurrentPrincipal, pepper: Pepper
) -> Response:
    """Download a resource: for administrators, and for customers whose address is a lead.

    Resources behind a purchase are for administrators only, because the CMS has no orders yet.
    """
    resources = Resources(store, files)
    found = await resources.get(resource_id)
    if not principal.has(*ADMINS):
        known = principal.email is not None and await Leads(store, pepper=pepper).find(principal.email)
        if found.gate != "lead" or not known:
            raise HTTPException(403, f"This file needs a {found.gate}.")
    url = await resources.download_url(resource_id)
    if url is not None:
        return RedirectResponse(url, status_code=307)
    _, chunks = await resources.stream(resource_id)
    name = re.sub(r"[^\w. -]", "_", found.name, flags=re.ASCII)
    headers = {"content-disposition": f'attachment; filename="{name}"', "content-length": str(found.size)}
    return StreamingResponse(chunks, media_type=found.mime, headers=headers)
