"""Deletion, recovery, purge and export of accounts over HTTP, and operators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from solotable import connect
from solotable.errors import StoredDataError
from solotable.exports import locate, open_export
from solotable.systems.community.entities.users import User
from solotable.systems.community.jobs.account_purge import AccountPurge
from solotable.systems.community.table import community

from .api import Api, blocking, running

DAYS = 86_400


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with running(tmp_path) as made:
        made.sign_up("ann")
        made.sign_up("ben")
        yield made


def test_s2_22_a_deleted_account_is_hidden_and_its_user_may_only_recover_it(api: Api) -> None:
    second = api.tokens["ann"]
    api.sign_up("ann")
    ticket = api.data("DELETE", "/api/user", "ann")
    assert set(ticket) == {"receipt_id", "requested_at", "due_at"}
    api.tokens["second"] = second
    for session in ("ann", "second"):
        assert api.status("GET", "/auth/me", session) == (401, "unauthorized")
    assert api.status("GET", "/api/users/did:plc:ann", "ben") == (404, "not-found")
    api.clock.seconds += 29 * DAYS
    api.sign_up("ben")
    api.log_in_again("ann")
    assert api.data("GET", "/auth/me", "ann") == {"did": "did:plc:ann", "deleted": True, "profile": None}
    assert api.status("GET", "/api/user", "ann") == (403, "forbidden")
    assert api.data("POST", "/api/user/recover", "ann")["did"] == "did:plc:ann"
    assert api.status("GET", "/api/user", "ann") == (200, "")
    assert api.status("POST", "/api/user/recover", "ann") == (404, "not-recoverable")
    assert api.status("GET", "/api/users/did:plc:ann", "ben") == (200, "")


def test_s2_22_after_30_days_the_purge_ends_all_sessions_and_leaves_a_receipt(api: Api) -> None:
    site = api.site("ann")
    api.data("POST", f"/api/sites/{site}/content", "ann", json={"title": "First"})
    receipt = api.data("DELETE", "/api/user", "ann")["receipt_id"]
    api.clock.seconds += 30 * DAYS + 10
    api.log_in_again("ann")
    assert api.status("POST", "/api/user/recover", "ann") == (404, "not-recoverable")
    assert api.status("GET", f"/api/receipts/{receipt}", None) == (404, "not-found")
    with blocking(api) as db:
        AccountPurge(db, now=api.now).run_once()
    assert api.status("GET", "/auth/me", "ann") == (401, "unauthorized")
    found = api.data("GET", f"/api/receipts/{receipt}", None)
    assert found["receipt_id"] == receipt
    assert "ann" not in str(found)


def test_a_session_without_an_account_opens_nothing(api: Api) -> None:
    """As one that was opened at the moment of a purge."""
    api.log_in_again("gone")
    assert api.status("GET", "/auth/me", "gone") == (401, "unauthorized")
    assert api.status("POST", "/api/user/recover", "gone") == (401, "unauthorized")


def test_the_last_admin_does_not_delete_their_account(api: Api) -> None:
    nid = api.neighbourhood("ann")
    api.data("POST", f"/api/neighborhoods/{nid}/join", "ben")
    assert api.status("DELETE", "/api/user", "ann") == (409, "last-admin")
    handover = {"role": "creator"}
    api.data("PUT", f"/api/neighborhoods/{nid}/members/did:plc:ben", "ann", json=handover)
    assert api.status("DELETE", "/api/user", "ann") == (202, "")


def test_a_user_exports_their_data_and_their_records(api: Api) -> None:
    site = api.site("ann", title="Notes from number nine")
    api.data("POST", f"/api/sites/{site}/content", "ann", json={"title": "The heron is back"})
    answer = api.ask("GET", "/api/user/export/data", "ann")
    assert answer.headers["content-disposition"].startswith("attachment")
    data = answer.json()
    assert [each["site"]["title"] for each in data["sites"]] == ["Notes from number nine"]
    assert "digest" not in answer.text
    records = api.data("GET", "/api/user/export/atproto", "ann")["records"]
    assert {each["value"]["$type"] for each in records} == {"city.nbhd.profile", "city.nbhd.post"}
    assert all(each["uri"].startswith("at://did:plc:ann/") for each in records)


def test_s2_17_an_operator_exports_all_items_once_a_day(api: Api, tmp_path: Path) -> None:
    first = api.data("POST", "/admin/export", "operator")
    again = api.data("POST", "/admin/export", "operator")
    assert (first["existed"], again["existed"]) == (False, True)
    assert first["items"] == again["items"] > 0
    export = open_export(locate(tmp_path / "exports" / first["day"] / "community"))
    kinds = {item["entity_type"]["S"] for _, item in export.items() if "entity_type" in item}
    assert {"USER", "SESSION"} <= kinds
    api.clock.seconds += DAYS
    with blocking(api) as db, db.lease("daily-export", seconds=60):
        assert api.status("POST", "/admin/export", "operator") == (409, "export-running")
    assert api.data("POST", "/admin/export", "operator")["existed"] is False


def test_s2_16_an_operator_restores_another_table_and_later_writes_stay(api: Api) -> None:
    api.app.state.recovery.enable_backups()
    api.data("PUT", "/api/user", "ann", json={"display_name": "Before"})
    report = api.data("POST", "/admin/restore", "operator", json={"table": "copy-community"})
    assert report["table"] == "copy-community"
    api.data("PUT", "/api/user", "ann", json={"display_name": "After"})
    assert api.data("GET", "/api/user", "ann")["display_name"] == "After"
    with connect(f"{api.url}&prefix=copy-", community) as copy:
        restored = copy.get(User, did="did:plc:ann")
        assert restored is not None
        assert restored.display_name == "Before"
    again = api.status("POST", "/admin/restore", "operator", json={"table": "copy-community"})
    assert again == (409, "already-exists")
    late = {"table": "later", "at": "2001-01-01T00:00:00Z"}
    assert api.status("POST", "/admin/restore", "operator", json=late) == (422, "invalid")


def test_s2_13_operators_list_users_newest_first_and_by_period(api: Api) -> None:
    api.clock.seconds += 60
    api.sign_up("cy")
    found = [each["did"] for each in api.data("GET", "/api/users", "operator")["items"]]
    assert found[0] == "did:plc:cy"
    assert set(found) == {"did:plc:ann", "did:plc:ben", "did:plc:cy"}
    moment = api.now().isoformat().replace("+00:00", "Z")
    path = f"/api/users?created_from={moment}&created_until={moment}"
    assert [each["did"] for each in api.data("GET", path, "operator")["items"]] == ["did:plc:cy"]
    assert api.status("GET", f"/api/users?created_from={moment}", "operator") == (422, "invalid")


def test_a_cursor_works_for_its_list_and_its_user_only(api: Api) -> None:
    for number in range(3):
        api.clock.seconds += 1
        api.neighbourhood("ann", name=f"Place number {number}")
    page = api.data("GET", "/api/neighborhoods?limit=2", "ann")
    cursor = page["next_cursor"]
    rest = api.data("GET", f"/api/neighborhoods?limit=2&cursor={cursor}", "ann")["items"]
    assert [each["name"] for each in page["items"] + rest] == [f"Place number {n}" for n in (2, 1, 0)]
    for user, path in (
        ("ben", "/api/neighborhoods"),
        (None, "/api/neighborhoods"),
        ("ann", "/api/users/me/nbhds"),
        ("ann", "/api/sites"),
    ):
        assert api.status("GET", f"{path}?cursor={cursor}", user) == (400, "cursor-rejected")


def test_an_unexpected_error_shows_nothing_of_itself(api: Api) -> None:
    class Broken:
        async def find(self, *_: object) -> None:
            raise StoredDataError("a secret of the table")

    api.app.state.sessions = Broken()
    answer = api.ask("GET", "/auth/me", "ann")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert "secret" not in answer.text
