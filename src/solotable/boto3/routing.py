"""`routed`: a context manager or decorator that sends DynamoDB requests to an engine.

A block applies to the whole process: botocore has no hook for a thread or a task.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Generic, TypeVar, cast, overload

from solotable._protocol.engine import Engine
from solotable.engines.sqlite import Durability, SqliteEngine

from .arguments import check_argument, open_engine, require
from .decorate import decorate
from .routes import Route, Routes

EngineT = TypeVar("EngineT", bound=Engine)
FunctionT = TypeVar("FunctionT")

_routes = Routes()


@overload
def routed(
    path_or_engine: str | os.PathLike[str], *, durability: Durability = "full"
) -> Routed[SqliteEngine]: ...
@overload
def routed(path_or_engine: EngineT, *, durability: Durability = "full") -> Routed[EngineT]: ...
def routed(path_or_engine: Any, *, durability: Durability = "full") -> Routed[Any]:
    """Route every botocore client of this process to the engine: a context manager, or a decorator.

    You may create clients and resources before or inside the block, from any session, in any thread.
    The block's value is the engine. The block opens a path on entry and closes it on exit; an engine that
    you pass stays open. Blocks nest: the last one entered answers. If no credentials or region are
    configured, the block sets dummies in the environment and removes them on exit.

    A request to a DynamoDB host that does not use the 2012-08-10 API raises EngineError.

    As a decorator it enters a new block for every call of a function. The block of a coroutine function
    lasts until the coroutine ends, that of a generator from its first step to its end. Classes raise
    TypeError: code that runs before and after their tests would not be routed.
    """
    check_argument("routed", path_or_engine)
    return Routed(path_or_engine, durability=durability)


class Routed(Generic[EngineT]):
    """The context manager that `routed` returns; as a decorator, it enters a new block for every call."""

    def __init__(
        self, path_or_engine: str | os.PathLike[str] | EngineT, *, durability: Durability = "full"
    ) -> None:
        require("botocore")
        self._path_or_engine = path_or_engine
        self._durability = durability
        self._route: Route | None = None

    def __call__(self, function: FunctionT) -> FunctionT:
        """Return the function with a new block around every run."""
        return cast(FunctionT, decorate(function, self._new_block))

    def _new_block(self) -> Routed[EngineT]:
        return Routed(self._path_or_engine, durability=self._durability)

    def __enter__(self) -> EngineT:
        if self._route is not None:
            raise RuntimeError("This routed() block is active already; call routed() once per block.")
        engine, owned = open_engine(self._path_or_engine, self._durability)
        route = Route(engine, owned=owned)
        try:
            _routes.add(route)
        except BaseException:
            route.close()
            raise
        self._route = route
        return cast(EngineT, engine)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        route, self._route = self._route, None
        if route is not None:
            _routes.remove(route)
            route.close()
