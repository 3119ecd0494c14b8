"""Errors for requests of a wrong form: unknown operations and wrong JSON types, in DynamoDB's words.

A wrong JSON type is a SerializationException. The texts name Java classes, as the service does.
"""

from __future__ import annotations

from typing import Any, Final

from solotable.errors import ServiceError, invalid

from .operations import UNSUPPORTED

JAVA: Final = "com.amazonaws.dynamodb.v20120810."
_STRUCTURE = "Start of structure or map found where not expected"
_FIELD = "Unexpected field type"
_INNER = "Unexpected value type in payload"
_INNER_COLLECTION = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class "
    "java.lang.Class (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class "
    "are in module java.base of loader 'bootstrap')"
)


def unreadable(message: str) -> ServiceError:
    """Return a SerializationException with this text."""
    return ServiceError("SerializationException", message)


def unknown_operation(operation: str) -> ServiceError:
    """Return the error of an operation that AWS does not have, or of one that solotable lacks."""
    message = "An unknown operation was requested."
    if operation in UNSUPPORTED:
        message = unsupported(operation)
    return ServiceError("UnknownOperationException", message)


def unsupported(what: str) -> str:
    """Return the message for a part of AWS's API that solotable lacks."""
    return f"{what} is not supported by solotable; docs/reference/differences.md lists what is."


def too_many_conditions() -> ServiceError:
    """Return the error for no KeyConditions, or for more than the table or index has key attributes."""
    return invalid("Conditions can be of length 1 or 2 only")


def not_a_scalar(value: Any, java: str) -> ServiceError:
    """Return the error for JSON that cannot become a String, Boolean, Integer, Long or Double."""
    if isinstance(value, dict):
        return unreadable(_STRUCTURE)
    if isinstance(value, list):
        return unreadable(f"Unrecognized collection type class java.lang.{java}")
    if isinstance(value, str) and java == "Boolean":
        return unreadable("Unexpected token received from parser")
    return unreadable(f"{_token(value)} cannot be converted to {java}")


def not_a_blob(value: Any) -> ServiceError:
    """Return the error for JSON that cannot become bytes."""
    if isinstance(value, dict):
        return unreadable(_STRUCTURE)
    if isinstance(value, list):
        return unreadable("Unrecognized collection type class java.nio.ByteBuffer")
    return unreadable("only base-64-encoded strings are convertible to bytes")


def not_a_list(value: Any, *, inner: bool) -> ServiceError:
    """Return the error for JSON that is not a list; `inner`: it is a member of a list or map."""
    if isinstance(value, dict):
        return unreadable(_STRUCTURE)
    return unreadable(_INNER_COLLECTION if inner else _FIELD)


def not_a_map(value: Any, java: str, *, inner: bool) -> ServiceError:
    """Return the error for JSON that is not a map to members of a Java class."""
    if isinstance(value, list):
        return unreadable(f"Unrecognized collection type java.util.Map<java.lang.String, {java}>")
    return unreadable(_INNER_COLLECTION if inner else _FIELD)


def not_a_structure(value: Any, java: str, *, inner: bool) -> ServiceError:
    """Return the error for JSON that is not a structure of a Java class."""
    if isinstance(value, list):
        return unreadable(f"Unrecognized collection type class {JAVA}{java}")
    return unreadable(_INNER if inner else _FIELD)


def _token(value: Any) -> str:
    match value:
        case True:
            return "TRUE_VALUE"
        case False:
            return "FALSE_VALUE"
        case str():
            return "STRING_VALUE"
        case float() if not value.is_integer():
            return "DECIMAL_VALUE"
        case _:
            return "NUMBER_VALUE"
