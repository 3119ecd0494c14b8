"""A subset of JSON Schema: check a schema, validate a value, and fill in its defaults.

It has no references and no regular expressions, so a schema of a user costs bounded time. Messages name the
place and the rule, and never repeat a value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Any, Final

from solotable.systems.community.builds.render.markdown import safe_link

#: The keywords that mean something here. A schema with others is rejected, because they would not be checked.
_ANNOTATIONS: Final = frozenset({"$schema", "title", "description", "default", "examples"})
_KEYWORDS: Final[dict[str, frozenset[str]]] = {
    "object": frozenset({"properties", "required", "additionalProperties", "maxProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength", "enum", "format"}),
    "integer": frozenset({"minimum", "maximum", "enum"}),
    "number": frozenset({"minimum", "maximum", "enum"}),
    "boolean": frozenset(),
}
_LIMITS: Final = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "maxProperties": "at most {} names",
    "minimum": "at least {}",
    "maximum": "at most {}",
}
_MAX_DEPTH = 8
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")
_LANGUAGE = re.compile(r"[a-zA-Z]{2,8}(?:-[a-zA-Z0-9]{1,8}){0,4}")

Schema = Mapping[str, Any]


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


#: The formats of strings, and what a message says about each.
FORMATS: Final[dict[str, tuple[Callable[[str], object], str]]] = {
    "color": (_COLOR.fullmatch, "a color such as #0f6b6b"),
    "date": (_is_date, "a date such as 2026-11-13"),
    "language": (_LANGUAGE.fullmatch, "a language such as en or de-AT"),
    "uri-reference": (safe_link, "a link that begins with https://, http://, mailto: or /"),
}


def check_schema(schema: Any, where: str = "schema", depth: int = 0) -> Iterator[str]:
    """Yield what is wrong with a schema."""
    if not isinstance(schema, dict):
        yield f"{where}: is not an object."
        return
    if depth > _MAX_DEPTH:
        yield f"{where}: is nested more than {_MAX_DEPTH} levels deep."
        return
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in _KEYWORDS:
        yield f"{where}.type: must be one of {', '.join(_KEYWORDS)}."
        return
    for name in sorted(set(map(str, schema)) - _KEYWORDS[kind] - _ANNOTATIONS - {"type"}):
        yield f"{where}.{name[:40]}: this keyword is not supported for the type {kind}."
    yield from _check_keywords(schema, where, depth)
    if "default" in schema:
        yield from (f"{where}.default: {each}" for each in validate(schema["default"], schema, ""))


def _check_keywords(schema: Schema, where: str, depth: int) -> Iterator[str]:
    for name in _LIMITS:
        limit = schema.get(name, 0)
        if isinstance(limit, bool) or not isinstance(limit, (int, float)):
            yield f"{where}.{name}: is not a number."
    if "format" in schema and schema["format"] not in FORMATS:
        yield f"{where}.format: must be one of {', '.join(FORMATS)}."
    if "enum" in schema and not (isinstance(schema["enum"], list) and schema["enum"]):
        yield f"{where}.enum: is not a list with values."
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        yield f"{where}.properties: is not an object."
        properties = {}
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(each in properties for each in required):
        yield f"{where}.required: is not a list of names in properties."
    children = [(f"properties.{name}", each) for name, each in properties.items()]
    if "items" in schema:
        children.append(("items", schema["items"]))
    if not isinstance(schema.get("additionalProperties", False), bool):
        children.append(("additionalProperties", schema["additionalProperties"]))
    for name, child in children:
        yield from check_schema(child, f"{where}.{name}", depth + 1)


def validate(value: Any, schema: Schema, where: str = "config") -> Iterator[str]:
    """Yield what a value does wrong, each with its place; nothing if it is valid."""
    kind = schema["type"]
    if not _has_type(value, kind):
        yield f"{where}: must be of the type {kind}."
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: must be one of {', '.join(map(str, schema['enum']))}."
    size = value if kind in ("integer", "number") else len(value) if kind != "boolean" else 0
    for name, text in _LIMITS.items():
        if name in schema and (size < schema[name] if name.startswith("min") else size > schema[name]):
            yield f"{where}: must be {text.format(schema[name])}."
    if "format" in schema:
        fits, described = FORMATS[schema["format"]]
        if not fits(value):
            yield f"{where}: must be {described}."
    if kind == "object":
        yield from _validate_object(value, schema, where)
    elif kind == "array" and "items" in schema:
        for number, each in enumerate(value):
            yield from validate(each, schema["items"], f"{where}[{number}]")


def _validate_object(value: dict[str, Any], schema: Schema, where: str) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{where}.{name}: is required."
    others = schema.get("additionalProperties", False)
    for name, each in value.items():
        child = schema.get("properties", {}).get(name, others)
        if isinstance(child, dict):
            yield from validate(each, child, f"{where}.{name[:40]}")
        elif child is False:
            yield f"{where}.{name[:40]}: is not a name of this template."


def with_defaults(value: Any, schema: Schema) -> Any:
    """Return a valid value with the defaults of the names that it leaves out."""
    if schema["type"] == "object":
        properties: dict[str, Schema] = schema.get("properties", {})
        given = {name: each["default"] for name, each in properties.items() if "default" in each} | value
        return {
            name: with_defaults(each, properties[name]) if name in properties else each
            for name, each in given.items()
        }
    if schema["type"] == "array" and "items" in schema:
        return [with_defaults(each, schema["items"]) for each in value]
    return value


def _has_type(value: Any, kind: str) -> bool:
    match kind:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case _:
            return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
