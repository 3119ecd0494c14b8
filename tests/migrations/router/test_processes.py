"""Routers of processes that fork, or stand still while the writes move: no write goes to the wrong side."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.killing import Program, Start
from tests.waiting import wait_until

from .switching import check_history, start_load

LEASE = 0.25


def test_a_forked_client_and_its_child_follow_every_switch(start: Start, tmp_path: Path) -> None:
    load = start_load(start, tmp_path, clients=1, lease=LEASE, moment="fork")
    load.wait_for_writes(30)
    for _ in range(2):
        load.switch(LEASE * 1.5)
        load.wait_for_writes(30)
    load.end()
    check_history(load)
    for name in ("client0", "client0-child"):
        assert {event["flips"] for event in load.events[name] if "flips" in event} >= {1, 2}, name


def test_a_client_that_stops_in_a_write_continues_on_the_side_that_takes_writes(
    start: Start, tmp_path: Path
) -> None:
    load = start_load(start, tmp_path, clients=1, lease=LEASE, moment="stop")
    (client,) = load.clients.values()
    for _ in range(2):
        wait_until(lambda: _is_stopped(client))
        load.switch(LEASE * 1.5)
        os.kill(client.process.pid, signal.SIGCONT)
        load.wait_for_writes(5)
    load.end()
    check_history(load)
    assert {event["flips"] for event in load.of("put")} == {0, 1, 2}


def _is_stopped(client: Program) -> bool:
    status = Path(f"/proc/{client.process.pid}/stat").read_text()
    return status.rpartition(")")[2].split()[0] == "T"
