"""Which file is a search index of ours: only such a file is ever removed.

SQLite's header has our application id. Damage may remove it. So a small file beside the index says that an
index was created at this path. What is there then without a header of SQLite is a damaged index.
"""

from __future__ import annotations

import logging
from pathlib import Path

from solotable.errors import DeclarationError
from solotable.systems.portal.search.port import IndexDamaged

from .schema import APPLICATION_ID

#: Where SQLite's header has the application id.
_APPLICATION_ID_OFFSET = 68
_HEADER = b"SQLite format 3\x00"
_CLAIM = "A search index of the portal was created beside this file.\n"
_log = logging.getLogger("solotable.portal")


def claim(path: Path) -> None:
    """Store that the file at a path is an index."""
    beside = _beside(path, ".claim")
    if not beside.exists():
        beside.write_text(_CLAIM)


def check_owner(path: Path) -> None:
    """Raise DeclarationError for the file of another program, and IndexDamaged for a damaged index."""
    header = _header(path)
    if not header:
        path.parent.mkdir(parents=True, exist_ok=True)
    elif not _has_mark(header):
        if header.startswith(_HEADER) or not _beside(path, ".claim").exists():
            raise DeclarationError(
                f"{path} is not a search index of the portal; choose another path, or remove the file."
            )
        raise IndexDamaged("The search index is damaged (its header is lost); the indexer rebuilds it.")


def discard(path: Path) -> None:
    """Remove an index; keep a file without our mark as `.damaged`. Another program's file raises."""
    header = _header(path)
    if header and not _has_mark(header):
        try:
            check_owner(path)
        except IndexDamaged:
            kept = path.replace(_beside(path, ".damaged"))
            _log.warning("the search index lost its header; the file is kept as %s", kept)
    for suffix in ("", "-wal", "-shm"):
        _beside(path, suffix).unlink(missing_ok=True)


def _header(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_APPLICATION_ID_OFFSET + 4)
    except FileNotFoundError:
        return b""


def _has_mark(header: bytes) -> bool:
    return int.from_bytes(header[_APPLICATION_ID_OFFSET:], "big") == APPLICATION_ID


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
