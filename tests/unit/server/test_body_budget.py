"""When memory is short, whoever has been sending the longest goes, and nobody whose request is whole."""

from __future__ import annotations

from solotable.server.http.body_budget import Room
from solotable.server.http.request_buffer import Incoming


class Sender:
    """A connection that notes when it has to go."""

    def __init__(self, room: Room) -> None:
        self.incoming = Incoming()
        self.gone = False
        self._room = room

    def send(self, size: int) -> None:
        self.incoming.size += size
        self._room.hold(self.incoming, self)

    def make_room(self) -> None:
        self.gone = True


def senders(room: Room, count: int) -> list[Sender]:
    return [Sender(room) for _ in range(count)]


def gone(*those: Sender) -> list[bool]:
    return [sender.gone for sender in those]


def test_who_came_first_goes_first_and_no_more_than_are_needed() -> None:
    room = Room(100)
    first, second, third = senders(room, 3)
    first.send(30)
    second.send(40)
    # Who sends more does not become younger.
    first.send(10)
    third.send(20)
    assert gone(first, second, third) == [False, False, False]
    third.send(1)
    assert gone(first, second, third) == [True, False, False]
    third.send(39)
    assert not second.gone


def test_what_is_whole_stays_and_the_newcomer_goes_instead() -> None:
    room = Room(100)
    first, second = senders(room, 2)
    first.send(90)
    room.complete(first.incoming)
    second.send(11)
    assert gone(first, second) == [False, True]


def test_room_is_given_back() -> None:
    room = Room(100)
    first, second, third = senders(room, 3)
    first.send(60)
    room.complete(first.incoming)
    room.leave(first.incoming)
    room.leave(first.incoming)
    second.send(60)
    room.leave(second.incoming)
    third.send(100)
    assert gone(first, second, third) == [False, False, False]
