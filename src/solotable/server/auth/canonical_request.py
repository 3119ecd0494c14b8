"""The canonical form of a request that AWS Signature Version 4 signs; pure, without checks.

Text is Latin-1, so that every byte of a header survives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote, unquote_to_bytes

#: Values by name, in order of arrival.
Headers = Mapping[str, Sequence[str]]
#: Decoded names and values of the query string.
Parameters = Sequence[tuple[bytes, bytes]]


def canonical_request(
    *,
    method: str,
    path: str,
    parameters: Parameters,
    headers: Headers,
    signed: Sequence[str],
    body_hash: str,
) -> bytes:
    """Return the canonical request; `signed` are the sorted lower-case names of the signed headers."""
    return b"\n".join(
        (
            on_wire(method.upper()),
            _path(path),
            _query(parameters),
            *_headers(signed, headers),
            b"",
            on_wire(";".join(signed)),
            body_hash.encode(),
        )
    )


def split_target(target: str) -> tuple[str, str]:
    """Return the path and the query of a request target, which may be a whole URL."""
    path, _, query = target.partition("?")
    if not path.startswith("/") and "://" in path:
        path = "/" + path.partition("://")[2].partition("/")[2]
    return path, query


def parse_query(query: str) -> Parameters:
    """Return the parameters of a query, decoded."""
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    return [(unquote_to_bytes(on_wire(name)), unquote_to_bytes(on_wire(value))) for name, _, value in pairs]


def group_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """Return the values of each header, in order of arrival."""
    grouped: dict[str, list[str]] = {}
    for name, value in headers:
        grouped.setdefault(name, []).append(value)
    return grouped


def _path(path: str) -> bytes:
    """Return the path without empty and dotted segments, percent-encoded once more."""
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment not in ("", "."):
            segments.append(segment)
    closing = "/" if segments and path.endswith("/") else ""
    return quote(on_wire("/" + "/".join(segments) + closing), safe="/~").encode()


def _query(parameters: Parameters) -> bytes:
    pairs = sorted(
        (quote(name, safe="~"), quote(value, safe="~"))
        for name, value in parameters
        if name != b"X-Amz-Signature"
    )
    return "&".join(f"{name}={value}" for name, value in pairs).encode()


def _headers(signed: Iterable[str], headers: Headers) -> Iterable[bytes]:
    for name in signed:
        # DynamoDB: a signed header that is missing counts as empty.
        values = b",".join(b" ".join(on_wire(value).split()) for value in headers.get(name, ()))
        yield on_wire(name) + b":" + values


def on_wire(text: str) -> bytes:
    """Return Latin-1 text of the request as the bytes that were sent."""
    return text.encode("latin-1", "replace")
