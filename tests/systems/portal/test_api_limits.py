"""Rate limits of users: their headers, their refusals, and what does not count."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from solotable.systems.portal.identity.directory import InvitationDraft, LocalDirectory
from solotable.systems.portal.routes.requests.rate_limits import PERIOD_SECONDS, USER_LIMITS, limit

from .api import Api, running
from .browsing import Browser

SMALL = [
    limit("reads", 5),
    limit("writes", 3),
    limit("telemetry", 4),
    limit("forms", 2),
    limit("sign_ins", 3),
    limit("sign_in_totals", 6),
]


@pytest.fixture
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("limits")
    with running(folder, filled=False, limiter_url="sqlite://", limits=SMALL) as made:
        made.work()
        yield made


def test_the_limits_are_those_of_the_contract() -> None:
    found = {each.name: (each.capacity, each.period_seconds) for each in USER_LIMITS}
    assert found["reads"] == (100, PERIOD_SECONDS) == (100, 900)
    assert found["writes"] == (20, 900)
    assert found["telemetry"] == (200, 900)


@pytest.mark.parametrize(
    ("method", "path", "body", "count"),
    [
        ("GET", "/v1/content", None, 5),
        ("POST", "/v1/content", {"title": "x"}, 3),
        ("POST", "/v1/events", {"event_name": "content_view"}, 4),
    ],
)
def test_a_user_who_exceeds_a_limit_gets_a_429_and_others_do_not(
    api: Api, method: str, path: str, body: dict[str, str] | None, count: int
) -> None:
    for left in reversed(range(count)):
        answer = api.ask(method, path, "Contributor", json=body)
        assert answer.is_success, answer.text
        assert answer.headers["x-ratelimit-remaining"] == str(left)
        assert f"r={left}" in answer.headers["ratelimit"]
    refused = api.ask(method, path, "Contributor", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate-limit-exceeded")
    assert int(refused.headers["retry-after"]) >= 1
    assert api.ask(method, path, "Admin", json=body).is_success


def test_requests_without_the_role_or_a_credential_take_nothing(api: Api) -> None:
    for _ in range(6):
        assert api.ask("POST", "/v1/content", "Viewer", json={"title": "x"}).status_code == 403
        assert api.ask("POST", "/v1/content", None, json={"title": "x"}).status_code == 401
    body = {"product_suite": "x"}
    assert api.ask("POST", "/v1/subscriptions", "Viewer", json=body).status_code == 201


def test_guessing_a_password_ends_in_a_429_page(api: Api) -> None:
    statuses = [Browser(api.app).sign_in("viewer", "wrong wrong wrong").status for _ in range(4)]
    assert statuses == [422, 422, 422, 429]
    right = Browser(api.app).sign_in("viewer")
    assert (right.status, "Too many requests" in right.text) == (429, True)


def test_guesses_lock_neither_the_user_nor_the_other_users_of_an_address_out(api: Api) -> None:
    guesser = "192.0.2.66"
    for _ in range(10):
        Browser(api.app, guesser).sign_in("viewer", "wrong wrong wrong")
    assert Browser(api.app, "192.0.2.1").sign_in("viewer").title.startswith("Library")
    assert Browser(api.app, guesser).sign_in("approver").title.startswith("Library")


def test_guesses_from_many_addresses_and_of_many_accounts_have_a_limit_too(api: Api) -> None:
    statuses = [Browser(api.app, f"192.0.2.{last}").sign_in("viewer", "wrong").status for last in range(7)]
    assert statuses == [422] * 6 + [429]
    statuses = [Browser(api.app, "192.0.2.99").sign_in(f"user{number}").status for number in range(7)]
    assert statuses == [422] * 6 + [429]


def test_forms_of_pages_have_a_limit_and_pages_do_not(api: Api) -> None:
    browser = Browser(api.app)
    browser.sign_in("viewer")
    page = browser.get("/subscriptions")
    statuses = [browser.submit(page, "/subscriptions", more_tags=f"t{number}").status for number in range(3)]
    assert statuses == [200, 200, 429]
    assert all(browser.get("/inbox").status == 200 for _ in range(8))


@pytest.mark.parametrize(
    "address", ["a+b@example.com", "zoë@example.com", "o'neil@example.com", "a#b@example.com"]
)
def test_a_user_with_any_address_and_id_signs_in_and_calls(api: Api, address: str) -> None:
    person = {"email": address, "name": "Any", "role": "Viewer"}
    link = api.data("POST", "/v1/admin/users/invite", json=person)["link"]
    browser = Browser(api.app)
    form = browser.get(f"/invitations/{link}")
    fields = form.reader.forms[0].fields
    assert browser.post(f"/invitations/{link}", {**fields, "password": "a long password"}).status == 200
    other = Browser(api.app)
    fields = other.get("/sign-in").form("/sign-in").fields
    typed = {**fields, "email": address, "password": "a long password"}
    assert other.post("/sign-in", typed).title.startswith("Library")


def test_an_address_with_a_space_is_a_wrong_address(api: Api) -> None:
    page = Browser(api.app).sign_in("a b")
    assert (page.status, "The address or the password is wrong" in page.text) == (422, True)


def test_the_limit_of_a_user_whose_id_has_other_characters_counts(api: Api) -> None:
    async def add() -> None:
        draft = InvitationDraft(email="plus@example.com", name="Plus")
        await LocalDirectory(api.app.state.database).add("ann+1@example.com", draft)

    assert api.client.portal is not None
    api.client.portal.call(add)
    statuses = [api.as_user("ann+1@example.com", "GET", "/v1/content").status_code for _ in range(6)]
    assert statuses == [200] * 5 + [429]
