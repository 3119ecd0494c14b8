"""Start the processes of a server, replace those that die, and stop them.

The supervisor accepts connections and hands them to the workers in turn. Workers that accept from one socket
would share the connections unevenly, and with separate sockets on one port, a dead worker would take waiting
connections with it. The supervisor answers no request and opens no database. It spawns, never forks.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import signal
import socket
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from solotable.errors import EngineError
from solotable.server.listeners import open_listeners
from solotable.server.settings import Settings

from .process import READY, OpenEngine, remove_address, run_worker, run_writer

_LOG = logging.getLogger(__name__)
#: So many processes may die within this time before the server gives up.
_MOST_DEATHS = 5
_DEATHS_SECONDS = 60.0
#: How much longer than its own grace period a process may take to stop.
_STOP_SECONDS = 10.0
#: How many connections to accept before other events are looked at.
_MOST_ACCEPTED = 64
_LONGEST_REPORT = 65536
_WRITER = "writer"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(slots=True, kw_only=True)
class _Child:
    """A process, and the supervisor's end of its channel."""

    name: str
    process: SpawnProcess
    channel: socket.socket
    is_ready: bool = False
    #: Why it could not serve.
    error: str = ""

    @property
    def ending(self) -> str:
        """How the process ended, as a sentence without its subject."""
        if self.error:
            return f"failed: {self.error}"
        code = self.process.exitcode or 0
        if code < 0:
            return f"was ended by {_signal_name(-code)}."
        return f"ended with exit code {code}."


def serve_with_workers(
    open_engine: OpenEngine,
    settings: Settings,
    workers: int,
    *,
    ready: Callable[[int], None] = lambda port: None,
) -> None:
    """Serve with several processes until SIGTERM or SIGINT; call `ready` with the port once all serve."""
    with contextlib.ExitStack() as stack:
        signalled = stack.enter_context(_signals())
        listeners = open_listeners(settings.host, settings.port)
        stack.callback(_close_all, listeners)
        port = int(listeners[0].getsockname()[1])
        address = Path(tempfile.mkdtemp(prefix="solotable-")) / "writer"
        stack.callback(remove_address, address)
        link = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        _bind(link, address)
        link.listen()
        supervisor = _Supervisor(signalled, listeners)
        stack.callback(supervisor.stop, settings.grace_seconds)
        supervisor.add(_WRITER, run_writer, open_engine, settings, link)
        for number in range(1, workers + 1):
            supervisor.add(f"worker {number}", run_worker, open_engine, settings, str(address))
        if supervisor.start():
            ready(port)
            supervisor.watch()


