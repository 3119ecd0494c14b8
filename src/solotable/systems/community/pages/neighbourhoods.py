"""`/` and `/n/{slug}`: the neighbourhoods, and the page of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from urllib.parse import quote, urlencode

from pydantic import ValidationError
from starlette.responses import Response

from solotable.errors import NotFound
from solotable.pages.forms import FieldError, Form, errors_of
from solotable.systems.browser.redirects import see
from solotable.systems.browser.render import Done
from solotable.systems.community.entities.neighbourhoods import Membership, Neighbourhood
from solotable.systems.community.entities.sites import Site
from solotable.systems.community.entities.users import User
from solotable.systems.community.errors import NameTaken
from solotable.systems.community.formats.names import normalise_slug
from solotable.systems.community.membership_lists import MembershipView
from solotable.systems.community.routes.requests.rate_limits import user_subject
from solotable.systems.community.services.drafts import NeighbourhoodDraft
from solotable.systems.community.services.invitations import Invitations
from solotable.systems.community.services.memberships import Memberships, MemberView
from solotable.systems.community.services.neighbourhoods import Neighbourhoods, NeighbourhoodView
from solotable.systems.community.services.sites import Sites
from solotable.systems.errors import InvalidInput
from solotable.systems.http.cursors import CursorSeal
from solotable.systems.http.rate_limits import taken

from .views.neighbourhood import People, neighbourhood_page
from .visits import Visit

_LISTED = 20
_MEMBERS = 20
_REQUESTS = 20
_LABELS = {"name": "Name", "description": "Description", "privacy": "Who may join"}
_MESSAGES = {
    "created": Done(title="Your neighbourhood is here.", text="Invite someone, and make a site."),
    "joined": Done(title="Welcome.", text="You are a member now."),
    "asked": Done(title="Your request was sent.", text="An admin has to approve it."),
    "left": Done(title="You left.", text="The members see it in the history. You can join again."),
    "approved": Done(title="Approved.", text="They are a member now."),
    "declined": Done(title="Declined.", text="They may ask again."),
}


@dataclass(frozen=True, slots=True)
class StartPage:
    """The first page: public neighbourhoods, and those of the visitor."""

    neighbourhoods: tuple[NeighbourhoodView, ...]
    mine: tuple[MembershipView, ...]
    more: str | None
    signed_in: bool


async def show_start(visit: Visit) -> Response:
    """Show the public neighbourhoods, newest first, and those of the user."""
    seal, user = cast(CursorSeal, visit.request.app.state.cursor_seal), visit.caller.did or ""
    cursor = seal.open(visit.request.query_params.get("cursor"), user_id=user, list_name="start")
    page = await Neighbourhoods(visit.db, now=visit.settings.now).list(limit=_LISTED, cursor=cursor)
    mine: list[MembershipView] = []
    if visit.caller.did is not None and cursor is None:
        services = Memberships(visit.db, now=visit.settings.now)
        mine = list(await services.of_user(visit.caller, visit.caller.did, limit=_LISTED))
    sealed = seal.seal(page.cursor, user_id=user, list_name="start")
    start = StartPage(
        tuple(page.items),
        tuple(mine),
        None if sealed is None else f"/?{urlencode({'cursor': sealed})}",
        visit.session is not None,
    )
    return visit.page("start.html", page=start)


async def show_new(visit: Visit) -> Response:
    """Show the form of a new neighbourhood."""
    return visit.page("new-neighbourhood.html", form=Form())


async def create(visit: Visit) -> Response:
    """Create a neighbourhood, or show the form again."""
    form = visit.form
    fields = {name: form.value(name) for name in _LABELS}
    try:
        draft = NeighbourhoodDraft.model_validate(fields)
        async with taken(visit.request, "neighbourhoods", user_subject(visit.did)):
            made = await Neighbourhoods(visit.db, now=visit.settings.now).create(visit.caller, draft)
    except ValidationError as error:
        wrong, status = errors_of(error, _LABELS), 422
    except InvalidInput as error:
        wrong, status = [FieldError("name", str(error))], 422
    except NameTaken as error:
        wrong, status = [FieldError("name", str(error))], 409
    else:
        return see(f"/n/{quote(made.slug)}?done=created")
    return visit.page("new-neighbourhood.html", status=status, form=form.with_errors(wrong))


async def show_neighbourhood(visit: Visit) -> Response:
    """Show a neighbourhood."""
    found = await _find(visit)
    return await _respond(visit, found, done=_MESSAGES.get(visit.query("done")))


async def join(visit: Visit) -> Response:
    """Join, ask to join, or accept an invitation."""
    found = await _find(visit)
    code = visit.form.value("code")
    if code:
        member = await Invitations(visit.db, now=visit.settings.now).accept(
            visit.caller, found.neighbourhood_id, code
        )
    else:
        member = await _memberships(visit).join(visit.caller, found.neighbourhood_id)
    return see(f"{_path(found)}?done={'joined' if member.is_active else 'asked'}")


async def leave(visit: Visit) -> Response:
    """Leave, or withdraw a request."""
    found = await _find(visit)
    await _memberships(visit).leave(visit.caller, found.neighbourhood_id)
    return see(f"{_path(found)}?done=left")


async def invite(visit: Visit) -> Response:
    """Make a link for one person, and show it once."""
    found = await _find(visit)
    ticket = await Invitations(visit.db, now=visit.settings.now).create(visit.caller, found.neighbourhood_id)
    base = visit.settings.base_url
    return await _respond(visit, found, invitation=f"{base}{_path(found)}?{urlencode({'code': ticket.code})}")


async def answer_request(visit: Visit) -> Response:
    """Approve or decline a request to join."""
    found = await _find(visit)
    did, answer = visit.form.value("did"), visit.form.value("answer")
    services = _memberships(visit)
    if answer == "approve":
        await services.approve(visit.caller, found.neighbourhood_id, did)
        return see(f"{_path(found)}?done=approved")
    await services.reject(visit.caller, found.neighbourhood_id, did)
    return see(f"{_path(found)}?done=declined")


async def _find(visit: Visit) -> Neighbourhood:
    slug = visit.path_part("slug")
    try:
        normal = normalise_slug(slug)
    except InvalidInput:
        raise NotFound("This neighbourhood does not exist.") from None
    found = await visit.db.first(Neighbourhood.with_slug(normal), unknown="skip")
    if found is None:
        raise NotFound("This neighbourhood does not exist.")
    return found


async def _respond(
    visit: Visit, found: Neighbourhood, *, done: Done | None = None, invitation: str = ""
) -> Response:
    nid, services = found.neighbourhood_id, _memberships(visit)
    mine: Membership | None = None
    if visit.caller.did is not None:
        mine = await visit.db.get(
            Membership, neighbourhood_id=nid, user_did=visit.caller.did, consistent=True
        )
    active = mine is not None and mine.is_active
    sites: list[Site] = []
    members: list[MemberView] = []
    requests: list[MemberView] = []
    more = None
    if found.privacy == "public" or active:
        sites = list(await Sites(visit.db, now=visit.settings.now).of_neighbourhood(visit.caller, nid))
        seal = cast(CursorSeal, visit.request.app.state.cursor_seal)
        bound = {"user_id": visit.caller.did or "", "list_name": f"members {nid}"}
        cursor = seal.open(visit.request.query_params.get("members"), **bound)
        page = await services.members(visit.caller, nid, limit=_MEMBERS, cursor=cursor)
        members, sealed = list(page.items), seal.seal(page.cursor, **bound)
        more = None if sealed is None else f"{_path(found)}?{urlencode({'members': sealed})}#members"
    if mine is not None and mine.is_admin:
        requests = list(await services.members(visit.caller, nid, status="pending", limit=_REQUESTS))
    owners = await visit.db.get_many(User, [{"did": did} for did in {each.did for each in sites}])
    people = People(
        members=members,
        requests=requests,
        names={each.did: each.display_name for each in owners if each is not None},
        more=more,
    )
    view = neighbourhood_page(
        found, mine, signed_in=visit.session is not None, sites=sites, people=people, now=visit.now
    )
    return visit.page(
        "neighbourhood.html", page=view, done=done, invitation=invitation, code=visit.query("code")[:100]
    )


def _memberships(visit: Visit) -> Memberships:
    return Memberships(visit.db, now=visit.settings.now)


def _path(found: Neighbourhood) -> str:
    return f"/n/{quote(found.slug)}"
