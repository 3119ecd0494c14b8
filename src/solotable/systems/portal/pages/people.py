"""`/people`: users for administrators: invite, change roles, enable and disable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from urllib.parse import urlencode

from fastapi import HTTPException
from pydantic import ValidationError
from starlette.responses import Response

from solotable.errors import NotUnique
from solotable.pages.forms import FieldError, Form, errors_of
from solotable.systems.browser.redirects import see
from solotable.systems.browser.render import Done
from solotable.systems.errors import InvalidInput
from solotable.systems.portal.identity.directory import INVITATION_DAYS, Directory, InvitationDraft, Profile
from solotable.systems.portal.roles import ROLES

from .browser.visits import Visit
from .library import seal_of

_PAGE = 50
_LABELS = {"name": "Name", "email": "E-mail address", "role": "Role"}
_MESSAGES = {
    "role": Done(title="Role changed."),
    "disable": Done(title="Disabled.", text="All sessions and tokens of this person ended."),
    "enable": Done(title="Enabled.", text="This person can sign in again."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A user in the list."""

    id: str
    name: str
    email: str
    role: str
    state: str
    enabled: bool
    is_you: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PeoplePage:
    """The users, and the link of an invitation right after it was made."""

    people: tuple[Person, ...]
    roles: tuple[str, ...]
    role_options: tuple[tuple[str, str], ...]
    link: str
    invited: str
    invitation_days: int
    more_url: str


async def show_people(visit: Visit) -> Response:
    """Show a page of users."""
    return await _show(visit, Form.of(role="Viewer"), done=_MESSAGES.get(visit.query("done")))


async def invite(visit: Visit) -> Response:
    """Invite a person, and show the link to send them once."""
    given = {name: visit.form.value(name).strip() for name in _LABELS}
    try:
        invited = await _directory(visit).invite(InvitationDraft.model_validate(given))
    except ValidationError as error:
        return await _show(visit, visit.form.with_errors(errors_of(error, _LABELS)), status=422)
    except (InvalidInput, NotUnique) as error:
        taken = isinstance(error, NotUnique)
        text = "E-mail address: a person with this address is here already." if taken else str(error)
        form = visit.form.with_errors([FieldError("email" if taken else "", text)])
        return await _show(visit, form, status=409 if taken else 422)
    # Not a redirect: the link must not be in an address, a log or the history.
    base = str(visit.request.base_url).rstrip("/")
    link = f"{base}/invitations/{invited.secret}"
    return await _show(visit, Form.of(role="Viewer"), status=201, link=link, invited=invited.profile.name)


async def change_role(visit: Visit) -> Response:
    """Give a user another role."""
    role = visit.form.value("role")
    if role not in ROLES:
        raise HTTPException(422, "Choose one of the four roles.")
    user_id = visit.request.path_params["user_id"]
    await _directory(visit).set_role(user_id, role, by=visit.caller.user_id)
    return see("/people?done=role")


async def disable(visit: Visit) -> Response:
    """Take a user's access away."""
    user_id = visit.request.path_params["user_id"]
    await _directory(visit).set_enabled(user_id, enabled=False, by=visit.caller.user_id)
    return see("/people?done=disable")


async def enable(visit: Visit) -> Response:
    """Give a user access again."""
    user_id = visit.request.path_params["user_id"]
    await _directory(visit).set_enabled(user_id, enabled=True, by=visit.caller.user_id)
    return see("/people?done=enable")


async def _show(
    visit: Visit,
    form: Form,
    *,
    status: int = 200,
    link: str = "",
    invited: str = "",
    done: Done | None = None,
) -> Response:
    seal, user_id = seal_of(visit), visit.caller.user_id
    cursor = seal.open(visit.request.query_params.get("cursor"), user_id=user_id, list_name="people")
    page = await _directory(visit).page(limit=_PAGE, cursor=cursor)
    following = seal.seal(page.cursor, user_id=user_id, list_name="people")
    view = PeoplePage(
        people=tuple(_person(each, user_id) for each in page.items),
        roles=ROLES,
        role_options=tuple((role, role) for role in ROLES),
        link=link,
        invited=invited,
        invitation_days=INVITATION_DAYS,
        more_url="" if following is None else f"/people?{urlencode({'cursor': following})}",
    )
    return await visit.page("people.html", status=status, page=view, form=form, done=done)


def _person(profile: Profile, you: str) -> Person:
    state = "disabled" if not profile.enabled else "active" if profile.active else "invited"
    return Person(
        id=profile.user_id,
        name=profile.name,
        email=profile.email,
        role=profile.role,
        state=state,
        enabled=profile.enabled,
        is_you=profile.user_id == you,
    )


def _directory(visit: Visit) -> Directory:
    return cast(Directory, visit.state.directory)
