"""Leases over HTTP: taken, adjusted and ended by any process, once each; and every refusal as it is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from solotable.errors import TransportError
from solotable.systems.limiter.http.bucket_feed import encode_event

from .api import MODEL, Api, made_app, running

#: A limit that does not fill up while a test runs.
SLOW = [
    {"name": "rpm", "refill": 10, "period_seconds": 86_400},
    {"name": "tpm", "refill": 1_000, "period_seconds": 86_400},
]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A limiter with an organisation whose users cascade."""
    with running(tmp_path_factory.mktemp("leases")) as made:
        yield made


@pytest.fixture
def user(api: Api, request: pytest.FixtureRequest) -> str:
    """A user of an organisation, both with slow limits, charged together."""
    name = request.node.name.partition("[")[0][-60:].strip("_")
    for entity, parent in ((f"o-{name}", None), (f"u-{name}", f"o-{name}")):
        body = {"entity_id": entity, "parent": parent, "cascade": parent is not None}
        assert api.ask("POST", "/api/entities", "OPERATOR", json=body).status_code == 201
        limits = SLOW if parent else [{**each, "refill": each["refill"] * 2} for each in SLOW]  # type: ignore[operator]
        put = api.ask("PUT", f"/api/limits/{entity}", "OPERATOR", json={"limits": limits})
        assert put.status_code == 200, put.text
    return f"u-{name}"


