"""`routed`: a block, or a function, whose DynamoDB requests an engine answers.

Blocks hold for the whole process, not for a thread or a task: botocore has no place for less.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Generic, TypeVar, cast, overload

from solotable._protocol.engine import Engine
from solotable.engines.sqlite import Durability, SqliteEngine

from .arguments import check_given, engine_of, need
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

    Clients and resources may be made before or inside the block, by any session, in any thread.
    The block's value is the engine. A path is opened on entry and closed on exit; an engine is used
    as it is and stays open. Blocks nest: the one entered last answers. Where neither credentials
    nor a region are configured, dummies are put into the environment and taken out again.

    A request to a DynamoDB host that is not of the 2012-08-10 API is refused, never sent.

    As a decorator it enters a new block for every call of a function. That of a coroutine function
    lasts until the coroutine is done, that of a generator from its first step to its end. Classes
    are refused: what runs before and after their tests would not be routed.
    """
    check_given("routed", path_or_engine)
    return Routed(path_or_engine, durability=durability)


class Routed(Generic[EngineT]):
    """The context manager that `routed` returns; as a decorator it enters anew for every call."""

    def __init__(
        self, path_or_engine: str | os.PathLike[str] | EngineT, *, durability: Durability = "full"
    ) -> None:
        need("botocore")
        self._path_or_engine = path_or_engine
        self._durability = durability
        self._route: Route | None = None

    def __call__(self, function: FunctionT) -> FunctionT:
        """Return the function with a block of its own around every run of it."""
        return cast(FunctionT, decorate(function, self._again))

    def _again(self) -> Routed[EngineT]:
        return Routed(self._path_or_engine, durability=self._durability)

    def __enter__(self) -> EngineT:
        if self._route is not None:
            raise RuntimeError("This routed() block is active already; call routed() once per block.")
        engine, owned = engine_of(self._path_or_engine, self._durability)
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
