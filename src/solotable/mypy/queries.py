"""Queries: the parts of `Order.by_date.query(...)`, and the part and type of a range."""

from __future__ import annotations

from mypy.errorcodes import CALL_ARG
from mypy.nodes import CallExpr, Expression, MemberExpr
from mypy.plugin import MethodSigContext
from mypy.types import CallableType, Instance, TupleType, get_proper_type

from .declarations import KeyDeclaration
from .key_calls import named_key, spreads, with_parts
from .models import EntityClass, Part, entity_of_type, suggestion

#: Methods of a query that keep its key.
_SAME_KEY = frozenset({"descending", "consistent", "where", "filtered", "select"})


def key_query(ctx: MethodSigContext) -> CallableType:
    """Return the signature of a key's `query`: the partition key, then parts of the sort key."""
    found = _callee_key(ctx)
    if found is None or spreads(ctx):
        return ctx.default_signature
    entity, key = found
    given = _names(ctx.context)
    # A computed part may follow from the parts after it.
    missing = next((name for name in key.sort if name not in given and entity.has_field(name)), None)
    if missing is not None:
        for name in key.sort[key.sort.index(missing) + 1 :]:
            if name in given and name not in key.partition:
                ctx.api.fail(
                    f'"{name}" is given without "{missing}", which comes before it in the sort key; '
                    f'pass "{missing}" too, or filter by "{name}"',
                    ctx.context,
                    code=CALL_ARG,
                )
    return with_parts(
        ctx.default_signature,
        [entity.part(name, required=_is_needed(entity, key, name)) for name in key.parts],
    )


def entity_key(ctx: MethodSigContext) -> CallableType:
    """Return the signature of a key that is called: `Order.key(order_id="o1")`."""
    found = _callee_key(ctx)
    if found is None or spreads(ctx):
        return ctx.default_signature
    entity, key = found
    return with_parts(ctx.default_signature, entity.parts(key))


def query_range(ctx: MethodSigContext) -> CallableType:
    """Return the signature of a range, such as `since`: one part of the sort key."""
    signature = ctx.default_signature
    given = _names(ctx.context)
    if spreads(ctx) or len(given) != 1 or not isinstance(ctx.context, CallExpr):
        return signature
    ((name, _),) = given.items()
    assert isinstance(ctx.context.callee, MemberExpr)
    source = _source(ctx, ctx.context.callee.expr)
    if source is not None:
        entity, key, used = source
        open_parts = [part for part in key.sort if part not in used]
        if name not in open_parts[:1]:
            advice = f'the range is over "{open_parts[0]}"' if open_parts else "the key has no open part"
            ctx.api.fail(f'"{name}" cannot take a range here; {advice}', ctx.context, code=CALL_ARG)
            return signature
    else:
        row = get_proper_type(ctx.type)
        info = entity_of_type(ctx, row.args[0]) if isinstance(row, Instance) and row.args else None
        names = None if info is None else EntityClass(info).sort_parts()
        if info is None or names is None:
            return signature
        entity = EntityClass(info)
        if name not in names:
            ctx.api.fail(
                f'"{name}" is not part of a sort key of {info.name}; {suggestion(name, sorted(names))}',
                ctx.context,
                code=CALL_ARG,
            )
            return signature
    part = entity.part(name, required=True)
    verb = ctx.context.callee.name
    if verb == "starts_with":
        return signature
    if verb == "between":
        pair = TupleType([part.type, part.type], ctx.api.named_generic_type("builtins.tuple", [part.type]))
        part = Part(name, pair, required=True)
    return with_parts(signature, [part])


def _callee_key(ctx: MethodSigContext) -> tuple[EntityClass, KeyDeclaration] | None:
    """Return the key in `Order.by_date.query(...)` or `Order.key(...)`."""
    if not isinstance(ctx.context, CallExpr) or not isinstance(ctx.context.callee, MemberExpr):
        return None
    callee = ctx.context.callee
    return named_key(ctx, callee) or named_key(ctx, callee.expr)


def _source(
    ctx: MethodSigContext, expression: Expression
) -> tuple[EntityClass, KeyDeclaration, frozenset[str]] | None:
    """Return the key of a query that is written out, and the parts that it was given."""
    while isinstance(expression, CallExpr) and isinstance(expression.callee, MemberExpr):
        callee = expression.callee
        if callee.name == "query":
            found = named_key(ctx, callee.expr)
            return None if found is None or None in expression.arg_names else (*found, _given(expression))
        if callee.name not in _SAME_KEY:
            return None
        expression = callee.expr
    return None


def _given(call: CallExpr) -> frozenset[str]:
    return frozenset(name for name in call.arg_names if name is not None)


def _names(context: object) -> dict[str, Expression]:
    if not isinstance(context, CallExpr):
        return {}
    pairs = zip(context.arg_names, context.args, strict=True)
    return {name: value for name, value in pairs if name is not None}


def _is_needed(entity: EntityClass, key: KeyDeclaration, name: str) -> bool:
    return name in key.partition and name not in key.buckets and not entity.may_omit(name)
