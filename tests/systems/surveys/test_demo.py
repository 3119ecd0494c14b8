"""The demo: what it prints works, and its report opens without a header."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient

from solotable.systems.demo_server import make_auth
from solotable.systems.surveys import demo
from solotable.systems.surveys.app import create_app
from solotable.systems.surveys.demo_photos import draw_house


def test_the_report_and_the_commands_of_the_demo_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.main(["--seed-only", "--folder", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "acme: 3 surveys\nglobex: 3 surveys\n" in printed
    keys = demo.credentials()
    text = demo.greeting(keys, 8082)
    app = create_app(
        f"sqlite:///{tmp_path / 'surveys.db'}",
        auth=make_auth(keys),
        storage=tmp_path / "files",
        link_secrets=[demo.link_secret(keys)],
    )
    with TestClient(app) as client:
        (link,) = re.findall(r"http://127\.0\.0\.1:8082(/reports/\S+)", text)
        report = client.get(link)
        assert report.status_code == 200
        assert report.text.count("data:image/") == 6
        for word in ("12 Mill Lane", "Acme Surveyors", "Slipped tiles", "Refix them before the winter."):
            assert word in report.text
        # The link of another start does not open.
        (old,) = re.findall(r"http://127\.0\.0\.1:8082(/reports/\S+)", printed)
        assert client.get(old).status_code == 404
        commands = [line.strip() for line in text.splitlines() if line.strip().startswith("curl")]
        assert len(commands) == 6
        for command in commands:
            line, _, expected = command.partition("    # ")
            words = shlex.split(line)
            headers = dict(
                re.split(": ", words[at + 1], maxsplit=1) for at, word in enumerate(words) if word == "-H"
            )
            method = words[words.index("-X") + 1] if "-X" in words else "GET"
            body = words[words.index("-d") + 1] if "-d" in words else None
            url = urlsplit(next(word for word in words if word.startswith("http://")))
            answer = client.request(method, f"{url.path}?{url.query}", headers=headers, content=body)
            assert answer.status_code == (404 if expected.startswith("404") else 200), command
        large = client.get("/surveys/tower", headers={"x-api-key": keys[2].key}).json()
        parts = sum(len(element["components"]) for each in large["sections"] for element in each["elements"])
        assert (len(large["sections"]), parts) == (30, 400)


def test_a_drawn_picture_is_a_png() -> None:
    pillow = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    with pillow.open(io.BytesIO(draw_house(3))) as picture:
        picture.load()
        assert (picture.format, picture.size) == ("PNG", (480, 320))
