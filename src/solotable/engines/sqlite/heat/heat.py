"""The heat of an engine: this process's minutes in memory, and a file for finished ones.

A short-lived thread writes the file once a minute, so that no request waits for the disk. A process that ends
within its first minute leaves no file, unless one exists.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Final

from solotable._protocol.heat import HeatInterval, HeatLog
from solotable.fork_safe import new_lock

from .heat_file import HeatFile
from .recorder import HeatRecorder

#: How many intervals wait for a file that cannot be written.
_MOST_WAITING: Final = 500


class Heat(HeatRecorder):
    """A recorder that writes finished minutes to a file; without one it keeps them in memory."""

    __slots__ = ("_file", "_file_lock", "_read_only", "_waiting")

    def __init__(self, clock: Callable[[], float], path: str | None, *, read_only: bool = False) -> None:
        self._file = None if path is None else HeatFile(path)
        self._read_only = read_only
        self._file_lock = new_lock()
        super().__init__(clock)

    def forget(self) -> None:
        """Drop everything that was counted and is not in the file."""
        super().forget()
        self._waiting: list[HeatInterval] = []

    def read(self, since: float = 0.0) -> HeatLog:
        """Return what is recorded since a time: the file's intervals, and this process's newer ones."""
        if self._file is None:
            return super().read(since)
        with self._file_lock:
            stored = self._file.read(since, now=self._clock()).intervals
            mine = (*self._waiting, *super().read(since).intervals)
        return HeatLog(intervals=tuple(sorted((*stored, *mine), key=lambda each: each.start)))

    def end_minute(self) -> None:
        """Start to write the finished minutes."""
        if self._file is not None and not self._read_only:
            # A program that ends cannot start threads.
            with contextlib.suppress(RuntimeError):
                threading.Thread(target=self._write, name="solotable-heat", daemon=True).start()

    def _write(self, *, everything: bool = False) -> None:
        if self._file is None:
            return
        with self._file_lock:
            self._waiting += self.take(everything=everything)
            if self._waiting and self._file.add(self._waiting, now=self._clock()):
                self._waiting = []
            del self._waiting[:-_MOST_WAITING]

    def close(self) -> None:
        """Write the rest if the file exists."""
        if self._file is not None and not self._read_only and self._file.exists():
            self._write(everything=True)
