"""The mypy plugin: checks key parts, ranges and the fields of updates. Only mypy imports it.

Switch it on with `plugins = ["solotable.mypy"]` in mypy's configuration. What it cannot read stays `Any`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

from mypy.nodes import MypyFile, TypeInfo
from mypy.options import Options
from mypy.plugin import (
    ClassDefContext,
    DynamicClassDefContext,
    FunctionSigContext,
    MethodSigContext,
    Plugin,
    ReportConfigContext,
)
from mypy.types import CallableType, FunctionLike

from . import declarations, key_calls, queries
from .changes import check_changes
from .models import ENTITY
from .pydantic_plugin import load_pydantic_plugin, read_class

#: Changes with every module here: mypy compares only this file before it uses a cached result.
_DIGEST = sha256(
    b"".join(each.read_bytes() for each in sorted(Path(__file__).parent.glob("*.py")))
).hexdigest()
#: The classes whose methods take an entity class and the parts of its key as `**key`.
_VERB_CLASSES = frozenset({"StoreBase", "AsyncStoreBase", "TransactionWork", "BatchWork", "_Named"})
_RANGES = frozenset({"since", "after", "until", "before", "between", "starts_with"})
_FLOW_VERBS = "solotable.flow.verbs."


class SolotablePlugin(Plugin):
    """Refines the signatures of calls that name parts of a key, or fields."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._pydantic = load_pydantic_plugin(options)

    def set_modules(self, modules: dict[str, MypyFile]) -> None:
        """Take the modules that names are looked up in."""
        super().set_modules(modules)
        if self._pydantic is not None:
            self._pydantic.set_modules(modules)

    def report_config_data(self, ctx: ReportConfigContext) -> object:
        """Return what a cached result depends on besides the sources."""
        return _DIGEST

    def get_base_class_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        """Read the keys of every entity class."""
        if self._pydantic is not None and (hook := self._pydantic.get_base_class_hook(fullname)) is not None:
            return partial(read_class, hook)
        found = self.lookup_fully_qualified(fullname)
        if found is not None and isinstance(found.node, TypeInfo) and found.node.has_base(ENTITY):
            return declarations.read_entity
        return None

    def get_dynamic_class_hook(self, fullname: str) -> Callable[[DynamicClassDefContext], None] | None:
        """Read the tenant of every table."""
        return declarations.read_table if declarations.is_table(fullname) else None

    def get_method_signature_hook(self, fullname: str) -> Callable[[MethodSigContext], FunctionLike] | None:
        """Refine the methods of stores, transactions, batches, keys and queries."""
        owner, _, method = fullname.rpartition(".")
        if owner.startswith("builtins."):
            return None
        found = self.lookup_fully_qualified(owner)
        if found is None or not isinstance(found.node, TypeInfo):
            return None
        names = {base.name for base in found.node.mro if base.fullname.startswith("solotable.")}
        if "BoundKey" in names:
            return {"query": queries.key_query, "__call__": queries.entity_key}.get(method)
        if "Query" in names:
            return queries.query_range if method in _RANGES else None
        if not names & _VERB_CLASSES:
            return None
        return key_calls.with_collection_key if method == "collection" else _method_call

    def get_function_signature_hook(
        self, fullname: str
    ) -> Callable[[FunctionSigContext], FunctionLike] | None:
        """Refine the verbs of `solotable.flow`."""
        return _flow_call if fullname.startswith(_FLOW_VERBS) else None


def _method_call(ctx: MethodSigContext) -> CallableType:
    signature = key_calls.with_key(ctx, ctx.default_signature, entity_at=0, owner=ctx.type)
    return check_changes(ctx, signature, entity_at=0)


def _flow_call(ctx: FunctionSigContext) -> CallableType:
    signature = key_calls.with_key(ctx, ctx.default_signature, entity_at=1, owner=None)
    return check_changes(ctx, signature, entity_at=1)


def plugin(version: str) -> type[Plugin]:
    """Return the plugin's class; mypy calls it with its own version."""
    return SolotablePlugin
