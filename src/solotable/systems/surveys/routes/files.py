"""`/images` and `/documents`: metadata and bytes, for the members of a tenant."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from solotable import Page as StoredPage
from solotable.systems.routes import ExpectedVersion, Id, JsonRoute, allow, set_etag
from solotable.systems.surveys.entities.files import Document, DocumentSummary, Image, ImageSummary
from solotable.systems.surveys.services.documents import Documents
from solotable.systems.surveys.services.drafts import ImageDraft, ImagePatch
from solotable.systems.surveys.services.images import Images
from solotable.web import CurrentPrincipal, Page, Paging

from .access import ADMINS, MEMBERS
from .dependencies import ActiveStore, StorageDep

router = APIRouter(tags=["files"], route_class=JsonRoute)
bytes_router = APIRouter(tags=["files"])

BYTES_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
#: `**BYTES`: a route whose response is bytes.
BYTES: dict[str, Any] = {
    "response_class": StreamingResponse,
    "responses": {
        200: {
            "description": "The bytes.",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        },
    },
}
#: Bytes of an image never change, and only their tenant may see them.
_CACHED = "private, max-age=31536000, immutable"
_Name = Annotated[str, Query(min_length=1, max_length=100)]
_Mime = Annotated[str, Query(min_length=1, max_length=100)]


class RegisteredImage(BaseModel):
    """A registered image; upload its bytes unless it was known."""

    image: Image
    is_new: bool


def bytes_headers(name: str, mime: str, *, cached: bool = False) -> dict[str, str]:
    """Return headers of a download: browsers show only images, and never guess the type."""
    disposition = "inline" if mime.startswith("image/") else "attachment"
    safe = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)[:80]
    return {
        "content-disposition": f'{disposition}; filename="{safe}"',
        "x-content-type-options": "nosniff",
        "cache-control": _CACHED if cached else "private, no-cache",
    }


@router.get("/images", **allow(*MEMBERS))
async def list_images(store: ActiveStore, files: StorageDep, paging: Paging) -> Page[ImageSummary]:
    """List images, newest first."""
    return Page[ImageSummary].of(await Images(store, files).list(limit=paging.limit, cursor=paging.cursor))


@router.post(
    "/images",
    status_code=201,
    responses={200: {"model": RegisteredImage, "description": "The tenant has the image already."}},
    **allow(*MEMBERS),
)
async def register_image(
    draft: ImageDraft, store: ActiveStore, files: StorageDep, response: Response
) -> RegisteredImage:
    """Register an image by the SHA-256 of its bytes; 200 with the known one if the tenant has them."""
    image, is_new = await Images(store, files).register(draft)
    response.headers["location"] = f"/images/{image.image_id}"
    if not is_new:
        response.status_code = 200
    return RegisteredImage(image=image, is_new=is_new)


@router.get("/images/{image_id}", **allow(*MEMBERS))
async def get_image(image_id: Id, store: ActiveStore, files: StorageDep, response: Response) -> Image:
    """Return the metadata of an image."""
    return set_etag(response, await Images(store, files).get(image_id))


@router.patch("/images/{image_id}", **allow(*MEMBERS))
async def update_image(
    image_id: Id,
    patch: ImagePatch,
    store: ActiveStore,
    files: StorageDep,
    version: ExpectedVersion,
    response: Response,
) -> Image:
    """Change the name or the caption of an image."""
    return set_etag(response, await Images(store, files).update(image_id, patch, version=version))


@router.delete("/images/{image_id}", status_code=204, **allow(*MEMBERS))
async def delete_image(image_id: Id, store: ActiveStore, files: StorageDep, version: ExpectedVersion) -> None:
    """Delete an image that no part shows; it can be restored for 30 days."""
    await Images(store, files).delete(image_id, version=version)


@router.post("/images/{image_id}/restore", **allow(*MEMBERS))
async def restore_image(image_id: Id, store: ActiveStore, files: StorageDep, response: Response) -> Image:
    """Restore a deleted image."""
    return set_etag(response, await Images(store, files).undelete(image_id))


@bytes_router.put("/images/{image_id}/bytes", **allow(*MEMBERS, **BYTES_BODY))
async def upload_image(image_id: Id, request: Request, store: ActiveStore, files: StorageDep) -> Image:
    """Upload the bytes of a registered image."""
    return await Images(store, files).upload(image_id, await request.body())


@bytes_router.get("/images/{image_id}/bytes", **BYTES, **allow(*MEMBERS))
async def download_image(
    image_id: Id, store: ActiveStore, files: StorageDep, *, thumbnail: bool = False
) -> StreamingResponse:
    """Return the bytes of an image, or of its thumbnail."""
    image, chunks = await Images(store, files).stream(image_id, thumbnail=thumbnail)
    mime = "image/jpeg" if thumbnail and image.has_thumbnail else image.mime
    return StreamingResponse(chunks, media_type=mime, headers=bytes_headers(image.name, mime, cached=True))


@router.get("/documents", **allow(*MEMBERS))
async def list_documents(store: ActiveStore, files: StorageDep, paging: Paging) -> Page[DocumentSummary]:
    """List documents, newest first."""
    found = await Documents(store, files).list(limit=paging.limit, cursor=paging.cursor)
    return Page[DocumentSummary].of(found)


@bytes_router.post("/documents", status_code=201, **allow(*MEMBERS, **BYTES_BODY))
async def create_document(
    request: Request,
    store: ActiveStore,
    files: StorageDep,
    principal: CurrentPrincipal,
    response: Response,
    name: _Name,
    mime: _Mime = "text/plain",
) -> Document:
    """Create a document of the body's bytes."""
    created = await Documents(store, files).create(
        name=name, mime=mime, data=await request.body(), owner=principal.id
    )
    response.headers["location"] = f"/documents/{created.document_id}"
    return set_etag(response, created)


