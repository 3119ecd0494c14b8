"""The neighbourhoods of a user, as a caller may see them: private ones leave no gap (S2.10)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pydantic import BaseModel

from solotable import AsyncDatabase, Page
from solotable.errors import NotFound

from .entities.neighbourhoods import Membership, Neighbourhood
from .entities.users import User
from .entities.values import MemberStatus, Role
from .errors import Forbidden
from .roles import Caller
from .services.neighbourhoods import NeighbourhoodView

#: How many memberships to read at a time to find one that a caller may see.
_LOOK_AHEAD = 20


class MembershipView(BaseModel):
    """A neighbourhood of a user."""

    neighbourhood: NeighbourhoodView
    role: Role
    status: MemberStatus
    joined_at: datetime | None = None


async def list_memberships(
    db: AsyncDatabase,
    caller: Caller,
    did: str,
    *,
    status: MemberStatus,
    limit: int,
    cursor: str | None,
) -> Page[MembershipView]:
    """Return the neighbourhoods of a user, the newest membership first.

    Other callers see public neighbourhoods, and private ones of which they are members themselves. Raises
    NotFound for a user without an account, and Forbidden for requests and invitations of another user.
    """
    if caller.did == did or caller.is_operator:
        page = await _read(db, did, status, limit, cursor)
        shown = await _visible(db, caller, page, is_own=True)
        return Page(shown, page.cursor, page.scanned, previous=page.previous)
    if status != "active":
        raise Forbidden("Only the user sees their requests and invitations.")
    if await db.get(User, did=did) is None:
        raise NotFound(f"User not found: did={did!r}.")
    return await _list_for_others(db, caller, did, limit, cursor)


async def _read(
    db: AsyncDatabase, did: str, status: MemberStatus, limit: int, cursor: str | None
) -> Page[Membership]:
    query = Membership.of_user(did) if status == "active" else Membership.of_user_with_status(did, status)
    return await db.page(query, limit=limit, cursor=cursor, unknown="skip")


async def _list_for_others(
    db: AsyncDatabase, caller: Caller, did: str, limit: int, cursor: str | None
) -> Page[MembershipView]:
    """Return a full page of what others may see: a short one would tell how many are private."""
    shown: list[MembershipView] = []
    scanned = 0
    while True:
        page = await _read(db, did, "active", limit - len(shown), cursor)
        shown += await _visible(db, caller, page, is_own=False)
        scanned += page.scanned
        cursor = page.cursor
        if cursor is None or len(shown) == limit:
            break
    is_last = cursor is None or not await _has_more(db, caller, did, cursor)
    return Page(shown, None if is_last else cursor, scanned)


async def _has_more(db: AsyncDatabase, caller: Caller, did: str, cursor: str | None) -> bool:
    """Return whether a later page has anything that the caller may see."""
    while cursor is not None:
        page = await _read(db, did, "active", _LOOK_AHEAD, cursor)
        if await _visible(db, caller, page, is_own=False):
            return True
        cursor = page.cursor
    return False


async def _visible(
    db: AsyncDatabase, caller: Caller, page: Page[Membership], *, is_own: bool
) -> list[MembershipView]:
    """Return what the caller may see of a page of memberships."""
    ids = [each.neighbourhood_id for each in page]
    found = await db.get_many(Neighbourhood, [{"neighbourhood_id": nid} for nid in ids])
    private = [each.neighbourhood_id for each in found if each is not None and each.privacy == "private"]
    shared = set(private) if is_own else await _shared(db, caller, private)
    shown = []
    for each, neighbourhood in zip(page, found, strict=True):
        if neighbourhood is None:
            continue
        is_inside = each.neighbourhood_id in shared and (not is_own or each.is_active)
        if neighbourhood.privacy == "private" and not is_inside and not is_own:
            continue
        is_open = neighbourhood.privacy == "public" or is_inside
        view = (NeighbourhoodView.whole if is_open else NeighbourhoodView.closed)(neighbourhood)
        shown.append(
            MembershipView(neighbourhood=view, role=each.role, status=each.status, joined_at=each.joined_at)
        )
    return shown


async def _shared(db: AsyncDatabase, caller: Caller, neighbourhood_ids: Iterable[str]) -> set[str]:
    """Return in which of these neighbourhoods the caller is."""
    if caller.did is None:
        return set()
    keys = [{"neighbourhood_id": nid, "user_did": caller.did} for nid in neighbourhood_ids]
    found = await db.get_many(Membership, keys)
    return {each.neighbourhood_id for each in found if each is not None and each.is_active}