class _Supervisor:
    """The processes of one server, the writer first."""

    def __init__(self, signalled: socket.socket, listeners: Sequence[socket.socket]) -> None:
        self._signalled = signalled
        self._listeners = listeners
        self._programs: dict[str, tuple[Callable[..., None], tuple[Any, ...]]] = {}
        self._children: dict[str, _Child] = {}
        self._deaths: deque[float] = deque()
        #: The workers, in the order of their turns.
        self._turns: deque[str] = deque()

    def add(self, name: str, target: Callable[..., None], *arguments: Any) -> None:
        """Add a program; its last argument is its channel."""
        self._programs[name] = target, arguments
        if name != _WRITER:
            self._turns.append(name)

    def start(self) -> bool:
        """Start all, in order; return False if a signal came before all serve."""
        for name in self._programs:
            # The writer creates a new file, and upgrades one of an earlier version.
            if len(self._children) == 1 and not self._wait_until_ready():
                return False
            if wait([self._signalled], timeout=0):
                return False
            self._start(name)
        return self._wait_until_ready()

    def watch(self) -> None:
        """Replace processes that die, until a signal comes."""
        while not self._is_stopping(self._listeners if self._has_worker() else ()):
            for child in self._ended():
                self._replace(child)
            if self._has_worker():
                for listener in self._listeners:
                    self._accept(listener)

    def stop(self, grace_seconds: float) -> None:
        """Stop the workers, then the writer; kill a process that does not stop in time."""
        _close_all(self._listeners)
        names = list(self._children)
        for group in (names[1:], names[:1]):
            for name in group:
                self._children[name].channel.close()
            deadline = time.monotonic() + grace_seconds + _STOP_SECONDS
            for name in group:
                process = self._children[name].process
                process.join(max(0.0, deadline - time.monotonic()))
                if process.exitcode is None:
                    _LOG.warning("%s (process %d) did not stop; it is killed.", name, process.pid)
                    process.kill()
                    process.join()

    def _has_worker(self) -> bool:
        return any(self._children[name].is_ready for name in self._turns)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_MOST_ACCEPTED):
            try:
                connection, _ = listener.accept()
            except OSError:
                # None waits, or the client has given up.
                return
            with connection:
                self._hand_over(connection)

    def _hand_over(self, connection: socket.socket) -> None:
        """Send a connection to the next worker that takes it; without one, it is closed."""
        for _ in range(len(self._turns)):
            child = self._children[self._turns[0]]
            self._turns.rotate(-1)
            # The worker is ending, or has not taken the last ones.
            with contextlib.suppress(OSError):
                if child.is_ready:
                    socket.send_fds(child.channel, [b"!"], [connection.fileno()])
                    return

    def _start(self, name: str) -> None:
        target, arguments = self._programs[name]
        channel, its_channel = socket.socketpair()
        channel.setblocking(False)
        process = _SPAWN.Process(target=target, args=(*arguments, its_channel), name=name)
        # The tracker of multiprocessing unblocks these signals when it starts.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        its_channel.close()
        self._children[name] = _Child(name=name, process=process, channel=channel)

    def _wait_until_ready(self) -> bool:
        """Wait until all processes serve; return False if a signal came before."""
        while not all(child.is_ready for child in self._children.values()):
            if self._is_stopping():
                return False
            for child in self._ended():
                # What keeps a process from its start would end the next one too.
                raise EngineError(child.error or f"The {child.name} of the server {child.ending}")
        return True

    def _is_stopping(self, listeners: Sequence[socket.socket] = ()) -> bool:
        """Wait for the next event; return whether it is a signal."""
        children = self._children.values()
        sentinels = [child.process.sentinel for child in children]
        starting = [child.channel for child in children if not child.is_ready]
        return self._signalled in wait([self._signalled, *sentinels, *starting, *listeners])

    def _ended(self) -> Iterator[_Child]:
        """Yield the processes that ended; note what others report."""
        for child in tuple(self._children.values()):
            # Nothing was sent yet, or the process died.
            with contextlib.suppress(OSError):
                if not child.is_ready and (report := child.channel.recv(_LONGEST_REPORT)):
                    child.is_ready = report == READY
                    child.error = "" if child.is_ready else report.decode()
            if child.process.exitcode is not None:
                yield child

    def _replace(self, child: _Child) -> None:
        now = time.monotonic()
        self._deaths.append(now)
        while self._deaths[0] < now - _DEATHS_SECONDS:
            self._deaths.popleft()
        child.channel.close()
        if len(self._deaths) > _MOST_DEATHS:
            raise EngineError(
                f"{len(self._deaths)} processes of the server ended within {_DEATHS_SECONDS:.0f} s, so it "
                f"stops. The last one, the {child.name}, {child.ending}"
            )
        _LOG.warning(
            "The %s (process %d) %s Another one starts.", child.name, child.process.pid, child.ending
        )
        self._start(child.name)


@contextlib.contextmanager
def _signals() -> Iterator[socket.socket]:
    """Return a context with a socket that can be read after SIGTERM or SIGINT."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)

    def note(_number: int, _frame: object) -> None:
        with contextlib.suppress(OSError):
            writer.send(b"!")

    before = {number: signal.signal(number, note) for number in _SIGNALS}
    try:
        with reader, writer:
            yield reader
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _bind(link: socket.socket, address: Path) -> None:
    try:
        link.bind(str(address))
    except OSError as fault:
        # Unix sockets have short paths: about 100 bytes.
        raise EngineError(
            f"Cannot create the socket {address}: {fault}. Set TMPDIR to another folder."
        ) from fault


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        # Most real-time signals have no name.
        return f"signal {number}"


def _close_all(listeners: Sequence[socket.socket]) -> None:
    for each in listeners:
        each.close()
