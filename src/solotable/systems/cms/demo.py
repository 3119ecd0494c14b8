"""`python -m solotable.systems.cms.demo`: two tenants full of things, and the API on 127.0.0.1:8080.

The credentials are made anew at each start and printed. The data lies in a temporary folder that goes
with the process, unless `--folder` names another. `--seed-only` makes the data, says what there is and ends.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import secrets
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from solotable import Actor, AsyncDatabase, AsyncStore, connect, connect_async
from solotable.jobs.deliver import deliver
from solotable.web import ApiKey, Auth
from solotable.web.listening import PortInUse, listening

from .app import create_app
from .services import (
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
    Settings,
    SignalDraft,
    Signals,
    TenantDraft,
    Tenants,
    Trail,
    Users,
    Versions,
    audit_sink,
)
from .table import cms

TENANTS = {"acme": "Acme Tools", "globex": "Globex Travel"}
OPERATOR = Actor(id="operator", name="Olga", email="olga@cms.example")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """One key of the demo: whom it stands for, and the key itself."""

    name: str
    role: str
    tenant: str | None
    key: str

    def record(self) -> ApiKey:
        """Return it as the application knows it."""
        held = None if self.tenant is None else [self.tenant]
        email = f"{self.name}@{self.tenant or 'cms'}.example"
        return ApiKey.of(
            self.key, id=f"demo-{self.name}", roles=[self.role], tenants=held, name=self.name, email=email
        )


def credentials() -> list[Credential]:
    """Return new keys: one for each role, and an editor of the other tenant."""
    people = [
        ("olga", "GLOBAL_ADMIN", None),
        ("ada", "TENANT_ADMIN", "acme"),
        ("eve", "EDITOR", "acme"),
        ("gil", "EDITOR", "globex"),
        ("renderer", "RENDERER", None),
        ("cora", "CUSTOMER", "acme"),
    ]
    return [
        Credential(name=name, role=role, tenant=tenant, key=f"{name}-{secrets.token_urlsafe(18)}")
        for name, role, tenant in people
    ]


def auth_of(keys: Sequence[Credential]) -> Auth:
    """Return the authentication of an app that knows these keys."""
    return Auth(api_keys=[each.record() for each in keys])


async def seed(db: AsyncDatabase) -> None:
    """Make the tenants and all that is in them; nothing happens where they are already."""
    tenants = Tenants(db.acting(OPERATOR))
    for tenant, name in TENANTS.items():
        if (await tenants.of_host(f"{tenant}.localhost")) is not None:
            continue
        await tenants.create(TenantDraft(id=tenant, name=name, domain=f"{tenant}.localhost"))
        await Settings(db.acting(OPERATOR), tenant).merge(
            {"theme": "light", "mail": {"from": f"hello@{tenant}.example", "api_key": "k-not-for-editors"}}
        )
        eve = Actor(id="demo-eve", name="Eve", email=f"eve@{tenant}.example")
        await _fill(db.tenant(tenant).acting(eve), tenant, name)


async def _fill(store: AsyncStore, tenant: str, name: str) -> None:
    contents = Contents(store)
    about = await contents.create(
        ContentDraft(title="About", status="draft", blocks=[{"type": "text", "text": "To be written."}])
    )
    # Three versions and one redirect: /about leads to /about-us from now on.
    written = [{"type": "heading", "text": f"Who {name} are"}, {"type": "text", "text": "A small team."}]
    await contents.update(about.node_id, ContentPatch(blocks=written, status="review"))
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
    await contents.create(ContentDraft(title="Prices", status="review"))
    await _visit(store, news.node_id, tenant)
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
    """Make the audit trail of the events that wait, and return how many there were."""
    with connect(url, cms) as db:
        return deliver(db, [audit_sink()]).events


async def prepare(url: str) -> dict[str, int]:
    """Make the data at a URL, and return how many audit records each tenant has."""
    async with connect_async(url, cms) as db:
        await seed(db)
    await asyncio.to_thread(deliver_audit, url)
    async with connect_async(url, cms) as db:
        return {tenant: len(await Trail(db.tenant(tenant)).list(limit=100)) for tenant in TENANTS}


def greeting(keys: Sequence[Credential], *, port: int) -> str:
    """Return what is printed: where to look, who may do what, and five lines to try."""
    base = f"http://127.0.0.1:{port}"
    by_name = {each.name: each.key for each in keys}
    rows = [f"  {each.role:<13} {each.tenant or 'all tenants':<12} {each.key}" for each in keys]
    return "\n".join(
        [
            f"Sites: http://acme.localhost:{port}/about-us and http://globex.localhost:{port}/about-us",
            f"The API's documentation: {base}/docs (its scripts come from a CDN)",
            "",
            "Keys, sent as x-api-key (who reaches all tenants names one with x-tenant-id):",
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


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="solotable-cms-") as made:
        yield Path(made)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(prog="solotable.systems.cms.demo", description="A CMS to try.")
    parser.add_argument("--folder", type=Path, help="keep the data here (default: a temporary folder)")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--seed-only", action="store_true", help="make the data, say what there is, and end")
    given = parser.parse_args(argv)
    try:
        port = None if given.seed_only else listening(given.port)
    except PortInUse as refused:
        sys.stderr.write(f"{refused}\n")
        return 1
    with _folder(given.folder) as folder:
        url = f"sqlite:///{(folder / 'cms.db').absolute()}"
        records = asyncio.run(prepare(url))
        for tenant, count in records.items():
            sys.stdout.write(f"{tenant}: {count} audit records\n")
        keys = credentials()
        sys.stdout.write(f"{greeting(keys, port=given.port)}\n")
        sys.stdout.flush()
        if port is None:
            return 0
        import uvicorn

        sys.stdout.write("\nCtrl-C stops it.\n")
        sys.stdout.flush()
        app = create_app(url, auth=auth_of(keys), storage=folder / "files", deliver_seconds=1.0)
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[port])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
