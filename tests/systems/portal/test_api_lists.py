"""Lists over HTTP: sealed cursors, every item once, and who sees what."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from solotable import CursorRejected
from solotable.systems.http.cursors import CursorSeal

from .api import Api, running


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A portal with seven approved items and some messages."""
    with running(tmp_path_factory.mktemp("lists"), filled=False) as made:
        made.data("POST", "/v1/subscriptions", "Viewer", json={"product_suite": "Compass"})
        for number in range(7):
            made.approved(title=f"Guide {number}", product_suite="Compass", product_concept="Billing")
            made.data("POST", "/v1/subscriptions", "Viewer", json={"tags": [f"t{number}"]})
            made.data("POST", "/v1/events", "Viewer", json={"event_name": "content_view"})
        made.draft(title="Secret draft of the contributor", product_suite="Compass")
        made.work()
        yield made


#: With the role that reads them.
LISTS = {
    "/v1/content": "Viewer",
    "/v1/content?product_suite=Compass": "Viewer",
    "/v1/content?product_suite=Compass&product_concept=Billing": "Viewer",
    "/v1/content?query=guide": "Viewer",
    "/v1/notifications": "Viewer",
    "/v1/notifications?unread=true": "Viewer",
    "/v1/subscriptions": "Viewer",
    "/v1/admin/users": "Admin",
    "/v1/events?user_id=viewer": "Admin",
}


def pages(api: Api, path: str, role: str, limit: int) -> Iterator[dict[str, Any]]:
    joined = "&" if "?" in path else "?"
    cursor = ""
    while True:
        page = api.data("GET", f"{path}{joined}limit={limit}{cursor}", role)
        yield page
        if page["next_cursor"] is None:
            return
        cursor = f"&cursor={page['next_cursor']}"


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("limit", [1, 3])
def test_s3_24_following_the_cursor_visits_every_item_once(api: Api, path: str, limit: int) -> None:
    role = LISTS[path]
    whole = api.data("GET", path, role)
    assert whole["next_cursor"] is None
    found = [item for page in pages(api, path, role, limit) for item in page["items"]]
    assert found == whole["items"]
    assert len(found) >= 5


@pytest.mark.parametrize("path", LISTS)
def test_c3_1_a_cursor_shows_no_key_and_works_for_one_user_and_one_list(api: Api, path: str) -> None:
    role = LISTS[path]
    joined = "&" if "?" in path else "?"
    cursor = api.data("GET", f"{path}{joined}limit=1", role)["next_cursor"]
    shown = base64.urlsafe_b64decode(cursor + "===")
    for word in (b"viewer", b"Compass", b"Approved", b"example.com", b"content_id"):
        assert word not in shown, "a cursor is encrypted"
    # Another user, with enough rights for the list.
    others = {"Viewer": "admin", "Admin": "guest"}
    if role == "Admin":
        api.data("PATCH", "/v1/admin/users/guest/role", json={"role": "Admin"})
    foreign = api.as_user(others[role], "GET", f"{path}{joined}limit=1&cursor={cursor}")
    assert (foreign.status_code, foreign.json()["error"]["code"]) == (400, "cursor-rejected")
    # The same user, another list.
    for other, reader in LISTS.items():
        if other != path and reader == role:
            mark = "&" if "?" in other else "?"
            answer = api.ask("GET", f"{other}{mark}limit=1&cursor={cursor}", role)
            assert answer.status_code == 400, other


@pytest.mark.parametrize("damage", ["x", "=", "AAAA", "a" * 200, "%00", "é"])
def test_c3_1_a_cursor_that_was_not_made_here_is_a_400(api: Api, damage: str) -> None:
    answer = api.ask("GET", "/v1/content", "Viewer", params={"cursor": damage})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "cursor-rejected")


def test_c3_1_one_changed_character_of_a_cursor_is_a_400(api: Api) -> None:
    cursor = api.data("GET", "/v1/content?limit=1", "Viewer")["next_cursor"]
    changed = cursor[:20] + ("A" if cursor[20] != "A" else "B") + cursor[21:]
    assert api.ask("GET", f"/v1/content?cursor={changed}", "Viewer").status_code == 400


def test_lists_and_search_show_what_a_role_may_see(api: Api) -> None:
    def titles(role: str, **params: str) -> set[str]:
        return {each["title"] for each in api.data("GET", "/v1/content", role, params=params)["items"]}

    secret = "Secret draft of the contributor"
    assert titles("Viewer", query="secret") == set()
    assert titles("Contributor", query="secret") == {secret}
    assert titles("Approver", query="secret") == {secret}
    assert secret not in titles("Viewer", product_suite="Compass")
    assert secret in titles("Approver", status="Draft")
    assert titles("Contributor", mine="true", status="Draft") == {secret}
    assert titles("Viewer", mine="true") == set()
    assert api.ask("GET", "/v1/content?mine=true&query=x", "Viewer").status_code == 422
    hidden = api.ask("GET", "/v1/content", "Viewer", params={"status": "Draft"})
    assert (hidden.status_code, hidden.json()["error"]["code"]) == (403, "forbidden")
    assert api.ask("GET", "/v1/content", "Viewer", params={"status": "Published"}).status_code == 422


def test_events_are_listed_by_day_or_by_user_and_not_by_both_or_none(api: Api) -> None:
    [first, *_] = api.data("GET", "/v1/events?user_id=viewer")["items"]
    day = first["timestamp"][:10]
    assert len(api.data("GET", f"/v1/events?date={day}")["items"]) >= 7
    for query in ("", f"?date={day}&user_id=viewer", "?date=yesterday"):
        assert api.ask("GET", f"/v1/events{query}", "Admin").status_code == 422


def test_c3_1_a_seal_binds_user_and_list_and_accepts_the_secrets_of_a_rotation() -> None:
    old, new = CursorSeal([b"old"]), CursorSeal([b"new", b"old"])
    sealed = old.seal("the store's cursor", user_id="ann", list_name="content")
    assert new.open(sealed, user_id="ann", list_name="content") == "the store's cursor"
    assert sealed != old.seal("the store's cursor", user_id="ann", list_name="content")
    for seal, user_id, name in (
        (new, "ben", "content"),
        (new, "ann", "inbox"),
        (CursorSeal(), "ann", "content"),
    ):
        with pytest.raises(CursorRejected):
            seal.open(sealed, user_id=user_id, list_name=name)
    assert new.seal(None, user_id="ann", list_name="content") is None
