"""Computed fields of a model as parts of keys: their types, values, and the fields that they read.

A computed field is not stored. Its value is computed from the entity's other fields whenever a key needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from pydantic.fields import ComputedFieldInfo, FieldInfo

from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DeclarationError

from .field_codecs import MARKERS, Attribute, attribute_of

if TYPE_CHECKING:
    from solotable._entities.declare.entity import Entity

_READS = ("LOAD_ATTR", "LOAD_METHOD")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedField:
    """A computed field that keys may contain."""

    name: str
    annotation: Any
    #: How its value would be stored; only keys contain it.
    attribute: Attribute
    #: The stored fields that the value depends on.
    sources: frozenset[str]
    #: Whether `sources` are exactly the fields that the function reads, or all fields of the model.
    is_exact: bool
    _entity: type[Entity]
    _function: Callable[[Any], Any]

    def compute(self, values: Mapping[str, Any]) -> Any:
        """Return the value for an entity with these fields."""
        entity = self._entity.__new__(self._entity)
        put = object.__setattr__
        put(entity, "__dict__", {name: values[name] for name in self.sources})
        put(entity, "__pydantic_fields_set__", set(self.sources))
        put(entity, "__pydantic_extra__", None)
        put(entity, "__pydantic_private__", None)
        return self._function(entity)


def computed_fields(entity: type[Entity], used: frozenset[str]) -> dict[str, ComputedField]:
    """Return the computed fields of a model that its keys use; reject markers on any of them."""
    found: dict[str, ComputedField] = {}
    for name, info in entity.model_computed_fields.items():
        where = f"{entity.__name__}.{name}"
        described = FieldInfo.from_annotation(info.return_type)
        if marked := [each for each in described.metadata if isinstance(each, MARKERS)]:
            raise DeclarationError(
                f"{where} is a computed field and is not stored, so {type(marked[0]).__name__}() has no "
                f"effect; declare a field, and set it in a validator."
            )
        if name in used:
            found[name] = _computed_field(entity, name, info, described)
    return found


def _computed_field(
    entity: type[Entity], name: str, info: ComputedFieldInfo, described: FieldInfo
) -> ComputedField:
    where = f"{entity.__name__}.{name}"
    function = getattr(info.wrapped_property, "fget", None)
    if function is None:
        raise DeclarationError(
            f"{where} is a cached_property, whose value stays when a field changes, so a key cannot contain "
            f"it; write @computed_field over @property."
        )
    reads = _fields_read(entity, function)
    return ComputedField(
        name=name,
        annotation=info.return_type,
        attribute=attribute_of(entity.__name__, name, described, flat=False),
        sources=frozenset(entity.model_fields) if reads is None else reads,
        is_exact=reads is not None,
        _entity=entity,
        _function=function,
    )


def computed_from(model: type[BaseModel], fields: Collection[str]) -> list[str]:
    """Return the computed fields of a model that read one of these fields, or whose code does not show it."""
    found: list[str] = []
    for name, info in model.model_computed_fields.items():
        wrapped = info.wrapped_property
        reads = _fields_read(model, getattr(wrapped, "fget", None) or getattr(wrapped, "func", None))
        if reads is None or not reads.isdisjoint(fields):
            found.append(name)
    return found


class UnknownReads(Exception):
    """The code does more with the entity than read its attributes."""


def _fields_read(entity: type[BaseModel], function: Any) -> frozenset[str] | None:
    """Return the fields that a property reads; None if its code does not show them."""
    fields: set[str] = set()
    seen: set[Any] = set()
    left = [function]
    try:
        while left:
            each = left.pop()
            if each in seen:
                continue
            seen.add(each)
            for name in attributes_read(each):
                if name in entity.model_fields:
                    fields.add(name)
                    continue
                left += _functions_behind(entity, name)
    except UnknownReads:
        return None
    return frozenset(fields)


def _functions_behind(entity: type[BaseModel], name: str) -> list[Any]:
    """Return the function that an attribute of the class calls with the entity: a property or a method."""
    member = next((vars(base)[name] for base in entity.__mro__ if name in vars(base)), None)
    member = getattr(member, "wrapped", member)  # Pydantic's proxy of a computed field
    if isinstance(member, property):
        return [member.fget]
    if isinstance(member, FunctionType):
        return [member]
    if isinstance(member, (classmethod, staticmethod, str, int, float, tuple, frozenset)):
        return []
    raise UnknownReads


def attributes_read(function: Any) -> Iterator[str]:
    """Yield the attributes that a function reads from its first argument, or raise UnknownReads."""
    if not isinstance(function, FunctionType) or not function.__code__.co_argcount:
        raise UnknownReads
    code = function.__code__
    yield from names_read(code, code.co_varnames[0])


def names_read(code: CodeType, subject: str, callees: Collection[str] = ()) -> Iterator[str]:
    """Yield the attributes that code reads from a variable; raise UnknownReads if it does more with it.

    `callees` are the functions that may get the variable as their first argument.
    """
    # Imported here, because few models have computed fields in their keys.
    import dis

    instructions = list(dis.get_instructions(code))
    for at, one in enumerate(instructions):
        operands = one.argval if isinstance(one.argval, tuple) else (one.argval,)
        if subject not in operands or one.opname in ("MAKE_CELL", "LOAD_CLOSURE"):
            continue
        previous, following = instructions[at - 1], instructions[at + 1]
        if previous.opname == "LOAD_GLOBAL" and previous.argval in callees:
            continue
        is_load = one.opname.startswith(("LOAD_FAST", "LOAD_DEREF")) and operands.count(subject) == 1
        if not is_load or operands[-1] != subject or following.opname not in _READS:
            raise UnknownReads
        yield str(following.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and subject in constant.co_freevars:
            yield from names_read(constant, subject, callees)
