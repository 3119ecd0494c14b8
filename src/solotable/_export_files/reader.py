"""Read an export in AWS's format, and reject what does not match its manifests.

A data file is copied and its MD5 compared before its first item is returned. Keys in the manifests are used
for their file names only, below the export's own folder. Memory stays bounded whatever a file unpacks to.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import IO, Any, cast

from solotable._protocol.json_codec import loads
from solotable._values import Item
from solotable.errors import DamagedExport, DataError
from solotable.locations import Location

from . import manifests
from .manifests import DataFile, ManifestSummary
from .writer import TABLE_FILE

#: More than the JSON of two images of 400 KB and their keys, however it is escaped.
LONGEST_LINE = 16 * 2**20
#: More than the manifest of AWS's most files.
_LARGEST_MANIFEST = 64 * 2**20
_IN_MEMORY = 8 * 2**20
_CHUNK = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The line of an item: its data file, and the line's number in it."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedChange:
    """An item that changed in the period of an incremental export; `new` is None if it was deleted."""

    keys: Item
    old: Item | None
    new: Item | None
    micros: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A finished export whose manifests match their checksums."""

    location: Location
    folder: str
    summary: ManifestSummary
    files: tuple[DataFile, ...]
    #: The members of CreateTable for the exported table; None in an export that AWS made.
    definition: dict[str, Any] | None = None

    @property
    def id(self) -> str:
        """The id of the export."""
        return self.summary.export_arn.rpartition("/")[2]

    def items(self) -> Iterator[tuple[Place, Item]]:
        """Yield the items of a full export, each with its line, or raise DamagedExport."""
        if self.summary.type != "FULL_EXPORT":
            raise DataError(f"Export {self.id} is incremental; read its changes().")
        for place, members in self._lines():
            item = members.get("Item")
            if members.keys() != {"Item"} or not isinstance(item, dict):
                raise _damaged(place, 'a line is {"Item": {...}}')
            yield place, item

    def changes(self) -> Iterator[tuple[Place, ExportedChange]]:
        """Yield the changed items of an incremental export, each with its line, or raise DamagedExport."""
        if self.summary.type != "INCREMENTAL_EXPORT":
            raise DataError(f"Export {self.id} is a full one; read its items().")
        for place, members in self._lines():
            yield place, _parse_change(place, members)

    def verify(self) -> None:
        """Read every line, and raise DamagedExport at the first that is not right."""
        for _ in self.items() if self.summary.type == "FULL_EXPORT" else self.changes():
            pass

    def _lines(self) -> Iterator[tuple[Place, dict[str, Any]]]:
        # AWS: the data files of all incremental exports of a prefix share one folder.
        is_full = self.summary.type == "FULL_EXPORT"
        folder = _join(self.folder if is_full else self.folder.rpartition("/")[0], "data")
        for file in self.files:
            name = _join(folder, file.name)
            with _unpack(self.location, name, file) as lines:
                count = 0
                for count, line in enumerate(lines, 1):
                    place = Place(file=name, line=count)
                    if count > file.item_count:
                        raise _damaged(place, f"the manifest says {file.item_count:,} items")
                    yield place, _parse_line(place, line)
                if count != file.item_count:
                    raise DamagedExport(
                        f"{name} has {count:,} items; the manifest says {file.item_count:,}.", file=name
                    )


def open_export(location: Location, folder: str | None = None) -> Export:
    """Open the export at a location: its own folder, or one above with a single finished export.

    `folder` chooses one of several, as `list_exports` returns them. An incremental export is opened in this
    way, or from above: its data is beside its folder.

    Raises DamagedExport if a manifest does not match its checksum, and DataError if it finds none, or
    several to choose from.
    """
    if folder is None:
        folder = _find(location)
    content = _read(location, _join(folder, manifests.SUMMARY))
    _check(location, folder, manifests.SUMMARY_CHECKSUM, content, manifests.SUMMARY)
    summary = manifests.parse_summary(content)
    listing = _read(location, _join(folder, manifests.FILES))
    _check(location, folder, manifests.FILES_CHECKSUM, listing, manifests.FILES)
    files = manifests.parse_files(listing)
    total = sum(each.item_count for each in files)
    if total != summary.item_count:
        raise DamagedExport(
            f"{manifests.FILES} has files of {total:,} items; "
            f"{manifests.SUMMARY} says {summary.item_count:,}.",
            file=manifests.FILES,
        )
    return Export(
        location=location,
        folder=folder,
        summary=summary,
        files=tuple(files),
        definition=_read_definition(location, folder),
    )


