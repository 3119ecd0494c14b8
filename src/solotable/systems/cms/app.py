"""The CMS as a FastAPI app: routers, the web layer, and the delivery of audit events.

The defaults of `create_app` are safe: without `auth` only the public site answers, and CORS and forwarded
headers are off.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from fastapi import FastAPI

from solotable import AsyncDatabase, connect, connect_async
from solotable.jobs.deliver import deliver
from solotable.systems.file_types import MB
from solotable.systems.http.error_format import ErrorFormat
from solotable.systems.http.sealing import Seal
from solotable.systems.limiter import AsyncLimiter, Limit
from solotable.systems.limiter.http.dependency import limit_problems
from solotable.systems.openapi_examples import add_examples
from solotable.systems.storage import FolderStorage, Storage
from solotable.urls import Url
from solotable.web import Auth, Principal, ResolveRoles, install, lifespan
from solotable.web.lifespan import Lifespan
from solotable.web.periodic import run_every

from .formats.timestamps import Now, now_ms
from .routes import ROUTERS
from .routes.access import PROBLEMS
from .routes.dependencies import ActiveTenants
from .routes.editing.graph import GraphCache
from .routes.examples import EXAMPLES, add_settings_examples
from .routes.problem_pages import ProblemPages, is_program
from .routes.rate_limits import NAMESPACE, VISITOR_LIMITS
from .routes.site.pages import serve_pages
from .routes.site.post_lists import PostLists
from .routes.site.site_info import SiteInfoCache
from .routes.site.sitemaps import Sitemaps
from .services import Tenants, UnknownUsers, audit_sink, current_roles, publish_due
from .table import cms
from .theme.render import Theme

#: The largest file and some space for headers.
MAX_BODY_BYTES = 51 * MB

log = logging.getLogger("solotable.cms")

Job = Callable[[], AbstractAsyncContextManager[None]]


async def tenant_of_host(db: AsyncDatabase, host: str) -> str | None:
    """Return the tenant of a host name."""
    found = await Tenants(db).of_host(host)
    return None if found is None else found.id


def roles_resolver(pepper: bytes, unknown_users: UnknownUsers) -> ResolveRoles:
    """Return a resolver that looks up a token's roles among the users of a tenant."""

    async def resolve(db: AsyncDatabase, principal: Principal, tenant: str) -> frozenset[str] | None:
        config = next(iter(await Tenants(db).summaries([tenant])), None)
        return await current_roles(
            db.tenant(tenant),
            principal.id,
            principal.email,
            principal.roles,
            issuer=principal.issuer or "",
            pepper=pepper,
            unknown_users=unknown_users,
            # A token must not write to a tenant that does not exist or was erased.
            binds=config is not None and config.status == "active",
        )

    return resolve


def create_app(  # noqa: PLR0913 - the options of an installation, each a keyword with a safe default
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
    publish_seconds: float | None = None,
    host_ttl_seconds: float = 300.0,
    now: Now = now_ms,
    trusted_hosts: Iterable[str] = (),
    cors_origins: Iterable[str] = (),
    hsts_seconds: int = 0,
) -> FastAPI:
    """Return the CMS on a URL, or on an open database.

    `storage` keeps the bytes of files: a folder or a Storage; by default a folder that ends with the app.
    `deliver_seconds` delivers audit events in this process at this interval; without it run
    `solotable deliver` as a separate process. `pepper` is a secret that is mixed into digests of addresses.
    `unknown_users="reject"` rejects tokens of users that the tenant does not have; otherwise their claims
    count. `visitor_limits` are the rate limits of visitors' forms; `limiter_url` stores them, by default
    in this process only, None for no limits. `publish_seconds` sets scheduled pages whose time has come to
    published at this interval; visitors see them without it. `now` is the clock of schedules and previews.
    """
    jobs = _jobs(source, deliver_seconds, publish_seconds, now)
    during = _during(jobs, storage, limiter_url, visitor_limits)
    app = FastAPI(
        title="CMS",
        version="1",
        summary="Pages, versions, routes and visitors of many tenants on one table.",
        lifespan=lifespan(source, cms, cursor_secrets=cursor_secrets, during=during),
    )
    app.state.active_tenants = ActiveTenants()
    app.state.site_infos = SiteInfoCache()
    app.state.sitemaps = Sitemaps(now=now)
    app.state.graphs = GraphCache(now=now)
    app.state.post_lists = PostLists(now=now)
    app.state.theme = Theme()
    app.state.preview_seal = Seal(cursor_secrets, purpose=b"cms preview")
    app.state.contact_seal = Seal(cursor_secrets, purpose=b"cms contact")
    app.state.now = now
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
        max_body_bytes=MAX_BODY_BYTES,
        problems=PROBLEMS,
        resolve_roles=roles_resolver(pepper, unknown_users),
    )
    limit_problems(app)
    app.add_middleware(
        ErrorFormat, encode=None, render=ProblemPages(app.state.theme).render, is_program=is_program
    )
    add_examples(app, EXAMPLES, add_settings_examples)
    return app


def _opens_again(source: str | AsyncDatabase) -> bool:
    """Return whether a second connection to a source reads the same data."""
    if not isinstance(source, str):
        return False
    url = Url.parse(source)
    return url.scheme != "sqlite" or url.path is not None


def _jobs(
    source: str | AsyncDatabase, deliver_seconds: float | None, publish_seconds: float | None, now: Now
) -> list[Job]:
    """Return the jobs of this process; each opens a second connection."""
    wanted = {"deliver_seconds": (deliver_seconds, _deliver), "publish_seconds": (publish_seconds, _publish)}
    jobs: list[Job] = []
    for name, (seconds, work) in wanted.items():
        if seconds is None:
            continue
        if not _opens_again(source):
            raise TypeError(f"{name} needs the URL of a file or a server: the job opens a second connection.")
        jobs.append(partial(run_every, seconds, partial(work, str(source), now)))
    return jobs


def _during(
    jobs: Sequence[Job],
    storage: Storage | str | Path | None,
    limiter_url: str | None,
    limits: Sequence[Limit],
) -> Lifespan:
    """Return the lifespan of the storage, the limiter and the jobs."""

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
            for job in jobs:
                await stack.enter_async_context(job())
            yield

    return span


def _deliver(url: str, now: Now) -> None:
    try:
        with connect(url, cms) as db:
            deliver(db, [audit_sink()])
    except Exception:
        # Requests do not wait for the delivery; the next one delivers what is left.
        log.exception("audit events were not delivered")


def _publish(url: str, now: Now) -> None:
    async def publish() -> None:
        async with connect_async(url, cms) as db:
            await publish_due(db, now=now)

    try:
        asyncio.run(publish())
    except Exception:
        log.exception("scheduled pages were not set to published")
