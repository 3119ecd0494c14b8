"""Content over HTTP: revisions, illegal changes, files, events and bad input."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from .api import PDF, Api, attach, running


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with running(tmp_path_factory.mktemp("content"), filled=False) as made:
        yield made


def error(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_the_revision_is_the_entity_tag_of_content(api: Api) -> None:
    made = api.draft()
    path = f"/v1/content/{made['content_id']}"
    read = api.ask("GET", path, "Contributor")
    assert read.headers["etag"] == f'"{made["revision"]}"'
    assert api.ask("GET", path, "Contributor", headers={"if-none-match": '"1"'}).status_code == 304
    changed = api.ask("PUT", path, "Contributor", json={"title": "B"}, headers={"if-match": '"1"'})
    assert (changed.status_code, changed.headers["etag"]) == (200, '"2"')
    late = api.ask("PUT", path, "Contributor", json={"title": "C"}, headers={"if-match": '"1"'})
    assert error(late) == (412, "version-conflict")
    assert late.json()["error"]["current_version"] == 2
    assert api.data("GET", path, "Contributor")["title"] == "B"


def test_approving_twice_is_a_409_that_says_why(api: Api) -> None:
    approved = api.approved()
    again = api.ask("POST", f"/v1/content/{approved['content_id']}/approve", "Approver")
    assert error(again) == (409, "illegal-transition")
    message = again.json()["error"]["message"]
    assert message == "Cannot approve content that is Approved; it must be Deprecated or Draft."


def test_of_two_approvals_at_the_same_time_one_succeeds(api: Api) -> None:
    path = f"/v1/content/{api.draft()['content_id']}/approve"
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: api.ask("POST", path, "Approver"), range(4)))
    assert sorted(each.status_code for each in answers) == [200, 409, 409, 409]


def test_c3_12_content_that_expires_during_an_edit_is_not_overwritten(api: Api) -> None:
    made = api.draft()
    path = f"/v1/content/{made['content_id']}"
    api.data("POST", f"{path}/expire", "Approver")
    tag = {"if-match": f'"{made["revision"]}"'}
    edited = api.ask("PUT", path, "Contributor", json={"title": "Mine"}, headers=tag)
    assert error(edited) == (409, "illegal-transition")
    deleted = api.ask("DELETE", path, "Admin", headers=tag)
    assert error(deleted) == (412, "version-conflict")
    assert api.data("GET", path)["title"] == "Pricing 101"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"title": ""},
        {"title": "x" * 201},
        {"title": "x", "status": "Approved"},
        {"title": "x", "owner_user_id": "admin"},
        {"title": "x", "tags": [f"t{number}" for number in range(1000)]},
        {"title": "x", "tags": ["y" * 51]},
        {"title": "x", "expiry_date": "next week"},
        {"title": "x", "expiry_date": "2026-11-17T10:00:00"},
        {"title": "x", "expiry_policy": "maybe"},
        {"title": "x", "product_suite": "*"},
        [],
        "text",
    ],
)
def test_bad_content_is_a_422_without_its_values(api: Api, body: Any) -> None:
    answer = api.ask("POST", "/v1/content", "Contributor", json=body)
    assert error(answer) == (422, "invalid")


@pytest.mark.parametrize("name", ["A#B", "Ä/ß ?&=", "\u202eevil", "<script>alert(1)</script>"])
def test_c3_4_any_product_name_is_stored_and_listed(api: Api, name: str) -> None:
    made = api.approved(product_suite=name, product_concept=name)
    listed = api.data("GET", "/v1/content", params={"product_suite": made["product_suite"]})["items"]
    assert [each["content_id"] for each in listed] == [made["content_id"]]


def test_a_json_body_has_at_most_one_megabyte(api: Api) -> None:
    answer = api.ask("POST", "/v1/content", "Contributor", json={"title": "x", "summary": "y" * 1_100_000})
    assert error(answer) == (413, "content-too-large")
    huge = {"content-length": str(200 * 1024 * 1024), "content-type": "application/json"}
    assert error(api.ask("POST", "/v1/content", "Contributor", content=b"{}", headers=huge))[0] == 413


def test_a_file_is_uploaded_by_a_url_attached_and_downloaded(api: Api) -> None:
    made = api.draft()
    stored = attach(api, made["content_id"])
    assert (stored["file_name"], stored["size_bytes"]) == ("prices.pdf", len(PDF))
    path = f"/v1/content/{made['content_id']}"
    api.data("POST", f"{path}/approve", "Approver")
    ticket = api.data("GET", f"{path}/download", "Viewer")
    file = api.client.get(ticket["url"])
    assert file.content == PDF
    assert file.headers["content-disposition"].startswith('attachment; filename="prices.pdf"; filename*=')
    assert file.headers["content-security-policy"].startswith("default-src 'none'")
    assert api.client.get(ticket["url"].replace("prices", "other")).status_code == 403
    assert api.client.put(ticket["url"], content=b"x").status_code == 403


def test_a_url_takes_the_bytes_that_it_was_signed_for_and_no_more(api: Api) -> None:
    draft = {
        "content_id": api.draft()["content_id"],
        "file_name": "a.pdf",
        "content_type": "application/pdf",
        "size_bytes": 20,
    }
    ticket = api.data("POST", "/v1/uploads/presign", "Contributor", json=draft)
    for data in (b"x" * 21, b"x" * 19, b"", b"x" * 3_000_000):
        answer = api.client.put(ticket["url"], content=data, headers=ticket["headers"])
        assert answer.status_code in (413, 422), (len(data), answer.status_code)
        assert answer.json()["error"]["message"], "a program reads it"
    assert api.client.put(ticket["url"], content=b"x" * 20, headers=ticket["headers"]).status_code == 201
    assert api.client.put(ticket["url"], content=b"y" * 20, headers=ticket["headers"]).status_code == 409


def test_a_hundred_megabytes_are_refused_before_they_are_sent(api: Api) -> None:
    draft = {
        "content_id": api.draft()["content_id"],
        "file_name": "film.mp4",
        "content_type": "video/mp4",
        "size_bytes": 100 * 1024 * 1024,
    }
    assert error(api.ask("POST", "/v1/uploads/presign", "Contributor", json=draft)) == (422, "invalid")


def test_only_the_owner_or_an_admin_attaches_to_a_draft(api: Api) -> None:
    made = api.draft()
    draft = {
        "content_id": made["content_id"],
        "file_name": "a.pdf",
        "content_type": "application/pdf",
        "size_bytes": 20,
    }
    assert error(api.ask("POST", "/v1/uploads/presign", "Approver", json=draft)) == (403, "forbidden")
    assert api.ask("POST", "/v1/uploads/presign", "Admin", json=draft).status_code == 201
    api.data("POST", f"/v1/content/{made['content_id']}/approve", "Approver")
    refused = api.ask("POST", "/v1/uploads/presign", "Contributor", json=draft)
    assert error(refused) == (409, "illegal-transition")


@pytest.mark.parametrize("extra", [{"user_id": "admin"}, {"timestamp": "2020-01-01T00:00:00Z"}])
def test_c3_10_an_event_of_another_user_or_time_is_rejected(api: Api, extra: dict[str, str]) -> None:
    answer = api.ask("POST", "/v1/events", "Viewer", json={"event_name": "content_view", **extra})
    assert error(answer) == (422, "invalid")
    mine = api.data("POST", "/v1/events", "Viewer", json={"event_name": "content_view"})
    assert mine["user_id"] == "viewer"


def test_an_approval_reaches_the_inbox_and_is_read_once(api: Api) -> None:
    api.data("POST", "/v1/subscriptions", "Viewer", json={"product_suite": "Tern"})
    made = api.approved(title="Tern in brief", product_suite="Tern")
    api.work()
    [message] = api.data("GET", "/v1/notifications", "Viewer")["items"]
    assert (message["content_id"], message["message"]) == (made["content_id"], "Tern in brief")
    assert api.data("GET", "/v1/notifications/unread", "Viewer") == {"unread": 1}
    path = f"/v1/notifications/{message['notification_id']}"
    assert api.ask("POST", f"{path}/read", "Approver").status_code == 404, "another user's"
    for _ in range(2):
        assert api.data("POST", f"{path}/read", "Viewer")["read"] is True
    assert api.data("GET", "/v1/notifications/unread", "Viewer") == {"unread": 0}


def test_the_expiry_job_reports_what_it_did(api: Api) -> None:
    made = api.draft(expiry_date="2020-01-01")
    report = api.data("POST", "/v1/jobs/expire")
    assert report == {"scanned": 1, "expired": 1, "skipped": 0, "errors": 0}
    assert api.data("GET", f"/v1/content/{made['content_id']}")["status"] == "Expired"
    assert api.data("POST", "/v1/jobs/expire")["expired"] == 0


def test_analytics_count_what_was_recorded(api: Api) -> None:
    made = api.approved(title="Counted")
    for _ in range(3):
        body = {"event_name": "content_view", "content_id": made["content_id"]}
        api.data("POST", "/v1/events", "Viewer", json=body)
    api.work()
    rows = api.data("GET", "/v1/analytics/content?days=7")["rows"]
    assert {"content_id": made["content_id"], "events": 3, "views": 3, "downloads": 0} in rows
    assert api.data("GET", "/v1/analytics/overview?days=7")["current"]["views"] >= 3
    assert "viewer" in {each["user_id"] for each in api.data("GET", "/v1/analytics/users")["rows"]}
    assert api.ask("GET", "/v1/analytics/overview?days=0", "Admin").status_code == 422
