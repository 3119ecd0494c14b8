"""Pokes: wake the listeners of a tenant after commits of this process or another one.

A poke carries no data. A commit of this process pokes at once. While a tenant has listeners, a thread also
reads the heads of its spaces, which shows the commits of other processes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from solotable.errors import SolotableError

log = logging.getLogger("solotable.sync")


class Listener:
    """One listener of a tenant; close it when its client leaves."""

    def __init__(
        self, pokes: Pokes, tenant: str, state: Callable[[], Any], notify: Callable[[], None]
    ) -> None:
        self._pokes = pokes
        self.tenant = tenant
        #: Returns the heads of the spaces that the client reads.
        self.state = state
        self.known: Any = None
        self._notify = notify
        self._event = threading.Event()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for a poke; return False if none came in time. Pokes before the call count once."""
        poked = self._event.wait(seconds)
        self._event.clear()
        return poked

    def poke(self) -> None:
        """Wake the listener."""
        self._event.set()
        self._notify()

    def close(self) -> None:
        """Stop listening."""
        self._pokes.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Pokes:
    """The listeners of all tenants, and the thread that looks for commits of other processes."""

    def __init__(self, *, poll_seconds: float) -> None:
        self._poll_seconds = poll_seconds
        self._lock = threading.Lock()
        self._listeners: dict[str, list[Listener]] = {}
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def listen(
        self, tenant: str, state: Callable[[], Any], notify: Callable[[], None] = lambda: None
    ) -> Listener:
        """Return a new listener; `notify` is called in any thread."""
        listener = Listener(self, tenant, state, notify)
        with self._lock:
            self._listeners.setdefault(tenant, []).append(listener)
            if self._thread is None and self._poll_seconds > 0:
                self._stop = threading.Event()
                self._thread = threading.Thread(
                    target=self._poll, args=(self._stop,), name="solotable-pokes", daemon=True
                )
                self._thread.start()
        return listener

    def remove(self, listener: Listener) -> None:
        """Forget a listener; without listeners the thread ends."""
        with self._lock:
            left = [each for each in self._listeners.get(listener.tenant, ()) if each is not listener]
            if left:
                self._listeners[listener.tenant] = left
            else:
                self._listeners.pop(listener.tenant, None)
            if not self._listeners:
                self._end()

    def poke(self, tenant: str) -> None:
        """Wake the listeners of a tenant."""
        with self._lock:
            listeners = list(self._listeners.get(tenant, ()))
        for each in listeners:
            each.poke()

    def close(self) -> None:
        """Wake and forget every listener, and end the thread."""
        with self._lock:
            listeners = [each for some in self._listeners.values() for each in some]
            self._listeners.clear()
            self._end()
        for each in listeners:
            each.poke()

    def _end(self) -> None:
        self._stop.set()
        self._thread = None

    def _poll(self, stop: threading.Event) -> None:
        while not stop.wait(self._poll_seconds):
            with self._lock:
                listeners = [each for some in self._listeners.values() for each in some]
            for listener in listeners:
                try:
                    found = listener.state()
                except SolotableError as error:
                    log.warning("cannot look for changes of %r: %s", listener.tenant, error)
                    continue
                except Exception:
                    # A function of the application chooses the spaces; its error must not end all pokes.
                    log.exception("cannot look for changes of %r", listener.tenant)
                    continue
                # The first look is a poke as well: a commit may have come between.
                if listener.known != found:
                    listener.poke()
                listener.known = found
