"""The CMS as an app: routers, the web layer around them, and the delivery of the audit trail beside them.

`create_app` decides nothing that a caller could forget: without `auth` only the public site answers, and
CORS and forwarded headers are off.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI

from solotable import AsyncDatabase, connect
from solotable.errors import SolotableError
from solotable.jobs.deliver import deliver
from solotable.web import Auth, install, lifespan

from .mime import MB
from .routes import ROUTERS
from .routes.access import FORBIDDEN
from .routes.examples import exemplified
from .routes.scope import OpenTenants
from .services import Tenants, audit_sink
from .storage import FolderStorage, Storage
from .table import cms

#: The largest file, and some room.
MOST_BYTES = 51 * MB

log = logging.getLogger("solotable.cms")


async def tenant_of_host(db: AsyncDatabase, host: str) -> str | None:
    """Return the tenant that is served under a host name."""
    found = await Tenants(db).of_host(host)
    return None if found is None else found.id


def create_app(  # noqa: PLR0913 - what an installation decides, each by name and with a safe default
    source: str | AsyncDatabase,
    *,
    auth: Auth | None = None,
    storage: Storage | str | Path | None = None,
    cursor_secrets: Sequence[bytes] = (),
    pepper: bytes = b"",
    deliver_seconds: float | None = None,
    host_ttl_seconds: float = 300.0,
    trusted_hosts: Iterable[str] = (),
    cors_origins: Iterable[str] = (),
    hsts_seconds: int = 0,
) -> FastAPI:
    """Return the CMS over a URL, or over a database that is open.

    `storage` is where bytes go, by default a folder that ends with the machine's temporary files.
    `deliver_seconds` delivers the audit trail in this process that often; without it
    `solotable deliver` does, in one of its own. `pepper` is mixed into the digests of addresses.
    """
    if deliver_seconds is not None and not isinstance(source, str):
        raise TypeError("deliver_seconds needs a URL: delivery opens a connection of its own.")
    during = None if deliver_seconds is None else delivery(str(source), deliver_seconds)
    app = FastAPI(
        title="CMS",
        version="1",
        summary="Pages, versions, routes and visitors of many tenants on one table.",
        lifespan=lifespan(source, cms, cursor_secrets=cursor_secrets, during=during),
    )
    app.state.open_tenants = OpenTenants()
    app.state.pepper = pepper
    app.state.storage = _storage(storage)
    for router in ROUTERS:
        app.include_router(router)
    install(
        app,
        auth=auth,
        resolve_host=tenant_of_host,
        host_ttl_seconds=host_ttl_seconds,
        trusted_hosts=trusted_hosts,
        cors_origins=cors_origins,
        hsts_seconds=hsts_seconds,
        max_body_bytes=MOST_BYTES,
        problems=FORBIDDEN,
    )
    exemplified(app)
    return app


def _storage(given: Storage | str | Path | None) -> Storage:
    if given is None:
        return FolderStorage(Path(tempfile.gettempdir()) / "solotable-cms")
    return FolderStorage(given) if isinstance(given, (str, Path)) else given


class delivery:  # noqa: N801 - it is called like the function that it stands for
    """A lifespan in which the audit trail is delivered every so often, in a thread of its own."""

    def __init__(self, url: str, seconds: float) -> None:
        self._url = url
        self._seconds = seconds

    @asynccontextmanager
    async def __call__(self, app: FastAPI) -> AsyncIterator[None]:
        """Deliver while the app runs, and once more when it ends."""
        stopping = asyncio.Event()
        task = asyncio.create_task(self._follow(stopping))
        try:
            yield
        finally:
            stopping.set()
            await task

    async def _follow(self, stopping: asyncio.Event) -> None:
        while True:
            last = stopping.is_set()
            await asyncio.to_thread(self._deliver)
            if last:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), self._seconds)

    def _deliver(self) -> None:
        try:
            with connect(self._url, cms) as db:
                deliver(db, [audit_sink()])
        except SolotableError:
            # No request waits for the trail, and none fails on it; what is left is delivered next time.
            log.exception("the audit trail was not delivered")
