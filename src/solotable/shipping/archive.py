"""A location with shipped backups: generations, their snapshots and their segments.

A generation is an unbroken chain of segments. It begins with snapshot 0. Another one begins when the shipper
cannot prove that it has seen every page since the last segment.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final, cast

from solotable.errors import DamagedBackup, DataError
from solotable.locations import Location

from .records import RecordHeader, unpack_pages

_GENERATION: Final = re.compile(r"[0-9]{16}-[0-9a-f]{8}")
_SEQUENCE: Final = re.compile(r"[0-9]{12}")
_LARGEST_RECORD: Final = 256 * 2**20
_CHUNK: Final = 2**20
_DATA_SUFFIX: Final = ".db.gz"


@dataclass(frozen=True, slots=True)
class Archive:
    """The backups at a location."""

    location: Location

    def generations(self) -> list[str]:
        """Return the generations that have a snapshot, oldest first."""
        return [name for name in self.all_generations() if self.snapshots(name)]

    def all_generations(self) -> list[str]:
        """Return all generations, also without a snapshot: one that begins, or what a killed shipper left."""
        return sorted(name for name in self.location.list("") if _GENERATION.fullmatch(name))

    def snapshots(self, generation: str) -> list[int]:
        """Return the sequences of the snapshots of a generation, in order."""
        return _sequences(self.location.list(f"{generation}/snapshots"), ".json")

    def snapshot_data(self, generation: str) -> list[int]:
        """Return the sequences of the databases of snapshots, also of one that is being stored."""
        return _sequences(self.location.list(f"{generation}/snapshots"), _DATA_SUFFIX)

    def segments(self, generation: str, *, after: int = 0) -> list[int]:
        """Return the sequences of the segments of a generation, in order."""
        return [each for each in _sequences(self.location.list(f"{generation}/segments")) if each > after]

    def write_segment(self, header: RecordHeader, payload: bytes) -> None:
        """Store a segment, whole or not at all; raise DataError if another shipper has stored one."""
        name = segment_name(header.generation, header.sequence)
        try:
            with self.location.create(name, replace=False) as file:
                file.write(header.render())
                file.write(payload)
        except FileExistsError:
            # The reply to an earlier attempt may have been lost.
            if self.read_header(header.generation, header.sequence) != header:
                raise in_use(self.location) from None

    def read_segment(self, generation: str, sequence: int) -> tuple[RecordHeader, list[tuple[int, bytes]]]:
        """Return a segment's header and pages, or raise DamagedBackup."""
        name = segment_name(generation, sequence)
        header, payload = self._read(name)
        _check_place(header, generation, sequence, name)
        return header, unpack_pages(header, payload, name)

    def read_header(self, generation: str, sequence: int) -> RecordHeader:
        """Return the header of a segment; of the snapshot for sequence 0."""
        name = segment_name(generation, sequence) if sequence else snapshot_name(generation, 0)
        header, _ = self._read(name)
        _check_place(header, generation, sequence, name)
        return header

    def write_snapshot(self, header: RecordHeader, packed: Path) -> None:
        """Store a snapshot whose compressed database is in a file."""
        name = snapshot_name(header.generation, header.sequence)
        with (
            packed.open("rb") as source,
            self.location.create(data_name(header.generation, header.sequence)) as target,
        ):
            shutil.copyfileobj(source, target, _CHUNK)
        with self.location.create(name) as file:
            file.write(header.render())

    def snapshot_header(self, generation: str, sequence: int) -> RecordHeader:
        """Return the header of a snapshot, or raise DamagedBackup."""
        name = snapshot_name(generation, sequence)
        header, _ = self._read(name)
        _check_place(header, generation, sequence, name)
        return header

    def unpack_snapshot(self, header: RecordHeader, target: IO[bytes]) -> None:
        """Write the database of a snapshot to a file, or raise DamagedBackup."""
        name = data_name(header.generation, header.sequence)
        expected = header.pages * header.page_size
        size = 0
        try:
            with self.location.open(name) as packed:
                hashed = _HashedReader(packed)
                with gzip.GzipFile(fileobj=cast(IO[bytes], hashed), mode="rb") as unpacked:
                    while chunk := unpacked.read(_CHUNK):
                        size += len(chunk)
                        if size > expected:
                            break
                        target.write(chunk)
                is_right = size == expected and hashed.digest() == header.payload
        except FileNotFoundError:
            raise DamagedBackup(f"{name} is missing.", file=name) from None
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DamagedBackup(f"{name} cannot be unpacked: {error}.", file=name) from error
        if not is_right:
            raise DamagedBackup(f"{name} does not match its checksum.", file=name)

    def chain(self, snapshot: RecordHeader, until_micros: int | None) -> Iterator[RecordHeader]:
        """Yield the headers of the segments after a snapshot, in order and without a gap."""
        generation = snapshot.generation
        previous = snapshot.previous or snapshot.digest
        for expected, sequence in enumerate(
            self.segments(generation, after=snapshot.sequence), snapshot.sequence + 1
        ):
            if sequence != expected:
                name = segment_name(generation, expected)
                raise DamagedBackup(f"{name} is missing.", file=name)
            header = self.read_header(generation, sequence)
            if header.previous != previous:
                name = segment_name(generation, sequence)
                raise DamagedBackup(f"{name} does not follow the segment before it.", file=name)
            if until_micros is not None and header.micros > until_micros:
                return
            previous = header.digest
            yield header

    def _read(self, name: str) -> tuple[RecordHeader, bytes]:
        try:
            with self.location.open(name) as file:
                content = file.read(_LARGEST_RECORD + 1)
        except FileNotFoundError:
            raise DamagedBackup(f"{name} is missing.", file=name) from None
        if len(content) > _LARGEST_RECORD:
            raise DamagedBackup(f"{name} is larger than {_LARGEST_RECORD:,} bytes.", file=name)
        return RecordHeader.parse(content, name)


