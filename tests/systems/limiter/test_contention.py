"""L1: a decision takes a handful of writes and no wait, however many callers write the same bucket."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from solotable._flows.retry import Flow, Sleep
from solotable._protocol.requests import Request, UpdateItem
from solotable.errors import ServiceError
from solotable.systems.limiter import Limit, Limiter, RateLimitExceeded
from solotable.systems.limiter.buckets.acquire import Grant, acquire, adjust
from solotable.systems.limiter.table import limiter as table
from tests.serving import served
from tests.store.opening import START
from tests.waiting import HANG_SECONDS

from .either import either
from .ground import ACME, Place

RPM = Limit.per_minute("rpm", 10)
FAST = Limit.per_second("rpm", 1000)
#: Attempts of an acquire that other writers precede.
ATTEMPTS = 6


def decide(
    place: Place, flow: Flow[Any], before: Callable[[int], object]
) -> tuple[Any, list[type[Request[Any]]]]:
    """Run a flow with an action before each request; return its result or refusal, and what it sent."""
    sent: list[type[Request[Any]]] = []
    resume: Callable[[], Request[Any]] = partial(next, flow)
    while True:
        try:
            request = resume()
        except StopIteration as done:
            return done.value, sent
        except RateLimitExceeded as refused:
            return refused, sent
        # A prepared update is an UpdateItem too.
        sent.append(UpdateItem if isinstance(request, UpdateItem) else type(request))
        resume = partial(flow.send, None)
        if isinstance(request, Sleep):
            continue
        try:
            before(len(sent))
            resume = partial(flow.send, place.engine.handle(request))
        except ServiceError as error:
            resume = partial(flow.throw, error)


def knowing(place: Place, limit: Limit, **options: Any) -> Limiter:
    """Return a limiter that has read its settings."""
    made = Limiter(place.db, ACME, limits=[limit], remember_rejections=0.0, **options)
    made.available("u", "r")
    return made


def test_l1_a_failed_write_counts_as_of_its_own_time(place: Place, mode: str) -> None:
    """L1: a token that comes in while the write is under way stays; the refusal is one write."""
    ours = either(place, mode, limits=[RPM], remember_rejections=0.0)
    rival = Limiter(place.beside(), ACME, limits=[RPM])
    ours.available("u", "r")
    with rival.acquire("u", "r", {"rpm": 10}):
        pass
    place.sent()

    def pass_six_seconds() -> None:
        place.clock.seconds += 6

    place.watched.slip_in(UpdateItem, pass_six_seconds)
    with pytest.raises(RateLimitExceeded) as refused, ours.acquire("u", "r", {"rpm": 1}):
        pass
    assert place.sent() == ["UpdateItem"]
    assert refused.value.retry_after_seconds == pytest.approx(6)
    assert ours.available("u", "r") == {"rpm": 1}


def test_l1_a_wrong_assumption_costs_one_more_write_and_no_wait(place: Place) -> None:
    ours, rival = knowing(place, RPM), knowing(place, RPM)

    def take(write: int) -> None:
        if write == 1:
            with rival.acquire("u", "r", {"rpm": 4}):
                pass

    outcome, sent = decide(place, acquire(ours.context, "u", {"r": {"rpm": 1}}), take)
    assert isinstance(outcome, Grant)
    assert sent == [UpdateItem] * 2


@pytest.mark.parametrize("admit", [True, False])
def test_l1_writers_that_move_a_bucket_across_its_line_do_not_keep_a_charge_out(
    place: Place, admit: bool
) -> None:
    """L1: others take a token before each write that assumes a full bucket, and give it back later."""
    ours, rival = knowing(place, FAST), knowing(place, FAST)
    with ours.acquire("u", "r", {"rpm": 1}) as lease:
        pass
    assert lease.grant is not None
    place.clock.seconds += 10
    held: list[Any] = []

    def disturb(write: int) -> None:
        if write % 2:
            held.append(rival.acquire("u", "r", {"rpm": 1}))
            held[-1].__enter__()
            # The line rises by less than the token.
            place.clock.seconds += 0.0001
        else:
            held.pop().__exit__(ZeroDivisionError, ZeroDivisionError(), None)

    if admit:
        flow: Any = acquire(ours.context, "u", {"r": {"rpm": 1}})
    else:
        flow = adjust(ours.context.writer, lease.grant, {"r": {"rpm": 1000}})
    outcome, sent = decide(place, flow, disturb)
    assert not isinstance(outcome, Exception)
    assert set(sent) == {UpdateItem}
    assert 1 < len(sent) <= ATTEMPTS
    # What certainty costs: a few tokens of a bucket that is nearly full.
    assert 1000 - 10 <= ours.available("u", "r")["rpm"] < 1000


def test_l1_contention_is_a_refusal_with_a_short_wait_and_never_an_outage(place: Place) -> None:
    """L1: rivals with other limits convert the bucket before each write."""
    ours = knowing(place, RPM, on_unavailable="allow")
    rivals = [Limit.per_minute("rpm", 10 + number) for number in range(1, 99)]
    with ours.acquire("u", "r", {"rpm": 1}):
        pass
    rival = Limiter(place.beside(), ACME)

    def convert(write: int) -> None:
        with rival.acquire("u", "r", {"rpm": 1}, limits=[rivals.pop()]):
            pass

    outcome, sent = decide(place, acquire(ours.context, "u", {"r": {"rpm": 1}}), convert)
    assert isinstance(outcome, RateLimitExceeded)
    assert outcome.retry_after_seconds == pytest.approx(0.01)
    assert sent == [UpdateItem] * ATTEMPTS
    with ours.acquire("u", "r", {"rpm": 1}) as lease:
        assert lease.limited


def test_l1_a_split_that_goes_on_is_contention(place: Place) -> None:
    """L1: TransactionConflictException means that the shard is being split or merged."""
    ours = knowing(place, RPM)

    def conflict(write: int) -> None:
        if write < 3:
            raise ServiceError("TransactionConflictException", "Transaction is ongoing for the item")

    outcome, sent = decide(place, acquire(ours.context, "u", {"r": {"rpm": 1}}), conflict)
    assert isinstance(outcome, Grant)
    assert sent == [UpdateItem] * 3


PROGRAM = """
import sys, threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from solotable import connect
from solotable.systems.limiter import Limit, Limiter, LimiterUnavailable, RateLimitExceeded
from solotable.systems.limiter.table import limiter
from solotable.testing import RecordingEngine
from solotable import Database
from solotable.flow import Sleep
from solotable.flow.requests import UpdateItem
url, seconds = sys.argv[1], float(sys.argv[2])
opened = connect(url, limiter, clock=lambda: seconds)
per_thread = threading.local()
class Counting(RecordingEngine):
    def handle(self, request, /):
        if isinstance(request, UpdateItem):
            per_thread.writes = getattr(per_thread, "writes", 0) + 1
        return super().handle(request)
