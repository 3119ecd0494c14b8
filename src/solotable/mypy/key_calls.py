"""Verbs that take an entity class and its key: replaces `**key` by the parts of the key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mypy.errorcodes import CALL_ARG
from mypy.nodes import (
    ARG_NAMED,
    ARG_NAMED_OPT,
    ARG_STAR,
    ARG_STAR2,
    CallExpr,
    DictExpr,
    Expression,
    ListExpr,
    MemberExpr,
    StrExpr,
)
from mypy.plugin import MethodSigContext
from mypy.types import CallableType, Instance, Type, TypedDictType, get_proper_type

from .declarations import KeyDeclaration
from .models import Call, EntityClass, Part, class_of, entity_of_type, instance_of, suggestion


def with_key(ctx: Call, signature: CallableType, *, entity_at: int, owner: Type | None) -> CallableType:
    """Return a verb's signature with the parts of its entity's key."""
    if "keys" in signature.arg_names:
        return _with_keys(ctx, signature, entity_at)
    if "key" not in signature.arg_names or spreads(ctx):
        return signature
    handle = get_proper_type(owner) if owner is not None else None
    if isinstance(handle, Instance) and handle.args:
        return _of_handle(ctx, signature, handle)
    if len(ctx.args) <= entity_at or len(ctx.args[entity_at]) != 1:
        return signature
    expression = ctx.args[entity_at][0]
    if class_of(ctx, expression) is not None:
        found = _primary_key(ctx, expression)
        return signature if found is None else with_parts(signature, found[0].parts(found[1]))
    # An instance has its key.
    return signature if instance_of(ctx, expression) is None else with_parts(signature, ())


def with_collection_key(ctx: MethodSigContext) -> CallableType:
    """Return the signature of `collection`: the shared partition key, and parts of the sort keys."""
    signature = ctx.default_signature
    if spreads(ctx) or "key" not in signature.arg_names:
        return signature
    parts: dict[str, Part] = {}
    for formal, given in enumerate(ctx.args):
        if signature.arg_names[formal] is not None and signature.arg_kinds[formal] != ARG_STAR:
            continue
        for member in given:
            found = named_key(ctx, member) or _primary_key(ctx, member)
            if found is None:
                return signature
            entity, key = found
            for name in key.parts:
                required = name in key.partition and not entity.may_omit(name)
                parts.setdefault(name, entity.part(name, required=required))
    if not parts or _has_wrong_names(ctx, signature, parts):
        return signature
    return with_parts(signature, parts.values())


def _has_wrong_names(ctx: MethodSigContext, signature: CallableType, parts: Mapping[str, Part]) -> bool:
    """Report unknown and missing parts in one line each; mypy would list every overload."""
    assert isinstance(ctx.context, CallExpr)
    given = [name for name in ctx.context.arg_names if name is not None and name not in signature.arg_names]
    unknown = [name for name in given if name not in parts]
    missing = [part.name for part in parts.values() if part.required and part.name not in given]
    for name in unknown:
        advice = suggestion(name, parts)
        ctx.api.fail(
            f'The keys of the collection have no part "{name}"; {advice}', ctx.context, code=CALL_ARG
        )
    if missing and not unknown:
        ctx.api.fail(f'Missing part "{missing[0]}" of the collection\'s key', ctx.context, code=CALL_ARG)
    return bool(unknown or missing)


def with_parts(signature: CallableType, parts: Iterable[Part]) -> CallableType:
    """Return a signature whose `**` parameter is replaced by these parts."""
    kept = [
        (kind, name, of)
        for kind, name, of in zip(signature.arg_kinds, signature.arg_names, signature.arg_types, strict=True)
        if kind != ARG_STAR2
    ]
    added = [(ARG_NAMED if part.required else ARG_NAMED_OPT, part.name, part.type) for part in parts]
    if {name for _, name, _ in kept} & {name for _, name, _ in added}:
        return signature
    formals = kept + added
    return signature.copy_modified(
        arg_kinds=[kind for kind, _, _ in formals],
        arg_names=[name for _, name, _ in formals],
        arg_types=[of for _, _, of in formals],
    )


def spreads(ctx: Call) -> bool:
    """Return whether a call has `**arguments`, whose names are not known."""
    return isinstance(ctx.context, CallExpr) and ARG_STAR2 in ctx.context.arg_kinds


def named_key(ctx: Call, expression: Expression) -> tuple[EntityClass, KeyDeclaration] | None:
    """Return the key that `Order.by_date` names; None if it cannot be read."""
    if not isinstance(expression, MemberExpr):
        return None
    info = class_of(ctx, expression.expr) or instance_of(ctx, expression.expr)
    if info is None:
        return None
    entity = EntityClass(info)
    key = entity.key(expression.name)
    return None if key is None else (entity, key)


def _primary_key(ctx: Call, expression: Expression) -> tuple[EntityClass, KeyDeclaration] | None:
    info = class_of(ctx, expression)
    key = None if info is None else EntityClass(info).key()
    return None if info is None or key is None else (EntityClass(info), key)


def typed_dict(ctx: Call, items: dict[str, Type], required: set[str]) -> TypedDictType:
    """Return the type of a dict with these items."""
    return TypedDictType(items, required, set(), ctx.api.named_generic_type("typing._TypedDict", []))


def _of_handle(ctx: Call, signature: CallableType, handle: Instance) -> CallableType:
    """Refine the methods of `db.names(Route)`, which also take the name as a positional argument."""
    info = entity_of_type(ctx, handle.args[0])
    key = None if info is None else EntityClass(info).key()
    if info is None or key is None:
        return signature
    return with_parts(signature, [EntityClass(info).part(name, required=False) for name in key.parts])


def _with_keys(ctx: Call, signature: CallableType, entity_at: int) -> CallableType:
    """Refine `get_many(Order, [{...}, {...}])` with keys that are written out."""
    formal = signature.arg_names.index("keys")
    given = ctx.args[formal] if len(ctx.args) > formal else []
    if len(given) != 1 or not ctx.args[entity_at]:
        return signature
    written = given[0]
    if not (isinstance(written, ListExpr) and written.items and all(map(_is_written, written.items))):
        return signature
    found = _primary_key(ctx, ctx.args[entity_at][0])
    if found is None:
        return signature
    parts = found[0].parts(found[1])
    one = typed_dict(
        ctx, {part.name: part.type for part in parts}, {part.name for part in parts if part.required}
    )
    types = list(signature.arg_types)
    types[formal] = ctx.api.named_generic_type("typing.Sequence", [one])
    return signature.copy_modified(arg_types=types)


def _is_written(expression: Expression) -> bool:
    return isinstance(expression, DictExpr) and all(isinstance(key, StrExpr) for key, _ in expression.items)
