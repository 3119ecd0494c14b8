"""Visitors' forms are limited: by where they come from, and by the address that they name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .api import Api, running


@pytest.fixture
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with running(tmp_path_factory.mktemp("limits"), limiter_url="sqlite://") as made:
        yield made


def message(email: str) -> dict[str, str]:
    return {"email": email, "name": "Eve", "message": "Hello"}


def test_an_address_sends_five_messages_an_hour_and_the_sixth_is_told_when(api: Api) -> None:
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


def test_who_names_ever_new_addresses_is_limited_by_where_it_comes_from(api: Api) -> None:
    answers = [api.ask("POST", "/contact", json=message(f"m{n}@spam.example")).status_code for n in range(40)]
    # Some were sent when the site was filled.
    assert answers.count(202) >= 20
    assert answers[-1] == 429
    # Other forms, and other sites, are not its.
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
