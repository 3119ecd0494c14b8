"""`solotable console` and `solotable serve --console` as processes: banner, pages, log, and usage errors."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from solotable.cli.server.console import _prices, _with_settings, command
from solotable.urls import Url
from tests.serving import environment
from tests.waiting import HANG_SECONDS

MODELS = str(Path(__file__).with_name("models.py"))


@contextmanager
def running(*arguments: str) -> Iterator[str]:
    """Start a command, and yield its banner; end it as Ctrl-C does."""
    with subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "solotable", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        banner = ""
        try:
            for line in process.stdout:
                banner += line
                if "Ctrl-C" in line:
                    break
            yield banner
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(HANG_SECONDS)


def fetch(url: str) -> Any:
    with urllib.request.urlopen(url) as reply:  # noqa: S310 - our own server
        return json.load(reply)


def address(banner: str, name: str) -> str:
    found = re.search(rf"{name} +(http://\S+)", banner)
    assert found is not None, banner
    return found[1]


def test_the_console_prints_its_address_and_shows_the_file(filled: Path) -> None:
    with running("console", str(filled), "-m", f"{MODELS}:surveyor", "--port", "0") as banner:
        assert "surveys.db\n" in banner
        assert "it can only read" in banner
        data = fetch(f"{address(banner, 'console')}.json")
    assert [each["name"] for each in data["tables"]] == ["SurveyorData"]
    assert data["entities"] == 3


def test_serve_shows_the_requests_of_its_clients(tmp_path: Path) -> None:
    options = ("--port", "0", "--console", "--console-port", "0")
    with running("serve", str(tmp_path / "new.db"), *options) as banner:
        endpoint = address(banner, "DynamoDB endpoint")

        def send(operation: str, members: dict[str, Any]) -> Any:
            headers = {
                "X-Amz-Target": f"DynamoDB_20120810.{operation}",
                "Content-Type": "application/x-amz-json-1.0",
            }
            request = urllib.request.Request(endpoint, json.dumps(members).encode(), headers)  # noqa: S310
            with urllib.request.urlopen(request) as reply:  # noqa: S310 - our own server
                return json.load(reply)

        key = {"AttributeName": "PK", "AttributeType": "S"}
        schema = [{"AttributeName": "PK", "KeyType": "HASH"}]
        members = {"TableName": "Shop", "AttributeDefinitions": [key], "KeySchema": schema}
        send("CreateTable", {**members, "BillingMode": "PAY_PER_REQUEST"})
        # The log adds nothing to the reply.
        assert send("PutItem", {"TableName": "Shop", "Item": {"PK": {"S": "a"}}}) == {}
        assert send("GetItem", {"TableName": "Shop", "Key": {"PK": {"S": "a"}}}) == {
            "Item": {"PK": {"S": "a"}}
        }
        rows = fetch(f"{address(banner, 'console')}t/Shop/-/requests.json")["rows"]
    assert [(each["operation"], each["rcu"], each["wcu"], each["page"]) for each in rows] == [
        ("GetItem", 0.5, 0.0, ""),
        ("PutItem", 0.0, 1.0, ""),
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["missing.db"], 3, "No such file: missing.db"),
        (["missing.db", "--region", "eu-west-1"], 2, "need an aws:// or http:// URL"),
    ],
)
def test_usage_errors_say_what_to_do(
    arguments: list[str], code: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == code
    assert text in result.output
    assert list(tmp_path.iterdir()) == []


def test_options_choose_region_profile_and_endpoint() -> None:
    url = _with_settings(Url.parse("aws://Shop"), "dev", "eu-west-1", None)
    assert (url.scheme, dict(url.settings)) == ("aws", {"profile": "dev", "region": "eu-west-1"})
    local = _with_settings(Url.parse("aws://Shop"), None, "eu-west-1", "http://127.0.0.1:8000/")
    assert (local.scheme, local.endpoint, local.table) == ("http", "http://127.0.0.1:8000", "Shop")
    # The table of prices knows one region; the pages say whose prices they show.
    assert _prices(None, "eu-west-1").region == "us-east-1"
