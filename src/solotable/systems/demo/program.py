"""Run the demo: the front page first, then the data and the server of each system, in one process.

The systems share one database file. The console runs as `solotable console` in a separate process, if this
installation has that command. Ctrl-C or SIGTERM stops everything, and removes the data unless it is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from solotable.engines import sqlite
from solotable.pages.bind import bind_port
from solotable.server import Server, Settings
from solotable.server.run import run

from .pages import create_app
from .status import Part, Status
from .systems import SYSTEMS, DemoSystem

if TYPE_CHECKING:
    import uvicorn

MODELS = "solotable.systems.demo.models"
_POLL_SECONDS = 0.05
_CHILD_SECONDS = 10.0

Notify = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings:
    """The options of the demo."""

    folder: Path
    #: Whether the folder stays.
    kept: bool = False
    #: The port of the front page; the other ports follow it. 0 picks free ports.
    port: int = 8080
    #: The command that starts the console on a file and a port; None without a console.
    console: Callable[[Path, int], Sequence[str]] | None = None
    #: Systems to leave out.
    systems: tuple[DemoSystem, ...] = SYSTEMS


class DemoProgram:
    """A demo that is prepared: its ports are bound, and nothing runs yet."""

    def __init__(self, settings: DemoSettings) -> None:
        """Bind every port, or raise PortInUse."""
        self._settings = settings
        self._file = settings.folder / "demo.db"
        self._listeners: dict[str, socket.socket] = {}
        self._stack = contextlib.ExitStack()
        self._stop = threading.Event()
        names = ["front", *(each.name for each in settings.systems), "endpoint"]
        names += ["console"] if settings.console is not None else []
        try:
            for offset, name in enumerate(names):
                bound = bind_port(settings.port + offset if settings.port else 0)
                self._listeners[name] = self._stack.enter_context(bound)
                # Linux lets two processes bind a port until one listens. An early client waits.
                bound.listen()
        except BaseException:
            self._stack.close()
            raise
        parts = [
            Part(
                name=each.name,
                title=each.title,
                port=self._port(each.name),
                summary=each.summary,
                task=each.task,
                path=each.path,
                host=each.host,
                is_system=True,
            )
            for each in settings.systems
        ]
        parts.append(Part(name="endpoint", title="DynamoDB endpoint", port=self._port("endpoint")))
        if settings.console is not None:
            parts.append(Part(name="console", title="Console", port=self._port("console")))
        self.status = Status(parts=parts, file=str(self._file), kept=settings.kept)

    def _port(self, name: str) -> int:
        port: int = self._listeners[name].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """The address of the front page."""
        return f"http://127.0.0.1:{self._port('front')}/"

    def stop(self) -> None:
        """Make `run` return."""
        self._stop.set()

    def run(self, notify: Notify, shown: Callable[[], None] = lambda: None) -> None:
        """Serve until `stop` is called; call `shown` once the front page answers."""
        started = time.monotonic()
        with self._stack:
            front = _server(create_app(self.status))
            self._stack.enter_context(_serving(front, self._listeners["front"]))
            shown()
            self._start_endpoint()
            for system in self._settings.systems:
                if not self._stop.is_set():
                    self._start_system(system, notify)
            self._start_console()
            self.status.seconds = time.monotonic() - started
            self._stop.wait()

    def _start_system(self, system: DemoSystem, notify: Notify) -> None:
        part = self.status.part(system.name)
        assert part is not None
        self.status.set(part, "starting")
        try:
            demo = system.load(part.port)
            url = f"sqlite:///{self._file.absolute()}"
            summary = demo.prepare(url)
            keys = demo.credentials()
            server = demo.server(url, self._settings.folder, keys, ())
            self._stack.enter_context(_serving(server, self._listeners[system.name]))
        except Exception as error:  # noqa: BLE001  # a process edge: the other systems run without this one
            self.status.set(part, "failed", f"{type(error).__name__}: {error}")
            notify(f"{system.title} failed: {part.reason}")
            return
        lines = [line for line in summary.splitlines() if line.strip()]
        tokens = [line for line in lines if line.startswith("TOKEN=")]
        part.data = ", ".join(line for line in lines if line not in tokens)
        part.greeting = "\n".join((*tokens, demo.greeting(keys, part.port)))
        self.status.set(part, "up")
        notify(f"{system.title:<14} {part.page_url}")

    def _start_endpoint(self) -> None:
        part = self.status.part("endpoint")
        assert part is not None
        engine = self._stack.enter_context(sqlite.open(self._file))
        # The server of the protocol binds its own port.
        self._listeners["endpoint"].close()
        self._stack.enter_context(_serving_engine(engine, part.port))
        self.status.set(part, "up")

    def _start_console(self) -> None:
        part, command = self.status.part("console"), self._settings.console
        if part is None or command is None:
            return
        self.status.set(part, "starting")
        self._listeners["console"].close()
        arguments = [sys.executable, "-m", "solotable", *command(self._file, part.port)]
        child = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # noqa: S603
        self._stack.callback(_end, child)
        last_words = _drain(child)
        while not self._stop.is_set() and not _answers(part.port):
            if child.poll() is not None:
                self.status.set(part, "failed", last_words() or "It ended.")
                return
            self._stop.wait(_POLL_SECONDS)
        self.status.set(part, "up")


def _server(app: object) -> uvicorn.Server:
    import uvicorn

    config = uvicorn.Config(
        app,  # type: ignore[arg-type]  # an ASGI app
        log_level="warning",
        proxy_headers=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


@contextlib.contextmanager
def _serving(server: uvicorn.Server, listener: socket.socket) -> Iterator[None]:
    """Run a server in a thread for as long as the block lasts."""
    failures: list[BaseException] = []

    def serve() -> None:
        try:
            server.run(sockets=[listener])
        except BaseException as error:  # noqa: BLE001  # raised below, in the caller's thread
            failures.append(error)

    thread = threading.Thread(target=serve, name=f"demo-{listener.getsockname()[1]}", daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise failures[0] if failures else RuntimeError("The server ended while it started.")
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        server.should_exit = True
        thread.join()


@contextlib.contextmanager
def _serving_engine(engine: sqlite.SqliteEngine, port: int) -> Iterator[None]:
    """Serve DynamoDB's protocol in a thread for as long as the block lasts."""
    ready = threading.Event()
    handles: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
    failures: list[BaseException] = []

    async def main() -> None:
        server = Server(engine, Settings(port=port))
        await server.start()
        ended = asyncio.Event()
        handles.append((asyncio.get_running_loop(), ended))
        ready.set()
        try:
            await ended.wait()
        finally:
            await server.stop()

    def serve() -> None:
        try:
            run(main())
        except BaseException as error:  # noqa: BLE001  # raised below, in the caller's thread
            failures.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=serve, name="demo-endpoint", daemon=True)
    thread.start()
    ready.wait()
    if failures:
        raise failures[0]
    try:
        yield
    finally:
        loop, ended = handles[0]
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)
        thread.join()


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _drain(child: subprocess.Popen[bytes]) -> Callable[[], str]:
    """Read a child's errors for as long as it runs: a full pipe would block it.

    Returns a function for the last line, which waits for the end of the child.
    """
    last = [""]

    def read() -> None:
        assert child.stderr is not None
        with child.stderr as stream:
            for line in stream:
                last[0] = line.decode(errors="replace").strip() or last[0]

    thread = threading.Thread(target=read, name="demo-console-errors", daemon=True)
    thread.start()

    def last_line() -> str:
        thread.join(_CHILD_SECONDS)
        return last[0]

    return last_line


def _end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(_CHILD_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
