"""`solotable deliver` and `tail` on a real file, and the stream that `schema apply` turns on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from solotable._protocol.requests import Control
from solotable.engines import sqlite

from .conftest import Run

MODELS = """
from typing import Annotated
from solotable import FROM_SCOPE, Entity, Key, Outbox, Table, Version

blog = Table("Blog", tenant="tenant_id", ttl="expires_at", stream={stream})


class Post(Entity, table=blog):
    key = Key("TENANT#{{tenant_id}}", "POST#{{post_id}}")
    {events}
    tenant_id: str = FROM_SCOPE
    post_id: str
    title: str
    version: Annotated[int, Version()] = 0
"""


@pytest.fixture
def blog(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    models = tmp_path / f"models_{tmp_path.name}.py"
    models.write_text(MODELS.format(stream=True, events='events = Outbox(title="title")'))
    monkeypatch.setenv("SOLOTABLE_MODELS", f"{models}:blog")
    monkeypatch.setenv("SOLOTABLE_URL", "sqlite:///blog.db")
    assert run("schema", "apply").code == 0
    for name in ("a", "b"):
        assert run("put", "Post", f"post_id={name}", f"title=Post {name}").code == 0
    return tmp_path


def test_each_sink_gets_each_event_once(run: Run, blog: Path) -> None:
    assert run("deliver", "--dry-run", "--json").json == {"waiting": 2}
    ran = run("deliver", "--sink", "audit", "--sink", "jsonl:log.jsonl", "--sink", "eventbridge:bus.jsonl")
    assert (ran.code, ran.out) == (0, "2 events delivered, 0 of them rejected by a sink.\n")
    lines = [json.loads(line) for line in (blog / "log.jsonl").read_text().splitlines()]
    assert [line["target"]["title"] for line in lines] == ["Post a", "Post b"]
    entries = [json.loads(line) for line in (blog / "bus.jsonl").read_text().splitlines()]
    assert [entry["DetailType"] for entry in entries] == ["Post created", "Post created"]
    assert run("deliver", "--json").json == {"delivered": 0, "dead": 0}


def test_dead_letters_are_reported_and_retried(run: Run, blog: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solotable.jobs.deliver._LONGEST_WAIT_SECONDS", 0.0)
    (blog / "log.jsonl").mkdir()
    ran = run("deliver", "--sink", "jsonl:log.jsonl", "--json")
    assert (ran.code, ran.json) == (1, {"delivered": 2, "dead": 2})
    assert "jsonl rejected event" in ran.err
    (blog / "log.jsonl").rmdir()
    ran = run("deliver", "--sink", "jsonl:log.jsonl", "--dead")
    assert (ran.code, ran.err) == (0, "2 dead letters delivered, 0 rejected again.\n")
    assert len((blog / "log.jsonl").read_text().splitlines()) == 2


def test_tail_prints_changes_as_lines(run: Run, blog: Path) -> None:
    assert run("update", "Post", "post_id=a", "--set", "title=New", "--if-version", "1").code == 0
    lines = [json.loads(line) for line in run("tail").out.splitlines()]
    assert [(line["kind"], line["after"]["title"]) for line in lines] == [
        ("inserted", "Post a"),
        ("inserted", "Post b"),
        ("modified", "New"),
    ]
    assert lines[2]["before"]["title"] == "Post a"
    assert run("tail", "Post", "--since", "latest").out == ""
    assert run("tail", "Unknown").code == 2
    assert run("tail", "--since", "yesterday").code == 2


def test_a_missing_file_is_not_created(run: Run, blog: Path) -> None:
    assert run("deliver", "-d", "sqlite:///other.db").code == 3
    assert not (blog / "other.db").exists()
    assert run("deliver", "--sink", "smtp").code == 2


def test_apply_turns_on_a_stream_that_is_missing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = tmp_path / f"models_{tmp_path.name}.py"
    other = tmp_path / f"streaming_{tmp_path.name}.py"
    models.write_text(MODELS.format(stream=False, events=""))
    other.write_text(MODELS.format(stream=True, events=""))
    monkeypatch.setenv("SOLOTABLE_URL", "sqlite:///blog.db")
    assert run("schema", "apply", "-m", f"{models}:blog").code == 0
    assert "stream is missing: NEW_AND_OLD_IMAGES" in run("schema", "diff", "-m", f"{other}:blog").out
    assert "the stream is turned on" in run("schema", "apply", "-m", f"{other}:blog").err
    with sqlite.open(str(tmp_path / "blog.db")) as engine:
        reply = engine.handle(Control(operation="DescribeTable", members={"TableName": "Blog"}))
    assert reply["Table"]["StreamSpecification"]["StreamEnabled"] is True
    assert run("schema", "diff", "-m", f"{other}:blog").code == 0
