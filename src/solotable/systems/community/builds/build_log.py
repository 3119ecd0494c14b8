"""The log of a build: one item for each line, kept for 90 days (S2.23)."""

from __future__ import annotations

from solotable import Database
from solotable.systems.community.entities.builds import Build, BuildLog, LogLevel

from .stages import Stage

#: Lines of one attempt. The number of a line begins with its attempt, so a late worker overwrites none.
LINES_OF_ATTEMPT = 10_000
_LONGEST_LINE = 1000


class LogWriter:
    """Writes the lines of one attempt."""

    def __init__(self, db: Database, build: Build) -> None:
        self._db = db
        self._build = build
        self._next = build.attempts * LINES_OF_ATTEMPT

    def write(self, text: str, *, stage: Stage | None = None, level: LogLevel = "info") -> None:
        """Add a line; a long one is cut."""
        self._db.put(
            BuildLog(
                did=self._build.did,
                site_id=self._build.site_id,
                job_id=self._build.job_id,
                number=self._next,
                level=level,
                stage=stage,
                text=text[:_LONGEST_LINE],
            )
        )
        self._next += 1
