"""Flows over HTTP, on the engine, through the server and on DynamoDB Local: login, members, sites, proofs."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from solotable._connect import ensure
from solotable.engines import dynamodb
from solotable.systems.community.table import community
from tests.serving import served
from tests.store.conftest import PLACES

from .api import Api, error_of, running
from .login import Provider, running_provider

CALLBACK = "http://testserver/auth/callback"
JSON = {"accept": "application/json"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "place" in metafunc.fixturenames:
        # One place: the services have the others by default, and --target chooses another one.
        places = PLACES[metafunc.config.getoption("--target")][:1]
        metafunc.parametrize("place", places, scope="module")


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running_provider("http://127.0.0.1:9/auth/callback") as made:
        yield made


@contextmanager
def database(place: str, request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The URL of a database; None for a file."""
    if place == "engine":
        yield None
    elif place == "server":
        with served("--memory") as running_server:
            yield create_table(running_server.url)
    else:
        yield create_table(f"http://127.0.0.1:{request.getfixturevalue('local').port}")


def create_table(endpoint: str) -> str:
    """Create the table at an endpoint, as `solotable schema apply` does, and return its URL."""
    prefix = f"t{uuid.uuid4().hex[:12]}."
    engine = dynamodb.open(endpoint_url=endpoint)
    ensure(engine, community, f"{prefix}{community.name}")
    engine.close()
    return f"{endpoint}/?prefix={prefix}"


@pytest.fixture(scope="module")
def api(
    place: str,
    request: pytest.FixtureRequest,
    provider: Provider,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Api]:
    folder: Path = tmp_path_factory.mktemp("flows")
    with database(place, request) as url, running(folder, url, provider=provider.client()) as made:
        made.clock.seconds = provider.clock.seconds
        made.sign_up("creator")
        yield made


def log_in(api: Api, provider: Provider, handle: str = "alice.test", **more: Any) -> httpx2.Response:
    """Do the whole dance: to the provider, sign in there, and back with the login's cookie."""
    start = api.client.get("/auth/login", params={"handle": handle, **more.pop("params", {})})
    assert start.status_code == 303, start.text
    answer = provider.answer(start.headers["location"], handle=handle)
    return api.client.get("/auth/callback", params=answer, **more)


def test_a_user_logs_in_and_out(api: Api, provider: Provider) -> None:
    result = log_in(api, provider, headers=JSON).json()
    assert (result["did"], result["deleted"]) == ("did:plc:alice", False)
    api.tokens["alice"] = result["token"]
    me = api.data("GET", "/auth/me", "alice")
    assert me["profile"]["bluesky_handle"] == "alice.test"
    assert api.status("POST", "/auth/logout", "alice") == (204, "")
    assert api.status("GET", "/auth/me", "alice") == (401, "unauthorized")
    assert api.status("GET", "/api/neighborhoods", "alice") == (401, "unauthorized")


def test_a_session_ends_after_seven_days_and_everywhere_at_once(api: Api, provider: Provider) -> None:
    for name in ("first", "second"):
        api.tokens[name] = log_in(api, provider, headers=JSON).json()["token"]
    api.clock.seconds += 7 * 86_400 - 1
    assert api.status("GET", "/auth/me", "first") == (200, "")
    assert api.status("POST", "/auth/logout?everywhere=true", "first") == (204, "")
    assert api.status("GET", "/auth/me", "second") == (401, "unauthorized")
    api.sign_up("third")
    api.clock.seconds += 7 * 86_400
    assert api.status("GET", "/auth/me", "third") == (401, "unauthorized")
    provider.clock.seconds = api.clock.seconds
    api.sign_up("creator")


def test_a_token_of_another_secret_or_of_an_email_proof_opens_nothing(api: Api) -> None:
    from solotable.systems.community.identity.email_proofs import EmailProofs
    from solotable.systems.community.identity.sessions import Sessions

    async def forge() -> str:
        return await Sessions(api.app.state.database, "x" * 40, now=api.now).open("did:plc:creator")

    api.tokens["forged"] = api.call(forge)
    assert api.status("GET", "/auth/me", "forged") == (401, "unauthorized")
    proofs: EmailProofs = api.app.state.email_proofs
    api.tokens["proof"] = proofs.issue("did:plc:creator", "creator@example.com")
    assert api.status("GET", "/auth/me", "proof") == (401, "unauthorized")


