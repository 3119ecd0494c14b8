"""The demo: its data is there, its lines answer as they say, and starting it again makes nothing twice."""

from __future__ import annotations

import asyncio
import re
import runpy
import shlex
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from solotable.systems.cms import demo as cms_demo
from solotable.systems.limiter import demo
from solotable.systems.limiter.http.app import create_app


def test_the_demo_makes_its_data_once_and_says_what_to_try(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.main(["--seed-only", "--folder", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert len(re.findall(r"^  curl ", told, re.MULTILINE)) == 5
    for role in ("GLOBAL_OPERATOR", "OPERATOR", "APP"):
        assert re.search(rf"^  {role} ", told, re.MULTILINE)
    assert demo.main(["--seed-only", "--folder", str(tmp_path)]) == 0


@pytest.mark.parametrize("started", [demo.main, cms_demo.main])
def test_a_port_in_use_is_reported_before_any_key(
    started: Callable[[list[str]], int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert started(["--port", str(port), "--folder", str(tmp_path)]) == 1
    told = capsys.readouterr()
    assert (told.out, told.err) == (
        "",
        f"Cannot bind port {port} on 127.0.0.1 (Address already in use); choose another with --port.\n",
    )
    assert started(["--port", "99999", "--folder", str(tmp_path)]) == 1


def test_the_lines_answer_as_they_say(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'limiter.db'}"
    for _ in range(2):
        asyncio.run(demo.prepare(url))
    keys = demo.credentials()
    lines = [each for each in demo.greeting(keys, port=8081).splitlines() if each.startswith("  curl")]
    with TestClient(demo.demo_app(url, keys)) as client:

        def run(line: str) -> Any:
            words = shlex.split(line, comments=True)
            given = dict(words[at + 1].split(": ") for at, word in enumerate(words) if word == "-H")
            data = words[words.index("-d") + 1] if "-d" in words else None
            path = words[-1].removeprefix("http://127.0.0.1:8081")
            method = "GET" if data is None else "POST"
            return client.request(method, path, headers=given, content=data)

        answer = run(lines[0])
        assert answer.json()["choices"][0]["message"]["content"] == "Say hello."
        # Four more of the five that the greeting promises, and some that a slow machine refills.
        assert [run(lines[0]).status_code for _ in range(4)] == [200] * 4
        for _ in range(10):
            if answer.status_code == 200:
                answer = run(lines[0])
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) <= 12
        assert [run(line).status_code for line in lines[1:4]] == [201, 200, 200]
        summary = run(lines[3]).json()
        assert summary["limits"]["tpm"]["total"] == 200


def test_an_app_counts_usage_and_delivers_the_trail_while_it_runs_and_when_it_ends(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'limiter.db'}"
    asyncio.run(demo.prepare(url))
    keys = demo.credentials()
    by_name = {each.name: {"x-api-key": each.key} for each in keys}
    with TestClient(demo.demo_app(url, keys, jobs_seconds=30.0)) as client:
        body = {"entity": "user-1", "resource": "echo-1", "consume": {"tpm": 100}}
        assert client.post("/acquire", headers=by_name["gateway"], json=body).status_code == 201
        made = client.post("/api/entities", headers=by_name["oscar"], json={"entity_id": "late"})
        assert made.status_code == 201
    with TestClient(demo.demo_app(url, keys)) as client:
        summary = client.get("/usage/summary?entity=user-1", headers=by_name["oscar"]).json()
        assert summary["limits"]["tpm"]["total"] == 300
        (record, *_) = client.get("/audit?limit=1", headers=by_name["oscar"]).json()["items"]
        assert (record["action"], record["title"], record["actor_id"]) == (
            "entity_created",
            "late",
            "demo-oscar",
        )


def test_jobs_need_a_url_and_without_authentication_only_the_health_answers(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="jobs_seconds"):
        create_app(object(), jobs_seconds=1.0)  # type: ignore[arg-type]  # what is refused
    with TestClient(create_app(f"sqlite:///{tmp_path / 'limiter.db'}")) as client:
        assert client.get("/health").status_code == 200
        assert client.get("/api/entities").status_code == 401
        assert client.post("/acquire", headers={"x-api-key": "anything"}, json={}).status_code == 401


def test_the_gateway_of_the_examples_runs(capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).parents[3] / "examples" / "llm_gateway.py"
    runpy.run_path(str(example), run_name="__main__")
    printed = " ".join(capsys.readouterr().out.split())
    for expected in ("429", "Retry-After", "given back", "org-1"):
        assert expected in printed
