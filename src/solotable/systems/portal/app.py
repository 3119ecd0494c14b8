"""The portal as a FastAPI app: the API under /v1, the pages, and the background work.

The defaults of `create_app` are safe: without `auth` every route of the API answers 401, CORS and forwarded
headers are off, and pages need a session.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import FastAPI
from starlette.routing import Route

from solotable import AsyncDatabase
from solotable.pages.assets import Assets
from solotable.systems.browser.render import Branding, Renderer
from solotable.systems.file_types import MB
from solotable.systems.http.cursors import CursorSeal
from solotable.systems.http.error_format import ErrorFormat
from solotable.systems.limiter import AsyncLimiter, Limit
from solotable.systems.limiter.http.dependency import limit_problems
from solotable.systems.openapi_examples import add_examples
from solotable.systems.signed_folder import SignedFolderStorage
from solotable.systems.storage import Storage
from solotable.web import Auth, install, lifespan
from solotable.web.lifespan import Lifespan
from solotable.web.periodic import run_every

from .identity.directory import Directory, LocalDirectory
from .identity.users import users
from .pages.browser.error_pages import error_pages
from .pages.inbox import LiveSettings
from .pages.routing import add_pages
from .routes import ROUTERS
from .routes.examples import EXAMPLES
from .routes.files import receive_upload, send_download
from .routes.requests.access import PROBLEMS
from .routes.requests.envelope import STORAGE_PATH, document_envelopes, error_bytes, is_program
from .routes.requests.rate_limits import NAMESPACE, USER_LIMITS
from .search.fts5 import Fts5Index
from .search.port import SearchIndex
from .search.service import Search
from .services.files import MAX_FILE_BYTES
from .tables import TABLES
from .workers import Workers, WorkerSettings

#: The largest file and some space for the rest of a form.
MAX_BODY_BYTES = MAX_FILE_BYTES + MB
_PAGES = "solotable.systems.portal.pages"
#: `connect(url, *ALL_TABLES)` opens the portal with its local users.
ALL_TABLES = (*TABLES, users)


@dataclass(frozen=True, slots=True, kw_only=True)
class PortalSettings:
    """The options of an installation; each has a safe default."""

    #: Keeps the bytes of files: a folder or a Storage; by default a folder that ends with the app.
    storage: Storage | str | Path | None = None
    #: Signs the URLs of a folder. Several processes need the same.
    storage_secret: bytes = b""
    #: The full-text index; by default one in memory, which each process fills.
    search_index: SearchIndex | None = None
    #: Sign and seal cursors. Several processes need the same.
    cursor_secrets: Sequence[bytes] = ()
    #: Users and roles; by default the table `portal_users`.
    directory: Directory | None = None
    #: Stores the rate limits, by default in this process only; None for no limits.
    limiter_url: str | None = "sqlite://"
    limits: Sequence[Limit] = USER_LIMITS
    #: Background work in this process; None if other processes do it.
    workers: WorkerSettings | None = field(default_factory=WorkerSettings)
    live: LiveSettings = field(default_factory=LiveSettings)
    #: What the pages call the portal.
    name: str = "Lantern"
    trusted_hosts: Iterable[str] = ()
    cors_origins: Iterable[str] = ()
    hsts_seconds: int = 0


def create_app(source: str, *, auth: Auth | None = None, settings: PortalSettings | None = None) -> FastAPI:
    """Return the portal on the URL of a file or a server; workers open a second connection to it."""
    given = settings or PortalSettings()
    app = FastAPI(
        title="Portal",
        version="1",
        summary="Enablement content, subscriptions and messages on four tables.",
        lifespan=lifespan(
            source, *ALL_TABLES, cursor_secrets=given.cursor_secrets, during=_during(source, given)
        ),
    )
    app.state.cursor_seal = CursorSeal(given.cursor_secrets, purpose=b"portal cursor")
    assets = Assets("solotable.systems.browser", _PAGES)
    branding = Branding(name=given.name, stylesheet="portal.css")
    app.state.renderer = Renderer(_PAGES, branding, assets)
    app.state.live = given.live
    app.state.open_streams = 0
    for router in ROUTERS:
        app.include_router(router)
    for method, handler in (("PUT", receive_upload), ("GET", send_download)):
        path = f"{STORAGE_PATH}/{{key:path}}"
        app.router.routes.append(Route(path, handler, methods=[method], include_in_schema=False))
    add_pages(app, assets)
    install(
        app,
        auth=auth,
        trusted_hosts=given.trusted_hosts,
        cors_origins=given.cors_origins,
        hsts_seconds=given.hsts_seconds,
        max_body_bytes=MAX_BODY_BYTES,
        problems=PROBLEMS,
    )
    limit_problems(app)
    add_examples(app, EXAMPLES, document_envelopes)
    app.add_middleware(
        ErrorFormat,
        encode=error_bytes,
        render=error_pages(app.state.renderer).render,
        is_program=is_program,
    )
    return app


def _during(source: str, settings: PortalSettings) -> Lifespan:
    """Return the lifespan of the storage, the index, the limiter and the background work."""

    @asynccontextmanager
    async def span(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            db: AsyncDatabase = app.state.database
            app.state.stopping = asyncio.Event()
            app.state.storage = _storage(settings, stack)
            app.state.directory = settings.directory or LocalDirectory(db)
            index = settings.search_index
            if index is None:
                index = Fts5Index()
                stack.callback(index.close)
            app.state.search = Search(db, index)
            app.state.limiter = None
            if settings.limiter_url is not None:
                app.state.limiter = AsyncLimiter.open(settings.limiter_url, NAMESPACE, limits=settings.limits)
                stack.push_async_callback(app.state.limiter.close)
            workers = Workers(source, index, app.state.storage)
            stack.callback(workers.close)
            app.state.workers = workers
            if settings.workers is not None:
                for seconds, work in workers.schedule(settings.workers):
                    await stack.enter_async_context(run_every(seconds, work))
            try:
                yield
            finally:
                # Streams end before the database closes.
                app.state.stopping.set()

    return span


def _storage(settings: PortalSettings, stack: AsyncExitStack) -> Storage:
    given = settings.storage
    if given is None:
        given = stack.enter_context(tempfile.TemporaryDirectory(prefix="solotable-portal-"))
    if isinstance(given, (str, Path)):
        secret = settings.storage_secret or secrets.token_bytes(32)
        return SignedFolderStorage(given, secret=secret, base_url=STORAGE_PATH)
    return given
