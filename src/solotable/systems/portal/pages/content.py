"""`/content/{id}`: the page of content, its file, its lifecycle, and deletion behind a second page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from fastapi import HTTPException
from starlette.responses import RedirectResponse, Response, StreamingResponse

from solotable.errors import NotFound
from solotable.systems.browser.multipart import MultipartReader
from solotable.systems.browser.redirects import see
from solotable.systems.browser.render import Done
from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.events.recording import EventLog
from solotable.systems.portal.identity.directory import Directory
from solotable.systems.portal.routes.files import NewFile, attachment, store_file
from solotable.systems.portal.services.contents import Contents
from solotable.systems.portal.services.files import MAX_FILE_BYTES, Files
from solotable.systems.portal.services.lifecycle import Lifecycle
from solotable.systems.portal.services.notifications.inbox import Inbox
from solotable.systems.storage import Storage

from .browser.visits import Visit
from .views.content import content_page
from .views.shared import content_url

_MESSAGES = {
    "created": Done(title="Draft saved.", text="Attach a file, then ask an Approver to approve it."),
    "saved": Done(title="Saved."),
    "attached": Done(title="File attached."),
    "approve": Done(title="Approved.", text="Everyone who follows it gets a message within seconds."),
    "deprecate": Done(title="Deprecated.", text="Everyone who follows it gets a message within seconds."),
    "expire": Done(title="Expired.", text="Followers and recent readers get a message within seconds."),
    "reopen": Done(title="Reopened.", text="It is a draft again."),
}


@dataclass(frozen=True, slots=True)
class DeletePage:
    """The second page of a deletion."""

    title: str
    url: str
    revision: int
    consequence: str


async def show_content(visit: Visit) -> Response:
    """Show content; the message that led here is then read."""
    content = await _content(visit)
    await EventLog(visit.db).record(
        "content_view", user_id=visit.caller.user_id, content_id=content.content_id
    )
    if visit.query("message"):
        await _mark_read(visit, visit.query("message"))
    people = await _people(visit, content)
    view = content_page(content, visit.caller, people=people, now=datetime.now(UTC))
    return await visit.page("content.html", page=view, done=_MESSAGES.get(visit.query("done")))


async def download_file(visit: Visit) -> Response:
    """Lead to the file, and count the download."""
    content_id = visit.request.path_params["content_id"]
    storage = cast(Storage, visit.state.storage)
    ticket = await Files(visit.db, storage).download(visit.caller, content_id)
    await EventLog(visit.db).record("content_download", user_id=visit.caller.user_id, content_id=content_id)
    if ticket.url is not None:
        return RedirectResponse(ticket.url, status_code=303, headers={"cache-control": "no-store"})
    headers = {"content-disposition": attachment(ticket.file_name)}
    return StreamingResponse(
        await storage.stream(ticket.key), media_type="application/octet-stream", headers=headers
    )


async def attach_file(visit: Visit) -> Response:
    """Store the file of a form and attach it to a draft."""
    content_id = visit.request.path_params["content_id"]
    fields, file = await MultipartReader(visit.request).read()
    visit.check_token(fields.get("form_token", ""))
    if file is None or not file.name:
        raise HTTPException(422, "Choose a file first.")
    data = bytearray()
    async for chunk in file.chunks:
        data += chunk
        if len(data) > MAX_FILE_BYTES:
            raise HTTPException(413, f"A file has at most {MAX_FILE_BYTES} bytes.")
    storage = cast(Storage, visit.state.storage)
    # Some browsers send the path of the file.
    name = file.name.replace("\\", "/").rpartition("/")[2]
    await store_file(
        Files(visit.db, storage),
        storage,
        visit.caller,
        content_id,
        NewFile(name, file.mime, bytes(data)),
        _revision(fields.get("revision", "")),
    )
    return see(f"{content_url(content_id)}?done=attached")


def change_status(change: str) -> Callable[[Visit], Awaitable[Response]]:
    """Return the handler of a lifecycle button: approve, deprecate, expire or reopen."""

    async def handler(visit: Visit) -> Response:
        content_id = visit.request.path_params["content_id"]
        act = getattr(Lifecycle(visit.db), change)
        await act(visit.caller, content_id, revision=_revision(visit.form.value("revision")))
        return see(f"{content_url(content_id)}?done={change}")

    return handler


async def ask_to_delete(visit: Visit) -> Response:
    """Ask once more before content is deleted."""
    content = await _content(visit)
    file = " Its file is removed from the storage." if content.s3_key else ""
    page = DeletePage(
        title=content.title,
        url=content_url(content.content_id),
        revision=content.revision,
        consequence=f"This cannot be undone.{file} Messages about it stay, without a link. "
        "To keep it for admins, expire it instead.",
    )
    return await visit.page("delete.html", page=page)


async def delete_content(visit: Visit) -> Response:
    """Delete content."""
    content_id = visit.request.path_params["content_id"]
    await Contents(visit.db).delete(
        visit.caller, content_id, revision=_revision(visit.form.value("revision"))
    )
    return see("/?done=deleted")


async def _content(visit: Visit) -> Content:
    # Consistent: after a form, the page shows what the form did.
    return await Contents(visit.db).get(
        visit.caller, visit.request.path_params["content_id"], consistent=True
    )


async def _people(visit: Visit, content: Content) -> dict[str, str]:
    """Return the names of the owner and of who changed the status."""
    directory = cast(Directory, visit.state.directory)
    ids = {content.owner_user_id, content.status_changed_by or content.owner_user_id}
    found = [await directory.get(each) for each in sorted(ids)]
    return {each.user_id: each.name for each in found if each is not None}


async def _mark_read(visit: Visit, notification_id: str) -> None:
    try:
        await Inbox(visit.db).mark_read(visit.caller, notification_id)
    except NotFound:
        return  # an old link


def _revision(text: str) -> int | None:
    """Return the revision that a form was made for; 422 without one."""
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise HTTPException(422, "The form lacks its revision.")
    return int(text)
