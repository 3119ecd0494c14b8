"""Forms of the pages: what they change, and that a refused form keeps what was typed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from solotable.systems.portal.pages.inbox import LiveSettings

from .api import PDF, Api, running
from .browsing import Browser, Page


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with running(tmp_path_factory.mktemp("forms"), filled=False) as made:
        yield made


@pytest.fixture(scope="module")
def contributor(api: Api) -> Browser:
    return signed_in(api, "contributor")


@pytest.fixture(scope="module")
def approver(api: Api) -> Browser:
    return signed_in(api, "approver")


@pytest.fixture(scope="module")
def viewer(api: Api) -> Browser:
    return signed_in(api, "viewer")


def signed_in(api: Api, user: str) -> Browser:
    browser = Browser(api.app)
    browser.sign_in(user)
    return browser


def new_draft(browser: Browser, **typed: str) -> Page:
    fields = {"title": "Invoices", "summary": "Ten answers.", "version": "1.0", **typed}
    return browser.submit(browser.get("/content/new"), "/content/new", **fields)


def path_of(page: Page) -> str:
    return page.response.url.path


def test_a_draft_is_written_attached_approved_and_read(
    api: Api, contributor: Browser, approver: Browser, viewer: Browser
) -> None:
    follow = viewer.submit(viewer.get("/subscriptions"), "/subscriptions", product_suite="Compass", tags="a")
    assert "You now follow: Compass, every concept, tagged a." in follow.text
    made = new_draft(contributor, product_suite="Compass", tags="a, b", expiry_date="2199-06-30")
    assert made.status == 200
    assert "Draft saved." in made.text
    path = path_of(made)
    assert viewer.get(path).status == 404, "a draft of another user"
    fields = made.form("/file").fields
    answer = contributor.client.post(
        f"{path}/file", data=fields, files={"file": ("C:\\fakepath\\price list.pdf", PDF, "application/pdf")}
    )
    attached = Page(answer)
    assert "File attached." in attached.text
    assert "price list.pdf" in attached.text
    seen = approver.get(path)
    assert "Tells everyone who follows Compass." in seen.text
    done = approver.submit(seen, "/approve")
    assert "Approved." in done.text
    assert "by you, today" in done.text
    api.work()
    inbox = viewer.get("/inbox")
    assert "Unread (1)" in inbox.text
    assert "You follow Compass" in inbox.text
    link = next(each for each in inbox.attributes("a", "href") if each.startswith(path))
    assert viewer.get(link).status == 200
    assert "Unread (0)" in viewer.get("/inbox").text, "reading the content marks the message"
    assert viewer.get(f"{path}/file").response.content == PDF


def test_a_refused_draft_keeps_what_was_typed_and_links_to_the_field(contributor: Browser) -> None:
    long = "x" * 201
    page = new_draft(contributor, title=long, summary="kept & safe", expiry_date="", tags="one, two")
    assert (page.status, page.title[:6]) == (422, "Error:")
    assert "Title: use at most 200 characters." in page.text
    assert "#title" in page.attributes("a", "href")
    assert long in page.attributes("input", "value")
    assert "kept &amp; safe" in page.response.text
    many = new_draft(contributor, tags=",".join(f"t{number}" for number in range(51)))
    assert "Tags: use at most 50 entries." in many.text
    empty = new_draft(contributor, title=" ")
    assert "Title: write something here." in empty.text


def test_two_people_who_edit_one_draft_lose_no_text(api: Api, contributor: Browser) -> None:
    made = new_draft(contributor, title="Shared")
    path = path_of(made)
    admin = signed_in(api, "admin")
    mine, theirs = contributor.get(f"{path}/edit"), admin.get(f"{path}/edit")
    fields = {"summary": "Ten answers.", "version": "1.0"}
    assert "Saved." in admin.submit(theirs, "/edit", title="Their title", **fields).text
    late = contributor.submit(mine, "/edit", title="My title", **fields)
    assert (late.status, late.title[:6]) == (409, "Error:")
    assert "Another person saved this content while you were writing." in late.text
    assert "My title" in late.attributes("input", "value")
    assert "Their title" in late.text
    kept = contributor.submit(late, "/edit", title="My title", **fields)
    assert (kept.status, "Saved." in kept.text) == (200, True)
    assert contributor.get(path).title.startswith("My title")


@pytest.mark.parametrize(("change", "words"), [("expire", "is Expired now"), ("delete", "was deleted")])
def test_text_survives_when_content_ends_during_an_edit(
    api: Api, contributor: Browser, change: str, words: str
) -> None:
    made = new_draft(contributor, title=f"To {change}")
    path = path_of(made)
    form = contributor.get(f"{path}/edit")
    admin = signed_in(api, "admin")
    if change == "expire":
        admin.submit(admin.get(path), "/expire")
    else:
        admin.submit(admin.get(f"{path}/delete"), "/delete")
    late = contributor.submit(form, "/edit", title="Still here", summary="and this", version="2")
    assert late.status == 409
    assert words in late.text
    assert "Still here" in late.attributes("input", "value")
    assert "and this" in late.text


def test_approving_a_page_that_changed_or_twice_is_explained(
    api: Api, contributor: Browser, approver: Browser
) -> None:
    path = path_of(new_draft(contributor))
    old = approver.get(path)
    approver.submit(approver.get(path), "/approve")
    again = approver.submit(old, "/approve")
    assert (again.status, "This cannot be done now" in again.text) == (409, True)
    assert "Cannot approve content that is Approved" in again.text


def test_a_file_that_is_not_what_it_says_is_refused(contributor: Browser) -> None:
    made = new_draft(contributor)
    fields = made.form("/file").fields
    for name, data, mime in (
        ("a.pdf", b"<html>", "application/pdf"),
        ("a.html", b"<html>", "text/html"),
        ("", b"", "application/pdf"),
        ("a.pdf", b"", "application/pdf"),
    ):
        answer = contributor.client.post(
            f"{path_of(made)}/file", data=fields, files={"file": (name, data, mime)}
        )
        assert answer.status_code in (400, 422), (name, answer.status_code)
    plain = contributor.client.post(f"{path_of(made)}/file", data=fields)
    assert plain.status_code == 415


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--b",
        b"--b\r\n",
        b"--b\r\n\r\nx\r\n--b--",
        b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n",
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\nno end',
        b'--b\r\nContent-Disposition: form-data; name="form_token"\r\n\r\n' + b"x" * 9000 + b"\r\n--b--\r\n",
        b"\r\n" * 9000,
    ],
)
def test_an_upload_that_cannot_be_read_is_an_error_of_the_client(contributor: Browser, body: bytes) -> None:
    path = path_of(new_draft(contributor))
    headers = {"content-type": "multipart/form-data; boundary=b"}
    answer = contributor.client.post(f"{path}/file", content=body, headers=headers)
    assert answer.status_code in (400, 403, 422)


def test_a_stopped_subscription_comes_back_with_one_press(viewer: Browser) -> None:
    page = viewer.submit(viewer.get("/subscriptions"), "/subscriptions", more_tags="undo me")
    assert "tagged undo me" in page.text
    action = next(each.action for each in page.reader.forms if each.action.endswith("/stop"))
    stopped = viewer.submit(page, action)
    assert "Stopped." in stopped.text
    assert "undo me" not in stopped.text
    restored = viewer.submit(stopped, "/restore")
    assert "You now follow: Every suite, tagged undo me." in restored.text


def test_the_form_says_how_many_items_match_before_it_saves(api: Api, viewer: Browser) -> None:
    for number in range(2):
        api.approved(title=f"Counted {number}", product_suite="Count", tags=[f"c{number}", "other"])
    api.work()
    before = viewer.get("/subscriptions").text
    form = viewer.get("/subscriptions").form("/subscriptions").fields
    typed = {**form, "product_suite": "Count", "tags": ["c0", "c1"], "preview": "1"}
    page = viewer.post("/subscriptions", typed)
    assert "2 approved items match today" in page.text
    assert before.count("Stop following") == page.text.count("Stop following"), "nothing was saved"


def test_the_library_finds_filters_and_looks_further(api: Api, viewer: Browser) -> None:
    for number in range(23):
        api.approved(title=f"Zeppelin {number}", product_suite="Air", tags=["flight"])
    api.work()
    first = viewer.get("/", params={"query": "zeppelin", "suite": "Air"})
    assert "23 found for “zeppelin” in Air" in first.text
    assert "20 of 23 are shown so far. There are more." in first.text
    more = next(each for each in first.attributes("a", "href") if "cursor=" in each)
    second = viewer.get(more)
    links = first.attributes("a", "href") + second.attributes("a", "href")
    assert len({each for each in links if each.startswith("/content/")}) == 23
    assert "Look further" not in second.text
    assert viewer.get("/", params={"query": "word " * 40}).status == 200
    empty = viewer.get("/", params={"query": "nothing like it", "suite": "Air"})
    assert "Nothing matches “nothing like it” yet" in empty.text
    assert "One filter is set: Air." in empty.text
    assert signed_in(api, "approver").get(more).status == 400, "a cursor of another user"


def test_an_empty_inbox_and_library_say_what_to_do(
    api: Api, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with running(tmp_path_factory.mktemp("empty"), filled=False) as fresh:
        fresh.work()
        browser = signed_in(fresh, "contributor")
        assert "Nothing is here yet" in browser.get("/").text
        assert "Nothing new" in browser.get("/inbox").text
        assert "You follow nothing yet" in browser.get("/subscriptions").text
        admin = signed_in(fresh, "admin")
        assert "No events in this period" in admin.get("/analytics").text


def test_the_stream_of_the_inbox_says_when_it_changes_and_ends_with_the_session(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    live = LiveSettings(poll_seconds=0.001, most_seconds=0.05, heartbeat_seconds=0.0)
    with running(tmp_path_factory.mktemp("stream"), filled=False, live=live) as fresh:
        browser = signed_in(fresh, "viewer")
        answer = browser.client.get("/inbox/stream")
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        first = re.findall(r"event: inbox\ndata: (\S+)\n\n", answer.text)
        assert len(first) == 1, "once for each change"
        fresh.data("POST", "/v1/subscriptions", "Viewer", json={"product_suite": "Compass"})
        fresh.approved(product_suite="Compass")
        fresh.work()
        second = re.findall(r"data: (\S+)", browser.client.get("/inbox/stream").text)
        assert second != first
        assert second[0].startswith("1-")
        token = browser.client.cookies["portal_session"]
        browser.submit(browser.get("/account"), "/sign-out")
        browser.client.cookies.set("portal_session", token)
        assert browser.client.get("/inbox/stream", follow_redirects=False).status_code == 303
        assert fresh.app.state.open_streams == 0


def test_a_process_serves_a_bounded_number_of_streams(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.mktemp("full"), filled=False, live=LiveSettings(most_streams=0)) as fresh:
        answer = signed_in(fresh, "viewer").client.get("/inbox/stream")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
