"""Checks of what concurrent clients saw: is there an order in time that explains it all?

`linearizable` checks reads, writes and conditional writes of one key: each must seem to happen at one
moment between its call and its answer (the search of Wing and Gong, with what was tried remembered).
`atomic` checks transactions that append to two lists at once. An operation whose outcome is unknown
may have happened at any time after its call, or never.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

#: The register before anything was written to it.
NOTHING = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What one client did: `expected` is set for conditional writes; a read has only a `value`."""

    kind: str
    value: int
    expected: int | None = None
    #: Whether a conditional write was granted.
    granted: bool = True
    begun: float
    ended: float = math.inf

    @property
    def is_known(self) -> bool:
        return self.ended < math.inf


def apply(operation: Operation, state: int) -> int | None:
    """Return the register's value after the operation, or None if it could not have gone like this."""
    match operation.kind:
        case "read":
            return state if operation.value == state else None
        case "write":
            return operation.value
        case _:
            if not operation.is_known:
                return operation.value if state == operation.expected else state
            if operation.granted != (state == operation.expected):
                return None
            return operation.value if operation.granted else state


def linearizable(operations: Sequence[Operation]) -> bool:
    """Say whether the operations on one key can be put in an order that explains every answer."""
    ordered = sorted(operations, key=lambda one: one.begun)
    known = sum(1 << place for place, one in enumerate(ordered) if one.is_known)
    seen: set[tuple[int, int]] = set()
    stack = [(0, NOTHING)]
    while stack:
        done, state = stack.pop()
        if done & known == known:
            return True
        if (done, state) in seen:
            continue
        seen.add((done, state))
        # No operation can come after an answer that was given before its call.
        horizon = math.inf
        place = (~done & (done + 1)).bit_length() - 1
        for next_place in range(place, len(ordered)):
            one = ordered[next_place]
            if one.begun > horizon:
                break
            if done >> next_place & 1:
                continue
            after = apply(one, state)
            if after is not None:
                stack.append((done | 1 << next_place, after))
            horizon = min(horizon, one.ended)
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """An append of `value` to both lists, or a read of both."""

    value: int | None = None
    lists: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    begun: float
    ended: float = math.inf


def atomic(transactions: Sequence[Transaction], final: tuple[tuple[int, ...], tuple[int, ...]]) -> list[str]:
    """Return what is wrong with a history of transactions; `final` is what the lists hold at its end."""
    if final[0] != final[1]:
        return ["torn: the lists end unlike each other"]
    order = final[0]
    place = {value: number for number, value in enumerate(order)}
    wrong: list[str] = []
    if len(place) < len(order):
        wrong.append("done twice: an element is there more than once")
    appends = [one for one in transactions if one.value is not None]
    reads = [one for one in transactions if one.lists is not None]
    wrong += [f"lost: {one.value}" for one in appends if one.ended < math.inf and one.value not in place]
    for one in reads:
        assert one.lists is not None
        first, second = one.lists
        if first != second:
            wrong.append(f"torn: a read saw {len(first)} and {len(second)} elements")
        elif first != order[: len(first)]:
            wrong.append("aborted or reordered: a read is not a prefix of the final list")
        else:
            wrong += _in_time(one, len(first), appends, place)
    return wrong


def _in_time(
    read: Transaction, length: int, appends: Sequence[Transaction], place: dict[int, int]
) -> list[str]:
    wrong: list[str] = []
    for one in appends:
        assert one.value is not None
        where = place.get(one.value, math.inf)
        if one.ended < read.begun and where >= length:
            wrong.append(f"stale: a read did not see {one.value}")
        if one.begun > read.ended and where < length:
            wrong.append(f"from the future: a read saw {one.value}")
    return wrong
