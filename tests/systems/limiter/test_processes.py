"""L2 to L11 with real processes: four of them with several threads each, on one file."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solotable import Database, connect
from solotable.flow import Item, decode_item, engine_of
from solotable.flow.requests import Scan
from solotable.systems.limiter import Limit, Limiter
from solotable.systems.limiter.table import limiter as table
from tests.waiting import HANG_SECONDS

from .member import NAMESPACE

PROCESSES = 4
START = 2_000_000_000.0
DAY = 86_400


class Processes:
    """The processes, and a limiter of the test itself on the same file."""

    def __init__(self, file: Path) -> None:
        self.seconds = START
        url = f"sqlite:///{file}?durability=relaxed"
        self.db: Database = connect(url, table, clock=lambda: self.seconds)
        self.limiter = Limiter(self.db, NAMESPACE, cache_seconds=0)
        command = [sys.executable, "-m", "tests.systems.limiter.member", url]
        self.members = [
            subprocess.Popen(  # noqa: S603 - ours
                [*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for number in range(PROCESSES)
        ]

    def ask(self, stage: str, **arguments: Any) -> list[Any]:
        """Let every process do a stage at the same time, and return their results."""
        return self.ask_some(self.members, stage, **arguments)

    def ask_some(self, members: list[subprocess.Popen[str]], stage: str, **arguments: Any) -> list[Any]:
        for each in members:
            assert each.stdin is not None
            each.stdin.write(json.dumps([self.seconds, stage, arguments]) + "\n")
            each.stdin.flush()
        found = []
        for each in members:
            assert each.stdout is not None
            line = each.stdout.readline()
            assert line, f"{stage} ended the process"
            found.append(json.loads(line))
        return found

    def buckets(self, entity: str) -> list[Item]:
        items = map(decode_item, engine_of(self.db).handle(Scan(table="Limiter")).items or ())
        return [item for item in items if item["PK"]["S"].startswith(f"{NAMESPACE}#BUCKET#{entity}#")]

    def close(self) -> None:
        for each in self.members:
            each.communicate(timeout=HANG_SECONDS)
        self.db.close()


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    made = Processes(tmp_path_factory.mktemp("processes") / "limits.db")
    yield made
    made.close()


def test_l3_a_day_s_limit_is_used_up_exactly_by_processes_that_split_it(processes: Processes) -> None:
    """L3, L5, L11: small calls and large ones, while shards come and go; the shards expire."""
    capacity = 600
    processes.limiter.set_limits([Limit.per_day("rpm", capacity)], entity="hot")
    admitted, most = 0, 0
    for _ in range(8):
        admitted += sum(processes.ask("crowd", entity="hot", calls=24, large=12))
        most = max(most, len(processes.buckets("hot")))
        processes.seconds += 1.0
    assert most >= 4
    assert 0.98 * capacity <= admitted <= capacity
    left = processes.limiter.available("hot", "api")["rpm"]
    assert admitted + left == capacity
    ends = {int(item["expires"]["N"]) for item in processes.buckets("hot")}
    assert max(ends) < processes.seconds + 400 * DAY


def test_l2_settlements_count_under_limits_that_other_processes_changed(processes: Processes) -> None:
    """L2, L6, L8, L9: children in each process, and a parent whose limits change while they run."""
    ours = processes.limiter
    ours.create_entity("org")
    for number in range(PROCESSES):
        ours.create_entity(f"user-{number}", parent="org", cascade=True)
        ours.set_limits([Limit.per_day("rpm", 10_000)], entity=f"user-{number}")
    ours.set_limits([Limit.per_day("rpm", 100_000)], entity="org")
    processes.ask("adjust", times=3)
    ours.set_limits([Limit.per_day("tpd", 50_000)], entity="org")
    # The children notice by the parent's bucket once one of them has read the limits again.
    processes.ask_some(processes.members[:1], "forget")
    processes.seconds += 3600
    processes.ask_some(processes.members[:1], "adjust", times=5, tpd=100)
    processes.ask_some(processes.members[1:], "adjust", times=5, tpd=100)
    assert ours.available("org", "api")["tpd"] == 50_000 - PROCESSES * 5 * 100
    # One wait for child and parent: until the parent has 500 more; read again, as time has passed.
    processes.seconds += 0.001
    waits = processes.ask("refused", rpm=1, tpd=48_500)
    assert waits == [pytest.approx(500 * DAY / 50_000, abs=0.01)] * PROCESSES
    processes.ask("adjust", times=1, tpd=100_000)
    assert processes.ask("time_until", rpm=1) == [0.0] * PROCESSES
    assert min(processes.ask("time_until", tpd=1)) > 0


def test_l4_a_process_an_hour_ahead_admits_at_most_one_bucket_more(processes: Processes) -> None:
    processes.limiter.set_limits([Limit.per_hour("rpm", 100)], entity="clocks")
    processes.ask_some(processes.members[:1], "set_ahead", seconds=3600)
    admitted = 0
    for _ in range(5):
        admitted += sum(processes.ask("crowd", entity="clocks", calls=60))
        processes.seconds += 1.0
    processes.ask_some(processes.members[:1], "set_ahead", seconds=0)
    assert 100 <= admitted <= 200


def test_l10_many_writers_of_one_bucket_leave_it_small(processes: Processes) -> None:
    """L10: an item of at most 1 KB costs one unit; 32 callers in 4 processes share 16 lanes."""
    limit = Limit.custom("rpm", capacity=6, refill=6_000_000, period_seconds=60)
    processes.limiter.set_limits([limit], entity="wide")
    for _ in range(3):
        processes.ask("crowd", entity="wide", calls=32)
        processes.seconds += 0.01
    (item,) = processes.buckets("wide")
    size = sum(len(name) + len(str(next(iter(value.values())))) for name, value in item.items())
    assert sum(name.startswith("~") for name in item) <= 16
    assert size <= 1024


def test_l7_limits_of_an_operator_without_the_name_break_no_request(processes: Processes) -> None:
    processes.limiter.set_limits([Limit.per_day("tpm", 5)], entity="other-names")
    assert processes.ask("statuses", entity="other-names", requests=2) == [[200, 200]] * PROCESSES
    counted = [each for found in processes.ask("statuses", entity="plain", requests=2) for each in found]
    assert sorted(counted) == [200] * 5 + [429] * 3
