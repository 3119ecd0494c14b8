"""An app with a store that is opened at import: before gunicorn forks, after uvicorn spawns.

WORKERS_DATABASE names the database; without it there is one in memory. `POST /KEY` writes an item and
answers with the process id.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from solotable import Entity, Key, Table

table = Table("Notes")


class Note(Entity, table=table):
    """What a request leaves behind."""

    key = Key("NOTE#{note_id}", "NOTE")
    note_id: str


store = table.open(f"sqlite:///{os.environ.get('WORKERS_DATABASE', '')}")
store.put(Note(note_id=f"import-{os.getpid()}"))


def write(path: str) -> bytes:
    store.put(Note(note_id=path.strip("/")))
    return str(os.getpid()).encode()


def wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer as a WSGI app, for gunicorn."""
    body = write(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


async def asgi(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer as an ASGI app, for uvicorn; its lifespan is left alone."""
    if scope["type"] != "http":
        return
    body = write(scope["path"])
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
