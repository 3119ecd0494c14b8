"""The changes of an update: fields and values in `set=`, `add=`, `append=` and the like."""

from __future__ import annotations

import re

from mypy.errorcodes import ARG_TYPE
from mypy.messages import format_type
from mypy.nodes import DictExpr, Expression, ListExpr, SetExpr, StrExpr, TupleExpr
from mypy.types import (
    CallableType,
    Instance,
    LiteralType,
    TupleType,
    Type,
    UnionType,
    get_proper_type,
)

from .key_calls import typed_dict
from .models import (
    Call,
    EntityClass,
    any_type,
    class_of,
    field_type,
    fields_of,
    instance_of,
    is_model,
    suggestion,
    without_none,
)

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")
_TEXTS = frozenset({"builtins.str", "builtins.bytes", "builtins.bool"})
_NUMBERS = frozenset({"builtins.int", "builtins.float", "decimal.Decimal"})
_SETS = frozenset({"builtins.set", "builtins.frozenset", "typing.AbstractSet"})
_LISTS = frozenset({"builtins.list", "builtins.tuple"})
_MAPS = frozenset({"builtins.dict", "typing.Mapping"})
#: The types that each change does not take. A type in no set may be stored as anything.
_REJECTED = {
    "add": (_TEXTS | _LISTS | _MAPS, "takes numbers and sets"),
    "append": (_TEXTS | _NUMBERS | _SETS | _MAPS, "takes lists"),
    "prepend": (_TEXTS | _NUMBERS | _SETS | _MAPS, "takes lists"),
    "delete": (_TEXTS | _NUMBERS | _LISTS | _MAPS, "takes members of sets"),
}
_MAPPINGS = ("set", "set_if_missing", *_REJECTED)


def check_changes(ctx: Call, signature: CallableType, *, entity_at: int) -> CallableType:
    """Report fields that an update cannot change; return a signature with the types of the values."""
    if "set" not in signature.arg_names or not ctx.args[entity_at]:
        return signature
    entity = ctx.args[entity_at][0]
    info = class_of(ctx, entity) or instance_of(ctx, entity)
    if info is None or EntityClass(info).is_abstract:
        return signature
    update = _Update(ctx, EntityClass(info))
    # By name, because a refined key has moved the formals of the default signature.
    given = dict(zip(ctx.default_signature.arg_names, ctx.args, strict=True))
    types = list(signature.arg_types)
    for formal, name in enumerate(signature.arg_names):
        if name in _MAPPINGS and len(given.get(name, ())) == 1:
            types[formal] = update.check_mapping(name, given[name][0]) or types[formal]
    for expression in given.get("remove", ()):
        update.check_removed(expression)
    return signature.copy_modified(arg_types=types)


class _Update:
    """One update of one entity class."""

    def __init__(self, ctx: Call, entity: EntityClass) -> None:
        self._ctx = ctx
        self._entity = entity
        key = entity.key()
        self._key = () if key is None else key.parts

    def check_mapping(self, verb: str, written: Expression) -> Type | None:
        """Return the type of a dict that is written out; None for any other expression."""
        if not isinstance(written, DictExpr):
            return None
        items: dict[str, Type] = {}
        for name, _ in written.items:
            if isinstance(name, StrExpr):
                items[name.value] = self._value_type(verb, name)
        complete = items and all(isinstance(name, StrExpr) for name, _ in written.items)
        return typed_dict(self._ctx, items, set()) if complete else None

    def check_removed(self, written: Expression) -> None:
        """Report a field in `remove=` that cannot be removed."""
        if isinstance(written, StrExpr):
            self._fail(f'remove= takes a list of fields; write remove=["{written.value}"]', written)
            return
        if not isinstance(written, (ListExpr, TupleExpr, SetExpr)):
            return
        for each in written.items:
            if not isinstance(each, StrExpr):
                continue
            self._changed_type(each)
            if self._entity.is_required(each.value):
                self._fail(
                    f'"{self._title(each)}" has no default and cannot be removed; set it instead', each
                )

    def _value_type(self, verb: str, path: StrExpr) -> Type:
        """Return the type of the values that a change of a field takes."""
        found = self._changed_type(path)
        if verb == "set":
            return found
        if verb == "set_if_missing":
            return without_none(found)
        kind = get_proper_type(without_none(found))
        if isinstance(kind, LiteralType):
            kind = kind.fallback
        if isinstance(kind, TupleType):
            return any_type()
        if not isinstance(kind, Instance):
            return any_type()
        rejected, takes = _REJECTED[verb]
        name = kind.type.fullname
        if name in rejected:
            shown = format_type(found, self._ctx.api.options)
            self._fail(f'{verb}= {takes}, but "{self._title(path)}" is {shown}', path)
            return any_type()
        if name in _NUMBERS:
            return kind
        if name in _SETS | _LISTS and kind.args:
            return self._members(verb, kind.args[0])
        return any_type()

    def _members(self, verb: str, member: Type) -> Type:
        """Return the type of the members to add to a set, to remove from it, or to append to a list."""
        generic = self._ctx.api.named_generic_type
        accepted: list[Type] = [generic("typing.AbstractSet", [member])]
        if verb != "add":
            accepted += [generic("builtins.list", [member]), generic("builtins.tuple", [member])]
        return UnionType.make_union(accepted)

    def _changed_type(self, path: StrExpr) -> Type:
        """Return the type of a field by its path: `notes`, `address.city`, `lines[2].sku`."""
        steps = _STEP.findall(path.value)
        if not steps or not steps[0][0]:
            return any_type()
        if steps[0][0] in self._key:
            title = f"{self._entity.info.name}.{steps[0][0]}"
            self._fail(f'"{title}" is part of the primary key and cannot change', path)
            return any_type()
        owner = self._entity.info.name
        found: Type = Instance(self._entity.info, [])
        for name, position in steps:
            kind = get_proper_type(without_none(found))
            if not isinstance(kind, Instance):
                return any_type()
            if name and is_model(kind.type):
                member = field_type(kind.type, name)
                if member is None:
                    advice = suggestion(name, fields_of(kind.type))
                    self._fail(f'"{owner}" has no field "{name}"; {advice}', path)
                    return any_type()
                found = member
            elif name and kind.type.fullname in _MAPS and len(kind.args) == 2:
                found = kind.args[1]
            elif position and kind.type.fullname in _LISTS and kind.args:
                found = kind.args[0]
            elif kind.type.fullname in _TEXTS | _NUMBERS:
                self._fail(
                    f'"{owner}" is {format_type(kind, self._ctx.api.options)} and has no members', path
                )
                return any_type()
            else:
                return any_type()
            owner = f"{owner}.{name}" if name else f"{owner}[{position}]"
        return found

    def _title(self, path: StrExpr) -> str:
        return f"{self._entity.info.name}.{path.value}"

    def _fail(self, message: str, at: Expression) -> None:
        self._ctx.api.fail(message, at, code=ARG_TYPE)
