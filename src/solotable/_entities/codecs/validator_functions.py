"""Find the functions that validate a model's fields, in Pydantic's core schemas.

A function in Annotated, in a type alias or in a custom type validates like one with a decorator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter

from .computed_fields import UnknownReads, names_read

#: Members of a core schema that contain no schema.
_OTHER_MEMBERS = frozenset({"metadata", "serialization", "default", "config", "cls"})
_MODELS = ("model", "dataclass", "typed-dict")


@cache
def relates_fields(model: type[BaseModel]) -> bool:
    """Return whether the value of a field may depend on other fields: by validators, or by its default."""
    if model.__pydantic_decorators__.model_validators or _has_own_init(model):
        return True
    if any(info.default_factory_takes_validated_data for info in model.model_fields.values()):
        return True
    definitions = _definitions(model.__pydantic_core_schema__)
    return any(
        _reads_fields(node)
        for schema in _field_schemas(model).values()
        for node in _nodes(schema, definitions, into_models=False)
    )


@cache
def has_nested_functions(model: type[BaseModel], field: str) -> bool:
    """Return whether a field contains models, and a function validates a value in it."""
    nodes = list(_nodes(_field_schemas(model).get(field), _definitions(model.__pydantic_core_schema__)))
    if not any(node.get("type") in _MODELS for node in nodes):
        return False
    return any(_is_function(node) or node.get("post_init") or node.get("custom_init") for node in nodes)


def adapter_of(annotation: Any) -> Any:
    """Return what validates a value of a type; it skips the functions that read other fields."""
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    schema: Any = adapter.core_schema
    if not any(_reads_fields(node) for node in _nodes(schema, _definitions(schema), into_models=False)):
        return adapter
    from pydantic_core import SchemaValidator

    return SchemaValidator(_without_relations(schema))


def _has_own_init(model: type[BaseModel]) -> bool:
    """Return whether a model computes fields in its `__init__` or its `model_post_init`."""
    after = model.model_post_init
    has_after = after is not BaseModel.model_post_init and after.__name__ != "init_private_attributes"
    return has_after or bool(model.__pydantic_custom_init__)


def _field_schemas(model: type[BaseModel]) -> Mapping[str, Any]:
    schema: Any = model.__pydantic_core_schema__
    # A model validator wraps the schema of the model, or the schema of its fields.
    while schema["type"] != "model-fields":
        if schema["type"] == "definition-ref":
            schema = _definitions(model.__pydantic_core_schema__)[schema["schema_ref"]]
        elif "schema" in schema:
            schema = schema["schema"]
        else:
            return {}
    fields: Mapping[str, Any] = schema["fields"]
    return fields


def _definitions(schema: Any) -> Mapping[str, Any]:
    return {each["ref"]: each for each in schema.get("definitions", ())}


def _nodes(
    schema: Any, definitions: Mapping[str, Any], *, into_models: bool = True
) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and the schemas in it."""
    seen: set[str] = set()
    left = [schema]
    while left:
        node = left.pop()
        if isinstance(node, (list, tuple)):
            left += node
        elif isinstance(node, Mapping):
            kind = node.get("type")
            if kind == "definition-ref" and node["schema_ref"] not in seen:
                seen.add(node["schema_ref"])
                left.append(definitions.get(node["schema_ref"]))
            yield node
            if into_models or kind not in _MODELS:
                left += [each for name, each in node.items() if name not in _OTHER_MEMBERS]


def _is_function(node: Mapping[str, Any]) -> bool:
    return str(node.get("type")).startswith("function-")


def _reads_fields(node: Mapping[str, Any]) -> bool:
    """Return whether a schema is a function that may read `info.data`, the fields before its own."""
    if not _is_function(node) or node["function"]["type"] == "no-info":
        return False
    function = node["function"]["function"]
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None or not code.co_argcount:
        return True
    try:
        # The last parameter of a validator is its info.
        return "data" in set(names_read(code, code.co_varnames[code.co_argcount - 1], ("is_stored",)))
    except UnknownReads:
        return True


def _without_relations(schema: Any) -> Any:
    """Return a copy of a schema without the functions that read other fields."""
    if isinstance(schema, (list, tuple)):
        return type(schema)(map(_without_relations, schema))
    if not isinstance(schema, dict) or schema.get("type") in _MODELS:
        return schema
    if _reads_fields(schema):
        inner = _without_relations(schema.get("schema", {"type": "any"}))
        return {**inner, "ref": schema["ref"]} if "ref" in schema else inner
    return {
        name: each if name in _OTHER_MEMBERS else _without_relations(each) for name, each in schema.items()
    }