def test_a_callback_without_the_logins_cookie_or_with_another_state_is_rejected(
    api: Api, provider: Provider
) -> None:
    start = api.client.get("/auth/login")
    answer = provider.answer(start.headers["location"])
    other = api.client.get("/auth/callback", params={**answer, "state": "another"}, headers=JSON)
    assert error_of(other) == (400, "login-rejected")
    api.client.cookies.clear()
    assert error_of(api.client.get("/auth/callback", params=answer, headers=JSON)) == (400, "login-rejected")
    assert error_of(api.client.get("/auth/callback", headers=JSON)) == (400, "login-rejected")


def test_a_copy_of_the_logins_cookie_works_for_ten_minutes(api: Api, provider: Provider) -> None:
    start = api.client.get("/auth/login")
    answer = provider.answer(start.headers["location"])
    api.clock.seconds += 600
    try:
        late = api.client.get("/auth/callback", params=answer, headers=JSON)
    finally:
        api.clock.seconds -= 600
    assert error_of(late) == (400, "login-rejected")
    assert "took too long" in late.json()["error"]["message"]
    assert api.client.get("/auth/callback", params=answer, headers=JSON).status_code == 200
    assert error_of(api.client.get("/auth/callback", params=answer, headers=JSON)) == (400, "login-rejected")


def test_a_browser_gets_a_cookie_and_returns_to_its_page_on_this_host(api: Api, provider: Provider) -> None:
    for given, expected in (("/sites", "/sites"), ("//evil.example", "/"), ("https://evil.example", "/")):
        answer = log_in(api, provider, params={"next": given})
        assert (answer.status_code, answer.headers["location"]) == (303, expected)
        cookie = answer.headers.get_list("set-cookie")[0]
        assert cookie.startswith("community_session=")
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
    api.client.cookies.clear()


def test_joining_and_leaving_answer_as_the_design_says(api: Api) -> None:
    did = api.sign_up("ben")
    nid = api.neighbourhood("creator")
    path = f"/api/neighborhoods/{nid}"
    joined = api.ask("POST", f"{path}/join", "ben")
    assert (joined.status_code, joined.json()["status"], joined.json()["did"]) == (201, "active", did)
    assert api.status("POST", f"{path}/join", "ben") == (409, "already-member")
    assert api.data("GET", path, None)["member_count"] == 2
    assert api.status("DELETE", f"{path}/leave", "ben") == (204, "")
    assert api.status("DELETE", f"{path}/leave", "ben") == (404, "not-member")
    assert api.data("GET", path, None)["member_count"] == 1
    assert api.status("DELETE", f"{path}/leave", "creator") == (409, "last-admin")
    assert api.status("POST", "/api/neighborhoods/missing/join", "ben") == (404, "not-found")
    kinds = [each["kind"] for each in api.data("GET", f"{path}/history", "creator")["items"]]
    assert sorted(kinds) == ["joined", "joined", "left"]


def test_a_private_neighbourhood_takes_requests_and_codes(api: Api) -> None:
    did = api.sign_up("eva")
    nid = api.neighbourhood("creator", privacy="private")
    path = f"/api/neighborhoods/{nid}"
    asked = api.ask("POST", f"{path}/join", "eva")
    assert (asked.status_code, asked.json()["status"]) == (202, "pending")
    assert api.status("GET", f"{path}/members", "eva") == (403, "forbidden")
    waiting = api.data("GET", f"{path}/members?status=pending", "creator")["items"]
    assert [each["did"] for each in waiting] == [did]
    approved = api.data("PUT", f"{path}/members/{did}", "creator", json={"status": "active"})
    assert approved["status"] == "active"
    assert api.data("GET", path, "eva")["member_count"] == 2
    api.sign_up("vic")
    code = api.data("POST", f"{path}/invitations", "creator", json={})["code"]
    assert api.status("POST", f"{path}/join", "vic", json={"code": "wrong"}) == (404, "invitation-over")
    assert api.status("POST", f"{path}/join", "vic", json={"code": code}) == (201, "")
    assert api.status("POST", f"{path}/join", "vic", json={"code": code}) == (404, "invitation-over")


