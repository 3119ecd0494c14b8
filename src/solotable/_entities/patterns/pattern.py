"""Named access patterns: class methods that return a query, visible to the linter and the CLI."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from solotable.errors import DeclarationError

if TYPE_CHECKING:
    from .query import Query

MethodT = TypeVar("MethodT", bound=Callable[..., Any])


class Pattern:
    """A pattern of an entity class; `Entity.name` returns the bound method."""

    def __init__(self, method: classmethod[Any, Any, Query[Any]]) -> None:
        self.function = method.__func__
        self.name = method.__name__
        self.__doc__ = method.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> BoundPattern:
        return BoundPattern(self, owner)

    @property
    def summary(self) -> str:
        """The first line of the pattern's docstring."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @property
    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """The pattern's parameters, without the class."""
        signature = inspect.signature(self.function)
        return tuple(signature.parameters.values())[1:]


class BoundPattern:
    """A pattern of one entity class; a call returns the query."""

    def __init__(self, pattern: Pattern, owner: type) -> None:
        self.pattern = pattern
        self._owner = owner
        self.__doc__ = pattern.__doc__

    @property
    def name(self) -> str:
        """The pattern's name with its entity: `Section.of_survey`."""
        return f"{self._owner.__name__}.{self.pattern.name}"

    def __call__(self, *arguments: Any, **named: Any) -> Query[Any]:
        from .query import Query

        query = self.pattern.function(self._owner, *arguments, **named)
        if not isinstance(query, Query):
            raise DeclarationError(
                f"The pattern {self.name} returned {query!r} instead of a query of one of its keys."
            )
        return replace(query, pattern=self.name)

    def __repr__(self) -> str:
        return f"<pattern {self.name}>"


def pattern(method: MethodT) -> MethodT:
    """Declare a class method that returns a `Query` as a named access pattern.

    Write it above `@classmethod`. Type checkers see the method's signature.
    """
    # Type checkers see a function here; at run time it is a classmethod object.
    given: Any = method
    if not isinstance(given, classmethod):
        name = getattr(given, "__qualname__", repr(given))
        raise DeclarationError(
            f"@pattern takes a class method, got {name}; write @pattern above @classmethod."
        )
    return cast(MethodT, Pattern(given))
