"""The items of an object in a bucket: DynamoDB JSON or CSV, plain or gzip, one line after the other."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

from solotable._protocol.json_codec import loads

#: More than the JSON of an item of 400 KB, however it is escaped.
LONGEST_LINE = 16 * 2**20


class BadObject(Exception):
    """The rest of an object cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFormat:
    """How the objects of an import are written."""

    is_csv: bool
    is_gzip: bool
    #: The types of the key attributes of the table and its indexes: all other columns of CSV are text.
    key_types: Mapping[str, str]
    delimiter: str = ","
    header: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportLine:
    """One item of an object, or the problem of its line."""

    size: int
    item: dict[str, Any] | None = None
    problem: str = ""


def read_object(file: IO[bytes], format_: ObjectFormat) -> Iterator[ImportLine]:
    """Yield the items of an object; after a line that is not JSON, AWS reads no further."""
    lines = _Lines(gzip.GzipFile(fileobj=file, mode="rb") if format_.is_gzip else file)
    try:
        if format_.is_csv:
            yield from _read_csv(lines, format_)
        else:
            yield from _read_json(lines)
    except BadObject as error:
        yield ImportLine(size=lines.size, problem=str(error))


class _Lines:
    """The lines of a file, each of them bounded; `size` has the bytes since it was last taken."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        while True:
            try:
                line: bytes = self._file.readline(LONGEST_LINE + 1)
            except (OSError, EOFError, zlib.error) as error:
                raise BadObject(f"the object cannot be unpacked: {error}") from error
            if not line:
                return
            if len(line) > LONGEST_LINE:
                raise BadObject(f"a line has at most {LONGEST_LINE:,} bytes")
            self.size += len(line)
            yield line

    def take_size(self) -> int:
        size, self.size = self.size, 0
        return size


def _read_json(lines: _Lines) -> Iterator[ImportLine]:
    for line in lines:
        if not line.strip():
            continue
        try:
            members = loads(line)
        except ValueError as error:
            raise BadObject(f"a line is not JSON: {error}") from error
        item = members.get("Item") if isinstance(members, dict) else None
        if isinstance(item, dict):
            yield ImportLine(size=lines.take_size(), item=item)
        else:
            yield ImportLine(size=lines.take_size(), problem='a line is {"Item": {...}}')


def _read_csv(lines: _Lines, format_: ObjectFormat) -> Iterator[ImportLine]:
    header = format_.header
    rows = csv.reader(_decode(lines), delimiter=format_.delimiter, strict=True)
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise BadObject(f"a line is not CSV: {error}") from error
        if row is None:
            return
        if header is None:
            header = tuple(row)
        elif row:
            yield _read_row(header, row, format_, lines.take_size())


def _read_row(header: tuple[str, ...], row: list[str], format_: ObjectFormat, size: int) -> ImportLine:
    if len(row) > len(header):
        return ImportLine(size=size, problem=f"a line has {len(row)} columns, the header has {len(header)}")
    item = {name: {format_.key_types.get(name, "S"): value} for name, value in zip(header, row, strict=False)}
    return ImportLine(size=size, item=item)


def _decode(lines: _Lines) -> Iterator[str]:
    is_first = True
    for line in lines:
        try:
            yield line.decode("utf-8-sig" if is_first else "utf-8")
        except UnicodeDecodeError as error:
            raise BadObject(f"a line is not UTF-8: {error}") from error
        is_first = False
