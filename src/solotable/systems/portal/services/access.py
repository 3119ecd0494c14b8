"""Who may see, edit and download content, by role, status and owner (3b).

| | Draft | Approved | Deprecated | Expired |
|---|---|---|---|---|
| see | owner, Approver | Viewer | Viewer | owner, Approver |
| edit | owner, Admin | Approver | Approver | no role: reopen it first |
| attach a file | owner, Admin | no role | no role | no role |
| download | owner, Admin | Viewer | Admin | Admin |

A role includes the higher ones. An owner needs the role Contributor to edit.
"""

from __future__ import annotations

from solotable.errors import NotFound
from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.entities.values import STATUSES, Status
from solotable.systems.portal.errors import Forbidden, IllegalTransition
from solotable.systems.portal.roles import Caller

_PUBLIC: frozenset[Status] = frozenset({"Approved", "Deprecated"})


def visible_statuses(caller: Caller) -> frozenset[Status]:
    """Return the statuses of which a caller sees the content of every owner."""
    return frozenset(STATUSES) if caller.has("Approver") else _PUBLIC


def check_visible(caller: Caller, content: Content) -> None:
    """Raise NotFound for content that a caller may not see, as for content that does not exist."""
    if content.status not in visible_statuses(caller) and content.owner_user_id != caller.user_id:
        raise NotFound(f"Content not found: content_id={content.content_id!r}.")


def check_editable(caller: Caller, content: Content) -> None:
    """Raise unless a caller may change the metadata of content."""
    if content.status == "Expired":
        raise IllegalTransition("Expired content cannot be changed; reopen it first.", item=None)
    if content.status == "Draft":
        check_owner(caller, content)
    else:
        caller.require("Approver")


def check_attachable(caller: Caller, content: Content) -> None:
    """Raise unless a caller may attach a file."""
    check_owner(caller, content)
    if content.status != "Draft":
        text = f"A file can be attached to a Draft only; this content is {content.status}."
        raise IllegalTransition(text, item=None)


def check_downloadable(caller: Caller, content: Content) -> None:
    """Raise unless a caller may download the file."""
    if content.status == "Approved" or caller.has("Admin"):
        return
    if content.status != "Draft" or content.owner_user_id != caller.user_id:
        raise Forbidden(f"The file of content that is {content.status} cannot be downloaded with your role.")


def check_owner(caller: Caller, content: Content) -> None:
    """Raise Forbidden unless a caller is an Admin, or the owner with the role Contributor."""
    caller.require("Contributor")
    if content.owner_user_id != caller.user_id and not caller.has("Admin"):
        raise Forbidden("Only the owner or an Admin may change this content.")
