"""An engine that wraps another and passes every request on, as a base class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

from solotable._protocol.engine import Capabilities, Engine, Pause, ReplyT
from solotable._protocol.requests import Request
from solotable._protocol.wire import call


class SettledOutcome:
    """The outcome of one request of several."""

    def __init__(self, reply: Any = None, error: Exception | None = None) -> None:
        self._reply = reply
        self._error = error

    def get(self) -> Any:
        """Return the reply, or raise the error."""
        if self._error is not None:
            raise self._error
        return self._reply


@runtime_checkable
class Embedded(Protocol):
    """What only an engine in this process offers."""

    def sweep(self) -> int:
        """Remove expired items, and return how many."""
        ...


class EngineWrapper:
    """Answers as the inner engine does."""

    def __init__(self, engine: Engine) -> None:
        self.inner = engine

    @property
    def capabilities(self) -> Capabilities:
        """The inner engine's capabilities, except its async form."""
        return replace(self.inner.capabilities, handle_together=self.handle_together, make_async=None)

    def handle(self, request: Request[ReplyT], /) -> ReplyT:
        """Answer one request."""
        return self.inner.handle(request)

    def call(self, operation: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Answer a request in wire form."""
        return call(self, operation, payload)

    def handle_in_slices(self, request: Request[Any], pause: Pause, /) -> Any:
        """Answer one request, without a pause."""
        del pause
        return self.handle(request)

    def handle_small(self, request: Request[Any], largest: int, /) -> Any:
        """Answer one request of any size."""
        del largest
        return self.handle(request)

    def handle_together(
        self, requests: Sequence[Request[Any]], *, largest: int | None = None
    ) -> list[SettledOutcome]:
        """Answer several requests, one after the other."""
        del largest
        return [_settled(partial(self.handle, request)) for request in requests]

    def sweep(self) -> int:
        """Remove expired items, if the inner engine is embedded."""
        return self.inner.sweep() if isinstance(self.inner, Embedded) else 0

    def close(self) -> None:
        """Close the inner engine."""
        self.inner.close()


def _settled(answer: partial[Any]) -> SettledOutcome:
    try:
        return SettledOutcome(answer())
    except Exception as error:  # noqa: BLE001  # `get` raises it
        return SettledOutcome(error=error)
