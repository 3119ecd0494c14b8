"""One way to call both limiters, so that every test of behaviour runs blocking and awaited."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from solotable.systems.limiter import AsyncLimiter, Limiter

from .ground import ACME, Place


class _Awaited:
    """An awaited limiter, or lease, called as if it were blocking."""

    def __init__(self, place: Place, inner: Any) -> None:
        self._place = place
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*given: Any, **named: Any) -> Any:
            result = found(*given, **named)
            if hasattr(result, "__await__"):
                result = self._place.wait(_as_coroutine(result))
            return _Awaited(self._place, result) if hasattr(result, "__aenter__") else result

        return call

    def __enter__(self) -> _Awaited:
        self._place.wait(self._inner.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._place.wait(self._inner.__aexit__(kind, error, trace))


async def _as_coroutine(awaitable: Any) -> Any:
    return await awaitable


def either(place: Place, mode: str, **options: Any) -> Any:
    """Return a limiter of the namespace acme, of either kind, that is called the same way."""
    if mode == "sync":
        return Limiter(place.db, ACME, **options)
    return _Awaited(place, AsyncLimiter(place.adb, ACME, **options))
