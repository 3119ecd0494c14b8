"""The awaited store behind the blocking one's face, so that one test body plays both."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import copy_context
from types import TracebackType
from typing import Any

from solotable._store.asynchronous.units import AsyncBatch, AsyncTransaction

_END = object()


class Awaited:
    """An AsyncStore whose verbs are run to their end."""

    def __init__(self, runner: asyncio.Runner, inner: Any) -> None:
        self._runner = runner
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        return self._calling(value) if inspect.ismethod(value) else value

    def __repr__(self) -> str:
        return repr(self._inner)

    def __iter__(self) -> Iterator[Any]:
        return _rows(self._runner, self._inner.__aiter__())

    def __enter__(self) -> Any:
        self._runner.run(_whole(self._inner.__aenter__()), context=copy_context())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(_whole(self._inner.__aexit__(kind, error, trace)), context=copy_context())

    def _calling(self, verb: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            return self._settled(verb(*arguments, **named))

        return call

    def _settled(self, result: Any) -> Any:
        if inspect.iscoroutine(result):
            return self._settled(self._runner.run(result, context=copy_context()))
        if isinstance(result, AsyncIterator):
            return _rows(self._runner, result)
        if isinstance(result, (AsyncTransaction, AsyncBatch)):
            return _Block(self._runner, result)
        # A store, or what one hands out for one pattern: a counter, a history.
        kind = type(result)
        if kind.__module__.startswith(
            ("solotable._store.", "solotable.migrations.")
        ) and kind.__name__.startswith("Async"):
            return Awaited(self._runner, result)
        return result


class _Block:
    """`async with` as `with`."""

    def __init__(self, runner: asyncio.Runner, inner: AsyncTransaction | AsyncBatch) -> None:
        self._runner = runner
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __enter__(self) -> Any:
        return self._runner.run(_whole(self._inner.__aenter__()), context=copy_context())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(_whole(self._inner.__aexit__(kind, error, trace)), context=copy_context())


async def _whole(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _rows(runner: asyncio.Runner, rows: AsyncIterator[Any]) -> Iterator[Any]:
    async def following() -> Any:
        return await anext(rows, _END)

    while (row := runner.run(following(), context=copy_context())) is not _END:
        yield row
