"""The server's clock from the Date of responses, whose seconds are whole."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from solotable import connect
from solotable._protocol.requests import Control
from solotable.engines.dynamodb.http.server_clock import ServerClock
from solotable.flow import clock_offset, engine_of
from solotable.systems.limiter.table import limiter
from tests.serving import served

START = 1_790_000_000.25


class Machine:
    """A machine's clocks, and a server whose clock differs."""

    def __init__(self, ahead: float = 0.0) -> None:
        self.wall, self.steady, self.ahead = START, 50.0, ahead
        self.clock = ServerClock(lambda: self.wall, lambda: self.steady)

    def step(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds

    def call(self, latency: float = 0.02) -> None:
        sent = self.wall
        self.step(latency / 2)
        date = formatdate(int(self.wall + self.ahead), usegmt=True).encode()
        self.step(latency / 2)
        self.clock.observe(date, sent)


@pytest.mark.parametrize("ahead", [0.0, 1.2, -1.4, 2.9, -3.0, 301.0, -301.5, 86_400.0])
def test_l4_the_offset_is_known_to_a_second(ahead: float) -> None:
    machine = Machine(ahead)
    for _ in range(40):
        machine.call()
        machine.step(0.37)
    found = machine.clock.offset()
    if abs(ahead) < 1.9:
        assert found == 0.0
    else:
        assert found == pytest.approx(ahead, abs=1.1)


def test_a_slow_response_tells_little_and_spoils_nothing() -> None:
    machine = Machine()
    machine.call(latency=30.0)
    assert machine.clock.offset() == 0.0
    machine = Machine(301.0)
    machine.call()
    machine.call(latency=30.0)
    assert machine.clock.offset() == pytest.approx(301.0, abs=1.1)


def test_nothing_is_known_after_this_machine_was_set_until_the_next_response() -> None:
    machine = Machine(301.0)
    machine.call()
    machine.wall += 301.0
    machine.ahead = 0.0
    assert machine.clock.offset() == 0.0
    machine.step(1)
    machine.call()
    assert machine.clock.offset() == 0.0


def test_a_server_whose_clock_was_set_is_followed() -> None:
    machine = Machine(0.0)
    machine.call()
    machine.ahead = -400.0
    machine.step(1)
    machine.call()
    assert machine.clock.offset() == pytest.approx(-400.0, abs=1.1)


@pytest.mark.parametrize("date", [None, b"", b"yesterday", b"\xff"])
def test_a_response_without_a_date_is_ignored(date: bytes | None) -> None:
    machine = Machine()
    machine.clock.observe(date, machine.wall)
    assert machine.clock.offset() == 0.0


def test_our_server_sends_a_date_and_both_engines_tell_the_offset() -> None:
    with served("--memory") as running, connect(running.url, limiter) as db:
        engine = engine_of(db)
        found = clock_offset(engine)
        assert found is not None
        engine.handle(Control(operation="ListTables", members={}))
        assert found() == 0.0
        protocol = engine._transports.items.protocol  # type: ignore[attr-defined]  # the engine's own parts
        assert protocol.server_clock._date.endswith(b"GMT")
    with connect("sqlite://", limiter) as db:
        assert clock_offset(engine_of(db)) is None
