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
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from fastapi import FastAPI

from solotable import AsyncDatabase, connect
from solotable.errors import SolotableError
from solotable.jobs.deliver import deliver
from solotable.web import Auth, install, lifespan
from solotable.web.lifespan import Lifespan

from .mime import MB
from .routes import ROUTERS
from .routes.access import FORBIDDEN
from .routes.examples import exemplified
from .routes.scope import OpenTenants
from .routes.site import serve_pages
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

    `storage` is where bytes go, a folder or a Storage; by default they end with the app.
    `deliver_seconds` delivers the audit trail in this process that often; without it
    `solotable deliver` does, in one of its own. `pepper` is mixed into the digests of addresses.
    """
    if deliver_seconds is not None and not isinstance(source, str):
        raise TypeError("deliver_seconds needs a URL: delivery opens a connection of its own.")
    during = _during(None if deliver_seconds is None else str(source), deliver_seconds or 0.0, storage)
    app = FastAPI(
        title="CMS",
        version="1",
        summary="Pages, versions, routes and visitors of many tenants on one table.",
        lifespan=lifespan(source, cms, cursor_secrets=cursor_secrets, during=during),
    )
    app.state.open_tenants = OpenTenants()
    app.state.pepper = pepper
    serve_pages(app)
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


def _during(url: str | None, seconds: float, storage: Storage | str | Path | None) -> Lifespan:
    """Return what is there while the app runs: where bytes go, and the delivery of the audit trail."""

    @asynccontextmanager
    async def span(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            given = storage
            if given is None:
                given = stack.enter_context(tempfile.TemporaryDirectory(prefix="solotable-cms-"))
            app.state.storage = FolderStorage(given) if isinstance(given, (str, Path)) else given
            if url is not None:
                await stack.enter_async_context(_delivering(url, seconds))
            yield

    return span


@asynccontextmanager
async def _delivering(url: str, seconds: float) -> AsyncIterator[None]:
    """Deliver every so often, and once more at the end."""
    stopping = asyncio.Event()

    async def follow() -> None:
        last = False
        while not last:
            last = stopping.is_set()
            await asyncio.to_thread(_deliver, url)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), seconds)

    task = asyncio.create_task(follow())
    try:
        yield
    finally:
        stopping.set()
        await task


def _deliver(url: str) -> None:
    try:
        with connect(url, cms) as db:
            deliver(db, [audit_sink()])
    except SolotableError:
        # No request waits for the trail, and none fails on it; what is left is delivered next time.
        log.exception("the audit trail was not delivered")
