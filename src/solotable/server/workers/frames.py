"""Frames between workers and the writer: requests with a target, replies with a status; pure.

Each frame begins with the length of the rest and the number of the request, which its reply repeats.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

_LENGTH = Struct("!I")
#: Length, number, length of the target.
_REQUEST = Struct("!IIH")
#: Length, number, status.
_REPLY = Struct("!IIH")
_HEAD = _REQUEST.size
#: The target of a health check; no HTTP header can have this value.
CHECK = "\n"


def encode_request(number: int, target: str, body: bytes) -> bytes:
    """Return the frame of a request.

    >>> list(FrameReader().feed(encode_request(7, "X.GetItem", b"{}")))
    [(7, 9, b'X.GetItem{}')]
    """
    name = target.encode("latin-1")
    return _REQUEST.pack(_HEAD - 4 + len(name) + len(body), number, len(name)) + name + body


def encode_reply(number: int, status: int, pieces: list[bytes]) -> bytes:
    """Return the frame of a reply.

    >>> list(FrameReader().feed(encode_reply(7, 200, [b"{", b"}"])))
    [(7, 200, b'{}')]
    """
    body = b"".join(pieces)
    return _REPLY.pack(_HEAD - 4 + len(body), number, status) + body


class FrameReader:
    """The bytes of a connection as frames: number, length of the target or status, content."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        #: The length of the first frame as far as it is known.
        self._needed = _HEAD

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Add bytes, and yield the frames that they complete."""
        buffer = self._buffer
        buffer += data
        begin = 0
        while len(buffer) - begin >= self._needed:
            (length,) = _LENGTH.unpack_from(buffer, begin)
            end = begin + _LENGTH.size + length
            if len(buffer) < end:
                self._needed = end - begin
                break
            self._needed = _HEAD
            _, number, second = _REQUEST.unpack_from(buffer, begin)
            yield number, second, bytes(memoryview(buffer)[begin + _HEAD : end])
            begin = end
        del buffer[:begin]
