"""The demo: its data and its credentials work, and a second start creates nothing twice."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest
from fastapi.testclient import TestClient

from solotable.pages.bind import bind_port
from solotable.systems.cms import demo
from solotable.systems.cms.app import create_app
from solotable.systems.demo_server import make_auth
from tests.waiting import HANG_SECONDS, wait_until


def test_the_demo_creates_two_tenants_and_prints_commands_to_try(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.main(["--seed-only", "--folder", str(tmp_path)]) == 0
    first = capsys.readouterr().out
    assert len(re.findall(r"^  curl ", first, re.MULTILINE)) == 5
    for role in ("GLOBAL_ADMIN", "TENANT_ADMIN", "EDITOR", "RENDERER", "CUSTOMER"):
        assert re.search(rf"^  {role} ", first, re.MULTILINE)
    records = dict(re.findall(r"^(\w+): (\d+) audit events$", first, re.MULTILINE))
    assert records.keys() == {"acme", "globex"}
    assert all(int(count) >= 10 for count in records.values())
    assert demo.main(["--seed-only", "--folder", str(tmp_path)]) == 0
    assert dict(re.findall(r"^(\w+): (\d+) audit events$", capsys.readouterr().out, re.MULTILINE)) == records


def test_a_port_that_is_in_use_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with bind_port(0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        assert demo.main(["--port", str(port), "--folder", str(tmp_path)]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith(f"Cannot bind port {port} on 127.0.0.1 (")
    assert shown.endswith("); choose another with --port.\n")


def test_the_five_commands_of_the_demo_work(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'cms.db'}"
    asyncio.run(demo.prepare(url))
    keys = demo.credentials()
    app = create_app(url, auth=make_auth(keys), storage=tmp_path / "files")
    lines = [line for line in demo.greeting(keys, port=8080).splitlines() if line.startswith("  curl")]
    with TestClient(app, follow_redirects=False) as client:
        answers = []
        for line in lines:
            given = dict(each.split(": ") for each in re.findall(r"-H '([^']+)'", line))
            (path,) = re.findall(r"http://127.0.0.1:8080([^' ]*)", line)
            answers.append(client.get(path, headers={name.lower(): value for name, value in given.items()}))
    assert [each.status_code for each in answers] == [200, 301, 200, 403, 200]
    assert answers[0].json()["title"] == "About us"
    assert answers[1].headers["location"] == "/about-us"
    assert answers[4].json()["items"][0]["actor"]["email"].endswith("@acme.example")


def test_an_app_delivers_its_audit_trail_while_it_runs_and_when_it_ends(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'cms.db'}"
    before = asyncio.run(demo.prepare(url))
    keys = demo.credentials()
    editor = next(each.key for each in keys if each.role == "EDITOR" and each.tenant == "acme")
    app = create_app(url, auth=make_auth(keys), storage=tmp_path / "files", deliver_seconds=30.0)
    with TestClient(app) as client:
        made = client.post("/content", headers={"x-api-key": editor}, json={"title": "Late"})
        assert made.status_code == 201
    after = asyncio.run(demo.prepare(url))
    assert after == {**before, "acme": before["acme"] + 1}


def test_delivery_needs_a_url() -> None:
    with pytest.raises(TypeError, match="deliver_seconds"):
        create_app(object(), deliver_seconds=1.0)  # type: ignore[arg-type]  # what is refused


def test_without_authentication_only_the_public_site_answers(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'cms.db'}"
    asyncio.run(demo.prepare(url))
    with TestClient(create_app(url), base_url="http://acme.localhost") as client:
        assert client.get("/about-us").status_code == 200
        assert client.get("/content").status_code == 401
        assert client.get("/content", headers={"x-api-key": "anything"}).status_code == 401


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[[Sequence[str]], str]]:
    """Start the demo's server on a free port with these trusted proxies; return its URL."""
    url = f"sqlite:///{tmp_path / 'cms.db'}"
    asyncio.run(demo.prepare(url))
    stack = ExitStack()

    def start(trusted: Sequence[str]) -> str:
        found = demo.server(url, tmp_path, demo.credentials(), trusted)
        port = stack.enter_context(bind_port(0))
        thread = threading.Thread(target=found.run, kwargs={"sockets": [port]})
        thread.start()

        def stop() -> None:
            found.should_exit = True
            thread.join()

        stack.callback(stop)
        wait_until(lambda: found.started or not thread.is_alive())
        assert found.started
        return f"http://127.0.0.1:{port.getsockname()[1]}"

    with stack:
        yield start


def count_visits(base: str, most: int, forwarded: Callable[[int], str]) -> int:
    """Send messages, each forwarded for another address; return how many are accepted before a refusal."""
    with httpx2.Client(base_url=base, timeout=HANG_SECONDS) as client:
        for number in range(most):
            answer = client.post(
                "/contact",
                json={"email": f"v{number}@x.example", "message": "Hello"},
                headers={
                    "host": "acme.localhost",
                    "origin": "http://acme.localhost",
                    "x-forwarded-for": forwarded(number),
                },
            )
            if answer.status_code == 429:
                return number
            assert answer.status_code == 202
    return most


def test_no_header_makes_one_visitor_many(serving: Callable[[Sequence[str]], str]) -> None:
    # A slow machine gives the visitor a few more: a token comes in every two minutes.
    assert 30 <= count_visits(serving([]), 60, lambda number: f"198.51.100.{number}") < 60


def test_a_trusted_proxy_names_the_visitors_address(serving: Callable[[Sequence[str]], str]) -> None:
    base = serving(["127.0.0.1"])
    assert count_visits(base, 31, lambda number: f"198.51.100.{number}") == 31
    # Addresses that the visitor sends, before the one that the proxy appends, are ignored.
    assert 30 <= count_visits(base, 60, lambda number: f"203.0.113.{number}, 192.0.2.7") < 60
