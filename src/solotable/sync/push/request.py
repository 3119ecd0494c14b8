"""The body of a push or a pull: check its form and its versions. Runs nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from solotable._entities.keys.parts.codecs import escape
from solotable.errors import DataError

#: The answer to a client whose state the server does not have; the client starts a new group.
CLIENT_STATE_NOT_FOUND: Mapping[str, Any] = {"error": "ClientStateNotFound"}
_PROTOCOL = 1
_LONGEST_ID = 200
#: The ids of a group and of a client are in one sort key, escaped.
_MOST_ID_BYTES = 400
_LARGEST_MUTATION_ID = 2**53


@dataclass(frozen=True, slots=True, eq=False)
class Mutation:
    """One mutation of a client."""

    client: str
    id: int
    name: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class PushBody:
    """A checked push: its group, and its mutations in order."""

    group: str
    mutations: tuple[Mutation, ...]


@dataclass(frozen=True, slots=True)
class PullBody:
    """A checked pull."""

    group: str
    cookie: Any


def unsupported(
    body: Mapping[str, Any], kind: str, schema_versions: Collection[str] | None
) -> dict[str, Any] | None:
    """Return the answer to a body with an unknown protocol or schema version; None for known ones."""
    if body.get(f"{kind}Version") != _PROTOCOL or isinstance(body.get(f"{kind}Version"), bool):
        return {"error": "VersionNotSupported", "versionType": kind}
    version = body.get("schemaVersion")
    # Not every JSON value can be looked up in a set.
    if schema_versions is not None and not (isinstance(version, str) and version in schema_versions):
        return {"error": "VersionNotSupported", "versionType": "schema"}
    return None


def checked_body(body: object) -> Mapping[str, Any]:
    """Return the body as an object, or raise DataError."""
    if not isinstance(body, Mapping):
        raise _malformed("the body is a JSON object", body)
    return body


def parse_push(body: Mapping[str, Any]) -> PushBody:
    """Check the form of a push; raise DataError for what no client sends."""
    mutations = body.get("mutations")
    if not isinstance(mutations, list):
        raise _malformed("mutations is a list", mutations)
    return PushBody(_id(body, "clientGroupID"), tuple(_mutation(each) for each in mutations))


def parse_pull(body: Mapping[str, Any]) -> PullBody:
    """Check the form of a pull; any cookie is accepted, because a client cannot repair its cookie."""
    return PullBody(_id(body, "clientGroupID"), body.get("cookie"))


def _mutation(given: Any) -> Mutation:
    if not isinstance(given, Mapping):
        raise _malformed("a mutation is an object", given)
    number, name = given.get("id"), given.get("name")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < _LARGEST_MUTATION_ID:
        raise _malformed("the id of a mutation is a positive integer", number)
    if not isinstance(name, str) or not _is_unicode(name):
        raise _malformed("the name of a mutation is a string", name)
    return Mutation(_id(given, "clientID"), number, name, given.get("args"))


def _id(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_ID:
        raise _malformed(f"{name} is a string of 1 to {_LONGEST_ID} characters", value)
    if not _is_unicode(value) or len(escape(value).encode()) > _MOST_ID_BYTES:
        raise _malformed(f"{name} is a string of letters and digits", value)
    return value


def _is_unicode(text: str) -> bool:
    """Return whether a text has no lone surrogate, which no database stores."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _malformed(expected: str, got: object) -> DataError:
    shown = repr(got)[:60]
    message = f"Malformed sync request: {expected}, got {shown}."
    return DataError(message, public_message=message)
