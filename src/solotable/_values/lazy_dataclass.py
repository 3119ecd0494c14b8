"""`dataclass(frozen=True, slots=True)` that compiles a class's `__init__` when it is first called.

`dataclasses.dataclass` compiles six methods of every class at import, 0.7 ms each class; a program uses
few of the classes. Here `__init__` is compiled on the first call, and the other methods need no
compilation. `fields`, `replace`, `field` and subclasses from `dataclasses` work on these classes; type
checkers read `dataclass` as the original.

A property of a subclass replaces the field of this name, which the original keeps as a parameter.

Not supported: mutable classes, classes without slots, `order`, `InitVar`, `KW_ONLY`. Use the original.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from reprlib import recursive_repr
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

_FIELDS = "__dataclass_fields__"
_MISSING = dataclasses.MISSING
#: How `dataclasses.fields` tells a field from a ClassVar; the module has no public name for it.
_IS_FIELD = vars(dataclasses)["_FIELD"]
#: The default of a parameter with a factory; signatures show it as `<factory>`.
_HAS_FACTORY = vars(dataclasses)["_HAS_DEFAULT_FACTORY"]
#: The text of a method, and the values of the names in it.
_Source = tuple[str, dict[str, Any]]
#: What `dataclasses` reads of a base class.
_PARAMETERS = SimpleNamespace(
    init=True, repr=True, eq=True, order=False, unsafe_hash=False, frozen=True, slots=True, match_args=True
)


def _dataclass(*, frozen: bool, slots: bool, kw_only: bool = False) -> Callable[[type[Any]], type[Any]]:
    if not (frozen and slots):
        raise TypeError("Use dataclasses.dataclass for a class that is mutable or has no slots.")
    return lambda cls: _build(cls, kw_only=kw_only)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass


def _build(cls: type[Any], *, kw_only: bool) -> type[Any]:
    fields: dict[str, dataclasses.Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        fields |= getattr(base, _FIELDS, {})
    inherited = set(fields)
    namespace = dict(vars(cls))
    # A property replaces an inherited field.
    fields = {name: each for name, each in fields.items() if not isinstance(namespace.get(name), property)}
    for name, annotation in cls.__annotations__.items():
        if not str(annotation).startswith(("ClassVar", "typing.ClassVar")):
            fields[name] = _field(name, annotation, namespace.pop(name, _MISSING), kw_only=kw_only)
    for generated in ("__dict__", "__weakref__"):
        namespace.pop(generated, None)
    namespace |= {
        _FIELDS: fields,
        "__dataclass_params__": _PARAMETERS,
        "__slots__": tuple(name for name in fields if name not in inherited),
        "__match_args__": tuple(each.name for each in fields.values() if each.init and not each.kw_only),
        "__setattr__": _set,
        "__delattr__": _delete,
        "__getstate__": _get_state,
        "__setstate__": _set_state,
        "__signature__": _Signature(),
    }
    metaclass: Any = type(cls)
    made: type[Any] = metaclass(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    for method, source in _SOURCES.items():
        # A class that defines __eq__ has None for __hash__.
        if vars(cls).get(method) is None:
            _defer(made, method, source)
    return made


def _field(name: str, annotation: Any, default: Any, *, kw_only: bool) -> dataclasses.Field[Any]:
    found: Any = default if isinstance(default, dataclasses.Field) else dataclasses.field(default=default)
    found.name = name
    found.type = annotation
    found._field_type = _IS_FIELD
    if found.kw_only is _MISSING:
        found.kw_only = kw_only
    return found  # type: ignore[no-any-return] # Field has no such writable members for type checkers


def _defer(cls: type[Any], method: str, source: Callable[[type[Any]], _Source]) -> None:
    """Give the class a method that compiles itself when it is first called."""

    def deferred(self: Any, /, *arguments: Any, **named: Any) -> Any:
        return _compile(cls, method, source)(self, *arguments, **named)

    setattr(cls, method, deferred)


def _compile(cls: type[Any], method: str, source: Callable[[type[Any]], _Source]) -> Callable[..., Any]:
    text, names = source(cls)
    exec(text, names)  # noqa: S102 - made of the names of fields alone, as the original's
    compiled: Any = names[method]
    compiled.__qualname__ = f"{cls.__qualname__}.{method}"
    setattr(cls, method, compiled)
    return compiled  # type: ignore[no-any-return] # a function from exec has no type


def _init_source(cls: type[Any]) -> _Source:
    fields = sorted(_fields_of(cls), key=lambda each: each.kw_only is True)
    names: dict[str, Any] = {"_has_factory": _HAS_FACTORY}
    parameters, lines = ["self"], []
    for each in fields:
        # A slot's descriptor is faster than object.__setattr__, and ignores that the class is frozen.
        names[f"_set_{each.name}"] = getattr(cls, each.name).__set__
        names[f"_default_{each.name}"] = each.default
        names[f"_factory_{each.name}"] = each.default_factory
        if each.init and each.kw_only and "*" not in parameters:
            parameters.append("*")
        if each.default is not _MISSING:
            parameter, value = f"{each.name}=_default_{each.name}", f"_default_{each.name}"
        elif each.default_factory is not _MISSING:
            parameter, value = f"{each.name}=_has_factory", f"_factory_{each.name}()"
        else:
            parameter, value = each.name, ""
        if each.init:
            parameters.append(parameter)
            made = each.default_factory is not _MISSING
            value = f"{value} if {each.name} is _has_factory else {each.name}" if made else each.name
        if value:
            lines.append(f"_set_{each.name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    return f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"]), names


def _eq_source(cls: type[Any]) -> _Source:
    compared = [each.name for each in _fields_of(cls) if each.compare]
    mine, theirs = (f"({''.join(f'{one}.{each}, ' for each in compared)})" for one in ("self", "other"))
    text = (
        "def __eq__(self, other):\n"
        f" return {mine} == {theirs} if other.__class__ is self.__class__ else NotImplemented"
    )
    return text, {}


def _hash_source(cls: type[Any]) -> _Source:
    hashed = [each.name for each in _fields_of(cls) if (each.compare if each.hash is None else each.hash)]
    return f"def __hash__(self):\n return hash(({''.join(f'self.{each}, ' for each in hashed)}))", {}


def _repr_source(cls: type[Any]) -> _Source:
    shown = ", ".join(f"{each.name}={{self.{each.name}!r}}" for each in _fields_of(cls) if each.repr)
    text = f'@_recursive_repr\ndef __repr__(self):\n return f"{{self.__class__.__qualname__}}({shown})"'
    return text, {"_recursive_repr": recursive_repr()}


def _fields_of(cls: type[Any]) -> list[dataclasses.Field[Any]]:
    return list(getattr(cls, _FIELDS).values())


class _Signature:
    """The signature of a class, read from its compiled `__init__`."""

    def __get__(self, _instance: object, owner: type[Any]) -> Any:
        import inspect

        init: Any = owner.__init__
        if init.__name__ == "deferred":
            init = _compile(owner, "__init__", _init_source)
        init.__annotations__ = {each.name: each.type for each in _fields_of(owner) if each.init}
        whole = inspect.signature(init)
        return whole.replace(parameters=list(whole.parameters.values())[1:])


def _set(self: Any, name: str, value: Any) -> None:
    _check_unfrozen(self, name, "assign to")
    object.__setattr__(self, name, value)


def _delete(self: Any, name: str) -> None:
    _check_unfrozen(self, name, "delete")
    object.__delattr__(self, name)


def _check_unfrozen(self: Any, name: str, verb: str) -> None:
    # A plain subclass may have further attributes, as with the original.
    if _FIELDS in vars(type(self)) or name in getattr(self, _FIELDS):
        raise dataclasses.FrozenInstanceError(f"cannot {verb} field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in getattr(self, _FIELDS)]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(getattr(self, _FIELDS), state, strict=True):
        object.__setattr__(self, name, value)


_SOURCES = {
    "__init__": _init_source,
    "__eq__": _eq_source,
    "__hash__": _hash_source,
    "__repr__": _repr_source,
}
