"""The demo: its people, content and events are there, its commands work, a second start adds nothing."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest

from solotable import Database, connect
from solotable.pages.bind import bind_port
from solotable.systems.portal import demo
from solotable.systems.portal.entities.notifications import Notification
from solotable.systems.portal.tables import TABLES
from tests.waiting import HANG_SECONDS, wait_until


def test_the_demo_prints_people_and_what_to_click(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert demo.main(["--seed-only", "--folder", str(tmp_path)]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith("Lantern: 4 people, 7 items of content, 60 days of events\n")
        for role in ("Viewer", "Contributor", "Approver", "Admin"):
            assert re.search(rf"^  {role} +\w+@demo.example +\S{{20,}}$", shown, re.MULTILINE)
        assert "Press Approve. The message appears in vic's inbox" in shown


def test_the_commands_of_the_demo_work_and_an_approval_notifies(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'portal.db'}"
    demo._prepare(url)
    keys = demo.credentials()
    server = demo.server(url, tmp_path, keys)
    with bind_port(0) as port:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [port]})
        thread.start()
        try:
            wait_until(lambda: server.started or not thread.is_alive())
            number = port.getsockname()[1]
            with connect(url, *TABLES) as db:
                check(f"http://127.0.0.1:{number}", demo.greeting(keys, number), db)
        finally:
            server.should_exit = True
            thread.join()


def check(base: str, greeting: str, db: Database) -> None:
    keys = dict(re.findall(r"(\w+)@demo.example +(\S+)", greeting))
    lines = [line for line in greeting.splitlines() if line.startswith("  curl")]
    assert len(lines) == 3
    with httpx2.Client(base_url=base, timeout=HANG_SECONDS) as client:

        def ask(method: str, path: str, name: str) -> Any:
            answer = client.request(method, path, headers={"x-api-key": keys[name]})
            # The index is built after the start.
            return answer.json()["data"] if answer.is_success else {"items": []}

        wait_until(lambda: ask("GET", "/v1/content?query=pricing", "vic")["items"])
        wait_until(lambda: db.count(Notification.of_user("demo-vic")) >= 6)
        for line in lines:
            path = re.findall(rf"{base}([^' ]*)", line)[0]
            assert ask("GET", path, "vic")["items"], path
        before = ask("GET", "/v1/notifications/unread", "vic")["unread"]
        [draft] = ask("GET", "/v1/content?status=Draft", "mila")["items"]
        path = f"/v1/content/{draft['content_id']}"
        assert ask("POST", f"{path}/approve", "mila")["status"] == "Approved"
        wait_until(lambda: db.count(Notification.of_user("demo-vic")) == before + 1)
        assert ask("GET", "/v1/notifications/unread", "vic") == {"unread": before + 1}
        assert ask("GET", f"{path}/download", "vic")["content_type"] == "application/pdf"
        wait_until(lambda: ask("GET", "/v1/analytics/overview", "ada")["current"]["views"] > 300)
