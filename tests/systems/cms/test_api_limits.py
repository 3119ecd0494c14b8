"""Rate limits of visitors' forms: by network address, and by the e-mail address in the form."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from solotable.errors import TransportError

from .api import Api, running


@pytest.fixture
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with running(tmp_path_factory.mktemp("limits"), limiter_url="sqlite://") as made:
        yield made


def message(email: str) -> dict[str, str]:
    return {"email": email, "name": "Eve", "message": "Hello"}


def test_an_address_sends_five_messages_an_hour_and_the_sixth_gets_a_retry_after(api: Api) -> None:
    for left in (4, 3, 2, 1, 0):
        answer = api.ask("POST", "/contact", json=message("eve@spam.example"))
        assert answer.status_code == 202, answer.text
        assert answer.headers["x-ratelimit-remaining"] == str(left)
    # Another spelling is the same mailbox.
    answer = api.ask("POST", "/contact", json=message(" EVE@Spam.example "))
    assert answer.status_code == 429
    assert answer.headers["content-type"] == "application/problem+json"
    assert 0 < int(answer.headers["retry-after"]) <= 720
    assert "spam.example" not in answer.text
    assert api.ask("POST", "/contact", json=message("ann@fine.example")).status_code == 202
    assert api.ask("POST", "/contact", tenant="zeta", json=message("eve@spam.example")).status_code == 202


def test_a_sender_of_ever_new_addresses_is_limited_by_its_network_address(api: Api) -> None:
    answers = [api.ask("POST", "/contact", json=message(f"m{n}@spam.example")).status_code for n in range(40)]
    # Some were sent when the site was filled.
    assert answers.count(202) >= 20
    assert answers[-1] == 429
    # Other forms and other sites have separate limits.
    consent = {"visitor_id": "v-1", "choices": {"ads": False}, "policy_version": "1"}
    assert api.ask("POST", "/consent", json=consent).status_code == 201
    assert api.ask("POST", "/contact", tenant="zeta", json=message("m@spam.example")).status_code == 202


def test_no_address_is_in_the_limiters_keys(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("limits")
    with running(folder, limiter_url=f"sqlite:///{folder}/limits.db") as api:
        api.ask("POST", "/contact", json=message("eve@spam.example"))
    found = b"".join(file.read_bytes() for file in folder.glob("limits.db*"))
    assert b"BUCKET" in found
    assert b"spam.example" not in found
    assert b"testclient" not in found


def test_without_a_limiter_nothing_is_limited(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.mktemp("limits"), limiter_url=None) as api:
        for _ in range(8):
            assert api.ask("POST", "/contact", json=message("eve@spam.example")).status_code == 202


def test_new_addresses_of_one_ipv6_network_are_one_visitor(api: Api) -> None:
    def sent(address: str, number: int) -> int:
        client = TestClient(api.app, client=(address, 1), headers=dict(api.client.headers))
        other = Api(api.app, client, api.url)
        return other.ask("POST", "/contact", json=message(f"n{number}@spam.example")).status_code

    answers = [sent(f"2001:db8:1:1::{number:x}", number) for number in range(1, 34)]
    assert answers == [202] * 30 + [429] * 3
    assert sent("2001:db8:1:2::1", 99) == 202


def test_forms_are_taken_while_the_limiter_cannot_be_asked(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[object] = []

    async def broken(request: object) -> None:
        requests.append(request)
        raise TransportError("no route to the table")

    monkeypatch.setattr(api.app.state.limiter._engine, "handle", broken)
    for _ in range(8):
        answer = api.ask("POST", "/contact", json=message("eve@spam.example"))
        assert (answer.status_code, "x-ratelimit-limit" in answer.headers) == (202, False)
    # Two calls of eight attempts each for every form would be 128, and take half a minute.
    assert len(requests) < 64
