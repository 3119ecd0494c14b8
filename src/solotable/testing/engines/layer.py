"""An engine around an engine: hands everything on, for others to step in between."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from solotable._protocol.constraints.error_texts import ErrorTexts, texts_of
from solotable._protocol.engine import Engine, Pause
from solotable._protocol.requests import Request
from solotable._protocol.wire import call


class Settled:
    """The outcome of one request of several."""

    def __init__(self, reply: Any = None, error: Exception | None = None) -> None:
        self._reply = reply
        self._error = error

    def get(self) -> Any:
        """Return the reply, or raise the error."""
        if self._error is not None:
            raise self._error
        return self._reply


class Layer:
    """Answers as the engine inside does."""

    def __init__(self, engine: Engine) -> None:
        self.inner = engine

    def handle(self, request: Request[Any], /) -> Any:
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
        """Answer one request, whatever it is about."""
        del largest
        return self.handle(request)

    def handle_together(
        self, requests: Sequence[Request[Any]], *, largest: int | None = None
    ) -> list[Settled]:
        """Answer several requests, one after the other."""
        del largest
        return [_settled(partial(self.handle, request)) for request in requests]

    @property
    def error_texts(self) -> ErrorTexts:
        """The year whose texts the engine inside refuses requests with."""
        return texts_of(self.inner)

    @property
    def instant(self) -> bool:
        """Whether answers cost microseconds, so that no thread is needed to wait for them."""
        return bool(getattr(self.inner, "instant", False))

    @property
    def short_reads(self) -> bool:
        """Whether a short read is quicker than waking a thread for it."""
        return bool(getattr(self.inner, "short_reads", False))

    def sweep(self) -> int:
        """Remove items whose time has come, where the engine inside has to be told to."""
        sweep = getattr(self.inner, "sweep", None)
        return 0 if sweep is None else int(sweep())

    def sleep(self, seconds: float) -> None:
        """Wait as the engine inside does; on most, that is to sleep."""
        getattr(self.inner, "sleep", time.sleep)(seconds)

    def close(self) -> None:
        """Close the engine inside."""
        self.inner.close()


def _settled(answer: partial[Any]) -> Settled:
    try:
        return Settled(answer())
    except Exception as error:  # noqa: BLE001  # carried to whoever asked
        return Settled(error=error)
