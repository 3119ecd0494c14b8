"""Database URLs: they name an engine, a file or endpoint, a table and settings.

    sqlite:///shop.db                 a file; missing tables and indexes are created
    sqlite://                         in memory
    http://127.0.0.1:8000/Shop        any endpoint that speaks DynamoDB's protocol
    aws://Shop?region=eu-west-1       Amazon DynamoDB; also profile=, client=botocore

A table in the URL replaces the name of the one declared table. Without it the declared names are used,
with an optional `prefix=`.

>>> Url.parse("aws://Shop?region=eu-west-1").settings["region"]
'eu-west-1'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from solotable._entities.declare.table import suggestion
from solotable.errors import DeclarationError

__all__ = ["Url"]

#: The settings after the ? of a URL, by scheme.
_SETTINGS = {
    "sqlite": ("durability", "error_texts", "heat", "lock_timeout", "prefix"),
    "http": ("client", "region", "profile", "prefix"),
    "https": ("client", "region", "profile", "prefix"),
    "aws": ("client", "region", "profile", "prefix"),
}


@dataclass(frozen=True, slots=True)
class Url:
    """A database URL and its parts."""

    scheme: str
    text: str
    #: The path of a SQLite file; None in memory.
    path: str | None = None
    endpoint: str | None = None
    table: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Url:
        """Parse a URL, or raise a DeclarationError that shows valid ones."""
        parts = urlsplit(text)
        settings = _settings(text, parts.scheme, parts.query)
        if parts.scheme == "sqlite":
            return cls("sqlite", text, path=_file(text, parts.netloc, unquote(parts.path)), settings=settings)
        if parts.scheme in ("http", "https") and parts.netloc:
            endpoint = f"{parts.scheme}://{parts.netloc}"
            return cls(
                parts.scheme, text, endpoint=endpoint, table=_only(parts.path, text), settings=settings
            )
        if parts.scheme == "aws":
            return cls("aws", text, table=unquote(parts.netloc) or None, settings=settings)
        raise DeclarationError(
            f"{text!r} is not a database URL; write sqlite:///file.db, sqlite://, http://host:port/TABLE "
            f"or aws://TABLE?region=..."
        )


def _settings(text: str, scheme: str, query: str) -> dict[str, str]:
    settings = dict(parse_qsl(query, keep_blank_values=True))
    known = _SETTINGS.get(scheme, ())
    for name in settings:
        if known and name not in known:
            raise DeclarationError(f"{text!r} has the setting {name!r}; {suggestion(name, known)}")
    return settings


def _file(text: str, host: str, path: str) -> str | None:
    if not text.startswith("sqlite://"):
        raise DeclarationError(f"{text!r} has too few slashes; write three for a file: sqlite:///file.db.")
    if host:
        raise DeclarationError(
            f"{text!r} names the host {host!r}; write three slashes for a file: sqlite:///file.db."
        )
    # As in SQLAlchemy: sqlite:///relative.db, sqlite:////absolute.db.
    return path.removeprefix("/") or None


def _only(path: str, text: str) -> str | None:
    name = unquote(path.strip("/"))
    if "/" in name:
        raise DeclarationError(f"{text!r} has more than a table name after its host.")
    return name or None
