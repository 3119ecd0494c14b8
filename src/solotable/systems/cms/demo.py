"""`python -m solotable.systems.cms.demo`: two tenants with data, and the API on 127.0.0.1:8080.

It prints new credentials at each start. The data is in a temporary folder that is deleted at the end, unless
`--folder` names another. `--seed-only` writes the data, prints the summary and exits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from solotable import Actor, AsyncDatabase, AsyncStore, connect, connect_async
from solotable.jobs.deliver import deliver
from solotable.systems.demo_server import Credential, Demo, make_auth, make_credentials
from solotable.systems.storage import FolderStorage, Storage
from solotable.urls import Url

from .app import create_app
from .demo_content import about_blocks, draw_pictures, home_blocks, post_draft, site_settings
from .entities import Content
from .formats.timestamps import now_ms
from .services import (
    Assets,
    AuditTrail,
    Comments,
    Consents,
    ContentDraft,
    ContentPatch,
    Contents,
    ContextDraft,
    Contexts,
    Leads,
    ProductDraft,
    Products,
    Routes,
    Settings,
    SignalDraft,
    Signals,
    TenantDraft,
    Tenants,
    Users,
    Versions,
    audit_sink,
)
from .table import cms

if TYPE_CHECKING:
    import uvicorn

TENANTS = {"acme": "Acme Tools", "globex": "Globex Travel"}
FILES = "files"
OPERATOR = Actor(id="operator", name="Olga", email="olga@cms.example")


def credentials() -> list[Credential]:
    """Return new keys: one for each role, and an editor of the second tenant."""
    return make_credentials(
        [
            ("olga", "GLOBAL_ADMIN", None),
            ("ada", "TENANT_ADMIN", "acme"),
            ("eve", "EDITOR", "acme"),
            ("gil", "EDITOR", "globex"),
            ("renderer", "RENDERER", None),
            ("cora", "CUSTOMER", "acme"),
        ]
    )


async def seed(db: AsyncDatabase, storage: Storage | None = None) -> None:
    """Write the tenants and their data; existing tenants stay as they are. `storage` gets the pictures."""
    tenants = Tenants(db.acting(OPERATOR))
    for tenant, name in TENANTS.items():
        if (await tenants.of_host(f"{tenant}.localhost")) is not None:
            continue
        await tenants.create(TenantDraft(id=tenant, name=name, domain=f"{tenant}.localhost"))
        settings = Settings(db.acting(OPERATOR), tenant)
        await settings.merge(
            {"theme": "light", "mail": {"from": f"hello@{tenant}.example", "api_key": "k-not-for-editors"}}
        )
        await settings.merge(site_settings(tenant))
        await settings.declare(["/theme", "/mail/from"])
        eve = Actor(id="demo-eve", name="Eve", email=f"eve@{tenant}.example")
        await _fill(db.tenant(tenant).acting(eve), tenant, name, storage)


async def _pictures(store: AsyncStore, tenant: str, storage: Storage | None) -> dict[str, str]:
    """Store the pictures of a site, and return their ids by name."""
    if storage is None:
        return {}
    assets, found = Assets(store, storage), {}
    for name, data in draw_pictures(tenant).items():
        target = await assets.register(name=f"{name}.png", mime="image/png", size=len(data))
        found[name] = (await assets.upload(target.id, data)).asset_id
    return found


async def _fill(store: AsyncStore, tenant: str, name: str, storage: Storage | None) -> None:
    contents, pictures = Contents(store), await _pictures(store, tenant, storage)
    home = await Routes(store).resolve("/")
    assert isinstance(home, Content)
    await contents.update(home.node_id, ContentPatch(title=name, blocks=home_blocks(tenant, pictures)))
    contact = await Routes(store).resolve("/contact")
    assert isinstance(contact, Content)
    written_to = ContentPatch(
        title="Write to us", description="Two people read these messages. We answer within two working days."
    )
    await contents.update(contact.node_id, written_to)
    about = await contents.create(
        ContentDraft(title="About", status="draft", blocks=[{"type": "text", "text": "To be written."}])
    )
    # Three versions and one redirect, from /about to /about-us.
    await contents.update(about.node_id, ContentPatch(blocks=about_blocks(name), status="review"))
    await contents.update(about.node_id, ContentPatch(title="About us", slug="/about-us", status="published"))
    news = await contents.create(
        ContentDraft(
            title="We are <live>",
            slug="/blog/we-are-live",
            kind="post",
            status="published",
            blocks=[{"type": "text", "text": "<script>alert('inert')</script>"}],
        )
    )
    await contents.update(news.node_id, ContentPatch(title="We were hacked"))
    await Versions(store).restore(news.node_id, 1)
    post = post_draft(tenant, pictures)
    article = await contents.create(
        ContentDraft.model_validate({**post, "kind": "post", "status": "published"})
    )
    later = now_ms() + timedelta(days=2)
    await contents.create(
        ContentDraft(
            title="Opening party", slug="/blog/party", kind="post", status="scheduled", publish_at=later
        )
    )
    await contents.create(ContentDraft(title="Prices", status="review"))
    await _visit(store, article.node_id, tenant)
    products = Products(store)
    await products.create(ProductDraft.model_validate({"title": "Mug", "price": "12.50", "status": "active"}))
    await products.create(ProductDraft(title="Poster"))
    await Contexts(store).create(ContextDraft(title="Voice", kind="brand", text="Short sentences."))
    await Signals(store).create(SignalDraft(title="Many ask about delivery", source="support"))
    users = Users(store, manager_id=OPERATOR.id, roles=["GLOBAL_ADMIN"])
    await users.create(email=f"ada@{tenant}.example", name="Ada", role="TENANT_ADMIN")
    await users.create(email=f"eve@{tenant}.example", name="Eve")


async def _visit(store: AsyncStore, page_id: str, tenant: str) -> None:
    comments = Comments(store)
    first = await comments.post(
        page_id, author_name="Ben", author_email=f"ben@{tenant}.example", body="Congratulations!"
    )
    await comments.moderate(page_id, first.at, first.comment_id, "approved")
    await comments.post(page_id, author_name="Mallory", body="<img src=x onerror=alert(1)>")
    await Leads(store).capture(f"cora@{tenant}.example", name="Cora", source="newsletter")
    await Consents(store).record("visitor-1", choices={"analytics": False}, policy_version="2026-01")


def deliver_audit(url: str) -> int:
    """Deliver the audit events that wait, and return how many there were."""
    with connect(url, cms) as db:
        return deliver(db, [audit_sink()]).events


async def prepare(url: str) -> dict[str, int]:
    """Write the data at a URL, and the files beside it; return the number of audit events of each tenant."""
    path = Url.parse(url).path
    storage = None if path is None else FolderStorage(Path(path).parent / FILES)
    async with connect_async(url, cms) as db:
        await seed(db, storage)
    await asyncio.to_thread(deliver_audit, url)
    async with connect_async(url, cms) as db:
        return {tenant: len(await AuditTrail(db.tenant(tenant)).list(limit=100)) for tenant in TENANTS}


def greeting(keys: Sequence[Credential], port: int) -> str:
    """Return the text that the demo prints: URLs, keys, and commands to try."""
    base = f"http://127.0.0.1:{port}"
    by_name = {each.name: each.key for each in keys}
    rows = [f"  {each.role:<13} {each.tenant or 'all tenants':<12} {each.key}" for each in keys]
    return "\n".join(
        [
            f"Sites: http://acme.localhost:{port}/ and http://globex.localhost:{port}/",
            f"API documentation: {base}/docs",
            "",
            "Send a key as x-api-key. With a key for all tenants, select one with x-tenant-id.",
            *rows,
            "",
            "Try:",
            f"  curl -s -H 'Host: acme.localhost' {base}/about-us",
            f"  curl -si -H 'Host: acme.localhost' {base}/about    # 301: the page was renamed",
            f"  curl -s -H 'x-api-key: {by_name['eve']}' '{base}/content?limit=3'",
            f"  curl -s -H 'x-api-key: {by_name['eve']}' -H 'x-tenant-id: globex' {base}/content    # 403",
            f"  curl -s -H 'x-api-key: {by_name['ada']}' '{base}/audit?limit=3'",
        ]
    )


def _prepare(url: str) -> str:
    records = asyncio.run(prepare(url))
    return "".join(f"{tenant}: {count} audit events\n" for tenant, count in records.items())


def server(
    url: str, folder: Path, keys: Sequence[Credential], trusted_proxies: Sequence[str] = ()
) -> uvicorn.Server:
    """Return the demo's server; it trusts forwarded headers from the given proxies only."""
    import uvicorn

    app = create_app(
        url,
        auth=make_auth(keys),
        storage=folder / FILES,
        deliver_seconds=1.0,
        publish_seconds=10.0,
        trusted_hosts=trusted_proxies,
    )
    # By default uvicorn trusts X-Forwarded-For from every process of this machine.
    return uvicorn.Server(uvicorn.Config(app, log_level="warning", proxy_headers=False))


def make_demo(port: int = 8080) -> Demo:
    """Return the demo on a port."""
    return Demo(
        name="cms",
        summary="A CMS to try.",
        port=port,
        prepare=_prepare,
        credentials=credentials,
        greeting=greeting,
        server=server,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo."""
    return make_demo().run(argv)


if __name__ == "__main__":
    raise SystemExit(main())
