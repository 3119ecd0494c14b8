"""Pages without a browser: every page as every role, forms, sessions, escaping, and headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from solotable.pages.assets import Assets
from solotable.systems.browser.render import POLICY
from solotable.systems.portal.pages.browser.visits import LIVE_POLICY
from solotable.systems.portal.pages.routing import PAGES, PageRoute
from solotable.systems.portal.roles import ROLES

from .api import PDF, Api, attach, running
from .browsing import Browser, Page

HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}"
#: The stream never ends; tests of the browser read it.
SHOWN = [each for each in PAGES if each.method == "GET" and not each.path.endswith("/stream")]
FORMS = [each for each in PAGES if each.method == "POST"]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A portal in which every text is hostile."""
    with running(tmp_path_factory.mktemp("pages"), filled=False) as made:
        for role in ROLES:
            body = {"product_suite": HOSTILE, "product_concept": HOSTILE, "tags": [HOSTILE]}
            made.data("POST", "/v1/subscriptions", role, json=body)
        names = ("title", "summary", "product_suite", "product_concept", "audience_role", "version")
        texts: dict[str, Any] = dict.fromkeys(names, HOSTILE)
        content = made.draft(**texts, tags=[HOSTILE], expiry_date="2199-01-01")
        attach(made, content["content_id"])
        made.data("POST", f"/v1/content/{content['content_id']}/approve", "Approver")
        made.work()
        made.ids["acme"] = {"content_id": content["content_id"], "user_id": "guest"}
        yield made


@pytest.fixture(scope="module")
def browsers(api: Api) -> dict[str, Browser]:
    """A signed-in browser of every role."""
    found: dict[str, Browser] = {role: Browser(api.app) for role in ROLES}
    for role, browser in found.items():
        assert browser.sign_in(role.lower()).status == 200
    return found


def path_of(api: Api, page: PageRoute) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: api.ids["acme"].get(found[1], "01JD0QK7"), page.path)


def check_page(page: Page) -> None:
    """Fail unless a page is what the specification says of every page."""
    live = page.attributes("script", "src")
    assert page.policy == (LIVE_POLICY if live else POLICY)
    assert all(each.startswith("/static/") for each in live)
    assert not page.attributes("div", "style")
    tags = [tag for tag, _ in page.reader.tags]
    assert "style" not in tags
    assert tags.count("h1") == 1
    assert tags.count("main") == 1
    assert tags.index("a") < tags.index("header"), "the skip link is first"
    inline = [
        name for _, given in page.reader.tags for name in given if name.startswith("on") or name == "style"
    ]
    assert inline == []
    links = [
        each
        for name in ("href", "src", "action")
        for tag in ("a", "link", "script", "form", "img")
        for each in page.attributes(tag, name)
    ]
    assert all(each.startswith(("/", "#")) and not each.startswith("//") for each in links), links
    ids = [given["id"] for _, given in page.reader.tags if "id" in given]
    assert len(ids) == len(set(ids))
    assert all("form_token" in form.fields for form in page.reader.forms)
    labels = set(page.attributes("label", "for"))
    for tag, given in page.reader.tags:
        if tag in ("input", "select", "textarea") and given.get("type") not in ("hidden", "checkbox"):
            assert given["id"] in labels, given


@pytest.mark.parametrize("shown", SHOWN, ids=lambda each: each.path)
@pytest.mark.parametrize("role", ROLES)
def test_every_page_opens_for_its_roles_and_escapes_hostile_texts(
    api: Api, browsers: dict[str, Browser], shown: PageRoute, role: str
) -> None:
    answer = browsers[role].get(path_of(api, shown))
    if shown.path.endswith("/file"):
        assert answer.response.content == PDF
        return
    allowed = ROLES.index(role) >= ROLES.index(shown.least)
    if shown.path.endswith("/edit"):
        allowed = role in ("Approver", "Admin")  # the content is approved
    assert answer.status == (200 if allowed else 403), answer.text
    check_page(answer)
    assert "<script>alert" not in answer.response.text
    assert "49" not in answer.title
    if not allowed:
        assert "You may not do this" in answer.text


@pytest.mark.parametrize("form", FORMS, ids=lambda each: f"{each.path}")
def test_a_form_needs_a_session_a_token_and_the_role(
    api: Api, browsers: dict[str, Browser], form: PageRoute
) -> None:
    path = path_of(api, form)
    anonymous = Browser(api.app).client.post(path, data={}, follow_redirects=False)
    assert (anonymous.status_code, anonymous.headers["location"][:8]) == (303, "/sign-in")
    for role in ROLES:
        sent: dict[str, Any] = {"data": {"form_token": "forged"}}
        if not form.reads_form:
            sent["files"] = {"file": ("a.pdf", PDF, "application/pdf")}
        answer = Page(browsers[role].client.post(path, **sent))
        assert answer.status == 403, (role, answer.text)
        lacks = ROLES.index(role) < ROLES.index(form.least)
        assert ("needs the role" in answer.text) is lacks


def test_stylesheets_are_small_and_cached() -> None:
    sizes = {
        name: len(data)
        for name, data in Assets("solotable.systems.browser", "solotable.systems.portal.pages").files.items()
        if name.endswith(".css")
    }
    assert set(sizes) == {"base.css", "portal.css"}
    assert max(sizes.values()) < 12_000
    assert sum(sizes.values()) < 17_000


