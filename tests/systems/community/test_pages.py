"""Pages without a browser: what each visitor sees, forms, sessions, policies, and texts that attack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from solotable.pages.assets import Assets
from solotable.systems.browser.render import POLICY
from solotable.systems.community.builds.worker import BuildWorker
from solotable.systems.community.entities.builds import Build, BuildLog
from solotable.systems.community.pages.routing import PACKAGE, PAGES
from solotable.systems.storage import FolderStorage
from tests.systems.portal.browsing import Page

from .api import Api, blocking, running

FORMS = [each for each in PAGES if each.method == "POST"]
ATTACK = "<script>alert(1)</script>"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with running(tmp_path, sites_domain="localhost") as made:
        made.sign_up("creator", display_name=ATTACK)
        made.sign_up("ben")
        yield made


class Browser:
    """A client with the session of a user, like a browser without scripts."""

    def __init__(self, api: Api, user: str | None) -> None:
        self.client = TestClient(api.app, raise_server_exceptions=False, follow_redirects=True)
        if user is not None:
            self.client.cookies.set("community_session", api.tokens[user], domain="testserver.local")

    def get(self, path: str) -> Page:
        return Page(self.client.get(path))

    def submit(self, page: Page, action: str, **typed: Any) -> Page:
        form = page.form(action)
        return Page(self.client.post(form.action, data={**form.fields, **typed}))


def test_a_user_joins_and_leaves_on_the_page(api: Api) -> None:
    api.neighbourhood("creator", name="Canal Row")
    visitor = Browser(api, None).get("/n/canal-row")
    assert "/auth/login?next=/n/canal-row" in visitor.attributes("a", "href")
    assert visitor.reader.forms == []
    ben = Browser(api, "ben")
    page = ben.submit(ben.get("/n/canal-row"), "/join")
    assert ("Welcome." in page.text, "2 members" in page.text) == (True, True)
    page = ben.submit(page, "/leave")
    assert ("You left." in page.text, "1 member," in page.text) == (True, True)
    creator = Browser(api, "creator").get("/n/canal-row")
    assert "You cannot leave" in creator.text
    assert not any(form.action.endswith("/leave") for form in creator.reader.forms)


def test_an_admin_approves_a_request_and_makes_an_invitation(api: Api) -> None:
    api.neighbourhood("creator", name="Weir Garden", privacy="private")
    ben, creator = Browser(api, "ben"), Browser(api, "creator")
    asked = ben.submit(ben.get("/n/weir-garden"), "/join")
    assert "An admin has to approve it." in asked.text
    assert "Waiting for an admin" in asked.text
    page = creator.get("/n/weir-garden")
    assert "One person asks to join" in page.text
    page = creator.submit(page, "/requests", answer="approve")
    assert "Approved." in page.text
    assert "2 members" in ben.get("/n/weir-garden").text
    api.sign_up("eva")
    page = creator.submit(page, "/invite")
    [link] = [word for word in page.text.split() if "?code=" in word]
    eva = Browser(api, "eva")
    page = eva.submit(eva.get(link.removeprefix("http://testserver")), "/join")
    assert "Welcome." in page.text
    refused = Browser(api, "ben").get("/n/weir-garden")
    assert not any(form.action.endswith("/invite") for form in refused.reader.forms)


def test_a_user_makes_a_site_watches_its_build_and_opens_it(api: Api, tmp_path: Path) -> None:
    ben = Browser(api, "ben")
    page = ben.submit(ben.get("/sites"), "/sites", title="Notes", subdomain="www", template="blog")
    assert (page.status, page.title.startswith("Error:")) == (422, True)
    assert "reserved" in page.text
    assert 'value="Notes"' in page.response.text, "what was typed is still there"
    page = ben.submit(page, "/sites", title="Notes", subdomain="nine", template="blog")
    assert (page.status, "Waiting" in page.text, "It is the next one." in page.text) == (200, True, True)
    assert page.response.headers["refresh"] == "3"
    with blocking(api) as db, BuildWorker(db, FolderStorage(tmp_path / "sites"), now=api.now) as worker:
        worker.run_once()
    page = ben.get(page.response.url.path)
    assert page.title.startswith("Live: build of Notes")
    assert "refresh" not in page.response.headers
    assert "Logs are kept for 90 days" in page.text
    site = ben.client.get("/", headers={"host": "nine.localhost"})
    assert (site.status_code, "Notes" in site.text) == (200, True)
    again = ben.submit(page, "/build")
    cancelled = ben.submit(again, "/cancel")
    assert cancelled.title.startswith("Cancelled")
    taken = ben.submit(ben.get("/sites"), "/sites", title="Other", subdomain="nine", template="blog")
    assert (taken.status, "is taken" in taken.text) == (409, True)


def test_a_failed_build_says_what_went_wrong_and_what_readers_see(api: Api) -> None:
    site_id = api.site("ben", title=ATTACK)
    job = api.data("POST", f"/api/sites/{site_id}/build", "ben")["job_id"]
    with blocking(api) as db:
        build = db.require(Build, site_id=site_id, job_id=job)
        changes: dict[str, Any] = {"status": "failed", "error": ATTACK, "error_stage": "render"}
        db.put(build.model_copy(update=changes))
        db.put(BuildLog(did=build.did, site_id=site_id, job_id=job, number=1, level="error", text=ATTACK))
    page = Browser(api, "ben").get(f"/sites/{site_id}/builds/{job}")
    assert page.title.startswith("Failed")
    assert "Readers see nothing yet." in page.text
    assert "<script" not in page.response.text
    assert page.response.text.count("&lt;script&gt;") >= 3
    other = Browser(api, "creator").get(f"/sites/{site_id}/builds/{job}")
    assert other.status == 404


@pytest.mark.parametrize(
    "path", ["/", "/n/canal-row", "/sites", "/account", "/verify-email?token=x", "/none"]
)
def test_every_page_has_a_strict_policy_and_nothing_inline(api: Api, path: str) -> None:
    api.neighbourhood("creator", name="Canal Row", description=ATTACK)
    page = Browser(api, "creator").get(path)
    assert page.policy == POLICY
    assert "<script" not in page.response.text
    assert not [given for _, given in page.reader.tags if "style" in given or "onclick" in given]
    assert sum(tag == "h1" for tag, _ in page.reader.tags) == 1
    assert page.response.text.count("Skip to content") == 1


def test_stylesheets_are_small_and_cached() -> None:
    files = Assets("solotable.systems.browser", PACKAGE).files
    sizes = {name: len(data) for name, data in files.items() if name.endswith(".css")}
    assert set(sizes) == {"base.css", "community.css"}
    assert max(sizes.values()) < 12_000
    assert sum(sizes.values()) < 17_000


@pytest.mark.parametrize(
    "page", [each for each in PAGES if each.method == "POST"], ids=lambda each: each.path
)
def test_a_form_without_the_token_of_the_session_changes_nothing(api: Api, page: Any) -> None:
    nid = api.neighbourhood("creator", name="Canal Row")
    site_id = api.site("ben")
    job = api.data("POST", f"/api/sites/{site_id}/build", "ben")["job_id"]
    path = page.path.format(slug="canal-row", site_id=site_id, job_id=job)
    ben = Browser(api, "ben")
    for token in ("", "wrong"):
        answer = ben.client.post(path, data={"form_token": token, "title": "x", "template": "blog"})
        assert answer.status_code == 403, answer.text
    assert api.data("GET", f"/api/neighborhoods/{nid}", None)["member_count"] == 1
    assert len(api.data("GET", "/api/sites", "ben")["items"]) == 1
    assert api.data("GET", f"/api/sites/{site_id}/build/{job}", "ben")["status"] == "pending"
    assert api.status("GET", "/auth/me", "ben") == (200, "")


@pytest.mark.parametrize("path", [each.path for each in PAGES if each.needs_session and each.method == "GET"])
def test_a_page_for_users_leads_to_the_login_and_back(api: Api, path: str) -> None:
    address = path.format(site_id="s1", job_id="j1")
    answer = api.client.get(address)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/auth/login?next={address}")


def test_signing_out_ends_the_session(api: Api) -> None:
    ben = Browser(api, "ben")
    page = ben.submit(ben.get("/account"), "/sign-out")
    assert "Sign in" in page.text
    assert api.status("GET", "/auth/me", "ben") == (401, "unauthorized")


def test_a_user_downloads_their_data_and_deletes_the_account_s2_22(api: Api) -> None:
    api.site("ben", title="Notes")
    ben = Browser(api, "ben")
    account = ben.get("/account")
    assert {"/account/data", "/account/records", "/account/delete"} <= set(account.attributes("a", "href"))
    data = ben.client.get("/account/data")
    assert data.headers["content-disposition"] == 'attachment; filename="community-data.json"'
    assert data.json()["sites"][0]["site"]["title"] == "Notes"
    assert ben.client.get("/account/records").json()["did"] == data.json()["profile"]["did"]
    page = ben.submit(ben.get("/account/delete"), "/account/delete")
    assert "Your account is deleted." in page.text
    assert "Sign in" in ben.get("/").text, "the session has ended"
    api.log_in_again("ben")
    assert "You deleted this account." in Browser(api, "ben").get("/account").text


def test_the_last_admin_reads_why_the_account_stays(api: Api) -> None:
    api.neighbourhood("creator", name="Canal Row")
    ben, creator = Browser(api, "ben"), Browser(api, "creator")
    ben.submit(ben.get("/n/canal-row"), "/join")
    page = creator.submit(creator.get("/account/delete"), "/account/delete")
    assert (page.status, "hand it over or delete it first" in page.text) == (409, True)
    assert creator.get("/account").status == 200


def test_a_user_who_deleted_the_account_can_only_recover_it(api: Api) -> None:
    api.data("DELETE", "/api/user", "ben")
    api.log_in_again("ben")
    ben = Browser(api, "ben")
    page = ben.get("/sites")
    assert "You deleted this account." in page.text
    page = ben.submit(page, "/account/recover")
    assert "Your account is back." in page.text
    assert ben.get("/sites").title.startswith("My sites")


def test_the_link_of_a_message_verifies_after_a_press(api: Api) -> None:
    api.data("POST", "/api/user/email", "ben", json={"email": "ben@example.com"})
    link = api.outbox.messages[-1].text.partition("http://testserver")[2].split()[0]
    ben = Browser(api, "ben")
    page = ben.get(link)
    assert api.data("GET", "/api/user", "ben")["email_verified"] is False
    page = ben.submit(page, "/verify-email")
    assert "ben@example.com is verified." in page.text


def test_errors_are_pages_for_browsers_and_envelopes_for_programs(api: Api) -> None:
    page = Browser(api, "ben").get("/n/missing")
    assert (page.status, page.title.startswith("Error: Nothing is here")) == (404, True)
    assert "My sites" in page.text, "a signed-in user keeps the navigation"
    rejected = api.client.get("/auth/callback", headers={"accept": "text/html"})
    assert (rejected.status_code, "text/html" in rejected.headers["content-type"]) == (400, True)
    assert "Start again." in rejected.text


def test_a_user_makes_a_neighbourhood_on_the_page(api: Api) -> None:
    ben = Browser(api, "ben")
    page = ben.get("/new")
    wrong = ben.submit(page, "/new", name="!!!", description="Forty doors.", privacy="private")
    assert (wrong.status, wrong.title.startswith("Error:")) == (422, True)
    assert 'value="Forty doors."' in wrong.response.text, "what was typed is still there"
    made = ben.submit(wrong, "/new", name=ATTACK, privacy="private")
    assert ("Your neighbourhood is here." in made.text, "Private" in made.text) == (True, True)
    assert "<script" not in made.response.text
    taken = ben.submit(ben.get("/new"), "/new", name=ATTACK.upper(), privacy="public")
    assert (taken.status, "is taken" in taken.text) == (409, True)
    assert ben.submit(ben.get("/new"), "/new", name="x", privacy="secret").status == 422