def test_a_name_is_taken_in_every_spelling(api: Api) -> None:
    name = f"Canal Row {uuid.uuid4().hex[:8]}"
    made = api.ask("POST", "/api/neighborhoods", "creator", json={"name": name})
    assert made.status_code == 201
    assert made.headers["location"] == f"/api/neighborhoods/{made.json()['id']}"
    taken = api.ask("POST", "/api/neighborhoods", "creator", json={"name": f"  {name.upper()}! "})
    assert error_of(taken) == (409, "name-taken")
    assert taken.json()["error"]["details"] == {"field": "slug"}


def test_a_change_with_an_old_version_is_a_412(api: Api) -> None:
    nid = api.neighbourhood("creator")
    path = f"/api/neighborhoods/{nid}"
    tag = api.ask("GET", path, "creator").headers["etag"]

    def change(text: str) -> httpx2.Response:
        return api.ask("PUT", path, "creator", json={"description": text}, headers={"if-match": tag})

    assert change("Forty doors.").status_code == 200
    assert error_of(change("Others.")) == (412, "version-conflict")


def test_a_site_has_content_and_builds(api: Api) -> None:
    site_id = api.site("creator", config={"accent_color": "#0f6b6b"})
    path = f"/api/sites/{site_id}"
    post = api.data("POST", f"{path}/content", "creator", json={"title": "Ice on the lock", "body": "Thin."})
    listed = api.data("GET", f"{path}/content", "creator")["items"]
    assert [(each["rkey"], "body" in each) for each in listed] == [(post["rkey"], False)]
    changed = api.data("PUT", f"{path}/content/{post['rkey']}", "creator", json={"body": "Gone."})
    assert (changed["body"], changed["title"]) == ("Gone.", "Ice on the lock")
    built = api.ask("POST", f"{path}/build", "creator")
    assert (built.status_code, built.json()["status"]) == (202, "pending")
    assert built.headers["location"] == f"{path}/build/{built.json()['job_id']}"
    assert api.data("GET", built.headers["location"], "creator")["job_id"] == built.json()["job_id"]
    for _ in range(2):
        api.clock.seconds += 1
        api.data("POST", f"{path}/build", "creator")
    recent = api.data("GET", f"{path}/builds?limit=2", "creator")
    assert len(recent) == 2
    assert recent[0]["created_at"] > recent[1]["created_at"] > built.json()["created_at"]
    cancelled = api.ask("DELETE", f"{path}/build/{recent[0]['job_id']}", "creator")
    assert (cancelled.status_code, cancelled.json()["status"]) == (202, "cancelled")
    assert api.status("DELETE", f"{path}/build/{recent[0]['job_id']}", "creator") == (409, "conflict")
    assert api.data("GET", f"{built.headers['location']}/log", "creator") == []
    document = api.data("GET", f"{path}/export", "creator")
    assert [each["title"] for each in document["posts"]] == ["Ice on the lock"]
    assert api.data("GET", f"{path}/prefill", "creator")["config"]["author"] == "Creator"
    assert api.status("DELETE", f"{path}/content/{post['rkey']}", "creator") == (204, "")
    assert api.status("DELETE", f"{path}/content/{post['rkey']}", "creator") == (404, "not-found")
    assert api.status("DELETE", path, "creator") == (204, "")
    assert api.status("POST", f"{path}/build", "creator") == (404, "not-found")
    assert api.status("POST", f"{path}/restore", "creator") == (200, "")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"template": "missing"}, "template"),
        ({"config": {"accent_color": "red; } body { display: none"}}, "accent_color"),
        ({"config": {"links": [{"label": "x", "url": "javascript:alert(1)"}]}}, "links"),
        ({"config": {"posts": []}}, "posts"),
        ({"config": {"unknown": 1}}, "unknown"),
        ({"subdomain": "www"}, "reserved"),
        ({"subdomain": "..."}, "subdomain"),
        ({"title": ""}, "title"),
    ],
)
def test_a_site_that_cannot_be_built_is_rejected(api: Api, change: dict[str, Any], text: str) -> None:
    body = {"title": "A site", "template": "blog", **change}
    answer = api.ask("POST", "/api/sites", "creator", json=body)
    assert answer.status_code == 422, answer.text
    assert text in answer.json()["error"]["message"]


