"""Lifecycle hooks: methods of an entity that a store calls before and after it writes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
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
]
FunctionT = TypeVar("FunctionT")

_EVENTS = get_args(HookEvent)
#: These run before the entity is known, so they are class methods.
_OF_CLASS = ("before_update", "before_delete")
_MARK = "__solotable_hook__"
_KINDS = (FunctionType, classmethod)
_CACHED = type(functools.cache(len))
_ORDER = "write @hook as the first decorator, above @classmethod or a plain method"


def hook(*events: HookEvent) -> Callable[[FunctionT], FunctionT]:
    """Declare that a store calls a method at these events: `@hook("before_create", "before_put")`.

    - before create or put: a method; it may change the entity, which is a copy, or return another one.
    - before update: a class method; it gets the changes by argument (`{"set": {...}}`) and may change them.
    - before delete: a class method; it gets the key.
    - after create, put, update or delete: a method of the stored or the deleted entity.

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


def hooks_of(entity: type[Any]) -> Hooks | None:
    """Return the hooks of an entity class; None without hooks."""
    found: dict[str, tuple[str, ...]] = {}
    for owner in reversed(entity.__mro__):
        for name, member in tuple(vars(owner).items()):
            events = getattr(member, _MARK, None) if isinstance(member, _KINDS) else None
            if events is None and getattr(_below(member), _MARK, None):
                raise DeclarationError(
                    f"{owner.__name__}.{name}: @hook is below another decorator; {_ORDER}."
                )
            if events is not None:
                _check_kind(entity, name, member, events)
                found[name] = events
            elif name in found:
                del found[name]  # A subclass replaces the method and does not mark it.
    if not found:
        return None
    methods: dict[str, tuple[str, ...]] = {}
    for name, events in found.items():
        for event in events:
            methods[event] = (*methods.get(event, ()), name)
    is_async = frozenset(name for name in found if inspect.iscoroutinefunction(getattr(entity, name)))
    return Hooks(methods=methods, async_methods=is_async)


def _below(member: Any) -> object:
    """Return what another decorator, such as @classmethod or @cache, was applied to."""
    if isinstance(member, classmethod | staticmethod | _CACHED):
        return member.__wrapped__
    return member.fget if isinstance(member, property) else None


def _check_kind(entity: type[Any], name: str, member: object, events: tuple[str, ...]) -> None:
    for event in events:
        if (event in _OF_CLASS) != isinstance(member, classmethod):
            kind = "a class method: write @classmethod below @hook" if event in _OF_CLASS else "a method"
            raise DeclarationError(f"{entity.__name__}.{name}: a {event} hook must be {kind}.")
