"""Write an export in AWS's format: data files, then the manifests.

The summary is written last: an export without it is unfinished, and readers reject it.
"""

from __future__ import annotations

import gzip
import hashlib
import secrets
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Any, cast

from solotable._protocol.json_codec import dumps
from solotable._values import Item
from solotable.locations import Location

from . import manifests
from .manifests import DataFile, ExportType, ManifestSummary, OutputView

#: A data file ends after the item that exceeds this many bytes of JSON.
FILE_BYTES = 64 * 2**20
#: Level 3 takes a third of the time of level 9, for a tenth more bytes.
_GZIP_LEVEL = 3
#: A file that AWS does not write: what CreateTable needs.
TABLE_FILE = "solotable-table.json"
#: The members of DescribeTable that CreateTable takes.
_CREATED = ("AttributeDefinitions", "KeySchema")
_OF_INDEX = ("IndexName", "KeySchema", "Projection")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTable:
    """The table of an export, as DescribeTable describes it."""

    description: dict[str, Any]

    @property
    def arn(self) -> str:
        """The ARN of the table."""
        return cast(str, self.description["TableArn"])

    def definition(self) -> bytes:
        """Return what CreateTable needs, so that `solotable import` can create the table."""
        described = self.description
        members: dict[str, Any] = {"TableName": described["TableName"], "BillingMode": "PAY_PER_REQUEST"}
        members |= {name: described[name] for name in _CREATED}
        for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
            if indexes := described.get(kind):
                members[kind] = [{name: each[name] for name in _OF_INDEX} for each in indexes]
        return dumps(members)


@dataclass(kw_only=True)
class ExportWriter:
    """Writes one export; `finish` makes it complete."""

    location: Location
    table: ExportedTable
    started: datetime
    bucket: str = ""
    prefix: str | None = None
    type: ExportType = "FULL_EXPORT"
    view: OutputView | None = None
    file_bytes: int = FILE_BYTES
    #: A new id without one.
    export_id: str = ""
    items: int = 0
    size: int = 0
    _files: list[DataFile] = field(default_factory=list)
    _current: _OpenFile | None = None

    def __post_init__(self) -> None:
        self.export_id = self.export_id or manifests.new_export_id(self.started)
        self._folder = f"{manifests.ROOT}/{self.export_id}"
        is_full = self.type == "FULL_EXPORT"
        # AWS: the data files of all incremental exports of a prefix share one folder.
        self._data = f"{self._folder}/data" if is_full else f"{manifests.ROOT}/data"
        self._put(manifests.STARTED, b"")

    @property
    def arn(self) -> str:
        """The ARN of the export."""
        return f"{self.table.arn}/export/{self.export_id}"

    def add(self, raw: bytes, size: int = 0) -> None:
        """Add an item of a full export, as DynamoDB JSON; `size` is what AWS bills."""
        self._write_line(b'{"Item":' + raw + b"}\n", size)

    def add_change(self, *, keys: Item, old: Item | None, new: Item | None, micros: int) -> None:
        """Add a changed item of an incremental export; `new` is None if it was deleted."""
        line: dict[str, Any] = {"Metadata": {"WriteTimestampMicros": {"N": str(micros)}}, "Keys": keys}
        if old is not None and self.view == "NEW_AND_OLD_IMAGES":
            line["OldImage"] = old
        if new is not None:
            line["NewImage"] = new
        self._write_line(dumps(line) + b"\n", 0)

    def finish(
        self,
        *,
        ended: datetime,
        export_time: datetime | None = None,
        period: tuple[datetime, datetime] | None = None,
    ) -> ManifestSummary:
        """Write the manifests, and return the summary."""
        if self._current is None and not self._files:
            self._open_file()  # AWS: an export has at least one file, which may be empty
        self._close_file()
        files = manifests.render_files(self._files)
        summary = ManifestSummary(
            export_arn=self.arn,
            table_arn=self.table.arn,
            table_id=self.table.description.get("TableId", ""),
            start_time=self.started,
            end_time=ended,
            manifest_files_key=self._key(f"{self._folder}/{manifests.FILES}"),
            item_count=self.items,
            billed_size_bytes=self.size,
            bucket=self.bucket,
            prefix=self.prefix,
            type=self.type,
            export_time=export_time,
            from_time=None if period is None else period[0],
            to_time=None if period is None else period[1],
            view=self.view,
        )
        rendered = manifests.render_summary(summary)
        self._put(TABLE_FILE, self.table.definition())
        self._put(manifests.FILES, files)
        self._put(manifests.FILES_CHECKSUM, manifests.checksum(files))
        self._put(manifests.SUMMARY_CHECKSUM, manifests.checksum(rendered))
        self._put(manifests.SUMMARY, rendered)
        return summary

    def abandon(self) -> None:
        """Close the open data file without keeping it; the export stays unfinished."""
        if self._current is not None:
            self._current.abandon()
            self._current = None

    def _write_line(self, line: bytes, size: int) -> None:
        current = self._current or self._open_file()
        current.write(line)
        self.items += 1
        self.size += size
        if current.size >= self.file_bytes:
            self._close_file()

    def _open_file(self) -> _OpenFile:
        name = f"{self._data}/{secrets.token_hex(13)}.json.gz"
        self._current = _OpenFile(name, self.location.create(name))
        return self._current

    def _close_file(self) -> None:
        if self._current is None:
            return
        closed, self._current = self._current, None
        md5 = closed.close()
        self._files.append(
            DataFile(
                item_count=closed.items, md5=md5, key=self._key(closed.name), etag=manifests.etag_of(md5)
            )
        )

    def _put(self, name: str, content: bytes) -> None:
        with self.location.create(f"{self._folder}/{name}") as file:
            file.write(content)

    def _key(self, name: str) -> str:
        return f"{self.prefix.strip('/')}/{name}" if self.prefix else name


class _OpenFile:
    """A data file that is being written: gzip over a file whose MD5 is computed on the way."""

    def __init__(self, name: str, created: AbstractContextManager[IO[bytes]]) -> None:
        self.name = name
        self.items = 0
        self.size = 0
        self._stack = ExitStack()
        self._hashed = _HashedFile(self._stack.enter_context(created))
        # Without a name and a time, equal items give equal bytes.
        self._gzip = gzip.GzipFile("", "wb", _GZIP_LEVEL, cast(IO[bytes], self._hashed), mtime=0)

    def write(self, line: bytes) -> None:
        """Add the line of an item."""
        try:
            self._gzip.write(line)
        except BaseException:
            self.abandon()
            raise
        self.items += 1
        self.size += len(line)

    def close(self) -> bytes:
        """Complete the file, and return its MD5."""
        with self._stack:
            self._gzip.close()
        return self._hashed.md5.digest()

    def abandon(self) -> None:
        """Remove the file."""
        with suppress(_Abandoned), self._stack:
            raise _Abandoned


class _Abandoned(Exception):
    """Ends the context of a file that is not to be kept."""


class _HashedFile:
    """The part of a file that gzip writes to, which computes the MD5 of what it writes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.md5 = hashlib.md5(usedforsecurity=False)

    def write(self, data: bytes) -> int:
        self.md5.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()
