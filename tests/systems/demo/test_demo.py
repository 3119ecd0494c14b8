"""`solotable demo`: the front page comes first, systems share one file, and stopping leaves nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

import solotable
from solotable.engines import sqlite
from solotable.pages.bind import PortInUse, bind_port
from solotable.systems.demo.program import DemoProgram, DemoSettings
from solotable.systems.demo.systems import SYSTEMS, DemoSystem
from solotable.systems.demo_server import Demo
from tests.waiting import HANG_SECONDS, wait_until

SOURCE = str(Path(solotable.__file__).parents[1])
#: The two systems that start fastest.
FAST = tuple(each for each in SYSTEMS if each.name in ("cms", "limiter"))


@contextmanager
def running(program: DemoProgram) -> Iterator[list[str]]:
    """Run a demo in a thread for as long as the block lasts; yield what it prints."""
    printed: list[str] = []
    thread = threading.Thread(target=program.run, args=(printed.append,))
    thread.start()
    try:
        wait_until(lambda: program.status.is_settled or not thread.is_alive())
        assert thread.is_alive()
        yield printed
    finally:
        program.stop()
        thread.join()


def test_systems_share_a_file_and_the_front_page_says_how_to_use_them(tmp_path: Path) -> None:
    program = DemoProgram(DemoSettings(folder=tmp_path, kept=True, port=0, systems=FAST))
    with running(program) as printed, httpx2.Client(timeout=HANG_SECONDS) as client:
        assert [each.state for each in program.status.parts] == ["up"] * 3
        assert len(printed) == 2
        page = client.get(program.url)
        assert page.status_code == 200
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "refresh" not in page.headers
        for part in program.status.systems:
            assert part.page_url in page.text
            host = part.page_url.split("/")[2]
            assert client.get(f"{part.url}{part.path}", headers={"host": host}).status_code == 200
        # What the page shows works: a key of the CMS, and its address.
        cms = program.status.part("cms")
        assert cms is not None
        (key,) = re.findall(r"EDITOR +acme +(\S+)", cms.greeting)
        assert key in page.text
        listed = client.get(f"{cms.url}/content", headers={"x-api-key": key})
        assert (listed.status_code, len(listed.json()["items"]) > 1) == (200, True)
        assert client.get(f"{program.url}status.json").json()["settled"] is True
        assert key not in client.get(f"{program.url}status.json").text
        # The page has keys, so a name that another host gave this address does not open it.
        assert client.get(program.url, headers={"host": "evil.example"}).status_code == 400
        endpoint = program.status.part("endpoint")
        assert endpoint is not None
        headers = {
            "x-amz-target": "DynamoDB_20120810.ListTables",
            "content-type": "application/x-amz-json-1.0",
        }
        tables = client.post(endpoint.url, headers=headers, content="{}").json()["TableNames"]
        assert tables == ["Cms", "Limiter"]
    with sqlite.open(tmp_path / "demo.db", read_only=True) as engine:
        assert engine.call("ListTables", {})["TableNames"] == ["Cms", "Limiter"]


def test_a_system_that_fails_has_its_reason_on_its_card(tmp_path: Path) -> None:
    def load(_: int) -> Demo:
        raise RuntimeError("<the disk> is full")

    broken = DemoSystem(name="broken", title="Broken", summary="", task="", path="/", load=load)
    program = DemoProgram(DemoSettings(folder=tmp_path, port=0, systems=(broken,)))
    with running(program) as printed:
        page = httpx2.get(program.url).text
        assert "RuntimeError: &lt;the disk&gt; is full" in page
        assert printed == ["Broken failed: RuntimeError: <the disk> is full"]


@pytest.mark.parametrize(("script", "state"), [("ok", "up"), ("noisy", "up"), ("fails", "failed")])
def test_the_console_is_a_process_of_its_own(
    tmp_path: Path, script: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if script == "noisy":
        # Python reports every import: more than a pipe holds.
        monkeypatch.setenv("PYTHONVERBOSE", "1")

    def command(file: Path, port: int) -> Sequence[str]:
        # `serve` stands for the console: it too takes a file and a port.
        wrong = ("--nothing",) if script == "fails" else ()
        return ("serve", str(file), "--port", str(port), *wrong)

    program = DemoProgram(DemoSettings(folder=tmp_path, port=0, console=command, systems=()))
    with running(program):
        console = program.status.part("console")
        assert console is not None
        assert console.state == state
        page = httpx2.get(program.url).text
        if state == "up":
            assert httpx2.get(f"{console.url}/health").status_code == 200
        else:
            assert "No such option" in page
    assert console is not None
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{console.url}/health")


def test_a_taken_port_is_reported_before_anything_starts(tmp_path: Path) -> None:
    with bind_port(0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=str(port)):
            DemoProgram(DemoSettings(folder=tmp_path, port=port))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def start_demo(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "solotable", "demo", "--no-open", *arguments],
            env=os.environ | {"PYTHONPATH": SOURCE, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for each in started:
        each.kill()
        each.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_stops_the_command_and_removes_its_folder(
    tmp_path: Path, start_demo: Callable[..., subprocess.Popen[str]]
) -> None:
    process = start_demo("--port", "0")
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("Front page"):
            break
    url = re.findall(r"http://\S+", lines[-1])[0]
    assert "solotable is" in httpx2.get(url).text
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=HANG_SECONDS)
    assert (process.returncode, rest.splitlines()[-1]) == (0, "Stopped.")
    assert list(tmp_path.glob("solotable-demo-*")) == []
