"""The photos of a survey as a streamed ZIP: readable names, and a manifest with the captions.

A file has the place and the number of its photo in the report: `02 Roof/01 Covering/003 ridge.jpg`. Names are
unique, because numbers are. A photo of several parts is stored once, at its first place.

One chunk of one photo is in memory at a time. A photo without bytes is a row of the manifest and no file.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import IO, cast

from solotable import AsyncStore
from solotable.errors import DataError, NotFound
from solotable.systems.storage import Storage

from .model import Report, ReportPhoto
from .service import read_report

MANIFEST = "manifest.csv"
WITHOUT_PLACE = "00 Without a place"
_COLUMNS = ("file", "photo", "place", "caption", "name", "status", "bytes", "sha256", "image_id")
_EXTENSIONS = {
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/avif": ".avif",
}
#: What no file system, or no shell of one, accepts in a name.
_FORBIDDEN = re.compile(r'[\\/:*?"<>|]')
_MOST_BYTES = 80
#: The oldest time that a ZIP can hold.
_OLDEST = (1980, 1, 1, 0, 0, 0)
#: A spreadsheet takes a cell that begins so for a formula.
_FORMULA = ("=", "+", "-", "@")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A photo in the manifest."""

    photo: ReportPhoto
    file: str
    status: str

    def cells(self) -> tuple[object, ...]:
        image = self.photo.image
        return (
            self.file,
            self.photo.number,
            _cell(self.photo.place),
            _cell("" if image is None else image.caption),
            _cell("" if image is None else image.name),
            self.status,
            "" if image is None else image.size,
            "" if image is None else image.sha256,
            self.photo.image_id,
        )


async def export_photos(store: AsyncStore, storage: Storage, survey_id: str) -> AsyncIterator[bytes]:
    """Return the photos of a survey as the chunks of a ZIP, or raise NotFound before the first."""
    return photo_chunks(await read_report(store, survey_id), storage)


async def photo_chunks(report: Report, storage: Storage) -> AsyncGenerator[bytes, None]:
    """Yield the chunks of the ZIP of a report's photos."""
    target = _Buffer()
    rows: list[_Row] = []
    # Photos are compressed already.
    with zipfile.ZipFile(cast("IO[bytes]", target), "w", zipfile.ZIP_STORED) as archive:
        for photo in report.photos:
            name = file_name(report, photo)
            opened = await _open(storage, photo)
            if isinstance(opened, str):
                rows.append(_Row(photo=photo, file="", status=opened))
                continue
            created = None if photo.image is None else photo.image.created
            with archive.open(_entry(name, created), "w") as file:
                async with _closing(opened):
                    async for chunk in opened:
                        file.write(chunk)
                        yield target.take()
            rows.append(_Row(photo=photo, file=name, status="exported"))
            yield target.take()
        archive.writestr(_entry(MANIFEST, report.changed), _manifest(rows), zipfile.ZIP_DEFLATED)
    yield target.take()


async def _open(storage: Storage, photo: ReportPhoto) -> AsyncIterator[bytes] | str:
    """Return the chunks of a photo, or why there are none."""
    if photo.image is None:
        return "deleted"
    if not photo.is_stored:
        return "not uploaded"
    try:
        return await storage.stream(photo.image.storage_key)
    except (NotFound, DataError):
        return "missing"


@asynccontextmanager
async def _closing(chunks: AsyncIterator[bytes]) -> AsyncIterator[None]:
    """Close the file behind chunks, also if the client goes away in the middle of it."""
    try:
        yield
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()


def file_name(report: Report, photo: ReportPhoto) -> str:
    """Return the path of a photo in the ZIP."""
    if photo.section:
        section = report.sections[photo.section - 1]
        folders = [_numbered(photo.section, section.section.name, len(report.sections))]
        if photo.element:
            element = section.elements[photo.element - 1].element
            folders.append(_numbered(photo.element, element.name, len(section.elements)))
    else:
        folders = [WITHOUT_PLACE]
    image = photo.image
    extension, name = "", ""
    if image is not None:
        extension = _EXTENSIONS.get(image.mime, "")
        name = image.caption or image.name
        stem, dot, ending = name.rpartition(".")
        if dot and f".{ending.lower()}" in (*_EXTENSIONS.values(), ".jpeg"):
            name = stem
    width = max(3, len(str(len(report.photos))))
    last = f"{photo.number:0{width}d} {safe_name(name)}".rstrip()
    return "/".join([*folders, last + extension])


def _numbered(number: int, name: str, count: int) -> str:
    width = max(2, len(str(count)))
    return f"{number:0{width}d} {safe_name(name)}".rstrip()


def safe_name(text: str) -> str:
    r"""Return a text as part of a file name that every file system accepts behind a number.

    >>> safe_name("../Roof\\ridge: \"open\"\n joints. ")
    '.. Roof ridge open joints'
    """
    spaced = _FORBIDDEN.sub(" ", unicodedata.normalize("NFC", text))
    # Cc, Cf: controls, and marks that change the direction of what follows, such as the extension.
    kept = "".join(" " if each.isspace() else each for each in spaced if _is_shown(each))
    short = " ".join(kept.split()).encode()[:_MOST_BYTES].decode(errors="ignore")
    return short.rstrip(" .")


def _is_shown(character: str) -> bool:
    return character.isspace() or unicodedata.category(character)[0] != "C"


def _entry(name: str, changed: datetime | None) -> zipfile.ZipInfo:
    moment = _OLDEST if changed is None else max(_OLDEST, changed.timetuple()[:6])
    entry = zipfile.ZipInfo(name, moment)
    entry.external_attr = 0o644 << 16
    return entry


def _manifest(rows: list[_Row]) -> bytes:
    target = io.StringIO(newline="")
    writer = csv.writer(target)
    writer.writerow(_COLUMNS)
    writer.writerows(row.cells() for row in rows)
    # With a byte order mark, spreadsheets read UTF-8.
    return target.getvalue().encode("utf-8-sig")


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text


class _Buffer(io.RawIOBase):
    """A file that cannot seek and keeps what was written until it is taken."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        chunk = bytes(cast("bytes", data))
        self._parts.append(chunk)
        return len(chunk)

    def take(self) -> bytes:
        """Return what was written since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)
