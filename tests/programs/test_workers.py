"""Worker processes of real web servers write to one file: none loses what it has answered."""

from __future__ import annotations

import http.client
import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from solotable.engines import sqlite
from solotable.engines.sqlite.maintenance.checkup import examine
from tests.serving import environment

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork()")

_SERVERS = {
    "gunicorn --preload": ["gunicorn", "--preload", "--workers=3", "--bind=127.0.0.1:0", "workers:wsgi"],
    "gunicorn": ["gunicorn", "--workers=3", "--bind=127.0.0.1:0", "workers:wsgi"],
    "uvicorn": ["uvicorn", "--workers=2", "--port=0", "--lifespan=off", "workers:asgi"],
}


_WRITES = 240
_READY = re.compile(r"(?:Listening at:|running on) http://127\.0\.0\.1:([0-9]+)")


@contextmanager
def running(arguments: list[str], database: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run a server's own command on a free port, until the block ends."""
    module, *rest = arguments
    with subprocess.Popen(  # noqa: S603 - the servers above
        [sys.executable, "-m", module, *rest],
        cwd=Path(__file__).parent,
        env=environment(WORKERS_DATABASE=str(database)),
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        printed = ""
        while (
            found := re.search(r"(?:Listening at:|running on) http://127\.0\.0\.1:([0-9]+)", printed)
        ) is None:
            line = server.stderr.readline()
            assert line, printed
            printed += line
        try:
            yield server, int(found[1])
            server.send_signal(signal.SIGTERM)
        except BaseException:
            server.kill()
            raise
        server.stderr.read()


def post(port: int, key: str) -> int | None:
    """Write an item; return the worker that acknowledged it, or None if it died."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        connection.request("POST", f"/{key}")
        reply = connection.getresponse()
        body = reply.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return int(body) if reply.status == 200 else None


@pytest.mark.parametrize("server", _SERVERS)
def test_workers_lose_nothing(server: str, tmp_path: Path) -> None:
    database = tmp_path / "notes.db"
    acknowledged: dict[str, int] = {}
    with running(_SERVERS[server], database) as (process, port):
        for number in itertools.count():
            worker = post(port, f"note-{number}")
            if worker is None:
                continue
            acknowledged[f"note-{number}"] = worker
            if len(acknowledged) == _WRITES:
                break
            if len(acknowledged) % 60 == 30:
                # Its server starts another one, by a fork or not.
                os.kill(worker, signal.SIGKILL)
    assert len(set(acknowledged.values())) > 2
    assert process.pid not in acknowledged.values()
    with sqlite.open(database) as engine:
        items = engine.call("Scan", {"TableName": "Notes"})["Items"]
    assert acknowledged.keys() <= {item["note_id"]["S"] for item in items}
    assert examine(str(database)).problems == []
