"""Delete shipped backups that are older than a period, and nothing that a restore within it needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from solotable.errors import DataError
from solotable.locations import Location

from .archive import Archive, segment_name, snapshot_name


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
) -> Pruned:
    """Delete what no restore to a moment of the last `keep_seconds` needs.

    The newest snapshot before the period stays, and all after it. A killed prune is repeated.
    """
    if keep_seconds <= 0:
        raise DataError(f"keep_seconds must be above 0, got {keep_seconds}.")
    archive = Archive(location)
    horizon = int((clock() - keep_seconds) * 1_000_000)
    names: list[str] = []
    counts = {"generations": 0, "snapshots": 0, "segments": 0}
    is_needed = True
    for generation in reversed(archive.generations()):
        snapshots = archive.snapshots(generation)
        first = _first_needed(archive, generation, snapshots, horizon) if is_needed else None
        for sequence in snapshots:
            if first is None or sequence < first:
                # The header goes first: a snapshot without one is not found.
                name = snapshot_name(generation, sequence)
                names += [name, f"{name.removesuffix('.json')}.db.gz"]
                counts["snapshots"] += 1
        for sequence in archive.segments(generation):
            if first is None or sequence <= first:
                names.append(segment_name(generation, sequence))
                counts["segments"] += 1
        counts["generations"] += first is None
        # An older generation ends where this one begins.
        is_needed = is_needed and archive.snapshot_header(generation, snapshots[0]).micros > horizon
    if not dry_run:
        for name in names:
            location.delete(name)
    return Pruned(**counts)


def _first_needed(archive: Archive, generation: str, snapshots: list[int], horizon: int) -> int:
    """Return the newest snapshot before the horizon; the first one if all are after it."""
    for sequence in reversed(snapshots):
        if archive.snapshot_header(generation, sequence).micros <= horizon:
            return sequence
    return snapshots[0]
