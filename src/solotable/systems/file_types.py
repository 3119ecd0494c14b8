"""Allowed file types with their largest sizes, and a check of the first bytes.

SVG and HTML are not allowed: their scripts would run on the pages that show them.
"""

from __future__ import annotations

from solotable.systems.errors import InvalidInput

MB = 1024 * 1024
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif")
VIDEOS = ("video/mp4", "video/webm")
DOCUMENTS = (
    "application/pdf",
    "application/zip",
    "application/epub+zip",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "text/csv",
    "text/plain",
)
ASSETS = {**dict.fromkeys(IMAGES, 10 * MB), **dict.fromkeys(VIDEOS, 50 * MB)}
RESOURCES = {**ASSETS, **dict.fromkeys(DOCUMENTS, 50 * MB)}

#: (offset, bytes): every file of the type has one of these.
_SIGNATURES = {
    "image/png": [(0, b"\x89PNG\r\n\x1a\n")],
    "image/jpeg": [(0, b"\xff\xd8\xff")],
    "image/gif": [(0, b"GIF87a"), (0, b"GIF89a")],
    "image/webp": [(8, b"WEBP")],
    "image/avif": [(4, b"ftyp")],
    "video/mp4": [(4, b"ftyp")],
    "video/webm": [(0, b"\x1a\x45\xdf\xa3")],
    "application/pdf": [(0, b"%PDF-")],
    "application/zip": [(0, b"PK")],
    "application/epub+zip": [(0, b"PK")],
    DOCUMENTS[3]: [(0, b"PK")],
    DOCUMENTS[4]: [(0, b"PK")],
}


def check_type(mime: str, size: int, allowed: dict[str, int]) -> None:
    """Raise InvalidInput for a type that is not allowed, or a size above the type's limit."""
    max_bytes = allowed.get(mime)
    if max_bytes is None:
        raise InvalidInput(f"This file type is not allowed; use one of {', '.join(sorted(allowed))}.")
    if not 0 < size <= max_bytes:
        raise InvalidInput(f"A file of type {mime} needs 1 to {max_bytes} bytes, got {size}.")


def check_bytes(mime: str, data: bytes) -> None:
    """Raise InvalidInput for bytes without the signature of their type."""
    signatures = _SIGNATURES.get(mime)
    if signatures and not any(data[at : at + len(start)] == start for at, start in signatures):
        raise InvalidInput(f"The bytes are not of type {mime}.")
