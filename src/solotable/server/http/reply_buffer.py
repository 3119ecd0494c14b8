"""A long reply on its way out, piece by piece; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .response import LARGE


class Outgoing:
    """The rest of a long reply, and what to do once it is written."""

    def __init__(self, pieces: list[bytes], done: Callable[[], None]) -> None:
        self._pieces = _small(pieces)
        self.done = done

    def next_piece(self) -> memoryview | None:
        """Return what to write next; None after the last piece."""
        return next(self._pieces, None)


def _small(pieces: list[bytes]) -> Iterator[memoryview]:
    for piece in pieces:
        view = memoryview(piece)
        for start in range(0, len(view), LARGE):
            yield view[start : start + LARGE]
