"""What the processes of a server run: a worker, or the writer.

Each has a channel to the supervisor, a socket. The process reports there that it serves, or why it cannot.
A worker gets its connections there. The process stops when the supervisor's end is closed, so that it never
outlives the supervisor.

It starts with SIGINT and SIGTERM blocked: they reach the whole group of processes, and the supervisor stops
these in order. Only a worker unblocks SIGTERM, once it can stop in an orderly way.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from solotable.errors import SolotableError
from solotable.server.run import ServedEngine, Server, run_process, serve_until
from solotable.server.scheduling.time_slices import SwitchInterval
from solotable.server.settings import Settings

from .forwarder import WriterConnection
from .writer import WriterServer

#: What a process sends when it serves; anything else is the text of an error.
READY = b"\0"
#: How much longer than a worker the writer waits for requests in progress.
_MORE_SECONDS = 5.0


class OpenEngine(Protocol):
    """Opens the engine of a process; the supervisor pickles it."""

    def __call__(self, *, maintenance: bool) -> AbstractContextManager[ServedEngine]:
        """Open the file; only with `maintenance` does the engine resume backfills and other jobs."""


def run_worker(open_engine: OpenEngine, settings: Settings, writer: str, channel: socket.socket) -> None:
    """Answer clients until the supervisor closes the channel, or until SIGTERM."""
    # The writer sweeps.
    settings = replace(settings, sweep_seconds=0)

    async def main(engine: ServedEngine, ended: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        forwarder = WriterConnection(writer)
        await forwarder.connect()
        server = Server(engine, settings, interval=SwitchInterval(), forwarder=forwarder)

        def ready(_port: int) -> None:
            watch(channel, ended, server.adopt)
            # The connections that are in the channel come first; the supervisor can send no more.
            loop.add_signal_handler(signal.SIGTERM, channel.shutdown, socket.SHUT_RD)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            _report(channel, READY)

        try:
            await serve_until(ended, server, (), ready=ready)
        finally:
            forwarder.close()

    _run(settings, channel, main, lambda: open_engine(maintenance=False))


def run_writer(
    open_engine: OpenEngine, settings: Settings, listener: socket.socket, channel: socket.socket
) -> None:
    """Answer workers until the supervisor closes the channel and every worker is gone."""
    address = Path(listener.getsockname())
    # Workers verify signatures and log requests.
    settings = replace(settings, keys=None, log=None, grace_seconds=settings.grace_seconds + _MORE_SECONDS)

    async def main(engine: ServedEngine, ended: asyncio.Event) -> None:
        def ready(_port: int) -> None:
            watch(channel, ended, socket.socket.close)
            _report(channel, READY)

        await serve_until(ended, WriterServer(engine, settings, SwitchInterval()), [listener], ready=ready)
        # The supervisor removes it too, unless it was killed.
        remove_address(address)

    _run(settings, channel, main, lambda: open_engine(maintenance=True))


def remove_address(address: Path) -> None:
    """Remove the writer's socket and its folder."""
    with contextlib.suppress(OSError):
        address.unlink(missing_ok=True)
        address.parent.rmdir()


def _run(
    settings: Settings,
    channel: socket.socket,
    main: Callable[[ServedEngine, asyncio.Event], Coroutine[Any, Any, None]],
    open_engine: Callable[[], AbstractContextManager[ServedEngine]],
) -> None:
    async def serve(engine: ServedEngine) -> None:
        await main(engine, asyncio.Event())

    try:
        with open_engine() as engine:
            run_process(serve(engine), settings)
    except SolotableError as error:
        _report(channel, str(error).encode())
        sys.exit(1)


def _report(channel: socket.socket, message: bytes) -> None:
    # The supervisor may have closed the channel, or died.
    with contextlib.suppress(OSError):
        channel.send(message)


def watch(channel: socket.socket, ended: asyncio.Event, adopt: Callable[[socket.socket], None]) -> None:
    """Take the connections that the supervisor sends, until its end of the channel is closed."""
    loop = asyncio.get_running_loop()

    def receive() -> None:
        try:
            data, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
        except ConnectionError:
            # The supervisor died before it had read this process's report.
            data, descriptors = b"", []
        for each in descriptors:
            connection = socket.socket(fileno=each)
            connection.setblocking(False)
            adopt(connection)
        if not data:
            loop.remove_reader(channel)
            ended.set()

    loop.add_reader(channel, receive)
