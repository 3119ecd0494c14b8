"""When memory is short, the oldest arriving request is rejected, and no complete one."""

from __future__ import annotations

from solotable.server.http.body_budget import BodyBudget
from solotable.server.http.request import HttpRequest


class Sender:
    """A connection that notes when it has to go."""

    def __init__(self, budget: BodyBudget) -> None:
        self.request = HttpRequest()
        self.is_closed = False
        self._budget = budget

    def send(self, size: int) -> None:
        self.request.size += size
        self._budget.reserve(self.request, self)

    def reject_unavailable(self) -> None:
        self.is_closed = True


def senders(budget: BodyBudget, count: int) -> list[Sender]:
    return [Sender(budget) for _ in range(count)]


def is_closed(*those: Sender) -> list[bool]:
    return [sender.is_closed for sender in those]


def test_who_came_first_goes_first_and_no_more_than_are_needed() -> None:
    budget = BodyBudget(100)
    first, second, third = senders(budget, 3)
    first.send(30)
    second.send(40)
    # Who sends more does not become younger.
    first.send(10)
    third.send(20)
    assert is_closed(first, second, third) == [False, False, False]
    third.send(1)
    assert is_closed(first, second, third) == [True, False, False]
    third.send(39)
    assert not second.is_closed


def test_what_is_whole_stays_and_the_newcomer_goes_instead() -> None:
    budget = BodyBudget(100)
    first, second = senders(budget, 2)
    first.send(90)
    budget.complete(first.request)
    second.send(11)
    assert is_closed(first, second) == [False, True]


def test_room_is_given_back() -> None:
    budget = BodyBudget(100)
    first, second, third = senders(budget, 3)
    first.send(60)
    budget.complete(first.request)
    budget.release(first.request)
    budget.release(first.request)
    second.send(60)
    budget.release(second.request)
    third.send(100)
    assert is_closed(first, second, third) == [False, False, False]
