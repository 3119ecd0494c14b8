"""Reads keys, required fields and the tenant from class bodies, while mypy analyses a module.

It is stored as a symbol, not as metadata of the class: mypy writes symbols to its cache and its daemon
compares them, so that a changed key checks its callers again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mypy.constant_fold import constant_fold_expr
from mypy.nodes import (
    ARG_NAMED,
    ARG_POS,
    MDEF,
    AssignmentStmt,
    CallExpr,
    Expression,
    NameExpr,
    RefExpr,
    SymbolTable,
    SymbolTableNode,
    TempNode,
    TupleExpr,
    TypeInfo,
    Var,
)
from mypy.plugin import ClassDefContext, DynamicClassDefContext
from mypy.server.trigger import make_trigger
from mypy.types import LiteralType, get_proper_type

#: The symbol of a class that holds its declaration, and the start of the symbol of a table.
SYMBOL = "__solotable__"
#: The tenant of a table that cannot be read.
UNREADABLE = "?"
_SLOT = re.compile(r"\{([^{}:]+)(?::([^{}]*))?\}")
_BUCKETS = frozenset({"hour", "day", "month"})
#: The arguments of Key that do not change which parts it has.
_NEUTRAL = frozenset({"index", "shards", "shard_by", "was", "most_buckets", "format", "when"})


@dataclass(frozen=True)
class KeyDeclaration:
    """The fields of a key, in order."""

    partition: tuple[str, ...]
    sort: tuple[str, ...]
    #: Fields of the partition key that are time buckets; a query can take them from its range.
    buckets: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """The fields of both, each once."""
        return tuple(dict.fromkeys((*self.partition, *self.sort)))


@dataclass(frozen=True)
class EntityDeclaration:
    """What one class body declares; bases have their own."""

    #: None for a key that cannot be read.
    keys: dict[str, KeyDeclaration | None] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    #: Fields whose default is FROM_SCOPE.
    from_scope: tuple[str, ...] = ()
    bound: bool = False
    tenant: str | None = None


def read_entity(ctx: ClassDefContext) -> None:
    """Store the declaration of an entity class in its symbol table."""
    keys: dict[str, Any] = {}
    required, from_scope = [], []
    for name, annotated, value in _assignments(ctx):
        if annotated and isinstance(value, TempNode) and value.no_rhs:
            required.append(name)
        elif annotated and isinstance(value, RefExpr) and _is_ours(value, "FROM_SCOPE"):
            from_scope.append(name)
        elif isinstance(value, CallExpr) and _is_ours(value.callee, "Key"):
            keys[name] = _read_key(value, ctx.api.cur_mod_id)
    options = ctx.cls.keywords
    declared: dict[str, Any] = {"keys": keys, "required": required, "from_scope": from_scope}
    if "table" in options:
        declared["bound"] = True
        declared["tenant"] = None if _is_global(options.get("scope")) else _tenant(ctx, options["table"])
    _store(ctx.cls.info.names, SYMBOL, declared, ctx)


def read_table(ctx: DynamicClassDefContext) -> None:
    """Store the tenant field of `name = Table(...)` beside the name."""
    tenant: str | None = None
    for name, kind, value in zip(ctx.call.arg_names, ctx.call.arg_kinds, ctx.call.args, strict=True):
        if kind not in (ARG_POS, ARG_NAMED):
            tenant = UNREADABLE
        elif name == "tenant":
            folded = constant_fold_expr(value, ctx.api.cur_mod_id)
            is_none = isinstance(value, NameExpr) and value.fullname == "builtins.None"
            tenant = folded if isinstance(folded, str) else None if is_none else UNREADABLE
    names: SymbolTable = ctx.api.current_symbol_table()  # type: ignore[attr-defined]  # of the analyzer
    _store(names, SYMBOL + ctx.name, {"tenant": tenant}, ctx)


def is_table(fullname: str) -> bool:
    """Return whether a name is the class Table."""
    return fullname.startswith("solotable.") and fullname.endswith(".Table")


def declaration_of(info: TypeInfo) -> EntityDeclaration | None:
    """Return what a class declares; None if the plugin has not read it."""
    found = _load(info.names, SYMBOL)
    if found is None:
        return None
    keys = {
        name: None if key is None else KeyDeclaration(**{part: tuple(of) for part, of in key.items()})
        for name, key in found["keys"].items()
    }
    return EntityDeclaration(
        keys,
        tuple(found["required"]),
        tuple(found["from_scope"]),
        found.get("bound", False),
        found.get("tenant"),
    )


def _assignments(ctx: ClassDefContext) -> Iterator[tuple[str, bool, Expression]]:
    for statement in ctx.cls.defs.body:
        if isinstance(statement, AssignmentStmt) and len(statement.lvalues) == 1:
            target = statement.lvalues[0]
            if isinstance(target, NameExpr):
                yield target.name, statement.unanalyzed_type is not None, statement.rvalue


def _read_key(call: CallExpr, module: str) -> dict[str, list[str]] | None:
    given: dict[str, Expression] = {}
    for position, (name, kind, value) in enumerate(
        zip(call.arg_names, call.arg_kinds, call.args, strict=True)
    ):
        if kind == ARG_POS and position < 2:
            given[("partition", "sort")[position]] = value
        elif kind == ARG_NAMED and name in ("partition", "sort"):
            given[name] = value
        elif kind != ARG_NAMED or name not in _NEUTRAL:
            return None
    partition = _read_fields(given.get("partition"), module)
    sort = _read_fields(given["sort"], module) if "sort" in given else []
    if partition is None or sort is None:
        return None
    return {
        "partition": [name for name, _ in partition],
        "sort": [name for name, _ in sort],
        "buckets": [name for name, spec in partition if spec in _BUCKETS],
    }


def _read_fields(template: Expression | None, module: str) -> list[tuple[str, str]] | None:
    """Return the fields of a template or a tuple, with their formats; None if it cannot be read."""
    if template is None:
        return None
    if isinstance(template, NameExpr) and template.fullname == "builtins.None":
        return []
    if isinstance(template, TupleExpr):
        names = [constant_fold_expr(each, module) for each in template.items]
        return [(name, "") for name in names if isinstance(name, str)] if _all_texts(names) else None
    text = constant_fold_expr(template, module)
    return [(name, spec or "") for name, spec in _SLOT.findall(text)] if isinstance(text, str) else None


def _all_texts(values: list[Any]) -> bool:
    return all(isinstance(each, str) for each in values)


def _is_ours(expression: Expression, name: str) -> bool:
    if not isinstance(expression, RefExpr):
        return False
    return expression.fullname.startswith("solotable.") and expression.fullname.endswith(f".{name}")


def _is_global(scope: Expression | None) -> bool:
    return getattr(scope, "value", None) == "global"


def _tenant(ctx: ClassDefContext, table: Expression) -> str | None:
    """Return the tenant field of the table of a class."""
    if not isinstance(table, RefExpr):
        return UNREADABLE
    module, dot, name = table.fullname.rpartition(".")
    if dot:
        ctx.api.add_plugin_dependency(make_trigger(f"{module}.{SYMBOL}{name}"))
        found = ctx.api.lookup_fully_qualified_or_none(f"{module}.{SYMBOL}{name}")
    else:  # a local variable
        found = ctx.api.lookup_qualified(SYMBOL + name, table, suppress_errors=True)
    declared = _read(found)
    return UNREADABLE if declared is None else declared["tenant"]


def _store(
    names: SymbolTable, name: str, value: object, ctx: ClassDefContext | DynamicClassDefContext
) -> None:
    text = ctx.api.named_type("builtins.str")
    variable = Var(name, LiteralType(json.dumps(value, sort_keys=True), text))
    variable.is_classvar = isinstance(ctx, ClassDefContext)
    variable._fullname = f"{ctx.api.cur_mod_id}.{name}"
    if isinstance(ctx, ClassDefContext):
        variable.info = ctx.cls.info
        variable._fullname = f"{ctx.cls.fullname}.{name}"
    names[name] = SymbolTableNode(MDEF, variable, plugin_generated=True)


def _load(names: SymbolTable, name: str) -> Any:
    return _read(names.get(name))


def _read(symbol: SymbolTableNode | None) -> Any:
    if symbol is None or not isinstance(symbol.node, Var):
        return None
    kind = get_proper_type(symbol.node.type)
    return json.loads(kind.value) if isinstance(kind, LiteralType) and isinstance(kind.value, str) else None
