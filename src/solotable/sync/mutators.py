"""Mutators: typed functions over a tenant's store that clients call by name.

A mutator runs on the server for every mutation of a client. Its writes are committed as a whole, or not at
all. It may run several times, so it must have no other effects.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from solotable.errors import DeclarationError, SolotableError

MutatorT = TypeVar("MutatorT", bound=Callable[..., Any])
#: The parameters of a mutator: the store, the arguments, and the context.
_FEWEST, _MOST = 2, 3


class Rejected(SolotableError):
    """A mutator refuses its mutation: the mutation counts as done, without its writes.

    The client gets the key `control/rejected/<client>/<id>` with the code and the reason.
    """

    def __init__(self, reason: str, *, code: str = "rejected") -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationContext:
    """Who sends a mutation, for mutators with a third parameter."""

    tenant: str
    user: str
    group: str
    client: str
    mutation_id: int
    #: What the caller of `Sync.push` passes, such as the principal of a web request.
    principal: Any = None


@dataclass(frozen=True, slots=True)
class Mutator:
    """A registered function with the type of its arguments."""

    name: str
    function: Callable[..., Any]
    arguments: TypeAdapter[Any]
    is_async: bool
    takes_context: bool

    def validate(self, given: Any) -> Any:
        """Return the arguments as the function takes them, or raise Rejected."""
        try:
            return self.arguments.validate_python(given)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in ("args", *first["loc"]))
            raise Rejected(f"{self.name}: {where}: {first['msg']}.", code="invalid_arguments") from error

    def call(self, store: Any, arguments: Any, context: MutationContext) -> Any:
        """Call the function; the result of an async function is a coroutine."""
        if self.takes_context:
            return self.function(store, arguments, context)
        return self.function(store, arguments)


class Mutators:
    """A registry of mutators by name."""

    def __init__(self, *, rejections: tuple[type[Exception], ...] = ()) -> None:
        """Create a registry; `rejections` are errors of the application that reject a mutation."""
        self._by_name: dict[str, Mutator] = {}
        self.rejections = rejections

    def register(self, name: str) -> Callable[[MutatorT], MutatorT]:
        """Register a function under the name that clients use: `@mutators.register("createTodo")`.

        Its second parameter is annotated with the type of the arguments, such as a Pydantic model. A third
        parameter gets the MutationContext.
        """

        def decorate(function: MutatorT) -> MutatorT:
            self._add(name, function)
            return function

        return decorate

    def _add(self, name: str, function: Callable[..., Any]) -> None:
        if name in self._by_name:
            raise DeclarationError(f"The mutator {name!r} is registered twice; give each one its own name.")
        parameters = list(inspect.signature(function).parameters.values())
        if not _FEWEST <= len(parameters) <= _MOST:
            raise DeclarationError(
                f"The mutator {name!r} takes (store, arguments) or (store, arguments, context), "
                f"got {len(parameters)} parameters."
            )
        annotation = get_type_hints(function).get(parameters[1].name)
        if annotation is None:
            raise DeclarationError(
                f"The mutator {name!r} has no type for {parameters[1].name!r}; annotate it with a model."
            )
        self._by_name[name] = Mutator(
            name,
            function,
            TypeAdapter(annotation),
            inspect.iscoroutinefunction(function),
            len(parameters) == _MOST,
        )

    def get(self, name: str) -> Mutator:
        """Return a mutator, or raise Rejected for an unknown name."""
        found = self._by_name.get(name)
        if found is None:
            raise Rejected(f"The server has no mutator {name[:100]!r}.", code="unknown_mutator")
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)