def both(api: Api, user: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return what the user has, and what its organisation has."""
    return api.left(user), api.left(f"o-{user[2:]}")


def acquire(api: Api, user: str, headers: dict[str, str] | None = None, **consume: float) -> Any:
    body = {"entity": user, "resource": MODEL, "consume": consume}
    return api.ask("POST", "/acquire", "APP", json=body, headers=headers or {})


def test_a_lease_is_taken_adjusted_and_given_back_from_the_parent_too(api: Api, user: str) -> None:
    made = acquire(api, user, rpm=1, tpm=300)
    assert made.status_code == 201
    lease = made.json()["lease"]
    assert made.headers["location"] == f"/leases/{lease['lease_id']}"
    assert both(api, user) == ({"rpm": 9, "tpm": 700}, {"rpm": 19, "tpm": 1_700})
    adjusted = api.ask("PATCH", made.headers["location"], "APP", json={"consumed": {"tpm": 120.5}})
    assert adjusted.json()["consumed"] == {"rpm": 1, "tpm": 120.5}
    assert both(api, user) == ({"rpm": 9, "tpm": 879}, {"rpm": 19, "tpm": 1_879})
    assert api.ask("DELETE", made.headers["location"], "APP").status_code == 204
    assert both(api, user) == ({"rpm": 10, "tpm": 1_000}, {"rpm": 20, "tpm": 2_000})


def test_the_same_adjustment_twice_is_made_once_and_debts_are_possible(api: Api, user: str) -> None:
    path = acquire(api, user, rpm=1, tpm=300).headers["location"]
    for _ in range(3):
        assert api.ask("PATCH", path, "APP", json={"consumed": {"tpm": 1_400}}).status_code == 200
    assert api.left(user) == {"rpm": 9, "tpm": -400}
    assert acquire(api, user, tpm=1).status_code == 429
    for _ in range(2):
        assert api.ask("DELETE", path, "APP", params={"keep": "true"}).status_code == 204
    assert api.left(user) == {"rpm": 9, "tpm": -400}
    ended = api.ask("PATCH", path, "APP", json={"consumed": {"tpm": 1}})
    assert (ended.status_code, ended.json()["type"]) == (409, "urn:problem:solotable:lease-ended")
    # The first end counts: nothing is given back by a second one.
    assert api.ask("DELETE", path, "APP").status_code == 204
    assert api.left(user) == {"rpm": 9, "tpm": -400}


def test_another_version_than_the_expected_is_refused(api: Api, user: str) -> None:
    made = acquire(api, user, rpm=1, tpm=300)
    path, tag = made.headers["location"], made.headers["etag"]
    first = api.ask("PATCH", path, "APP", json={"consumed": {"tpm": 200}}, headers={"if-match": tag})
    assert (first.status_code, first.headers["etag"]) == (200, '"2"')
    late = api.ask("PATCH", path, "APP", json={"consumed": {"tpm": 100}}, headers={"if-match": tag})
    assert (late.status_code, late.json()["current_version"]) == (412, 2)
    assert api.ask("DELETE", path, "APP", headers={"if-match": tag}).status_code == 412
    assert api.left(user) == {"rpm": 9, "tpm": 800}


def test_a_key_makes_a_repeated_acquire_harmless(api: Api, user: str) -> None:
    key = {"idempotency-key": f"call-1-of-{user}"}
    first = acquire(api, user, key, rpm=1, tpm=300)
    again = acquire(api, user, key, rpm=1, tpm=300)
    assert first.json()["lease"] == again.json()["lease"]
    assert api.left(user) == {"rpm": 9, "tpm": 700}
    other = acquire(api, user, key, rpm=1, tpm=301)
    assert other.status_code == 422
    assert "key" in other.json()["detail"]
    assert acquire(api, user, {"idempotency-key": "another"}, rpm=1, tpm=300).status_code == 201
    assert api.left(user) == {"rpm": 8, "tpm": 400}


def test_two_callers_with_one_key_have_two_leases(api: Api, user: str) -> None:
    body = {"entity": user, "resource": MODEL, "consume": {"rpm": 1}}
    key = {"idempotency-key": f"call-1-of-{user}"}
    first, second = (
        api.ask("POST", "/acquire", role, json=body, headers=key) for role in ("APP", "OPERATOR")
    )
    assert first.json()["lease"]["lease_id"] != second.json()["lease"]["lease_id"]
    assert api.left(user)["rpm"] == 8


def test_an_invalid_number_of_tokens_is_rejected(api: Api, user: str) -> None:
    path = acquire(api, user, rpm=1).headers["location"]
    for amount in ("1", True, None, [1], -1, 1e13, 0.0001):
        body = {"entity": user, "resource": MODEL, "consume": {"rpm": amount}}
        refused = api.ask("POST", "/acquire", "APP", json=body)
        assert (refused.status_code, refused.json()["title"]) == (422, "Invalid data"), amount
        assert api.ask("PATCH", path, "APP", json={"consumed": {"rpm": amount}}).status_code == 422, amount
    assert api.left(user)["rpm"] == 9


def test_whole_numbers_are_shown_without_a_fraction(api: Api, user: str) -> None:
    told = acquire(api, user, rpm=1, tpm=0.5).text
    assert '"consumed":{"rpm":1,"tpm":0.5}' in told
    assert '"requested":1,' in told
    refused = acquire(api, user, tpm=999.9).json()
    assert refused["detail"].startswith(
        f"{user!r} asks for 999.9 tpm of '{MODEL}' and has 999 left; try again in "
    )
    assert acquire(api, user, rpm=999_999_999_999).json()["detail"].startswith("999999999999 rpm are more")


def test_many_at_once_settle_each_difference_once(api: Api, user: str) -> None:
    path = acquire(api, user, rpm=1, tpm=300).headers["location"]

    def ask(number: int) -> int:
        if number % 4 == 3:
            return api.ask("DELETE", path, "APP").status_code
        return api.ask("PATCH", path, "APP", json={"consumed": {"tpm": 100 + number}}).status_code

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(24)))
    assert set(answers) <= {200, 204, 409}
    assert 204 in answers
    assert both(api, user) == ({"rpm": 10, "tpm": 1_000}, {"rpm": 20, "tpm": 2_000})


def test_another_process_settles_what_this_one_has_taken(api: Api, user: str) -> None:
    path = acquire(api, user, rpm=2, tpm=500).headers["location"]
    with TestClient(made_app(api.url)) as elsewhere:
        other = Api(api.app, elsewhere, api.url)
        assert other.ask("PATCH", path, "APP", json={"consumed": {"tpm": 700}}).status_code == 200
        assert both(other, user) == ({"rpm": 8, "tpm": 300}, {"rpm": 18, "tpm": 1_300})
        assert other.ask("DELETE", path, "APP").status_code == 204
    assert both(api, user) == ({"rpm": 10, "tpm": 1_000}, {"rpm": 20, "tpm": 2_000})


def test_an_abandoned_lease_is_forgotten_and_stays_charged(tmp_path: Path) -> None:
    with running(tmp_path, lease_seconds=0.0) as api:
        put = api.ask("PUT", "/api/limits/u", "OPERATOR", json={"limits": SLOW})
        assert put.status_code == 200
        path = acquire(api, "u", {"idempotency-key": "k"}, rpm=1).headers["location"]
        for method in ("GET", "PATCH", "DELETE"):
            body = {"consumed": {"rpm": 2}} if method == "PATCH" else None
            assert api.ask(method, path, "APP", json=body).status_code == 404
        assert api.left("u")["rpm"] == 9
        assert acquire(api, "u", {"idempotency-key": "k"}, rpm=1).status_code == 201
        assert api.left("u")["rpm"] == 8


def test_a_429_has_every_limit_and_says_when(api: Api, user: str) -> None:
    assert acquire(api, user, rpm=9, tpm=100).status_code == 201
    refused = acquire(api, user, rpm=2, tpm=100)
    problem = refused.json()
    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/problem+json"
    assert problem["type"] == "urn:problem:solotable:rate-limit-exceeded"
    assert {(each["entity"], each["limit"]) for each in problem["limits"]} == {
        (entity, limit) for entity in (user, f"o-{user[2:]}") for limit in ("rpm", "tpm")
    }
    assert [each["limit"] for each in problem["limits"] if each["exceeded"]] == ["rpm"]
    assert int(refused.headers["retry-after"]) - 1 <= problem["retry_after_seconds"] <= 8_640
    assert refused.headers["x-ratelimit-limit"] == refused.headers["x-ratelimit-limit-rpm"] == "10"
    assert refused.headers["x-ratelimit-remaining"] == "1"
    assert refused.headers["x-ratelimit-remaining-tpm"] == "900"
    assert int(refused.headers["x-ratelimit-reset"]) in range(77_700, 77_761)
    assert both(api, user) == ({"rpm": 1, "tpm": 900}, {"rpm": 11, "tpm": 1_900})


def test_c1_13_an_amount_above_the_capacity_is_not_a_429(api: Api, user: str) -> None:
    refused = acquire(api, user, rpm=11)
    assert (refused.status_code, refused.json()["limit"]["capacity"]) == (422, 10)
    assert refused.json()["type"] == "urn:problem:solotable:never-satisfiable"
    assert "retry-after" not in refused.headers
    params = {"resource": MODEL, "consume": ["rpm:11"]}
    assert api.ask("GET", f"/api/dashboard/wait-time/{user}", "APP", params=params).status_code == 422
    params["consume"] = ["rpm:10", "tpm:1.5"]
    waits = api.ask("GET", f"/api/dashboard/wait-time/{user}", "APP", params=params)
    assert waits.json()["wait_seconds"] == 0


def test_unknown_limits_and_a_system_without_limits_are_reported(api: Api, user: str, tmp_path: Path) -> None:
    assert acquire(api, user, requests=1).status_code == 422
    with running(tmp_path) as bare:
        assert bare.ask("DELETE", "/defaults/system", "OPERATOR").status_code == 204
        none = acquire(bare, "nobody", rpm=1)
        assert (none.status_code, none.json()["type"]) == (422, "urn:problem:solotable:no-limits")


@pytest.mark.parametrize("choice", ["block", "allow"])
def test_a_table_that_does_not_answer_is_a_503_or_allowed(
    tmp_path: Path, choice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path) as api:
        assert acquire(api, "u", rpm=1).status_code == 201

        async def broken(request: object) -> None:
            raise TransportError("no route to the table")

        monkeypatch.setattr(api.app.state.database.engine, "handle", broken, raising=False)
        if getattr(api.app.state.database.engine, "handle", None) is not broken:
            pytest.fail("the engine could not be broken")
        body = {"entity": "u", "resource": MODEL, "consume": {"rpm": 1}, "on_unavailable": choice}
        answer = api.ask("POST", "/acquire", "APP", json=body)
        monkeypatch.undo()
        if choice == "allow":
            assert answer.json()["limited"] is False
            assert answer.json()["lease"] is None
        else:
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert "route" not in answer.text


def test_the_echo_is_limited_by_requests_and_tokens_and_charged_what_it_used(api: Api) -> None:
    put = api.ask("PUT", "/api/limits/talker", "OPERATOR", json={"limits": SLOW})
    assert put.status_code == 200
    body = {
        "user": "talker",
        "max_tokens": 300,
        "messages": [{"role": "user", "content": "one two three four"}],
    }
    answer = api.ask("POST", "/v1/chat/completions", "APP", json=body)
    assert answer.json()["usage"] == {"prompt_tokens": 4, "completion_tokens": 4, "total_tokens": 8}
    assert api.left("talker") == {"rpm": 9, "tpm": 992}
    body["max_tokens"] = 990
    refused = api.ask("POST", "/v1/chat/completions", "APP", json=body)
    assert (refused.status_code, "retry-after" in refused.headers) == (429, True)
    assert api.left("talker") == {"rpm": 9, "tpm": 992}


def test_an_event_of_a_bucket_has_its_limits() -> None:
    from solotable.systems.limiter import Bucket

    bucket = Bucket(namespace="acme", entity="u", resource="r", rules="rpm=10/60", at=60_000_000, writes=1)
    bucket.keep_unknown({"used_rpm": {"N": str(60_000_000 * 10_000 - 4 * 1000 * 60_000_000)}})
    kind, number, data = encode_event(bucket, "7").rstrip("\n").split("\n")
    assert (kind, number) == ("event: bucket", "id: 7")
    (limit,) = json.loads(data.removeprefix("data: "))["limits"]
    assert limit == {"limit": "rpm", "capacity": 10, "available": 4, "consumed": 0}


def test_a_lease_of_a_concurrency_limit_is_extended(api: Api) -> None:
    jobs = [{"name": "jobs", "kind": "concurrency", "capacity": 1, "period_seconds": 3600}]
    assert api.ask("PUT", "/api/limits/worker", "OPERATOR", json={"limits": jobs}).status_code == 200
    made = acquire(api, "worker", jobs=1)
    first = made.json()["lease"]
    path = made.headers["location"]
    extended = api.ask("POST", f"{path}/extend", "APP", headers={"if-match": made.headers["etag"]})
    assert extended.status_code == 200, extended.text
    assert first["held_until"] < extended.json()["held_until"] < extended.json()["expires"]
    assert extended.headers["etag"] != made.headers["etag"]
    stale = api.ask("POST", f"{path}/extend", "APP", headers={"if-match": made.headers["etag"]})
    assert stale.status_code == 412
    assert api.ask("DELETE", path, "APP").status_code == 204
    over = api.ask("POST", f"{path}/extend", "APP")
    assert (over.status_code, over.json()["type"]) == (409, "urn:problem:solotable:lease-ended")
    assert api.ask("POST", "/leases/nope/extend", "APP").status_code == 404
