"""A server with several processes: which process answers, which exist, and how each is killed."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from tests.serving import Served
from tests.unit.server.running import Client, Reply, request
from tests.waiting import wait_until


def worker_of(reply: Reply) -> str:
    """Return what all replies of one process have in common: the first part of their request ids."""
    return reply.headers["x-amzn-requestid"][:40]


def children(pid: int) -> list[int]:
    """Return the writer and the workers of a supervisor, in the order in which they were started."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [int(each) for each in listed if b"spawn_main" in _command(int(each))]


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    return _command(pid) != b""


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def listening_path(pid: int) -> Path | None:
    """Return the path of the Unix socket on which a process listens; None if it has none."""
    inodes = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        # Descriptors come and go.
        with contextlib.suppress(OSError):
            inodes.add(str(each.readlink()))
    for line in Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()[1:]:
        # Number, references, protocol, flags (00010000: it listens), type, state, inode, path.
        fields = line.split()
        if fields[3] == "00010000" and len(fields) == 8 and f"socket:[{fields[6]}]" in inodes:
            return Path(fields[7])
    return None


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    os.kill(pid, number)
    wait_until(lambda: not is_alive(pid))


def connect_to_each(running: Served, count: int) -> dict[str, Client]:
    """Return a connection to each of so many workers, by worker."""
    found: dict[str, Client] = {}

    def connect() -> bool:
        client = Client(running.port)
        # A connection that a worker had accepted when it was killed is reset.
        try:
            worker = worker_of(client.ask(request(method="GET", url="/health", body=b"")))
        except ConnectionError:
            client.close()
            return False
        if worker in found:
            client.close()
        else:
            found[worker] = client
        return len(found) == count

    wait_until(connect, seen=lambda: list(found))
    return found
