"""Delete shipped backups that are older than a period, and nothing that a restore within it needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from solotable.errors import DataError
from solotable.locations import Location

from .archive import Archive, data_name, segment_name, snapshot_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What was deleted, or would be."""

    generations: int
    snapshots: int
    segments: int


def prune(
    location: Location,
    *,
    keep_seconds: float,
    clock: Callable[[], float] = time.time,
    dry_run: bool = False,
    leftover_seconds: float = 86_400.0,
) -> Pruned:
    """Delete what no restore to a moment of the last `keep_seconds` needs.

    The newest snapshot before the period stays, and all after it. The oldest files are deleted first, so a
    prune that is killed leaves a shorter past, and the next one continues. Files that a killed shipper left
    are deleted too, parts of files once they are older than `leftover_seconds`.
    """
    if keep_seconds <= 0:
        raise DataError(f"keep_seconds must be above 0, got {keep_seconds}.")
    archive = Archive(location)
    horizon = int((clock() - keep_seconds) * 1_000_000)
    generations = archive.generations()
    parts: list[_Unneeded] = []
    is_needed = True
    for generation in reversed(generations):
        snapshots = archive.snapshots(generation)
        first = _first_needed(archive, generation, snapshots, horizon) if is_needed else None
        parts.append(_unneeded(archive, generation, snapshots, first))
        # An older generation ends where this one begins.
        is_needed = is_needed and archive.snapshot_header(generation, snapshots[0]).micros > horizon
    if not dry_run:
        # A shipper stores the snapshot of its generation first: an older one without a snapshot was killed.
        for generation in archive.all_generations():
            if generations and generation < generations[-1] and generation not in generations:
                _delete(location, location.find(f"{generation}/"))
        for part in reversed(parts):
            _delete(location, part.names)
        location.delete_leftovers(older_than_seconds=leftover_seconds)
    return Pruned(
        generations=sum(part.is_whole for part in parts),
        snapshots=sum(part.snapshots for part in parts),
        segments=sum(part.segments for part in parts),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unneeded:
    """The files of a generation to delete, oldest first."""

    names: list[str]
    snapshots: int
    segments: int
    is_whole: bool


def _unneeded(archive: Archive, generation: str, snapshots: list[int], first: int | None) -> _Unneeded:
    """Return what is older than a snapshot; everything without one."""
    old = [each for each in snapshots if first is None or each < first]
    # The last segment that the snapshot includes stays: a shipper continues its chain.
    segments = [each for each in archive.segments(generation) if first is None or each < first]
    # A snapshot that is being stored is newer than all others; older data without a header was killed.
    data = [
        each
        for each in archive.snapshot_data(generation)
        if first is None or each in old or (each < snapshots[-1] and each not in snapshots)
    ]
    names = [
        # The headers go first: a snapshot without one is not found.
        *(snapshot_name(generation, each) for each in old),
        *(data_name(generation, each) for each in data),
        *(segment_name(generation, each) for each in segments),
    ]
    return _Unneeded(names=names, snapshots=len(old), segments=len(segments), is_whole=first is None)


def _delete(location: Location, names: Iterable[str]) -> None:
    for name in list(names):
        location.delete(name)


def _first_needed(archive: Archive, generation: str, snapshots: list[int], horizon: int) -> int:
    """Return the newest snapshot before the horizon; the first one if all are after it."""
    for sequence in reversed(snapshots):
        if archive.snapshot_header(generation, sequence).micros <= horizon:
            return sequence
    return snapshots[0]