@router.get("/documents/{document_id}", **allow(*MEMBERS))
async def get_document(
    document_id: Id, store: ActiveStore, files: StorageDep, response: Response
) -> Document:
    """Return the metadata of the newest version."""
    return set_etag(response, await Documents(store, files).get(document_id))


@bytes_router.put("/documents/{document_id}", **allow(*MEMBERS, **BYTES_BODY))
async def replace_document(
    document_id: Id,
    request: Request,
    store: ActiveStore,
    files: StorageDep,
    version: ExpectedVersion,
    response: Response,
    mime: _Mime = "text/plain",
) -> Document:
    """Store a new version; `If-Match` names the version that it replaces."""
    if version is None:
        raise HTTPException(428, "Send If-Match with the version that you replace.")
    documents = Documents(store, files)
    stored = await documents.replace(document_id, mime=mime, data=await request.body(), version=version)
    return set_etag(response, stored)


@router.get("/documents/{document_id}/versions", **allow(*MEMBERS))
async def list_versions(document_id: Id, store: ActiveStore, files: StorageDep) -> Page[Document]:
    """List the kept versions of a document, newest first; there are at most ten."""
    found = await Documents(store, files).versions(document_id)
    return Page[Document].of(StoredPage(found, None, len(found)))


@bytes_router.get("/documents/{document_id}/bytes", **BYTES, **allow(*MEMBERS))
async def download_document(
    document_id: Id,
    store: ActiveStore,
    files: StorageDep,
    version: Annotated[int | None, Query(ge=1, description="By default the newest.")] = None,
) -> StreamingResponse:
    """Return the body of a version."""
    documents = Documents(store, files)
    found = await (documents.get(document_id) if version is None else documents.version(document_id, version))
    chunks = await documents.read(found)
    return StreamingResponse(chunks, media_type=found.mime, headers=bytes_headers(found.name, found.mime))


@router.delete("/documents/{document_id}", status_code=204, **allow(*ADMINS))
async def delete_document(
    document_id: Id, store: ActiveStore, files: StorageDep, version: ExpectedVersion
) -> None:
    """Delete a document with its versions."""
    await Documents(store, files).delete(document_id, version=version)
