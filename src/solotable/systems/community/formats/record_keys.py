"""TIDs: record keys of AT Protocol that sort by the time of their creation (C2.12).

A TID has 64 bits: a zero, 53 bits of microseconds since 1970, and 10 bits that tell processes apart. Its 13
characters are of an alphabet in the order of ASCII, so that texts sort as their numbers do.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from solotable.fork_safe import new_lock

ALPHABET = "234567abcdefghijklmnopqrstuvwxyz"
_LENGTH = 13
_CLOCK_BITS = 10
_NUMBERS = {character: number for number, character in enumerate(ALPHABET)}


class RecordKeys:
    """A source of TIDs, which ascend in this process, also if the clock stands still or goes back.

    Two processes choose their 10 bits at random. If they agree, two equal keys are possible in the same
    microsecond: create an entity under its key, so that the second one is an error and not an overwrite.
    """

    def __init__(
        self, *, clock: Callable[[], float] = time.time, draw: Callable[[int], bytes] = os.urandom
    ) -> None:
        self._clock = clock
        self._draw = draw
        self._lock = new_lock()
        self._last = 0
        self._process = 0
        self._clock_id = 0

    def __call__(self) -> str:
        """Return a new TID."""
        with self._lock:
            if self._process != os.getpid():
                # A forked child must not continue with the bits of its parent.
                self._process = os.getpid()
                self._clock_id = int.from_bytes(self._draw(2), "big") % (1 << _CLOCK_BITS)
            self._last = max(self._last + 1, int(self._clock() * 1_000_000))
            return encode(self._last << _CLOCK_BITS | self._clock_id)


def encode(number: int) -> str:
    """Return a number of 64 bits as a TID.

    >>> encode(0), encode(1), encode(32)
    ('2222222222222', '2222222222223', '2222222222232')
    """
    characters = []
    for _ in range(_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[digit])
    return "".join(reversed(characters))


def microseconds_of(tid: str) -> int:
    """Return the time of a TID in microseconds since 1970, or raise ValueError.

    >>> microseconds_of(encode(1_763_000_000_000_000 << 10 | 7))
    1763000000000000
    """
    if len(tid) != _LENGTH or not set(tid) <= _NUMBERS.keys() or _NUMBERS[tid[0]] > 7:
        raise ValueError("is not a TID")
    number = 0
    for character in tid:
        number = number * len(ALPHABET) + _NUMBERS[character]
    return number >> _CLOCK_BITS


new_record_key = RecordKeys()
