"""The background work of an installation: messages, the search index, totals of events, and expiry.

Each kind of work is a blocking function that does what waits and returns. Several processes may run it at the
same time. An error is logged, and the next run continues.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from solotable import Database, connect
from solotable.jobs.purge import purge
from solotable.systems.storage import Storage

from .events.counting import aggregate
from .search.indexer import Indexer
from .search.port import SearchIndex
from .services.expiry import ExpiryReport, expire_due
from .services.notifications.announcements import Announcer
from .tables import TABLES, subscriptions

log = logging.getLogger("solotable.portal")

Work = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How often each kind of work runs."""

    announce_seconds: float = 0.5
    index_seconds: float = 0.5
    total_seconds: float = 1.0
    expire_seconds: float = 60.0
    purge_seconds: float = 3600.0


class Workers:
    """Runs the work on its own connection, which opens with the first run."""

    def __init__(self, url: str, index: SearchIndex, storage: Storage) -> None:
        self._url = url
        self._index = index
        self._storage = storage
        self._lock = threading.Lock()
        self._db: Database | None = None
        self._announcer: Announcer | None = None
        self._indexer: Indexer | None = None

    def announce(self) -> None:
        """Deliver the messages that wait."""
        if self._announcer is None:
            self._announcer = Announcer(self._database(), self._storage)
        self._announcer.run_once()

    def index(self) -> None:
        """Bring the search index up to date."""
        if self._indexer is None:
            self._indexer = Indexer(self._database(), self._index)
        self._indexer.run_once()

    def total(self) -> None:
        """Add new events to the totals of their days."""
        aggregate(self._database())

    def expire(self) -> ExpiryReport:
        """Expire content whose date has passed."""
        return expire_due(self._database(), datetime.now(UTC))

    def purge(self) -> None:
        """Remove subscriptions that were stopped 30 days ago."""
        purge(self._database().admin(), table=subscriptions)

    def schedule(self, settings: WorkerSettings) -> list[tuple[float, Work]]:
        """Return each kind of work with its interval; none of them raises."""
        return [
            (settings.announce_seconds, _logged("announcements", self.announce)),
            (settings.index_seconds, _logged("search index", self.index)),
            (settings.total_seconds, _logged("totals", self.total)),
            (settings.expire_seconds, _logged("expiry", self._expire)),
            (settings.purge_seconds, _logged("purge", self.purge)),
        ]

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def _expire(self) -> None:
        self.expire()

    def _database(self) -> Database:
        with self._lock:
            if self._db is None:
                self._db = connect(self._url, *TABLES)
            return self._db


def _logged(name: str, work: Work) -> Work:
    def run() -> None:
        try:
            work()
        except Exception:
            # The edge of a thread: requests do not wait for this work, and the next run repeats it.
            log.exception("background work failed: %s", name)

    return run
