"""The privacy matrix: public and private neighbourhoods, for every kind of visitor, in every place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from .api import Api, running

EMAIL = "member@example.com"
#: The kinds of visitors; `pending` has asked to join, `invited` has an invitation, `left` was a member.
VISITORS = ("anonymous", "user", "pending", "invited", "left", "member", "admin", "creator", "operator")
INSIDE = {"member", "admin", "creator"}
ADMINS = {"admin", "creator"}


@dataclass(frozen=True)
class Place:
    """A neighbourhood with a site, and all visitors."""

    nid: str
    slug: str
    privacy: str
    member_did: str

    @property
    def path(self) -> str:
        return f"/api/neighborhoods/{self.nid}"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with running(tmp_path_factory.mktemp("privacy")) as made:
        yield made


def made_place(api: Api, privacy: str) -> Place:
    dids = {}
    for role in VISITORS[1:-1]:
        dids[role] = api.sign_up(f"{privacy}{role}")
        api.tokens[role] = api.tokens[f"{privacy}{role}"]
    name = f"The {privacy} place"
    nid = api.neighbourhood("creator", name=name, privacy=privacy, description="What only some may read.")
    path = f"/api/neighborhoods/{nid}"
    for role in ("member", "admin", "left"):
        api.joined(nid, role)
    api.data("PUT", f"{path}/members/{dids['admin']}", "creator", json={"role": "admin"})
    api.data("DELETE", f"{path}/leave", "left")
    if privacy == "private":
        api.data("POST", f"{path}/join", "pending")
    api.data("POST", f"{path}/members", "creator", json={"did": dids["invited"]})
    api.data("PUT", "/api/user", "member", json={"email": EMAIL})
    api.site("member", title=f"Site in {privacy}", neighbourhood_id=nid)
    return Place(nid, f"the-{privacy}-place", privacy, dids["member"])


@pytest.fixture(scope="module", params=["public", "private"])
def place(api: Api, request: pytest.FixtureRequest) -> Place:
    return made_place(api, request.param)


def role_of(visitor: str) -> str | None:
    return None if visitor == "anonymous" else visitor


def sees_inside(place: Place, visitor: str) -> bool:
    return place.privacy == "public" or visitor in INSIDE or visitor == "operator"


@pytest.mark.parametrize("visitor", VISITORS)
def test_a_private_neighbourhood_is_in_no_list(api: Api, place: Place, visitor: str) -> None:
    found = api.data("GET", "/api/neighborhoods?limit=100", role_of(visitor))["items"]
    assert (place.nid in [each["id"] for each in found]) is (place.privacy == "public")


@pytest.mark.parametrize("visitor", VISITORS)
def test_counts_and_texts_are_for_those_who_may_see_them(api: Api, place: Place, visitor: str) -> None:
    found = api.data("GET", place.path, role_of(visitor))
    inside = sees_inside(place, visitor)
    assert found["member_count"] == (3 if inside else None)
    assert found["description"] == ("What only some may read." if inside else None)
    assert found["creator_did"] is None or inside
    assert found["name"], "so that a visitor can ask to join"
    assert found["role"] == (visitor if visitor in INSIDE else None)


@pytest.mark.parametrize("visitor", VISITORS)
def test_members_are_for_those_who_may_see_them(api: Api, place: Place, visitor: str) -> None:
    answer = api.ask("GET", f"{place.path}/members", role_of(visitor))
    if not sees_inside(place, visitor):
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
        return
    found = answer.json()["items"]
    assert {each["role"] for each in found} == {"creator", "admin", "member"}
    assert len(found) == 3
    # Addresses are for admins and operators.
    assert (EMAIL in answer.text) is (visitor in ADMINS or visitor == "operator")


@pytest.mark.parametrize("visitor", VISITORS)
@pytest.mark.parametrize("status", ["pending", "invited", "left"])
def test_requests_and_invitations_are_for_admins(api: Api, place: Place, visitor: str, status: str) -> None:
    answer = api.ask("GET", f"{place.path}/members?status={status}", role_of(visitor))
    expected = 200 if visitor in ADMINS or visitor == "operator" else 403
    assert answer.status_code == expected, answer.text
    if expected == 200 and (status != "pending" or place.privacy == "private"):
        assert [each["status"] for each in answer.json()["items"]] == [status]


@pytest.mark.parametrize("visitor", [each for each in VISITORS if each not in ("anonymous", "operator")])
def test_the_list_of_a_user_hides_private_neighbourhoods_from_others(
    api: Api, place: Place, visitor: str
) -> None:
    found = api.data("GET", f"/api/users/{place.member_did}/nbhds", visitor)["items"]
    seen = [each["neighbourhood"]["id"] for each in found]
    assert (place.nid in seen) is (place.privacy == "public" or visitor in INSIDE)


@pytest.mark.parametrize("visitor", [each for each in VISITORS if each not in ("anonymous", "operator")])
def test_the_own_list_has_what_the_user_is_in(api: Api, place: Place, visitor: str) -> None:
    def listed(status: str) -> list[dict[str, Any]]:
        path = f"/api/users/me/nbhds?status={status}"
        found: list[dict[str, Any]] = api.data("GET", path, f"{place.privacy}{visitor}")["items"]
        return [each for each in found if each["neighbourhood"]["id"] == place.nid]

    assert bool(listed("active")) is (visitor in INSIDE)
    waiting = listed(visitor) if visitor in ("pending", "invited", "left") else []
    if waiting and place.privacy == "private":
        assert waiting[0]["neighbourhood"]["member_count"] is None


@pytest.mark.parametrize("visitor", VISITORS)
def test_the_history_is_for_admins(api: Api, place: Place, visitor: str) -> None:
    answer = api.ask("GET", f"{place.path}/history", role_of(visitor))
    expected = {"anonymous": 401, "operator": 403}.get(visitor, 200 if visitor in ADMINS else 403)
    assert answer.status_code == expected, answer.text


@pytest.mark.parametrize("visitor", [each for each in VISITORS if each != "operator"])
def test_the_page_shows_no_more_than_the_api(api: Api, place: Place, visitor: str) -> None:
    cookies = {} if visitor == "anonymous" else {"community_session": api.tokens[f"{place.privacy}{visitor}"]}
    header = {"cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
    page = api.client.get(f"/n/{place.slug}", headers=header)
    assert page.status_code == 200, page.text
    inside = sees_inside(place, visitor)
    assert ("What only some may read." in page.text) is inside
    assert (f"{place.privacy.title()}creator" in page.text) is inside or visitor == "creator"
    assert ("3 members" in page.text) is inside
    assert EMAIL not in page.text
    assert ("asks to join" in page.text) is (visitor in ADMINS and place.privacy == "private")


def test_an_address_is_in_no_answer_to_another_user(api: Api, place: Place) -> None:
    for path in (f"/api/users/{place.member_did}", f"/api/users/{place.member_did}/nbhds", place.path):
        assert EMAIL not in json.dumps(api.data("GET", path, "user"))
    own = api.data("GET", "/api/user", f"{place.privacy}member")
    assert own["email"] == EMAIL


@pytest.mark.parametrize("status", ["invited", "pending", "left"])
def test_an_admin_reads_no_address_of_a_user_who_is_not_a_member(api: Api, status: str) -> None:
    """Any user can make a neighbourhood and invite any other: an invitation must not open the address."""
    did = api.sign_up(f"victim{status}")
    api.sign_up("stalker")
    api.data("PUT", "/api/user", f"victim{status}", json={"email": "victim@example.com"})
    path = f"/api/neighborhoods/{api.neighbourhood('stalker', privacy='private')}"
    if status == "pending":
        api.data("POST", f"{path}/join", f"victim{status}")
    else:
        api.data("POST", f"{path}/members", "stalker", json={"did": did})
    if status == "left":
        api.data("DELETE", f"{path}/leave", f"victim{status}")
    listed = api.data("GET", f"{path}/members?status={status}", "stalker")["items"]
    assert [each["did"] for each in listed] == [did]
    assert "victim@example.com" not in json.dumps(listed)


@pytest.mark.parametrize("limit", [1, 2])
def test_pages_do_not_tell_how_many_private_neighbourhoods_a_user_has(api: Api, limit: int) -> None:
    did = api.sign_up("hidden")
    api.sign_up("curious")
    public = []
    for number, privacy in enumerate(["private", "public", "private", "public", "private", "private"]):
        api.clock.seconds += 1
        made = api.neighbourhood("hidden", name=f"Hidden {limit} {number}", privacy=privacy)
        public += [made] if privacy == "public" else []
    pages: list[list[str]] = []
    cursor = None
    while cursor is not None or not pages:
        params = {"limit": limit} | ({"cursor": cursor} if cursor else {})
        page = api.data("GET", f"/api/users/{did}/nbhds", "curious", params=params)
        pages.append([each["neighbourhood"]["id"] for each in page["items"]])
        cursor = page["next_cursor"]
    found = [nid for page in pages for nid in page]
    assert found[:2] == public[::-1]
    # Every page but the last one is full, and the last one has something.
    assert {len(page) for page in pages[:-1]} <= {limit}
    assert pages[-1]


def test_the_neighbourhoods_of_a_deleted_account_are_hidden_at_once(api: Api) -> None:
    did = api.sign_up("gone")
    api.sign_up("curious")
    api.neighbourhood("gone")
    assert api.data("GET", f"/api/users/{did}/nbhds", "curious")["items"]
    api.data("DELETE", "/api/user", "gone")
    for path in (f"/api/users/{did}", f"/api/users/{did}/nbhds"):
        assert api.status("GET", path, "curious") == (404, "not-found")
