"""The page of a neighbourhood: who we are, what we make, who is here, and what the visitor may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from urllib.parse import quote

from solotable.systems.browser.dates import Moment, month_of, relative
from solotable.systems.browser.render import initials_of
from solotable.systems.community.entities.neighbourhoods import Membership, Neighbourhood
from solotable.systems.community.entities.sites import Site
from solotable.systems.community.entities.values import ADMINS
from solotable.systems.community.services.memberships import MemberView

#: What a visitor is to the neighbourhood; `anonymous` without a session.
Standing = Literal["anonymous", "visitor", "pending", "invited", "member", "last_admin"]
#: A colour by template; a custom template has the last one.
_MARKS = {"blog": "teal", "newsletter": "rust", "project": "moss"}
_KINDS = {"blog": "Blog", "newsletter": "Newsletter", "project": "Project"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRow:
    """A site in the list of a neighbourhood."""

    title: str
    url: str | None
    mark: str
    letter: str
    kind: str
    built: Moment | None
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow:
    """A member, or a user who asks to become one."""

    did: str
    name: str
    initials: str
    since: Moment | None
    #: Empty for a plain member.
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourhoodPage:
    """The page of a neighbourhood; without `open` it shows the name only."""

    name: str
    path: str
    description: str
    private: bool
    #: Whether the visitor may see sites, members and counts.
    open: bool
    since: Moment | None
    members_text: str
    sites_text: str
    standing: Standing
    is_admin: bool
    may_make_site: bool
    sites: tuple[SiteRow, ...] = ()
    members: tuple[MemberRow, ...] = ()
    more_members: str | None = None
    requests: tuple[MemberRow, ...] = ()


def standing_of(neighbourhood: Neighbourhood, mine: Membership | None, *, signed_in: bool) -> Standing:
    """Return what a visitor is to a neighbourhood."""
    if not signed_in:
        return "anonymous"
    if mine is None or mine.status == "left":
        return "visitor"
    if mine.status != "active":
        return mine.status
    is_last = mine.role == "creator" or (mine.is_admin and neighbourhood.admin_count <= 1)
    return "last_admin" if is_last else "member"


def site_row(site: Site, owner: str, now: datetime) -> SiteRow:
    """Return a site in a list; a site that was never built has no address."""
    kind = _KINDS.get(site.template, "Site")
    return SiteRow(
        title=site.title,
        url=site.public_url if site.built_at is not None else None,
        mark=_MARKS.get(site.template, "plum"),
        letter=kind[0],
        kind=kind,
        built=None if site.built_at is None else relative(site.built_at, now),
        owner=owner,
    )


def member_row(member: MemberView) -> MemberRow:
    """Return a member in a list; an account that is being deleted has no name."""
    name = "A former user" if member.profile is None else member.profile.display_name
    return MemberRow(
        did=member.did,
        name=name,
        initials=initials_of(name),
        since=None if member.joined_at is None else month_of(member.joined_at),
        role=member.role if member.role in ADMINS and member.status == "active" else "",
    )


def count_of(number: int, one: str, many: str) -> str:
    """Return a number with its noun.

    >>> count_of(1, "member", "members"), count_of(38, "member", "members")
    ('1 member', '38 members')
    """
    return f"{number} {one if number == 1 else many}"


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """The members and requests that a page shows, and the names of the owners of its sites."""

    members: Sequence[MemberView] = ()
    requests: Sequence[MemberView] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    #: The URL of the next members.
    more: str | None = None


def neighbourhood_page(
    neighbourhood: Neighbourhood,
    mine: Membership | None,
    *,
    signed_in: bool,
    sites: Sequence[Site],
    people: People,
    now: datetime,
) -> NeighbourhoodPage:
    """Return the page for one visitor."""
    active = mine is not None and mine.is_active
    private = neighbourhood.privacy == "private"
    created = neighbourhood.created_at
    return NeighbourhoodPage(
        name=neighbourhood.name,
        path=f"/n/{quote(neighbourhood.slug)}",
        description=neighbourhood.description if active or not private else "",
        private=private,
        open=active or not private,
        since=None if created is None else month_of(created),
        members_text=count_of(neighbourhood.member_count, "member", "members"),
        sites_text=count_of(len(sites), "site", "sites"),
        standing=standing_of(neighbourhood, mine, signed_in=signed_in),
        is_admin=mine is not None and mine.is_admin,
        may_make_site=active and neighbourhood.settings.allow_site_creation,
        sites=tuple(site_row(each, people.names.get(each.did, each.did), now) for each in sites),
        members=tuple(map(member_row, people.members)),
        more_members=people.more,
        requests=tuple(map(member_row, people.requests)),
    )
