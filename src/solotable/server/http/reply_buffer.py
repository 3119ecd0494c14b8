"""The unsent rest of a long reply, in pieces; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .response import LARGE


class ReplyBuffer:
    """The unsent pieces of a long reply, and the callback for its end."""

    def __init__(self, pieces: list[bytes], on_sent: Callable[[], None]) -> None:
        self._pieces = _split(pieces)
        self.on_sent = on_sent

    def next_piece(self) -> memoryview | None:
        """Return the next piece to write; None after the last."""
        return next(self._pieces, None)


def _split(pieces: list[bytes]) -> Iterator[memoryview]:
    for piece in pieces:
        view = memoryview(piece)
        for start in range(0, len(view), LARGE):
            yield view[start : start + LARGE]
