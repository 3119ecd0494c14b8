"""Rate limits: their numbers, their headers, their refusals, and what gives a token back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from solotable.systems.community.routes.requests.rate_limits import LIMITS, limit

from .api import Api, running

SMALL = [
    limit("address", 1000),
    limit("user", 1000),
    limit("neighbourhoods", 2),
    limit("builds", 2),
    limit("profile_updates", 2),
    limit("logins", 3),
]


@pytest.fixture
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with running(tmp_path_factory.mktemp("limits"), limiter_url="sqlite://", limits=SMALL) as made:
        made.sign_up("ann")
        made.sign_up("ben")
        yield made


def test_the_limits_are_those_of_the_design() -> None:
    found = {each.name: (each.capacity, each.period_seconds) for each in LIMITS}
    assert found["address"] == (100, 60)
    assert found["user"] == (1000, 3600)
    assert found["neighbourhoods"] == (5, 86_400)
    assert found["builds"] == (10, 3600)
    assert found["profile_updates"] == (20, 3600)


def test_every_answer_has_the_headers_of_the_tightest_limit_errors_too(api: Api) -> None:
    for path, status in (("/api/neighborhoods", 200), ("/api/neighborhoods/missing", 404)):
        answer = api.ask("GET", path, "ann")
        assert answer.status_code == status
        assert answer.headers["x-ratelimit-limit"] == "1000"
        assert {"x-ratelimit-remaining-address", "x-ratelimit-remaining-user"} <= set(answer.headers)
        assert int(answer.headers["x-ratelimit-remaining"]) < 1000
        assert "x-ratelimit-reset" in answer.headers


@pytest.mark.parametrize(
    ("name", "method", "path", "body"),
    [
        ("neighbourhoods", "POST", "/api/neighborhoods", {"name": "Place {n}"}),
        ("builds", "POST", "/api/sites/{site}/build", None),
        ("profile_updates", "PUT", "/api/user", {"bio": "{n}"}),
        ("profile_updates", "POST", "/api/user/email", {"email": "ann{n}@example.com"}),
    ],
)
def test_what_is_scarce_ends_in_a_429_for_one_user(
    api: Api, name: str, method: str, path: str, body: dict[str, str] | None
) -> None:
    sites = {user: api.site(user) for user in ("ann", "ben")}

    def send(user: str, number: int) -> Any:
        given = body and {key: value.replace("{n}", f"{user}{number}") for key, value in body.items()}
        return api.ask(method, path.replace("{site}", sites[user]), user, json=given)

    for number in range(2):
        answer = send("ann", number)
        assert answer.is_success, answer.text
        assert answer.headers["x-ratelimit-remaining"] == str(1 - number)
    refused = send("ann", 2)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate-limit-exceeded")
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.headers["x-ratelimit-remaining"] == "0"
    assert refused.json()["error"]["details"]["limits"]
    assert send("ben", 3).is_success


def test_a_failed_creation_gives_its_token_back(api: Api) -> None:
    api.neighbourhood("ann", name="Canal Row")
    for _ in range(3):
        assert api.status("POST", "/api/neighborhoods", "ann", json={"name": "canal row"})[0] == 409
    assert api.status("POST", "/api/neighborhoods", "ann", json={"name": "Another"}) == (201, "")


def test_an_address_has_a_limit_before_its_credential_is_checked(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    small = [limit("address", 3), *SMALL[1:]]
    with running(tmp_path_factory.mktemp("address"), limiter_url="sqlite://", limits=small) as api:
        wrong = {"authorization": "Bearer wrong"}
        statuses = [api.client.get("/api/neighborhoods", headers=wrong).status_code for _ in range(4)]
        assert statuses == [401, 401, 401, 429]
        assert api.client.get("/").status_code == 429, "pages count too"
        assert api.client.get("/health").status_code == 200


def test_a_user_has_a_limit_over_all_addresses(tmp_path_factory: pytest.TempPathFactory) -> None:
    small = [SMALL[0], limit("user", 3), *SMALL[2:]]
    with running(tmp_path_factory.mktemp("user"), limiter_url="sqlite://", limits=small) as api:
        api.sign_up("ann")
        api.sign_up("ben")
        statuses = [api.ask("GET", "/api/user", "ann").status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        assert api.ask("GET", "/api/user", "ben").status_code == 200


def test_logins_have_a_limit(api: Api) -> None:
    statuses = [api.client.get("/auth/callback", headers={"accept": "*/*"}).status_code for _ in range(4)]
    assert statuses == [400, 400, 400, 429]
