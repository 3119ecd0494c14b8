"""The CMS as an app: routers, the web layer around them, and the delivery of the audit trail beside them.

`create_app` decides nothing that a caller could forget: without `auth` only the public site answers, and
CORS and forwarded headers are off.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from fastapi import FastAPI

from solotable import AsyncDatabase, connect
from solotable.jobs.deliver import deliver
from solotable.systems.limiter import AsyncLimiter, Limit
from solotable.systems.limiter.http.dependency import limit_problems
from solotable.urls import Url
from solotable.web import Auth, Principal, Standing, install, lifespan
from solotable.web.lifespan import Lifespan
from solotable.web.periodic import every

from .formats.mime import MB
from .routes import ROUTERS
from .routes.access import FORBIDDEN
from .routes.dependencies import OpenTenants
from .routes.editing.graph import GraphCache
from .routes.examples import exemplified
from .routes.rate_limits import NAMESPACE, VISITOR_LIMITS
from .routes.site.pages import serve_pages
from .routes.site.sitemaps import Sitemaps
from .services import Tenants, UnknownUsers, audit_sink, standing
from .storage import FolderStorage, Storage
from .table import cms

#: The largest file, and some room.
MOST_BYTES = 51 * MB

log = logging.getLogger("solotable.cms")


async def tenant_of_host(db: AsyncDatabase, host: str) -> str | None:
    """Return the tenant that is served under a host name."""
    found = await Tenants(db).of_host(host)
    return None if found is None else found.id


def standing_with(pepper: bytes, unknown_users: UnknownUsers) -> Standing:
    """Return how the roles of a token are looked up among the users of a tenant."""

    async def found(db: AsyncDatabase, principal: Principal, tenant: str) -> frozenset[str] | None:
        there = next(iter(await Tenants(db).summaries([tenant])), None)
        return await standing(
            db.tenant(tenant),
            principal.id,
            principal.email,
            principal.roles,
            issuer=principal.issuer or "",
            pepper=pepper,
            unknown_users=unknown_users,
            # A token must not begin a tenant that is not there, or one that was erased.
            binds=there is not None and there.status == "active",
        )

    return found


def create_app(  # noqa: PLR0913 - what an installation decides, each by name and with a safe default
    source: str | AsyncDatabase,
    *,
    auth: Auth | None = None,
    storage: Storage | str | Path | None = None,
    cursor_secrets: Sequence[bytes] = (),
    pepper: bytes = b"",
    unknown_users: UnknownUsers = "claims",
    deliver_seconds: float | None = None,
    limiter_url: str | None = "sqlite://",
    visitor_limits: Sequence[Limit] = VISITOR_LIMITS,
    host_ttl_seconds: float = 300.0,
    trusted_hosts: Iterable[str] = (),
    cors_origins: Iterable[str] = (),
    hsts_seconds: int = 0,
) -> FastAPI:
    """Return the CMS over a URL, or over a database that is open.

    `storage` is where bytes go, a folder or a Storage; by default they end with the app.
    `deliver_seconds` delivers the audit trail in this process that often; without it
    `solotable deliver` does, in one of its own. `pepper` is mixed into the digests of addresses.
    `unknown_users="refuse"` lets in no token whose user is not on record; without it they have the roles
    that they claim. `visitor_limits` hold for the forms of visitors, and are counted at `limiter_url`: by
    default in this process alone, None for no limits.
    """
    if deliver_seconds is not None and not _opens_again(source):
        raise TypeError(
            "deliver_seconds needs a URL that is not in memory: delivery opens a connection of its own."
        )
    delivery = None
    if deliver_seconds is not None:
        delivery = partial(every, deliver_seconds, partial(_deliver, str(source)))
    during = _during(delivery, storage, limiter_url, visitor_limits)
    app = FastAPI(
        title="CMS",
        version="1",
        summary="Pages, versions, routes and visitors of many tenants on one table.",
        lifespan=lifespan(source, cms, cursor_secrets=cursor_secrets, during=during),
    )
    app.state.open_tenants = OpenTenants()
    app.state.sitemaps = Sitemaps()
    app.state.graphs = GraphCache()
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
        standing=standing_with(pepper, unknown_users),
    )
    limit_problems(app)
    exemplified(app)
    return app


def _opens_again(source: str | AsyncDatabase) -> bool:
    """Say whether a second connection to a source meets the same data."""
    if not isinstance(source, str):
        return False
    url = Url.parse(source)
    return url.scheme != "sqlite" or url.path is not None


def _during(
    delivery: Callable[[], AbstractAsyncContextManager[None]] | None,
    storage: Storage | str | Path | None,
    limiter_url: str | None,
    limits: Sequence[Limit],
) -> Lifespan:
    """Return what is there while the app runs: where bytes go, who sends too much, the audit trail."""

    @asynccontextmanager
    async def span(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            given = storage
            if given is None:
                given = stack.enter_context(tempfile.TemporaryDirectory(prefix="solotable-cms-"))
            app.state.storage = FolderStorage(given) if isinstance(given, (str, Path)) else given
            app.state.limiter = None
            if limiter_url is not None:
                app.state.limiter = AsyncLimiter.open(limiter_url, NAMESPACE, limits=limits)
                stack.push_async_callback(app.state.limiter.close)
            if delivery is not None:
                await stack.enter_async_context(delivery())
            yield

    return span


def _deliver(url: str) -> None:
    try:
        with connect(url, cms) as db:
            deliver(db, [audit_sink()])
    except Exception:
        # No request waits for the trail, and none fails on it; what is left is delivered next time.
        log.exception("the audit trail was not delivered")
