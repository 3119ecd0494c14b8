"""The community as a FastAPI app: the API, the pages, and built sites at their subdomains.

The defaults of `create_app` are safe: without a provider no user can log in, without API keys no
operator has access, CORS and forwarded headers are off. Builds need a worker: `solotable community worker`.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from fastapi import FastAPI

from solotable.pages.assets import Assets
from solotable.systems.browser.render import Branding, Renderer
from solotable.systems.http.cursors import CursorSeal
from solotable.systems.http.error_format import ErrorFormat
from solotable.systems.http.rate_limits import LimitHeaders
from solotable.systems.http.sealing import Seal
from solotable.systems.limiter import AsyncLimiter
from solotable.systems.limiter.http.dependency import limit_problems
from solotable.systems.openapi_examples import add_examples
from solotable.systems.storage import FolderStorage, Storage
from solotable.web import ApiKey, Auth, install, lifespan
from solotable.web.lifespan import Lifespan

from .builds.serve import SitesByHost, SiteServer
from .identity.email_proofs import EmailProofs
from .identity.sessions import Sessions, token_settings
from .pages.error_pages import error_pages
from .pages.routing import PACKAGE, add_pages
from .recovery import Recovery
from .routes import ROUTERS
from .routes.requests.envelope import document_envelopes, error_bytes, is_program
from .routes.requests.problems import PROBLEMS
from .routes.requests.rate_limits import LIMITS, NAMESPACE
from .routes.schemas.examples import EXAMPLES
from .settings import CommunitySettings
from .table import community


def create_app(
    source: str, *, operators: Iterable[ApiKey] = (), settings: CommunitySettings | None = None
) -> FastAPI:
    """Return the community on the URL of a file or a server; `operators` have the role `operator`."""
    given = settings or CommunitySettings()
    keys = list(given.secrets) or [secrets.token_urlsafe(48)]
    sealing = [key.encode() for key in keys]
    app = FastAPI(
        title="Community",
        version="1",
        summary="Neighbourhoods, their members, and the sites that members build.",
        lifespan=lifespan(
            source,
            community,
            cursor_secrets=sealing,
            clock=lambda: given.now().timestamp(),
            during=_during(source, given, keys),
        ),
    )
    app.state.settings = given
    app.state.cursor_seal = CursorSeal(sealing, purpose=b"community cursor")
    app.state.login_seal = Seal(sealing, purpose=b"community login")
    app.state.email_proofs = EmailProofs(keys, now=given.now)
    assets = Assets("solotable.systems.browser", PACKAGE)
    branding = Branding(name=given.name, stylesheet="community.css")
    app.state.renderer = Renderer(PACKAGE, branding, assets)
    for router in ROUTERS:
        app.include_router(router)
    add_pages(app, assets)
    # Inside of the middleware of `install`, which makes the state of a request.
    app.add_middleware(LimitHeaders)
    install(
        app,
        auth=Auth(api_keys=operators, jwt=token_settings(keys, given.now)),
        trusted_hosts=given.trusted_hosts,
        cors_origins=given.cors_origins,
        hsts_seconds=given.hsts_seconds,
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
    app.add_middleware(SitesByHost)
    return app


def _during(source: str, settings: CommunitySettings, keys: list[str]) -> Lifespan:
    """Return the lifespan of the sessions, the storage, the limiter and the recovery."""

    @asynccontextmanager
    async def span(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            db = app.state.database
            app.state.sessions = Sessions(db, keys[0], now=settings.now)
            app.state.storage = _storage(settings, stack)
            app.state.sites = None
            if settings.sites_domain is not None:
                app.state.sites = SiteServer(db, app.state.storage, domain=settings.sites_domain)
            app.state.limiter = None
            if settings.limiter_url is not None:
                limits = LIMITS if settings.limits is None else settings.limits
                app.state.limiter = AsyncLimiter.open(settings.limiter_url, NAMESPACE, limits=limits)
                stack.push_async_callback(app.state.limiter.close)
            app.state.recovery = Recovery(source, export_url=settings.export_url, now=settings.now)
            stack.callback(app.state.recovery.close)
            yield

    return span


def _storage(settings: CommunitySettings, stack: AsyncExitStack) -> Storage:
    given = settings.storage
    if given is None:
        given = stack.enter_context(tempfile.TemporaryDirectory(prefix="solotable-community-"))
    return FolderStorage(given) if isinstance(given, (str, Path)) else given
