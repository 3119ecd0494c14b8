"""The limiter as an app: routes, web layer, and the jobs for usage and the audit trail.

The defaults of `create_app` are safe: without `auth` only `/health` is available.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Unpack

from fastapi import FastAPI

from solotable import AsyncDatabase, connect
from solotable.errors import SolotableError
from solotable.jobs.deliver import deliver
from solotable.systems.limiter.admin.audit import audit_sink
from solotable.systems.limiter.operations import LimiterOptions
from solotable.systems.limiter.table import limiter
from solotable.systems.limiter.usage import aggregate
from solotable.web import Auth, install, lifespan
from solotable.web.lifespan import Lifespan
from solotable.web.periodic import run_every

from .bucket_feed import BucketFeed, StreamSettings
from .dependency import limit_problems
from .routes import ROUTERS
from .routes.access import PROBLEMS
from .routes.dependencies import NamespaceLimiters

if TYPE_CHECKING:
    import socket

    import uvicorn

MOST_BYTES = 100_000

log = logging.getLogger("solotable.limiter")


def create_app(  # noqa: PLR0913 - each option by name and with a safe default
    source: str | AsyncDatabase,
    *,
    auth: Auth | None = None,
    cursor_secrets: Sequence[bytes] = (),
    lease_seconds: float = 3600.0,
    jobs_seconds: float | None = None,
    stream: StreamSettings | None = None,
    trusted_hosts: Iterable[str] = (),
    cors_origins: Iterable[str] = (),
    **options: Unpack[LimiterOptions],
) -> FastAPI:
    """Return the limiter's app for a URL or an open database; other options are those of AsyncLimiter.

    `jobs_seconds` counts usage and delivers the audit trail in this process, that often; without it, run the
    jobs separately. A lease that is never ended expires after `lease_seconds`.
    """
    if jobs_seconds is not None and not isinstance(source, str):
        raise TypeError("jobs_seconds needs a URL: the jobs open their own connection.")
    during = _during(None if jobs_seconds is None else str(source), jobs_seconds or 0.0)
    app = FastAPI(
        title="Limiter",
        version="1",
        summary="Rate limits of many namespaces on one table.",
        lifespan=lifespan(source, limiter, cursor_secrets=cursor_secrets, during=during),
    )
    app.state.namespace_limiters = NamespaceLimiters(options)
    app.state.lease_seconds = lease_seconds
    app.state.stream = stream or StreamSettings()
    for router in ROUTERS:
        app.include_router(router)
    install(
        app,
        auth=auth,
        trusted_hosts=trusted_hosts,
        cors_origins=cors_origins,
        max_body_bytes=MOST_BYTES,
        problems=PROBLEMS,
    )
    limit_problems(app)
    return app


def server_of(app: FastAPI, *, port: int = 8081, host: str = "127.0.0.1") -> uvicorn.Server:
    """Return a server that ends event streams when it stops; uvicorn alone would wait for them."""
    import uvicorn

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.state.bucket_feed.close()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        timeout_graceful_shutdown=5,
        # uvicorn trusts X-Forwarded-For of every process on this machine by default.
        proxy_headers=False,
    )
    return Server(config)


def _during(url: str | None, seconds: float) -> Lifespan:
    """Return the context of the running app: the reader of changes, and the jobs."""

    @asynccontextmanager
    async def span(app: FastAPI) -> AsyncIterator[None]:
        app.state.bucket_feed = BucketFeed(app.state.database)
        try:
            if url is None:
                yield
            else:
                async with run_every(seconds, partial(do_jobs, url)):
                    yield
        finally:
            app.state.bucket_feed.close()

    return span


def do_jobs(url: str) -> None:
    """Count usage and deliver the audit trail."""
    try:
        with connect(url, limiter) as db:
            deliver(db, [audit_sink()])
            aggregate(db)
    except SolotableError:
        # No request depends on the jobs; the next run continues.
        log.exception("usage and the audit trail were not updated")
