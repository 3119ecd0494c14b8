"""The page of content: what it is, where it stands, its file, and what the user may do with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from solotable.errors import SolotableError
from solotable.systems.browser.dates import Moment, long_day, plain_day, relative
from solotable.systems.file_types import MB
from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.roles import Caller
from solotable.systems.portal.services.access import check_attachable, check_downloadable, check_editable
from solotable.systems.portal.services.files import MAX_FILE_BYTES
from solotable.systems.portal.services.lifecycle import TRANSITIONS, Change

from .shared import Link, StatusBadge, Step, content_url, library_url, steps_of

_KINDS = {
    "application/pdf": "PDF",
    "application/zip": "ZIP archive",
    "image/png": "PNG picture",
    "image/jpeg": "JPEG picture",
    "video/mp4": "MP4 video",
    "text/plain": "Text",
    "text/csv": "CSV table",
}
_ARTICLES = {
    "Viewer": "a Viewer",
    "Contributor": "a Contributor",
    "Approver": "an Approver",
    "Admin": "an Admin",
}
_LABELS: dict[Change, str] = {
    "approve": "Approve",
    "deprecate": "Deprecate",
    "expire": "Expire now",
    "reopen": "Reopen as a draft",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAction:
    """Something that the user may do, with its consequence."""

    label: str
    url: str
    consequence: str
    method: Literal["get", "post"] = "post"
    danger: bool = False
    primary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileView:
    """The file of content; without a URL the user may not download it, for this reason."""

    name: str
    details: str
    url: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """A row of the details: a text, a time or links."""

    label: str
    text: str = ""
    moment: Moment | None = None
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentPage:
    """Content for one user."""

    url: str
    title: str
    summary: str
    status: StatusBadge
    revision: int
    crumbs: tuple[Link, ...]
    steps: tuple[Step, ...]
    file: FileView | None
    can_attach: bool
    file_rules: str
    you_are: str
    actions: tuple[PageAction, ...]
    details: tuple[Detail, ...]


def content_page(
    content: Content, caller: Caller, *, people: Mapping[str, str], now: datetime
) -> ContentPage:
    """Return the page of content; `people` has the names of its owner and of who changed its status."""
    people = {**people, caller.user_id: "you"}
    suite, concept = content.product_suite, content.product_concept
    crumbs = []
    if suite:
        crumbs.append(Link(suite, library_url(suite=suite)))
    if suite and concept:
        crumbs.append(Link(concept, library_url(suite=suite, concept=concept)))
    own = content.owner_user_id == caller.user_id
    return ContentPage(
        url=content_url(content.content_id),
        title=content.title,
        summary=content.summary,
        status=StatusBadge.of(content.status),
        revision=content.revision,
        crumbs=tuple(crumbs),
        steps=steps_of(content, now, people),
        file=_file(content, caller, now),
        can_attach=_may(check_attachable, caller, content),
        file_rules=f"PDF, slides, pictures, video or archives, at most {MAX_FILE_BYTES // MB} MB. "
        "Only the owner of a draft can attach one.",
        you_are=f"You are {_ARTICLES[caller.role]}" + (" and the owner." if own else "."),
        actions=tuple(_actions(content, caller)),
        details=tuple(
            _details(content, "You" if own else people.get(content.owner_user_id, "A person who left"))
        ),
    )


def _may(check: Callable[[Caller, Content], None], caller: Caller, content: Content) -> bool:
    """Return whether a rule of the services allows it."""
    try:
        check(caller, content)
    except SolotableError:
        return False
    return True


def _file(content: Content, caller: Caller, now: datetime) -> FileView | None:
    if content.s3_key is None:
        return None
    allowed = _may(check_downloadable, caller, content)
    parts = [
        _KINDS.get(content.content_type or "", content.content_type or "File"),
        size_text(content.size_bytes or 0),
    ]
    if content.uploaded_at is not None:
        parts.append(f"uploaded {relative(content.uploaded_at, now, clock=False).text}")
    return FileView(
        name=content.file_name or "file",
        details=", ".join(parts),
        url=f"{content_url(content.content_id)}/file" if allowed else "",
        reason=f"The file of {content.status.lower()} content is for "
        + ("its owner and admins." if content.status == "Draft" else "admins."),
    )


def size_text(size: int) -> str:
    """Return a number of bytes in words.

    >>> size_text(900), size_text(1_500_000)
    ('900 bytes', '1.4 MB')
    """
    if size < 1024:
        return f"{size} bytes"
    return f"{size / 1024:.0f} KB" if size < 1024 * 1024 else f"{size / 1024 / 1024:.1f} MB"


def _actions(content: Content, caller: Caller) -> list[PageAction]:
    url = content_url(content.content_id)
    found = []
    if _may(check_editable, caller, content):
        is_draft = content.status == "Draft"
        found.append(
            PageAction(
                label="Edit draft" if is_draft else "Edit details",
                url=f"{url}/edit",
                method="get",
                consequence="Tells no one until it is approved." if is_draft else "Tells no one.",
            )
        )
    for change, label in _LABELS.items():
        transition = TRANSITIONS[change]
        if content.status in transition.sources and caller.has(transition.role):
            found.append(
                PageAction(
                    label="Approve again"
                    if change == "approve" and content.status == "Deprecated"
                    else label,
                    url=f"{url}/{change}",
                    consequence=consequence(change, content),
                    danger=change == "expire",
                    primary=change == "approve",
                )
            )
    if caller.has("Admin"):
        found.append(
            PageAction(
                label="Delete",
                url=f"{url}/delete",
                method="get",
                danger=True,
                consequence="Asks you once more on the next page.",
            )
        )
    return found


def consequence(change: Change, content: Content) -> str:
    """Return what a change of the status does, in words."""
    product = ", ".join(each for each in (content.product_suite, content.product_concept) if each)
    followers = (
        f"everyone who follows {product}" if product else "everyone who follows its tags or all content"
    )
    match change:
        case "approve":
            return f"Tells {followers}."
        case "deprecate":
            return f"Stays in the list, marked as old. Only admins can download it. Tells {followers}."
        case "expire":
            gone = " Removes the file." if content.expiry_policy == "hard_expire" else ""
            if content.status == "Draft":
                return f"Tells no one, because no reader has seen it.{gone}"
            return f"Tells {followers}, and people who downloaded it in the last 30 days.{gone}"
        case "reopen":
            return "Makes it a draft again. Tells no one."


def _details(content: Content, owner: str) -> list[Detail]:
    rows = [Detail(label="Owner", text=owner), Detail(label="Version", text=content.version)]
    for label, text in (("For", content.audience_role), ("Stage", content.lifecycle_stage)):
        if text:
            rows.append(Detail(label=label, text=text))
    if content.effective_date is not None:
        rows.append(Detail(label="Valid from", moment=plain_day(content.effective_date)))
    if content.review_due_date is not None:
        rows.append(Detail(label="Review by", moment=plain_day(content.review_due_date)))
    if content.expiry_date is not None:
        how = (
            ", the file goes too" if content.expiry_policy == "hard_expire" else ", the file stays for admins"
        )
        rows.append(Detail(label="Expires", text=long_day(content.expiry_date.date()) + how))
    if content.tags:
        links = tuple(Link(tag, library_url(tags=tag)) for tag in content.tags)
        rows.append(Detail(label="Tags", links=links))
    if content.last_updated is not None:
        rows.append(Detail(label="Changed", moment=plain_day(content.last_updated)))
    return rows
