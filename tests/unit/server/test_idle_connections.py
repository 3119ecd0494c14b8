"""Which connection goes when there are too many; found without a check_timeouts at the others."""

from __future__ import annotations

from solotable.server.http.idle_connections import IdleConnections


class Connection:
    looks = 0

    def __init__(self, *, is_evictable: bool = True) -> None:
        self._spare = is_evictable

    @property
    def is_evictable(self) -> bool:
        Connection.looks += 1
        return self._spare


def test_the_one_that_has_been_idle_for_the_longest_goes_first() -> None:
    idle: IdleConnections[Connection] = IdleConnections()
    a, b, c, d, absent = (Connection() for _ in range(5))
    for connection in (a, b, c, d):
        idle.add(connection)
    idle.touch(a)
    idle.touch(absent)
    idle.remove(c)
    idle.remove(absent)
    assert [idle.pop_evictable() for _ in range(4)] == [b, d, a, None]


def test_one_that_is_busy_stays() -> None:
    idle: IdleConnections[Connection] = IdleConnections()
    busy, is_evictable = Connection(is_evictable=False), Connection()
    idle.add(busy)
    idle.add(is_evictable)
    assert [idle.pop_evictable() for _ in range(2)] == [is_evictable, None]


def test_the_work_does_not_grow_with_the_number_of_connections() -> None:
    idle: IdleConnections[Connection] = IdleConnections()
    for _ in range(4096):
        idle.add(Connection(is_evictable=False))
    Connection.looks = 0
    for _ in range(1000):
        assert idle.pop_evictable() is None
        idle.add(Connection(is_evictable=False))
    assert Connection.looks <= 20 * 1000
