"""The port that every engine implements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .requests import Request

#: Called before a step of a long request, with the bytes that the step has to go through. It may wait, so
#: that others get their turn, or raise TooLong to end the request without an answer.
Pause = Callable[[int], None]


class TooLong(Exception):
    """A read takes longer than its caller allows; the same read can be made again, elsewhere."""


class Engine(Protocol):
    """Something that answers DynamoDB requests."""

    def handle(self, request: Request[Any], /) -> Any:
        """Answer one request, or raise the ServiceError that DynamoDB would."""
        ...

    def close(self) -> None:
        """Release what the engine holds."""
        ...
