"""Entities and models as mypy knows them: their classes, keys, and the types of their fields."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mypy.nodes import Decorator, Expression, RefExpr, TypeInfo, Var
from mypy.plugin import FunctionSigContext, MethodSigContext
from mypy.server.trigger import make_wildcard_trigger
from mypy.typeops import make_simplified_union
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    NoneType,
    Overloaded,
    ProperType,
    Type,
    TypeOfAny,
    TypeType,
    TypeVarType,
    UnionType,
    get_proper_type,
    has_type_vars,
)

from .declarations import UNREADABLE, KeyDeclaration, declaration_of

ENTITY = "solotable._entities.declare.entity.Entity"
_MODEL = "pydantic.main.BaseModel"

#: The context of a call: of a method or of a function.
Call = MethodSigContext | FunctionSigContext


@dataclass(frozen=True)
class Part:
    """A part of a key as an argument of a call."""

    name: str
    type: Type
    required: bool


@dataclass(frozen=True)
class EntityClass:
    """An entity class, with what it and its bases declare."""

    info: TypeInfo

    def key(self, name: str = "key") -> KeyDeclaration | None:
        """Return a key; None if it does not exist or cannot be read."""
        for base in self.info.mro:
            declared = declaration_of(base)
            if declared is not None and name in declared.keys:
                return declared.keys[name]
            if name in base.names:
                return None
        return None

    def _buckets(self) -> Iterator[str]:
        for base in self.info.mro:
            declared = declaration_of(base)
            for key in () if declared is None else declared.keys.values():
                yield from () if key is None else key.buckets

    def sort_parts(self) -> frozenset[str] | None:
        """Return the fields of all sort keys; None if a key cannot be read."""
        found: set[str] = set()
        for base in self.info.mro:
            if base.fullname == ENTITY:
                return frozenset(found)
            declared = declaration_of(base)
            if declared is None:
                if base.has_base(ENTITY):
                    return None
                continue
            for key in declared.keys.values():
                if key is None:
                    return None
                found.update(key.sort)
        return None

    def may_omit(self, name: str) -> bool:
        """Return whether a store can supply this part of a partition key: it is, or may be, the tenant."""
        tenant: str | None = UNREADABLE
        for base in self.info.mro:
            declared = declaration_of(base)
            if declared is None:
                continue
            if name in declared.from_scope:
                return True
            if declared.bound:
                tenant = declared.tenant
                break
        return tenant in (UNREADABLE, name)

    @property
    def is_abstract(self) -> bool:
        """Whether the class has no table; its subclasses may have more fields."""
        return not any(one.bound for base in self.info.mro if (one := declaration_of(base)) is not None)

    def is_required(self, name: str) -> bool:
        """Return whether a field has no default, as far as it can be read."""
        for base in self.info.mro:
            if name in base.names:
                declared = declaration_of(base)
                return declared is not None and name in declared.required
        return False

    def has_field(self, name: str) -> bool:
        """Return whether a part of a key is a field; otherwise it is computed."""
        return field_type(self.info, name) is not None

    def part(self, name: str, *, required: bool) -> Part:
        """Return a part of a key with the type of its field."""
        kind = field_type(self.info, name)
        if kind is None:  # a computed field, which may follow from the other parts
            return Part(name, without_none(_property_type(self.info, name)), required=False)
        # A time bucket takes dates too.
        return Part(name, any_type() if name in self._buckets() else without_none(kind), required)

    def parts(self, key: KeyDeclaration) -> list[Part]:
        """Return all parts of a key; those that a store supplies are optional."""
        return [
            self.part(name, required=not (name in key.partition and self.may_omit(name)))
            for name in key.parts
        ]


def any_type() -> AnyType:
    """Return the type of what cannot be read."""
    return AnyType(TypeOfAny.special_form)


def class_of(ctx: Call, expression: Expression) -> TypeInfo | None:
    """Return the class that an expression names: `Order`, `cls`, or a variable of type `type[Order]`."""
    if isinstance(expression, RefExpr) and isinstance(expression.node, TypeInfo):
        return _entity_info(ctx, expression.node)
    found = get_proper_type(ctx.api.get_expression_type(expression))
    if isinstance(found, Overloaded):
        found = found.items[0]
    if isinstance(found, CallableType) and found.is_type_obj():
        found = get_proper_type(found.ret_type)
    elif isinstance(found, TypeType):
        found = found.item
    else:
        return None
    return _info(ctx, found)


def instance_of(ctx: Call, expression: Expression) -> TypeInfo | None:
    """Return the class of an expression that is an entity."""
    return _info(ctx, get_proper_type(ctx.api.get_expression_type(expression)))


def entity_of_type(ctx: Call, kind: Type) -> TypeInfo | None:
    """Return the class of an entity's type."""
    return _info(ctx, get_proper_type(kind))