def test_a_body_of_ten_megabytes_is_a_413(api: Api) -> None:
    body = json.dumps({"title": "x", "template": "blog", "config": {"author": "a" * 10_000_000}})
    answer = api.ask("POST", "/api/sites", "creator", content=body, headers={"content-type": JSON["accept"]})
    assert error_of(answer) == (413, "content-too-large")


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"bio": "b" * 500, "location": "l" * 100}, 200),
        ({"bio": "b" * 501}, 422),
        ({"location": "l" * 101}, 422),
        ({"website": "javascript:alert(1)"}, 422),
        ({"website": "https://example.com/"}, 200),
        ({"bluesky_handle": "another.test"}, 422),
        ({"email_verified": True}, 422),
        ({"email": "not an address"}, 422),
    ],
)
def test_a_profile_is_checked(api: Api, fields: dict[str, Any], status: int) -> None:
    answer = api.ask("PUT", "/api/user", "creator", json=fields)
    assert answer.status_code == status, answer.text


def test_an_address_is_verified_by_the_token_of_its_message_for_24_hours(api: Api) -> None:
    api.sign_up("wanda")
    api.sign_up("imre")

    def message_for(email: str) -> str:
        assert api.status("POST", "/api/user/email", "wanda", json={"email": email}) == (202, "")
        text = api.outbox.messages[-1].text
        return text.partition("token=")[2].split()[0]

    token = message_for("Wanda@Example.com")
    assert api.outbox.messages[-1].to == "wanda@example.com"
    assert api.data("GET", "/api/user", "wanda")["email_verified"] is False
    verify = "/api/user/email/verify"
    assert api.status("POST", verify, "imre", json={"token": token}) == (422, "invalid")
    assert api.status("POST", verify, "wanda", json={"token": token + "x"}) == (422, "invalid")
    assert api.data("POST", verify, "wanda", json={"token": token})["email_verified"] is True
    late = message_for("other@example.com")
    assert api.data("GET", "/api/user", "wanda")["email_verified"] is False
    assert api.status("POST", verify, "wanda", json={"token": token}) == (422, "invalid")
    api.clock.seconds += 24 * 3600
    assert api.status("POST", verify, "wanda", json={"token": late}) == (422, "invalid")


def test_profiles_in_a_batch_keep_their_order_and_have_no_addresses(api: Api) -> None:
    dids = [api.sign_up(f"batch{number}") for number in range(3)]
    api.data("PUT", "/api/user", "batch0", json={"email": "batch0@example.com"})
    wanted = [dids[2], "did:plc:missing", dids[0], dids[2]]
    found = api.data("POST", "/api/users/batch", "creator", json={"dids": wanted})
    assert [each["did"] for each in found] == [dids[2], dids[0]]
    assert "batch0@example.com" not in json.dumps(found)
    many = {"dids": [f"did:plc:n{number}" for number in range(101)]}
    assert api.status("POST", "/api/users/batch", "creator", json=many) == (422, "invalid")


def test_a_custom_template_waits_for_its_analysis(api: Api) -> None:
    manifest = {"name": "harbour", "version": "1.0.0", "layout": "blog"}
    made = api.ask("POST", "/api/templates/custom", "creator", json={"manifest": manifest})
    assert (made.status_code, made.json()["status"]) == (202, "pending")
    assert api.data("GET", made.headers["location"], "creator")["status"] == "pending"
    body = {"title": "A site", "template": made.json()["template_id"]}
    answer = api.ask("POST", "/api/sites", "creator", json=body)
    assert (answer.status_code, "not ready: pending" in answer.text) == (422, True)