def list_exports(location: Location) -> list[str]:
    """Return the folders of the finished exports at a location, oldest first."""
    found = []
    for parent in ("", manifests.ROOT):
        for name in location.list(parent):
            folder = _join(parent, name)
            if manifests.EXPORT_ID.fullmatch(name) and manifests.SUMMARY in set(location.list(folder)):
                found.append(folder)
    return sorted(found, key=lambda folder: folder.rpartition("/")[2])


def _find(location: Location) -> str:
    names = set(location.list(""))
    if manifests.SUMMARY in names:
        return ""
    if manifests.STARTED in names:
        raise DataError(f"The export at {location} is unfinished: it has no {manifests.SUMMARY}.")
    found = list_exports(location)
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError(f"{location} has {len(found)} exports; name one: {', '.join(found[-5:])}.")
    raise DataError(f"{location} has no finished export: no {manifests.SUMMARY} was found.")


def _read(location: Location, name: str) -> bytes:
    try:
        with location.open(name) as file:
            content = file.read(_LARGEST_MANIFEST + 1)
    except FileNotFoundError:
        raise DamagedExport(f"{name} is missing.", file=name) from None
    if len(content) > _LARGEST_MANIFEST:
        raise DamagedExport(f"{name} is larger than {_LARGEST_MANIFEST:,} bytes.", file=name)
    return content


def _check(location: Location, folder: str, name: str, content: bytes, of: str) -> None:
    manifests.check_checksum(content, _read(location, _join(folder, name)), of)


def _read_definition(location: Location, folder: str) -> dict[str, Any] | None:
    name = _join(folder, TABLE_FILE)
    try:
        with location.open(name) as file:
            content = file.read(_LARGEST_MANIFEST)
    except FileNotFoundError:
        return None
    try:
        found = loads(content)
    except ValueError as error:
        raise DamagedExport(f"{name} is not JSON: {error}.", file=name) from error
    if not isinstance(found, dict):
        raise DamagedExport(f"{name} is not a JSON object.", file=name)
    return found


@contextmanager
def _unpack(location: Location, name: str, file: DataFile) -> Iterator[Iterator[bytes]]:
    """Return a context with the lines of a data file whose MD5 is right."""
    md5 = hashlib.md5(usedforsecurity=False)
    with SpooledTemporaryFile(_IN_MEMORY) as copy:
        try:
            with location.open(name) as packed:
                while chunk := packed.read(_CHUNK):
                    md5.update(chunk)
                    copy.write(chunk)
        except FileNotFoundError:
            raise DamagedExport(f"{name} is missing.", file=name) from None
        if md5.digest() != file.md5:
            raise DamagedExport(f"{name} does not match its MD5 in {manifests.FILES}.", file=name)
        copy.seek(0)
        # AWS: an empty partition gives an empty file, which may have no gzip header.
        yield iter(()) if not copy.read(1) else _unzip(name, cast(IO[bytes], copy))


def _unzip(name: str, packed: IO[bytes]) -> Iterator[bytes]:
    packed.seek(0)
    with gzip.GzipFile(fileobj=packed, mode="rb") as file:
        number = 0
        while True:
            number += 1
            try:
                line = file.readline(LONGEST_LINE + 1)
            except (OSError, EOFError, zlib.error) as error:
                message = f"{name}, line {number} cannot be unpacked: {error}."
                raise DamagedExport(message, file=name, line=number) from error
            if not line:
                return
            if len(line) > LONGEST_LINE:
                raise _damaged(Place(file=name, line=number), f"a line has at most {LONGEST_LINE:,} bytes")
            yield line


def _parse_line(place: Place, line: bytes) -> dict[str, Any]:
    try:
        members = loads(line)
    except ValueError as error:
        raise _damaged(place, f"a line is JSON: {error}") from error
    if not isinstance(members, dict):
        raise _damaged(place, "a line is a JSON object")
    return members


def _parse_change(place: Place, members: dict[str, Any]) -> ExportedChange:
    try:
        micros = int(members["Metadata"]["WriteTimestampMicros"]["N"])
        keys = members["Keys"]
        old, new = members.get("OldImage"), members.get("NewImage")
    except (KeyError, TypeError, ValueError):
        raise _damaged(place, "a line has Metadata.WriteTimestampMicros.N and Keys") from None
    if not isinstance(keys, dict) or not all(
        image is None or isinstance(image, dict) for image in (old, new)
    ):
        raise _damaged(place, "Keys, OldImage and NewImage are items")
    return ExportedChange(keys=keys, old=old, new=new, micros=micros)


def _damaged(place: Place, expected: str) -> DamagedExport:
    return DamagedExport(f"{place}: expected that {expected}.", file=place.file, line=place.line)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
