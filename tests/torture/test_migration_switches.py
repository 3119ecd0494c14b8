"""Switches and reverses under the load of several processes: no client error, no lost write (I2, I5, I8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.killing import Start
from tests.migrations.router.switching import check_history, start_load

from .size import LIMIT_SECONDS, LONG, amount, report

SWITCHES = amount(4, 50)
CLIENTS = amount(2, 4)
#: That of an application, or shorter, so that the test is; the switch waits for longer.
LEASE = 1.0 if LONG else 0.25

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def test_clients_of_several_processes_notice_no_switch_and_lose_no_write(
    start: Start, tmp_path: Path
) -> None:
    load = start_load(start, tmp_path, clients=CLIENTS, lease=LEASE)
    for _ in range(SWITCHES):
        load.wait_for_writes(20)
        load.switch(LEASE * 1.5)
    load.wait_for_writes(20)
    load.end()
    check_history(load)
    assert len({event["flips"] for event in load.of("put")}) == SWITCHES + 1
    assert [switched.to for switched in load.switched] == ["target", "source"] * (SWITCHES // 2)
    pauses = load.pauses
    assert pauses
    writes = sum(len(events) for events in load.events.values())
    report(
        f"{SWITCHES} switches and reverses, {CLIENTS} client processes, "
        f"{writes:,} writes, 0 client errors, 0 lost; {len(pauses)} writes waited: "
        f"median {pauses[len(pauses) // 2]:.3f} s, p99 {pauses[int(len(pauses) * 0.99)]:.3f} s, "
        f"longest {pauses[-1]:.3f} s"
    )
