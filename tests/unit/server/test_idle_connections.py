"""Which connection goes when there are too many; found without a look at the others."""

from __future__ import annotations

from solotable.server.http.idle_connections import Idle


class Connection:
    looks = 0

    def __init__(self, *, spare: bool = True) -> None:
        self._spare = spare

    @property
    def spare(self) -> bool:
        Connection.looks += 1
        return self._spare


def test_the_one_that_has_been_idle_for_the_longest_goes_first() -> None:
    idle: Idle[Connection] = Idle()
    a, b, c, d, absent = (Connection() for _ in range(5))
    for connection in (a, b, c, d):
        idle.add(connection)
    idle.touch(a)
    idle.touch(absent)
    idle.remove(c)
    idle.remove(absent)
    assert [idle.take_oldest() for _ in range(4)] == [b, d, a, None]


def test_one_that_is_busy_stays() -> None:
    idle: Idle[Connection] = Idle()
    busy, spare = Connection(spare=False), Connection()
    idle.add(busy)
    idle.add(spare)
    assert [idle.take_oldest() for _ in range(2)] == [spare, None]


def test_the_work_does_not_grow_with_the_number_of_connections() -> None:
    idle: Idle[Connection] = Idle()
    for _ in range(4096):
        idle.add(Connection(spare=False))
    Connection.looks = 0
    for _ in range(1000):
        assert idle.take_oldest() is None
        idle.add(Connection(spare=False))
    assert Connection.looks <= 20 * 1000
