"""The port that every engine implements."""

from __future__ import annotations

from typing import Any, Protocol

from .requests import Request


class Engine(Protocol):
    """Something that answers DynamoDB requests."""

    def handle(self, request: Request[Any], /) -> Any:
        """Answer one request, or raise the ServiceError that DynamoDB would."""
        ...

    def close(self) -> None:
        """Release what the engine holds."""
        ...
