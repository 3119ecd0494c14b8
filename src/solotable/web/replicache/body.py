"""Bodies of pushes and pulls: gzip, and a limit that never stops a client for good.

A client sends all its unconfirmed mutations in one body, and repeats it for ever after a 413. So of a body
over the limit, the mutations at its beginning are used.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from fastapi import HTTPException, Request

_GZIP = 31
_SPACE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class SyncBody:
    """A decoded body; `is_cut` if only its beginning fitted."""

    value: Any
    is_cut: bool = False


async def read_body(request: Request, max_bytes: int) -> SyncBody:
    """Read a body as JSON; keep at most `max_bytes` of it, and discard the rest."""
    kept = bytearray()
    cut = False
    async for piece in _decoded(request, max_bytes):
        room = max_bytes - len(kept)
        cut = cut or len(piece) > room
        kept += piece[:room]
    if cut:
        return SyncBody(_beginning(kept.decode(errors="ignore")), is_cut=True)
    try:
        return SyncBody(json.loads(kept))
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, "The body is not valid JSON.") from error


async def _decoded(request: Request, max_bytes: int) -> AsyncIterator[bytes]:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        async for piece in request.stream():
            yield piece
        return
    if encoding != "gzip":
        raise HTTPException(415, f"Content-Encoding takes gzip, got {encoding[:40]!r}.")
    unpacker = zlib.decompressobj(_GZIP)
    produced = 0
    async for piece in request.stream():
        # A few bytes of gzip may unpack to gigabytes: stop one byte after the limit.
        if produced > max_bytes:
            continue
        try:
            plain = unpacker.decompress(piece, max_bytes + 1 - produced)
        except zlib.error as error:
            raise HTTPException(400, "The body is not valid gzip.") from error
        produced += len(plain)
        yield plain


def _beginning(text: str) -> dict[str, Any]:
    """Return the members of a JSON object that ends too early, with the mutations that are complete."""
    found: dict[str, Any] = {"pushVersion": 1}
    decoder = json.JSONDecoder()
    at = _skip(text, 0, "{")
    try:
        while at < len(text):
            name, at = decoder.raw_decode(text, _skip(text, at, ","))
            at = _skip(text, at, ":")
            if name == "mutations" and text[at : at + 1] == "[":
                found["mutations"] = []
                at += 1
                while True:
                    mutation, at = decoder.raw_decode(text, _skip(text, at, ","))
                    found["mutations"].append(mutation)
            found[name], at = decoder.raw_decode(text, at)
    except (ValueError, RecursionError):
        pass
    return found


def _skip(text: str, at: int, mark: str) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    at += text[at : at + 1] == mark
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
