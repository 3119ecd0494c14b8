"""`solotable limiter top`: the busiest buckets, once, again and again, in a pipe and on a terminal."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import botocore.session
import pytest

from solotable.systems.limiter import Limit, Limiter, limiter
from tests.serving import served

from .conftest import Ran, Run
from .terminal import run_on_terminal

URL = "sqlite:///l.db"


@pytest.fixture
def lim(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("SOLOTABLE_URL", URL)
    take("default", ann=90, ben=10)
    take("other", eve=99)

    def run_(*arguments: str) -> Ran:
        return run("limiter", *arguments)

    return run_


def take(namespace: str, **amounts: int) -> None:
    limiter = Limiter.open(URL, namespace, limits=[Limit("rpm", 100, 100, 86_400), Limit("tpm", 1, 1, 1)])
    for entity, amount in amounts.items():
        with limiter.acquire(entity, "gpt-4", {"rpm": amount}):
            pass
    limiter.close()


def test_the_least_left_is_first_and_other_namespaces_are_not_shown(lim: Run) -> None:
    found = lim("top", "--once", "--json").json
    assert [(each["entity"], each["limit"], each["available"]) for each in found[:2]] == [
        ("ann", "rpm", pytest.approx(10, abs=1)),
        ("ben", "rpm", pytest.approx(90, abs=1)),
    ]
    assert found[0]["rate"] == pytest.approx(1.5)
    assert {each["entity"] for each in found} == {"ann", "ben"}
    ran = lim("top", "--once", "-n", "1", "--sort", "rate")
    header, _, _, row = ran.out.splitlines()
    assert header.endswith("1 of 4 limits")
    assert row.split()[:3] == ["ann", "gpt-4", "rpm"]
    assert row.split()[-2:] == ["10%", "1.50"]


def test_it_follows_the_changes_and_ends_without_a_trace(lim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt
        take("default", ben=40)

    monkeypatch.setattr(time, "sleep", pause)
    ran = lim("top", "--json", "--interval", "0.5")
    assert (ran.code, ran.err, pauses) == (0, "", [0.5, 0.5])
    first, second = map(json.loads, ran.out.splitlines())
    left = [
        {each["entity"]: each["available"] for each in page if each["limit"] == "rpm"}
        for page in (first, second)
    ]
    assert [round(each["ben"]) for each in left] == [90, 50]
    pauses.clear()
    plain = lim("top")
    assert (plain.code, plain.out.count(" UTC, ")) == (0, 2)
    assert "\033" not in plain.out


def test_what_did_not_change_lately_is_left_out(lim: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert lim("top", "--once", "--json").json == []


def test_a_terminal_gets_a_page_and_no_colour_if_it_asks_for_none(lim: Run, tmp_path: Path) -> None:
    shown = run_on_terminal("limiter", "top", "--once", "-d", URL, cwd=tmp_path, NO_COLOR="1")
    assert "ann" in shown
    assert not re.search("\033\\[[34]\\d", shown)


@pytest.mark.parametrize("before", ["never", "turned off"])
def test_a_table_without_a_stream_is_reported_with_the_way_out(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    models = "solotable.systems.limiter:limiter"
    with served("wire.db", cwd=tmp_path) as running:
        monkeypatch.setenv("SOLOTABLE_URL", running.url)
        client = botocore.session.get_session().create_client(
            "dynamodb", region_name="eu-west-1", endpoint_url=running.url
        )
        if before == "never":
            definition = limiter.definition("Limiter")
            client.create_table(**{**definition, "StreamSpecification": {"StreamEnabled": False}})
        else:
            assert run("schema", "apply", "-m", models).code == 0
            client.update_table(TableName="Limiter", StreamSpecification={"StreamEnabled": False})
        ran = run("limiter", "top", "--once")
        assert ran.code == 1
        way_out = f"solotable schema apply -m {models} -d {running.url}"
        assert ran.err == (
            "Error: The table has no stream of changes, which this command reads. "
            f"Turn it on with: {way_out}\n"
        )
        assert run(*way_out.split()[1:]).code == 0
        assert run("limiter", "top", "--once", "--json").json == []
