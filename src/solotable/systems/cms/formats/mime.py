"""Which files are taken: an allow-list of types with a size for each, and a look at the first bytes.

SVG and HTML are not on it: they carry scripts that would run on the tenant's own pages.
"""

from __future__ import annotations

from solotable.systems.cms.errors import Refused

MB = 1024 * 1024
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif")
FILMS = ("video/mp4", "video/webm")
DOCUMENTS = (
    "application/pdf",
    "application/zip",
    "application/epub+zip",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "text/csv",
    "text/plain",
)
ASSETS = {**dict.fromkeys(PICTURES, 10 * MB), **dict.fromkeys(FILMS, 50 * MB)}
RESOURCES = {**ASSETS, **dict.fromkeys(DOCUMENTS, 50 * MB)}

#: (offset, bytes): one of these is at the beginning of every file of the type.
_BEGINNINGS = {
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


def judge_kind(mime: str, size: int, allowed: dict[str, int]) -> None:
    """Refuse a type that is not allowed, and a size beyond that of the type."""
    most = allowed.get(mime)
    if most is None:
        raise Refused(f"Files of this type are not taken; allowed are {', '.join(sorted(allowed))}.")
    if not 0 < size <= most:
        raise Refused(f"A file of type {mime} has 1 to {most} bytes; this one has {size}.")


def judge_bytes(mime: str, data: bytes) -> None:
    """Refuse bytes that are visibly not of the type they are said to be."""
    beginnings = _BEGINNINGS.get(mime)
    if beginnings and not any(data[at : at + len(start)] == start for at, start in beginnings):
        raise Refused(f"These bytes are not of type {mime}.")
