"""The demo: its calls work, its worker builds the sites, its days have an export and a drill."""

from __future__ import annotations

import json
import re
import threading
from functools import partial
from pathlib import Path

import httpx2
import pytest

from solotable.pages.bind import bind_port
from solotable.systems.community.demo import program as demo
from solotable.systems.community.recovery import Recovery
from tests.waiting import HANG_SECONDS, wait_until


def test_the_demo_prints_people_sites_and_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert demo.main(["--seed-only", "--folder", str(tmp_path), "--port", "9123"]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith("Neighbourhoods: 5 people, 3 neighbourhoods, 3 sites\n")
        assert re.search(r"^TOKEN=\S+$", shown, re.MULTILINE)
        assert len(re.findall(r"^  \w+\.test +\S{20,}$", shown, re.MULTILINE)) == 5
        assert "http://alice.localhost:9123/" in shown


def test_the_calls_work_and_the_worker_process_builds_the_sites(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'community.db'}"
    prepared = demo._prepare(url)
    keys = demo.credentials()
    with bind_port(0) as port:
        number = port.getsockname()[1]
        server = demo.server(url, tmp_path, keys, port=number)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [port]})
        thread.start()
        try:
            wait_until(lambda: server.started or not thread.is_alive())
            check(prepared + demo.greeting(keys, number), tmp_path)
        finally:
            server.should_exit = True
            thread.join()


def is_served(client: httpx2.Client, host: str) -> bool:
    """Return whether the demo shows a site; `*.localhost` needs no resolver here."""
    return client.get(f"http://127.0.0.1:{host.rpartition(':')[2]}/", headers={"host": host}).is_success


def check(shown: str, folder: Path) -> None:
    token = re.findall(r"^TOKEN=(\S+)$", shown, re.MULTILINE)[0]
    calls = [line.strip() for line in shown.splitlines() if line.startswith("  curl")]
    assert len(calls) == 5
    with httpx2.Client(timeout=HANG_SECONDS) as client:
        for call in calls:
            headers = dict(re.findall(r"-H [\"']([^:]+): ([^\"']+)[\"']", call.replace("$TOKEN", token)))
            method = "POST" if "-X POST" in call else "GET"
            answer = client.request(method, re.findall(r"http://\S+", call)[0], headers=headers)
            assert answer.is_success, (call, answer.text)
        for address in re.findall(r"^  http://(\S+)/$", shown, re.MULTILINE):
            wait_until(partial(is_served, client, address))
        # What a browser does: to the provider on the same server, and back.
        base = re.findall(r"Open (http://\S+?)/ and", shown)[0]
        start = client.get(f"{base}/auth/login")
        page = client.get(start.headers["location"])
        assert (page.status_code, 'action="/provider/oauth/authorize"' in page.text) == (200, True)
    wait_until((folder / "drills.jsonl").exists)


def test_s2_17_s2_20_each_day_of_the_demo_has_an_export_and_a_drill(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'community.db'}"
    demo._prepare(url)
    clock = demo.DayClock(day_seconds=0.001)
    recovery = Recovery(url, export_url=str(tmp_path / "exports"), now=clock.now)
    first = demo.run_day(recovery, tmp_path)
    wait_until(lambda: f"{clock.now():%Y-%m-%d}" > first[:10])
    second = demo.run_day(recovery, tmp_path)
    recovery.close()
    assert first[:10] < second[:10]
    assert len(list((tmp_path / "exports").iterdir())) == 2
    drills = [json.loads(line) for line in (tmp_path / "drills.jsonl").read_text().splitlines()]
    assert [each["passed"] for each in drills] == [True, True]
    assert all("drill passed" in each for each in (first, second))