class _HashedReader:
    """The part of a file that gzip reads from, which computes the SHA-256 of what was read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sha256 = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._sha256.update(data)
        return data

    def digest(self) -> str:
        """Read the rest of the file, and return the digest of all of it."""
        while self.read(_CHUNK):
            pass
        return self._sha256.hexdigest()


def segment_name(generation: str, sequence: int) -> str:
    """Return the name of a segment below its location."""
    return f"{generation}/segments/{sequence:012d}"


def snapshot_name(generation: str, sequence: int) -> str:
    """Return the name of a snapshot's header below its location."""
    return f"{generation}/snapshots/{sequence:012d}.json"


def newest_header(archive: Archive) -> RecordHeader:
    """Return the header of the last segment, or raise DataError without a backup."""
    generations = archive.generations()
    if not generations:
        raise DataError(f"{archive.location} has no backup: no snapshot was found.")
    segments = archive.segments(generations[-1])
    if segments:
        return archive.read_header(generations[-1], segments[-1])
    return archive.snapshot_header(generations[-1], archive.snapshots(generations[-1])[-1])


def find_snapshot(archive: Archive, until_micros: int | None) -> RecordHeader:
    """Return the newest snapshot before a moment, or raise DataError without one."""
    oldest: RecordHeader | None = None
    for generation in reversed(archive.generations()):
        for sequence in reversed(archive.snapshots(generation)):
            oldest = archive.snapshot_header(generation, sequence)
            if until_micros is None or oldest.micros <= until_micros:
                return oldest
    if oldest is None:
        raise DataError(f"{archive.location} has no backup: no snapshot was found.")
    first = datetime.fromtimestamp(oldest.micros / 1e6, UTC)
    raise DataError(
        f"The backup at {archive.location} begins at {first:%Y-%m-%dT%H:%M:%S.%fZ}, later than that."
    )


def in_use(location: Location) -> DataError:
    """Return the error of a location that another shipper uses."""
    return DataError(
        f"Another shipper stores backups at {location}. Stop it, or give each shipper its own location."
    )


def data_name(generation: str, sequence: int) -> str:
    """Return the name of a snapshot's database below its location."""
    return f"{generation}/snapshots/{sequence:012d}{_DATA_SUFFIX}"


def _sequences(names: Iterator[str], suffix: str = "") -> list[int]:
    numbers = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
    return sorted(int(number) for number in numbers if _SEQUENCE.fullmatch(number))


def _check_place(header: RecordHeader, generation: str, sequence: int, name: str) -> None:
    if (header.generation, header.sequence) != (generation, sequence):
        raise DamagedBackup(
            f"{name} is number {header.sequence} of generation {header.generation}.", file=name
        )
