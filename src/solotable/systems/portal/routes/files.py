"""`/v1/uploads/presign`, attach and download: bytes of files pass by signed URLs, not by the API.

The local storage has its URLs in this app, under /storage. A bucket has its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse

from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.entities.values import ContentId, Line
from solotable.systems.portal.events.recording import EventLog
from solotable.systems.portal.roles import Caller
from solotable.systems.portal.services.files import DownloadTicket, Files, UploadTicket
from solotable.systems.routes import ExpectedVersion, JsonRoute
from solotable.systems.signed_folder import SignedFolderStorage
from solotable.systems.storage import Storage
from solotable.web import limit_body

from .requests.access import allow_from
from .requests.dependencies import CallDep, ContentPath, StorageDep
from .requests.envelope import API, Envelope

router = APIRouter(prefix=API, tags=["files"], route_class=JsonRoute)

_Mime = Annotated[str, Field(pattern=r"^[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,100}$")]
_LARGEST = 10**15


class UploadDraft(BaseModel):
    """A file that will be uploaded for a Draft."""

    model_config = ConfigDict(extra="forbid")

    content_id: ContentId
    file_name: Line
    content_type: _Mime
    size_bytes: Annotated[int, Field(ge=1, le=_LARGEST)]


class AttachDraft(BaseModel):
    """An uploaded file to attach: the `key` that the presigned upload returned."""

    model_config = ConfigDict(extra="forbid")

    key: Annotated[str, Field(min_length=1, max_length=500)]
    file_name: Line
    content_type: _Mime


@router.post("/uploads/presign", status_code=201, **allow_from("Contributor", "writes"))
async def presign_upload(draft: UploadDraft, call: CallDep, storage: StorageDep) -> Envelope[UploadTicket]:
    """Return a URL for the PUT of a file to a Draft of the caller's, for five minutes."""
    ticket = await Files(call.db, storage).presign(
        call.caller,
        draft.content_id,
        file_name=draft.file_name,
        content_type=draft.content_type,
        size_bytes=draft.size_bytes,
    )
    return call.reply(ticket)


@router.post("/content/{content_id}/attach", **allow_from("Contributor", "writes"))
async def attach_file(
    content_id: ContentPath,
    draft: AttachDraft,
    call: CallDep,
    storage: StorageDep,
    revision: ExpectedVersion,
) -> Envelope[Content]:
    """Attach an uploaded file to a Draft of the caller's."""
    stored = await Files(call.db, storage).attach(
        call.caller,
        content_id,
        key=draft.key,
        file_name=draft.file_name,
        content_type=draft.content_type,
        revision=revision,
    )
    return call.content(stored)


@router.get("/content/{content_id}/download", **allow_from("Viewer"))
async def download_file(
    content_id: ContentPath, call: CallDep, storage: StorageDep
) -> Envelope[DownloadTicket]:
    """Return a URL of the file for an hour: Viewers of Approved content, owners of a Draft, Admins of all."""
    ticket = await Files(call.db, storage).download(call.caller, content_id)
    await EventLog(call.db).record("content_download", user_id=call.caller.user_id, content_id=content_id)
    return call.reply(ticket)


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that the app itself has received."""

    name: str
    mime: str
    data: bytes


async def store_file(
    files: Files,
    storage: Storage,
    caller: Caller,
    content_id: str,
    file: NewFile,
    revision: int | None = None,
) -> Content:
    """Store a file and attach it to a Draft, as a client does with a presigned URL."""
    ticket = await files.presign(
        caller, content_id, file_name=file.name, content_type=file.mime, size_bytes=len(file.data)
    )
    await storage.put(ticket.key, file.data, mime=file.mime)
    return await files.attach(
        caller,
        content_id,
        key=ticket.key,
        file_name=file.name,
        content_type=file.mime,
        revision=revision,
    )


async def receive_upload(request: Request) -> Response:
    """Store the bytes of a signed PUT: streamed, and at most as many as the URL says."""
    storage = _signed_storage(request)
    key = request.path_params["key"]
    limit_body(request, storage.max_bytes(key, request.query_params))
    mime = request.headers.get("content-type", "")
    await storage.receive(key, request.query_params, request.stream(), mime=mime)
    return Response(status_code=201)


async def send_download(request: Request) -> Response:
    """Send the bytes of a signed GET as an attachment: a browser never shows them as a page of ours."""
    name, chunks = await _signed_storage(request).open_download(
        request.path_params["key"], request.query_params
    )
    headers = {"content-disposition": attachment(name), "cache-control": "private, no-store"}
    return StreamingResponse(chunks, media_type="application/octet-stream", headers=headers)


def attachment(name: str) -> str:
    """Return the Content-Disposition of a download: a plain name, and the whole one (RFC 6266).

    >>> print(attachment("für.pdf"))
    attachment; filename="f-r.pdf"; filename*=UTF-8''f%C3%BCr.pdf
    """
    plain = "".join(each if each.isascii() and (each.isalnum() or each in "._-") else "-" for each in name)
    return (
        f"attachment; filename=\"{plain[-80:]}\"; filename*=UTF-8''{quote(name, safe='', errors='replace')}"
    )


def _signed_storage(request: Request) -> SignedFolderStorage:
    if not isinstance(request.app.state.storage, SignedFolderStorage):
        raise HTTPException(404, "Files are in another storage.")
    return request.app.state.storage
