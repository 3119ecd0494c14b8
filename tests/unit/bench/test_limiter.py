"""The limiters are judged like for like, by the workload that suits ours least; a dead driver is missing."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from bench import limits
from bench.systems import limiter, limiter_crowd
from bench.wire.peers import Missing
from solotable.systems.limiter import Limit


def figures(rate: float, cpu_us: float, *, hot: float = 1.0) -> dict[str, Any]:
    many = {"rate": rate, "cpu_us": cpu_us}
    return {"100 entities": many, "one hot entity": {"rate": rate * hot, "cpu_us": cpu_us / hot}}


def both(rate: float, cpu_us: float, *, hot: float = 1.0) -> dict[str, Any]:
    return {kind: figures(rate, cpu_us, hot=hot) for kind in ("sync", "async")}


def outcomes(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    verdicts = limits.limiter_verdicts(found)
    return {
        each.what + each.limit.partition("zae-limiter")[2]: (each.outcome, each.figure) for each in verdicts
    }


def test_in_process_is_compared_with_the_peer_by_our_worst_workload() -> None:
    judged = outcomes(
        {
            "relaxed file": {"solotable": both(4000, 90, hot=0.9)},
            "durable file": {"solotable": both(1000, 300)},
            "slow server": {"zae-limiter": both(100, 2000), "solotable": both(500, 1000)},
            "quick server": {"zae-limiter": both(200, 2000), "solotable": both(500, 1001)},
        }
    )
    assert judged["acquires, relaxed file, sync on slow server"] == ("reached", "36.0x, one hot entity")
    assert judged["acquires, relaxed file, sync on quick server"] == ("not reached", "18.0x, one hot entity")
    assert judged["acquires, durable file, async on quick server"] == ("reached", "5.0x, 100 entities")
    assert judged["CPU, slow server, sync"] == ("reached", "2.0x, 100 entities")
    assert judged["CPU, quick server, sync"][0] == "not reached"


@pytest.mark.parametrize("absent", ["zae-limiter", "solotable"])
def test_without_one_of_the_two_there_is_no_verdict(absent: str) -> None:
    found: dict[str, Any] = {
        "relaxed file": {"solotable": both(90_000, 10)},
        "a server": {"zae-limiter": both(100, 2000), "solotable": both(90_000, 10)},
    }
    for place in found.values():
        place.pop(absent, None)
    assert {outcome for outcome, _ in outcomes(found).values()} == {"not judged"}


def test_the_table_has_a_line_for_each_limiter_in_each_place() -> None:
    lines = list(limiter.table({"a server": {"zae-limiter": both(456, 1234), "solotable": both(7890, 12)}}))
    assert len(lines) == 5
    assert "zae-limiter, a server, sync" in lines[1]
    assert "456/s" in lines[1]
    assert "1,234 µs" in lines[1]


def test_places_without_a_peer_of_dynamodb_are_shown_and_not_judged() -> None:
    found: dict[str, Any] = {
        "memory": {"solotable": both(9000, 100), "limits": {"sync": figures(90_000, 8)}},
        "Redis": {"Lua bucket": {"sync": figures(9000, 90) | {"100 entities": {"rate": 1, "cpu_us": 2}}}},
        "a server": {"zae-limiter": both(100, 2000), "solotable": both(500, 1000)},
    }
    assert not [what for what in outcomes(found) if "memory" in what or "Redis" in what]
    assert len(list(limiter.table(found))) == 9


def test_the_table_shows_the_servers_cpu_apart() -> None:
    cells = {"sync": {"100 entities": {"rate": 10.0, "cpu_us": 20.0, "server_us": 30.0}}}
    assert "10/s 20 + 30 µs" in list(limiter.table({"Redis": {"Lua bucket": cells}}))[1]


def test_a_driver_that_stops_is_missing_with_its_last_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no such limiter')"]
    with (
        pytest.raises(Missing, match="it stopped: no such limiter"),
        limiter._driving(command, tmp_path / "log"),
    ):
        pass


def test_a_driver_is_ready_when_it_says_its_version_and_ends_without_orders(tmp_path: Path) -> None:
    code = "from bench.systems.limiter_rounds import serve; serve(lambda entity: None, {'version': '1.2'})"
    with limiter._driving([sys.executable, "-c", code], tmp_path / "log") as (process, version):
        driver = limiter.Driver(
            place="nowhere",
            limiter="none",
            kind="sync",
            process=process,
            log=tmp_path / "log",
            version=version,
            server=os.getpid(),
        )
        figure = driver.ask(100, 0.05)
        assert figure["rate"] > 1000
        assert 0 < figure["cpu_us"] < 1000
        assert figure["server_us"] >= 0
    assert (version, process.returncode) == ("1.2", 0)


def test_a_crowd_may_get_neither_too_little_nor_too_much() -> None:
    figures = {"load 1": {"share": 99.0}, "load 4": {"share": 97.9}, "load 1, one item": {"share": 99.5}}
    shards, one = limits.crowd_verdicts(figures)
    assert (shards.outcome, one.outcome) == ("not reached", "reached")
    assert "97.90 %, load 4" in shards.figure
    figures = {"load 1": {"share": 100.2}, "load 1, one item": {"share": 98.0}}
    assert [each.outcome for each in limits.crowd_verdicts(figures)] == ["not reached", "not reached"]


def test_the_table_of_crowds_has_a_line_for_each() -> None:
    result = limiter_crowd.simulate(
        limiter_crowd.Crowd(limit=Limit.per_second("rpm", 20), calls=30, seconds=2, processes=2)
    )
    figures = {"few": {**asdict(result), "share": result.share}}
    header, line = limiter_crowd.table(figures)
    assert "of ideal" in header
    assert line.split()[0] == "few"
    assert 90 <= result.share <= 100
    assert len(limiter_crowd.cases(rate=300)) == 22
