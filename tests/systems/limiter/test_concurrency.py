"""Never more than the bucket allows: 64 callers at once, in threads and processes, for a simulated minute."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from solotable import Database
from solotable._connect import over
from solotable._flows.retry import Retries
from solotable.engines import sqlite
from solotable.systems.limiter import Limit, Limiter, RateLimitExceeded
from solotable.systems.limiter.table import limiter
from tests.store.opening import START, Clock
from tests.waiting import HANG_SECONDS

CALLERS = 64
TICKS = 60
#: 20 at once and 2 a second: a minute has 20 + 59 * 2 = 138.
LIMIT = Limit.custom("rpm", capacity=20, refill=120, period_seconds=60)
ALLOWED = 20 + (TICKS - 1) * 2


def test_64_threads_admit_exactly_what_the_bucket_allows() -> None:
    clock = Clock()
    engine = sqlite.open(sqlite.MEMORY, clock=clock)
    db = over(engine, [limiter], clock=clock)
    # As four processes would have it: each remembers what it has seen itself.
    many = [Limiter(db, "acme", limits=[LIMIT], shard_above=None, remember_rejections=0.0) for _ in range(4)]
    admitted: list[int] = []

    def tick() -> None:
        clock.seconds += 1

    clock.seconds -= 1
    barrier = threading.Barrier(CALLERS, action=tick)

    def caller(number: int) -> None:
        ours = many[number % len(many)]
        for _ in range(TICKS):
            barrier.wait(HANG_SECONDS)
            for _ in range(2):
                try:
                    with ours.acquire("hot", "api", {"rpm": 1}):
                        admitted.append(number)
                except RateLimitExceeded:
                    break

    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(caller, range(CALLERS)))
    assert len(admitted) == ALLOWED
    engine.close()


def test_64_threads_on_a_sharded_bucket_stay_within_it() -> None:
    clock = Clock()
    engine = sqlite.open(sqlite.MEMORY, clock=clock)
    opened = over(engine, [limiter], clock=clock)
    dice = random.Random(5)
    db = Database(engine, replace(opened.scope, retries=Retries(random=dice.random)))
    limit = Limit.custom("rpm", capacity=2000, refill=6000, period_seconds=60)
    many = [
        Limiter(db, "acme", limits=[limit], shard_above=20, most_shards=8, remember_rejections=0.0)
        for _ in range(4)
    ]
    admitted: list[int] = []
    ticks = 20

    def tick() -> None:
        clock.seconds += 1

    clock.seconds -= 1
    barrier = threading.Barrier(CALLERS, action=tick)

    def caller(number: int) -> None:
        for _ in range(ticks):
            barrier.wait(HANG_SECONDS)
            for _ in range(4):
                try:
                    with many[number % 4].acquire("hot", "api", {"rpm": 1}):
                        admitted.append(number)
                except RateLimitExceeded:
                    break

    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(caller, range(CALLERS)))
    allowed = 2000 + (ticks - 1) * 100
    assert 0.8 * allowed <= len(admitted) <= allowed
    engine.close()


PROGRAM = """
import sys
from solotable._connect import connect
from solotable.systems.limiter import Limit, Limiter, RateLimitExceeded
from solotable.systems.limiter.table import limiter
file, ticks, callers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
seconds = float(sys.argv[4])
db = connect(f"sqlite:///{file}?durability=relaxed", limiter, clock=lambda: seconds)
ours = Limiter(
    db,
    "acme",
    limits=[Limit.custom("rpm", capacity=20, refill=120, period_seconds=60)],
    shard_above=None,
    remember_rejections=0.0,
)
admitted = 0
for line in sys.stdin:
    seconds = float(line)
    for _ in range(callers * 2):
        try:
            with ours.acquire("hot", "api", {"rpm": 1}):
                admitted += 1
        except RateLimitExceeded:
            break
    print("ticked", flush=True)
print(admitted, flush=True)
"""


def test_8_processes_admit_exactly_what_the_bucket_allows(tmp_path: Path) -> None:
    """Eight processes of eight callers each, on one file; a second begins when all have come to its end."""
    file = tmp_path / "limits.db"
    given = [sys.executable, "-c", PROGRAM, str(file), str(TICKS), "8", str(START)]
    many = [
        subprocess.Popen(given, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ours
        for _ in range(8)
    ]
    for tick in range(TICKS):
        for each in many:
            assert each.stdin is not None
            each.stdin.write(f"{START + tick}\n")
            each.stdin.flush()
        for each in many:
            assert each.stdout is not None
            assert each.stdout.readline() == "ticked\n"
    admitted = 0
    for each in many:
        out, _ = each.communicate(timeout=HANG_SECONDS)
        admitted += int(out)
    assert admitted == ALLOWED
