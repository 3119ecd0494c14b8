"""The surveys as a FastAPI app.

The defaults of `create_app` are safe: without `auth` every route answers 401, and CORS and forwarded headers
are off.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from fastapi import FastAPI

from solotable import AsyncDatabase
from solotable.migrations.migration import Migration
from solotable.observe import Observer, PrometheusObserver, combine
from solotable.sync import Sync
from solotable.systems.file_types import MB
from solotable.systems.openapi_examples import add_examples
from solotable.systems.storage import FolderStorage, Storage
from solotable.web import Auth, install, lifespan
from solotable.web.lifespan import Lifespan
from solotable.web.replicache import replicache_router

from .report.links import ReportLinks
from .routes import ROUTERS
from .routes.access import PROBLEMS
from .routes.dependencies import KnownTenants
from .routes.examples import EXAMPLES
from .routes.sync import authenticate_member
from .services.migration import SurveyMigration
from .sync.mutators import survey_mutators
from .sync.rights import visible_spaces
from .table import surveyor

#: The largest photo and some space for headers.
MAX_BODY_BYTES = 26 * MB
#: Reports that are printed as PDF at once.
MAX_PRINTS = 2
#: The versions of the client's code that the mutators understand.
SCHEMA_VERSIONS = frozenset({"1"})


def create_app(  # noqa: PLR0913 - the settings of an app, each by name
    source: str | AsyncDatabase,
    *,
    auth: Auth | None = None,
    storage: Storage | str | Path | None = None,
    cursor_secrets: Sequence[bytes] = (),
    link_secrets: Sequence[bytes] = (),
    observer: Observer | None = None,
    trusted_hosts: Iterable[str] = (),
    cors_origins: Iterable[str] = (),
    hsts_seconds: int = 0,
    migration: Migration | None = None,
) -> FastAPI:
    """Return the surveys on a URL, or on an open database.

    `storage` keeps the bytes of files: a folder or a Storage; by default a folder that ends with the app.
    `link_secrets` sign the links to reports; without them, links end with the process. `observer` gets every
    request to the table, as `/metrics` does; an open database has its own observer, and `/metrics` is empty.
    `migration` is the move from the old tables, which `/admin/migrate` works on.
    """
    metrics = PrometheusObserver()
    app = FastAPI(
        title="Surveys",
        version="1",
        summary="Building surveys of many tenants on one table.",
        lifespan=lifespan(
            source,
            surveyor,
            cursor_secrets=cursor_secrets,
            observer=metrics if observer is None else combine(metrics, observer),
            during=_during(storage),
        ),
    )
    app.state.metrics = metrics
    app.state.report_links = ReportLinks(link_secrets)
    app.state.printing = asyncio.Semaphore(MAX_PRINTS)
    app.state.known_tenants = KnownTenants()
    app.state.migration = None if migration is None else SurveyMigration(migration)
    for router in ROUTERS:
        app.include_router(router)
    install(
        app,
        auth=auth,
        trusted_hosts=trusted_hosts,
        cors_origins=cors_origins,
        hsts_seconds=hsts_seconds,
        max_body_bytes=MAX_BODY_BYTES,
        problems=PROBLEMS,
    )
    add_examples(app, EXAMPLES)
    return app


@contextmanager
def _syncing(app: FastAPI) -> Iterator[None]:
    """Serve `/replicache` for as long as the database is open."""
    sync = Sync(
        app.state.database,
        mutators=survey_mutators,
        view=visible_spaces,
        schema_versions=SCHEMA_VERSIONS,
    )
    sync.attach(asyncio.get_running_loop())
    app.state.sync = sync
    before = list(app.router.routes)
    app.include_router(replicache_router(sync, auth=authenticate_member), include_in_schema=False)
    try:
        yield
    finally:
        app.router.routes[:] = before
        sync.close()
        del app.state.sync


def _during(storage: Storage | str | Path | None) -> Lifespan:
    """Return the lifespan of the storage."""

    @asynccontextmanager
    async def span(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            given = storage
            if given is None:
                given = stack.enter_context(tempfile.TemporaryDirectory(prefix="solotable-surveys-"))
            app.state.storage = FolderStorage(given) if isinstance(given, (str, Path)) else given
            stack.enter_context(_syncing(app))
            yield

    return span
