"""Lifecycle hooks: methods of an entity that a store calls before and after writes, and after reads."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, Literal, TypeVar, get_args

from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DeclarationError

HookEvent = Literal[
    "before_create",
    "before_put",
    "before_update",
    "before_delete",
    "after_create",
    "after_put",
    "after_update",
    "after_delete",
    "after_read",
]
FunctionT = TypeVar("FunctionT")

_EVENTS = get_args(HookEvent)
#: These run before the entity is known, so they are class methods.
_OF_CLASS = ("before_update", "before_delete")
_READ = "after_read"
_MARK = "__solotable_hook__"
#: The member of a class that holds the names of the hooks in its body.
_NAMES = "__solotable_hooks__"
_KINDS = (FunctionType, classmethod)
_ORDER = "write @hook as the first decorator, above @classmethod or a plain method"


def hook(*events: HookEvent) -> Callable[[FunctionT], FunctionT]:
    """Declare that a store calls a method at these events: `@hook("before_create", "before_put")`.

    - before create or put: a method; it may change the entity, which is a copy, or return another one.
    - before update: a class method; it gets the changes by argument (`{"set": {...}}`) and may change them.
    - before delete: a class method; it gets the key.
    - after create, put, update or delete: a method of the stored or the deleted entity.
    - after read: a method of the entity that was read; it may change the entity, or return another one.

    A hook before a write that raises rejects the write. Async methods need an async store.
    """
    unknown = [event for event in events if event not in _EVENTS]
    if unknown or not events:
        raise DeclarationError(f"hook() takes events, got {unknown or 'none'}; use {', '.join(_EVENTS)}.")

    def mark(function: FunctionT) -> FunctionT:
        if not isinstance(function, _KINDS):
            raise DeclarationError(
                f"@hook takes a method or a class method, got {type(function).__name__}; {_ORDER}."
            )
        setattr(function, _MARK, events)
        body = sys._getframe(1).f_locals
        if "__qualname__" in body:
            # In the body of a class. A decorator above this one may drop the mark.
            body[_NAMES] = (*body.get(_NAMES, ()), function.__name__)
        return function

    return mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The hooks of an entity class: the names of its methods, by event."""

    methods: Mapping[str, tuple[str, ...]]
    #: The methods that are async.
    async_methods: frozenset[str]

    def at(self, event: str) -> tuple[str, ...]:
        """Return the methods of an event, those of base classes first."""
        return self.methods.get(event, ())


def hooks_of(entity: type[Any]) -> tuple[Hooks | None, Hooks | None]:
    """Return the hooks of an entity class around writes and after reads; None without hooks."""
    found: dict[str, tuple[str, ...]] = {}
    for owner in reversed(entity.__mro__):
        hidden = set(vars(owner).get(_NAMES, ()))
        for name, member in tuple(vars(owner).items()):
            events = getattr(member, _MARK, None) if isinstance(member, _KINDS) else None
            if events is not None:
                _check_kind(entity, name, member, events)
                found[name] = events
                hidden.discard(getattr(member, "__name__", name))
            elif name in found:
                del found[name]  # A subclass replaces the method and does not mark it.
        if hidden:
            raise DeclarationError(
                f"{owner.__name__}.{min(hidden)}: @hook is below another decorator; {_ORDER}."
            )
    return (
        _hooks(entity, found, [event for event in _EVENTS if event != _READ]),
        _hooks(entity, found, [_READ]),
    )


def _hooks(entity: type[Any], found: Mapping[str, tuple[str, ...]], events: Sequence[str]) -> Hooks | None:
    methods = {event: tuple(name for name, of_name in found.items() if event in of_name) for event in events}
    names = {name for of_event in methods.values() for name in of_event}
    is_async = frozenset(name for name in names if inspect.iscoroutinefunction(getattr(entity, name)))
    return Hooks(methods=methods, async_methods=is_async) if names else None


def _check_kind(entity: type[Any], name: str, member: object, events: tuple[str, ...]) -> None:
    for event in events:
        if (event in _OF_CLASS) != isinstance(member, classmethod):
            kind = "a class method: write @classmethod below @hook" if event in _OF_CLASS else "a method"
            raise DeclarationError(f"{entity.__name__}.{name}: a {event} hook must be {kind}.")
