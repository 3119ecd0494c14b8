"""`solotable heat` and `solotable cost`: on a file, on a server, and where there is no heat."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from solotable._protocol.heat import HeatInterval, PartitionTraffic, Traffic
from solotable.engines import sqlite
from solotable.engines.sqlite.heat.heat_file import HeatFile
from tests.unit.server.running import put, running

from .conftest import MODELS, Run


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    """A file with recorded minutes: one partition over the limit, one cool, and a Scan."""
    path = str(tmp_path / "shop.db")
    sqlite.open(path).close()
    hot = PartitionTraffic(key={"PK": {"S": "TENANT#acme"}}, writes=Traffic(units=2000, peak=1140, over=140))
    cool = PartitionTraffic(key={"PK": {"S": "TENANT#\x1b[31mred"}}, writes=Traffic(units=3, peak=1))
    scan = PartitionTraffic(key=None, reads=Traffic(units=50, peak=50))
    start = int(time.time()) // 60 * 60 - 120
    interval = HeatInterval(
        start=start, table="Shop", read_units=50, write_units=2003, partitions=(hot, cool, scan)
    )
    assert HeatFile(path).add([interval], now=start)
    return path


def test_a_hot_partition_is_printed_with_advice_and_exit_code_1(run: Run, recorded: str) -> None:
    ran = run("heat", "-d", recorded, "Shop")
    assert ran.code == 1
    assert "2,003.0 WCU in 2 partitions" in ran.out
    assert "! Shard TENANT#acme by 2 or more." in ran.out
    assert "- Scans read 100% of the units." in ran.out
    assert "\x1b" not in ran.out
    shown = run("heat", "-d", recorded, "--by", "write", "--json").json["maps"]
    assert [(each["direction"], each["rows"][0]["label"], each["rows"][0]["peak"]) for each in shown] == [
        ("write", "TENANT#acme", 1140)
    ]
    assert shown[0]["advice"][0]["severity"] == "bad"
    assert len(shown[0]["columns"]) == len(shown[0]["rows"][0]["cells"])


def test_a_range_without_traffic_and_an_unknown_table(run: Run, recorded: str) -> None:
    unknown = run("heat", "-d", recorded, "Shops")
    assert (unknown.code, "there is traffic of Shop" in unknown.err) == (3, True)
    Path(f"{recorded}-heat").unlink()
    empty = run("heat", "-d", recorded)
    assert (empty.code, empty.out) == (0, "")
    assert "No traffic was recorded in the last 60 minutes." in empty.err
    for last in ("1s", "8d", "soon", "-1h"):
        assert run("heat", "-d", recorded, "--last", last).code == 2


def test_a_running_server_answers_for_the_current_minute(run: Run) -> None:
    with running() as server, server.client() as client:
        client.ask(put("a"))
        url = f"http://127.0.0.1:{server.port}"
        (writes,) = run("heat", "-d", url, "--by", "write", "--json").json["maps"]
        assert (writes["table"], writes["rows"][0]["label"]) == ("Things", "a")
        (line,) = run("cost", "-d", url, "--json").json["lines"]
        assert (line["label"], line["write_units"]) == ("Things", 1.0)


def test_the_cost_of_a_month(run: Run, recorded: str) -> None:
    by_table = run("cost", "-d", recorded, "--json").json
    (line,) = by_table["lines"]
    assert line["label"] == "Shop"
    assert by_table["on_demand_per_month"] == line["on_demand"] > 0
    assert line["write_capacity"] == 48  # 2,003 in a minute, at 70 %
    partitions = run("cost", "-d", recorded, "--by", "partition", "--json").json["lines"]
    assert partitions[0]["label"] == "Shop TENANT#acme"
    patterns = run("cost", "-d", recorded, "--by", "pattern", "-m", MODELS).out
    assert "Shop (scans)" in patterns
    assert "on demand $/month" in run("cost", "-d", recorded).out


def test_amazon_and_memory_say_the_way_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    heat = run("heat", "-d", "aws://Shop?region=eu-west-1")
    assert (heat.code, "update-contributor-insights" in heat.err) == (1, True)
    cost = run("cost", "-d", "aws://Shop?region=eu-west-1")
    assert (cost.code, "Cost Explorer" in cost.err) == (1, True)
    assert "pass a file, or the URL of a server" in run("heat", "-d", "sqlite://").err