def _info(ctx: Call, kind: ProperType) -> TypeInfo | None:
    if isinstance(kind, TypeVarType):
        kind = get_proper_type(kind.upper_bound)
    return _entity_info(ctx, kind.type) if isinstance(kind, Instance) else None


def _entity_info(ctx: Call, info: TypeInfo) -> TypeInfo | None:
    if not info.has_base(ENTITY) or info.fallback_to_any:
        return None
    _depend(ctx, info)
    return info


def _depend(ctx: Call, info: TypeInfo) -> None:
    """Let mypy's daemon check this call again when a key or a field of the class changes."""
    tree, scope = getattr(ctx.api, "tree", None), getattr(ctx.api, "tscope", None)
    if tree is None or scope is None or not ctx.api.options.fine_grained_incremental:
        return
    for base in info.mro:
        if base.fullname in (ENTITY, _MODEL):
            return
        tree.plugin_deps.setdefault(make_wildcard_trigger(base.fullname), set()).add(scope.current_target())


def fields_of(info: TypeInfo) -> Iterator[str]:
    """Iterate over the names of a model's fields."""
    for base in info.mro:
        if base.fullname == _MODEL:
            return
        for name, symbol in base.names.items():
            if isinstance(symbol.node, Var) and _is_field(name, symbol.node):
                yield name


def field_type(info: TypeInfo, name: str) -> Type | None:
    """Return the type of a model's field; None if it does not exist."""
    symbol = info.get(name)
    if symbol is None or not isinstance(symbol.node, Var) or not _is_field(name, symbol.node):
        return None
    kind = symbol.node.type
    return any_type() if kind is None or has_type_vars(kind) else kind


def _property_type(info: TypeInfo, name: str) -> Type:
    """Return the type of a computed field: that of its property."""
    symbol = info.get(name)
    function = symbol.node.func.type if symbol is not None and isinstance(symbol.node, Decorator) else None
    kind = function.ret_type if isinstance(function, CallableType) else None
    return any_type() if kind is None or has_type_vars(kind) else kind


def is_model(info: TypeInfo) -> bool:
    """Return whether a class is a Pydantic model whose fields are all known."""
    return info.has_base(_MODEL) and not info.fallback_to_any


def _is_field(name: str, variable: Var) -> bool:
    return not (name.startswith("_") or variable.is_classvar or variable.is_inferred)


def without_none(kind: Type) -> Type:
    """Return a type without `| None`."""
    proper = get_proper_type(kind)
    if isinstance(proper, UnionType):
        rest = [each for each in proper.items if not isinstance(get_proper_type(each), NoneType)]
        return make_simplified_union(rest) if rest else kind
    return kind


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return the end of an error message: the nearest name, or all of them."""
    known = list(dict.fromkeys(names))
    close = difflib.get_close_matches(name, known, n=1)
    return f'did you mean "{close[0]}"?' if close else f"it has {', '.join(known)}"