def test_assets_have_urls_of_their_content(api: Api) -> None:
    page = Browser(api.app).get("/sign-in")
    for url in page.attributes("link", "href"):
        answer = api.client.get(url)
        assert (answer.status_code, answer.headers["cache-control"]) == (
            200,
            "public, max-age=31536000, immutable",
        )
    assert api.client.get("/static/0123456789ab/base.css").status_code == 404
    assert api.client.get("/static/x/..%2F..%2Fapp.py").status_code == 404


def test_a_session_cookie_is_not_for_scripts_and_other_sites(api: Api) -> None:
    browser = Browser(api.app)
    page = browser.get("/sign-in")
    fields = {
        **page.form("/sign-in").fields,
        "email": "viewer@example.com",
        "password": "correct horse battery",
    }
    answer = browser.client.post("/sign-in", data=fields, follow_redirects=False)
    cookies = [each for each in answer.headers.get_list("set-cookie") if each.startswith("portal_session=")]
    assert len(cookies) == 1
    assert "HttpOnly" in cookies[0]
    assert "SameSite=lax" in cookies[0]
    secure = Browser(api.app)
    secure.client.base_url = "https://portal.example"
    page = secure.get("/sign-in")
    fields["form_token"] = page.form("/sign-in").fields["form_token"]
    answer = secure.client.post("/sign-in", data=fields, follow_redirects=False)
    cookie = next(each for each in answer.headers.get_list("set-cookie") if "portal_session=" in each)
    assert cookie.startswith("__Host-portal_session=")
    assert "Secure" in cookie


@pytest.mark.parametrize(
    ("email", "password"),
    [
        ("viewer", "wrong wrong wrong"),
        ("unknown", "correct horse battery"),
        ("disabled", "correct horse battery"),
    ],
)
def test_a_wrong_sign_in_keeps_the_address_and_says_the_same(api: Api, email: str, password: str) -> None:
    page = Browser(api.app).sign_in(email, password)
    assert (page.status, page.title[:6]) == (422, "Error:")
    assert "The address or the password is wrong, or the account is disabled." in page.text
    assert f"{email}@example.com" in page.attributes("input", "value")
    assert password not in page.response.text
    check_page(page)


def test_sign_in_leads_to_the_page_that_was_asked_for_and_to_no_other_site(api: Api) -> None:
    browser = Browser(api.app)
    asked = browser.get("/inbox?unread=1")
    assert asked.form("/sign-in").fields["next"] == "/inbox?unread=1"
    for evil in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"):
        page = browser.get("/sign-in", params={"next": evil})
        assert page.form("/sign-in").fields["next"] == "/"


def test_a_session_ends_when_its_user_signs_out_or_is_disabled(api: Api) -> None:
    first, second = Browser(api.app), Browser(api.app)
    for browser in (first, second):
        browser.sign_in("guest")
        assert browser.get("/inbox").title.startswith("Inbox")
    cookie = dict(first.client.cookies)
    first.submit(first.get("/account"), "/sign-out")
    assert first.get("/inbox").title.startswith("Sign in")
    first.client.cookies.update(cookie)
    assert first.get("/inbox").title.startswith("Sign in"), "a copied cookie is over too"
    api.data("PATCH", "/v1/admin/users/guest/disable")
    assert second.get("/inbox").title.startswith("Sign in")
    api.data("PATCH", "/v1/admin/users/guest/enable")
    assert second.get("/inbox").title.startswith("Sign in"), "enabling opens no old session"
    assert first.sign_in("guest").title.startswith("Library")


def test_signing_out_everywhere_ends_all_sessions(api: Api) -> None:
    first, second = Browser(api.app), Browser(api.app)
    first.sign_in("spare")
    second.sign_in("spare")
    form = first.get("/account").form("/sign-out")
    first.post("/sign-out", {**form.fields, "everywhere": "1"})
    assert second.get("/inbox").title.startswith("Sign in")


def test_an_invitation_works_once(api: Api, browsers: dict[str, Browser]) -> None:
    admin = browsers["Admin"]
    typed = {"name": "Dora", "email": "dora@example.com", "role": "Contributor"}
    page = admin.submit(admin.get("/people"), "/people", **typed)
    assert page.status == 201
    link = re.search(r"http://testserver(/invitations/\S+)", page.text)
    assert link is not None
    dora = Browser(api.app)
    form = dora.get(link[1])
    check_page(form)
    assert "Welcome, Dora" in form.text
    token = form.reader.forms[0].fields
    short = dora.post(link[1], {**token, "password": "short"})
    assert (short.status, "12 to 200 characters" in short.text) == (422, True)
    done = dora.post(link[1], {**token, "password": "a password of dora"})
    assert (done.status, done.title) == (200, "Library | Lantern")
    assert dora.get(link[1]).status == 404
    again = admin.submit(admin.get("/people"), "/people", **typed)
    assert (again.status, "here already" in again.text) == (409, True)


def test_an_unknown_page_says_what_to_do(api: Api, browsers: dict[str, Browser]) -> None:
    for path in ("/nothing", "/content/none", "/content/../../etc", "/invitations/x.y"):
        page = browsers["Viewer"].get(path)
        assert page.status == 404
        assert "Nothing is here" in page.text
        check_page(page)
    assert browsers["Viewer"].get("/?cursor=made-up").status == 400
    assert browsers["Viewer"].post("/", {}).status == 405
