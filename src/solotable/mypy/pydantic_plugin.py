"""Runs Pydantic's mypy plugin on entity classes: mypy asks only the first plugin about a class."""

from __future__ import annotations

from collections.abc import Callable

from mypy.errors import CompileError
from mypy.nodes import AssignmentStmt, CallExpr, RefExpr, Statement
from mypy.options import Options
from mypy.plugin import ClassDefContext, Plugin

from .declarations import read_entity
from .models import ENTITY

_PYDANTIC = "pydantic.mypy"


def load_pydantic_plugin(options: Options) -> Plugin | None:
    """Return Pydantic's plugin if mypy is configured with it, or raise CompileError if it is first."""
    if _PYDANTIC not in options.plugins:
        return None
    if options.plugins.index(_PYDANTIC) < options.plugins.index("solotable.mypy"):
        raise CompileError(
            [
                f"error: solotable.mypy does not see classes that {_PYDANTIC} has read; "
                f'write plugins = ["solotable.mypy", "{_PYDANTIC}"]'
            ]
        )
    from pydantic.mypy import PydanticPlugin

    return PydanticPlugin(options)


def read_class(pydantic: Callable[[ClassDefContext], None], ctx: ClassDefContext) -> None:
    """Read a model with both plugins; Pydantic's does not see the keys and traits of an entity."""
    if not ctx.cls.info.has_base(ENTITY):
        pydantic(ctx)
        return
    read_entity(ctx)
    # Pydantic's plugin reports every member without an annotation, and these are not fields.
    block = ctx.cls.defs
    before, declared = block.body, {id(each) for each in block.body if _is_declaration(each)}
    block.body = [each for each in before if id(each) not in declared]
    try:
        pydantic(ctx)
    finally:
        # It adds methods to the body, and replaces those that it added before.
        after, known = {id(each) for each in block.body}, {id(each) for each in before}
        former = [each for each in before if id(each) in declared or id(each) in after]
        block.body = [*former, *(each for each in block.body if id(each) not in known)]


def _is_declaration(statement: Statement) -> bool:
    """Return whether a statement is `name = Key(...)`, or another call of solotable."""
    if not isinstance(statement, AssignmentStmt) or statement.unanalyzed_type is not None:
        return False
    call = statement.rvalue
    if not isinstance(call, CallExpr) or not isinstance(call.callee, RefExpr):
        return False
    return call.callee.fullname.startswith("solotable.")
