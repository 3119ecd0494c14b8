"""Long requests run one at a time, in turn, and wait while the event loop is busy."""

from __future__ import annotations

import asyncio
import sys
import threading
import time

import pytest

from solotable._protocol.engine import TooLong
from solotable.server.scheduling import time_slices
from solotable.server.scheduling.time_slices import (
    GatedLoop,
    IdleGate,
    LoopBudget,
    SliceQueue,
    SwitchInterval,
    TimeSlice,
)
from tests.waiting import HANG_SECONDS


def _slices() -> tuple[SliceQueue, IdleGate]:
    loop = GatedLoop()
    loop.close()
    made = SliceQueue(loop)
    return made, made.gate


def test_the_gate_is_open_while_the_loop_waits() -> None:
    seen: list[bool] = []

    async def play() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, GatedLoop)
        seen.append(loop.gate.busy)
        idle = await loop.run_in_executor(None, loop.gate.wait, 10)
        seen.append(idle)
        seen.append(loop.gate.busy)

    with asyncio.Runner(loop_factory=GatedLoop) as runner:
        runner.run(play())
    assert seen == [True, True, True]


def test_a_long_request_waits_for_an_idle_loop() -> None:
    made, gate = _slices()
    gate.busy = True
    going_on = threading.Event()

    def work() -> None:
        turn = TimeSlice(made)
        turn.pause(1)
        going_on.set()
        turn.end()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time_slices, "WAIT_SECONDS", 60)
        thread = threading.Thread(target=work)
        thread.start()
        assert not going_on.wait(0.05)
        gate.open()
        assert going_on.wait(HANG_SECONDS)
        thread.join()


def test_beside_a_loop_that_is_never_idle_a_long_request_goes_on_in_the_end() -> None:
    made, gate = _slices()
    gate.busy = True
    turn = TimeSlice(made)
    for _ in range(5):
        turn.pause(1)
    turn.end()


def test_long_requests_take_turns_and_one_runs_at_a_time() -> None:
    made, _ = _slices()
    steps: list[int] = []
    running = 0
    most = 0
    ready = threading.Barrier(4)

    def work(number: int) -> None:
        nonlocal running, most
        turn = TimeSlice(made)
        ready.wait(HANG_SECONDS)
        for _ in range(20):
            turn.pause(1)
            running += 1
            most = max(most, running)
            steps.append(number)
            # Longer than a slice: every step ends one.
            time.sleep(time_slices.SLICE_SECONDS * 1.5)
            running -= 1
        turn.end()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
    assert most == 1
    assert sorted(steps) == sorted([*range(4)] * 20)
    # First come, first served: no request runs twice while the other three wait.
    middle = steps[8:-12]
    assert all(len({*middle[place : place + 4]}) == 4 for place in range(len(middle) - 3))


def test_a_request_is_long_after_many_bytes_or_some_time() -> None:
    LoopBudget().spend(1000)
    with pytest.raises(TooLong):
        LoopBudget().spend(time_slices.LOOP_BYTES + 1)
    budget = LoopBudget()

    def spend_all() -> None:
        while True:
            budget.spend(0)

    with pytest.raises(TooLong):
        spend_all()


def test_the_switch_interval_is_short_while_any_thread_computes() -> None:
    before = sys.getswitchinterval()
    interval = SwitchInterval()
    try:
        with interval:
            assert sys.getswitchinterval() == pytest.approx(time_slices._SWITCH_SECONDS)
            with interval:
                pass
            assert sys.getswitchinterval() == pytest.approx(time_slices._SWITCH_SECONDS)
        assert sys.getswitchinterval() == pytest.approx(before)
    finally:
        sys.setswitchinterval(before)