def no_sleep(waited):
    counts["sleeps"] += 1
engine = Counting(opened.engine, sleep=no_sleep)
ours = Limiter(
    Database(engine, opened.scope),
    "acme",
    limits=[Limit.custom("rpm", capacity=20, refill=120, period_seconds=60)],
    shard_above=None,
    remember_rejections=0.0,
)
ours.available("hot", "api")
counts = Counter()
most = 0
def caller(number):
    global most
    for _ in range(2):
        per_thread.writes = 0
        try:
            with ours.acquire("hot", "api", {"rpm": 1}, on_unavailable="allow") as lease:
                counts["admitted" if lease.limited else "unlimited"] += 1
        except RateLimitExceeded:
            counts["refused"] += 1
        most = max(most, per_thread.writes)
print("ready", flush=True)
with ThreadPoolExecutor(16) as pool:
    for line in sys.stdin:
        seconds = float(line)
        list(pool.map(caller, range(16)))
        print("ticked", flush=True)
print(counts["admitted"], counts["unlimited"], counts["sleeps"], most, flush=True)
"""


def test_l1_64_callers_in_4_processes_over_two_servers_on_one_file(tmp_path: Path) -> None:
    """L1: exactly what the bucket allows; a handful of writes a call, no wait, and no call without limits."""
    ticks, file = 5, tmp_path / "limits.db"
    table.open(f"sqlite:///{file}").close()
    with served(str(file), "--relaxed") as one, served(str(file), "--relaxed") as two:
        processes = [
            subprocess.Popen(  # noqa: S603 - ours
                [sys.executable, "-c", PROGRAM, f"{server.url}/Limiter", str(START)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for server in (one, two, one, two)
        ]
        admitted = 0
        for each in processes:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        for tick in range(ticks):
            for each in processes:
                assert each.stdin is not None
                each.stdin.write(f"{START + tick}\n")
                each.stdin.flush()
            for each in processes:
                assert each.stdout is not None
                assert each.stdout.readline() == "ticked\n"
        for each in processes:
            out, _ = each.communicate(timeout=HANG_SECONDS)
            found, unlimited, sleeps, most = map(int, out.split())
            admitted += found
            assert (unlimited, sleeps) == (0, 0)
            assert most <= ATTEMPTS
    assert admitted == 20 + (ticks - 1) * 2
