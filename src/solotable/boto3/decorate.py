"""Wrap a function of any kind in a context manager that lasts for as long as the function runs.

A coroutine or a generator runs after the call that created it has returned. A block around that call would
end too early, and the requests would go to AWS. So each kind has its own wrapper, and other kinds raise
TypeError.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractContextManager, aclosing
from functools import partial, wraps
from inspect import (
    isasyncgen,
    isasyncgenfunction,
    iscoroutine,
    iscoroutinefunction,
    isgenerator,
    isgeneratorfunction,
)
from typing import Any

Block = Callable[[], AbstractContextManager[Any]]


def decorate(function: Any, block: Block) -> Any:
    """Return the function with a new block around every run."""
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(decorate(function.__func__, block))
    if isinstance(function, type):
        raise TypeError(
            f"routed() does not decorate classes: requests of {function.__name__} outside its tests (setUp, "
            "fixtures) would go to AWS. Decorate its methods, or enter the block in a fixture."
        )
    if not callable(function):
        raise TypeError(f"routed() decorates functions, got {function!r}.")
    if _is(iscoroutinefunction, function):
        return _coroutine(function, block)
    if _is(isasyncgenfunction, function):
        return _async_generator(function, block)
    if _is(isgeneratorfunction, function):
        return _generator(function, block)
    return _plain(function, block)


def _is(kind: Callable[[Any], bool], function: Any) -> bool:
    while isinstance(function, partial):
        function = function.func
    return kind(function) or kind(getattr(function, "__call__", None))  # noqa: B004  # which kind, not whether


def _plain(function: Callable[..., Any], block: Block) -> Callable[..., Any]:
    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with block():
            result = function(*args, **kwargs)
        if iscoroutine(result) or isgenerator(result):
            result.close()
        elif not isasyncgen(result):
            return result
        raise TypeError(
            f"{function!r} returned a {type(result).__name__}, which would run after its routed() block and "
            "could reach AWS. Put `with routed(...)` inside it."
        )

    return run


def _coroutine(function: Callable[..., Awaitable[Any]], block: Block) -> Callable[..., Awaitable[Any]]:
    @wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        with block():
            return await function(*args, **kwargs)

    return run


def _generator(
    function: Callable[..., Generator[Any, Any, Any]], block: Block
) -> Callable[..., Generator[Any, Any, Any]]:
    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with block():
            return (yield from function(*args, **kwargs))

    return run


def _async_generator(
    function: Callable[..., AsyncGenerator[Any, Any]], block: Block
) -> Callable[..., AsyncGenerator[Any, Any]]:
    @wraps(function)
    async def run(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        with block():
            async with aclosing(function(*args, **kwargs)) as inner:
                step = anext(inner)
                while True:
                    try:
                        item = await step
                    except StopAsyncIteration:
                        return
                    # `yield from` does not work in async generators, so pass on sent values and errors here.
                    try:
                        sent = yield item
                    except GeneratorExit:
                        raise
                    except BaseException as error:  # noqa: BLE001  # the inner generator handles it
                        step = inner.athrow(error)
                    else:
                        step = inner.asend(sent)

    return run
