"""`python -m solotable.systems.limiter.demo`: two users, and the API on 127.0.0.1:8081.

Each start creates new credentials and prints them. The data is in a temporary folder that is deleted with the
process, unless `--folder` names another. `--seed-only` creates the data, describes it and ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI

from solotable import Actor, AsyncDatabase, connect_async
from solotable.errors import AlreadyExists
from solotable.flow import arun, scope_of
from solotable.systems.demo_server import Credential, Demo, make_auth, make_credentials

from .admin.limits import Limit
from .admin.namespaces import register
from .http.app import create_app, do_jobs, server_of
from .http.bucket_feed import StreamSettings
from .http.chat import router
from .rate_limiter import AsyncLimiter
from .table import limiter

if TYPE_CHECKING:
    import uvicorn

NAMESPACES = ("acme", "globex")
MODEL = "echo-1"
OPERATOR = Actor(id="operator", name="Olga", email="olga@limiter.example")


def credentials() -> list[Credential]:
    """Return new keys: one per role, and one for an application of the other namespace."""
    return make_credentials(
        [
            ("olga", "GLOBAL_OPERATOR", None),
            ("oscar", "OPERATOR", "acme"),
            ("gateway", "APP", "acme"),
            ("globex-gateway", "APP", "globex"),
        ]
    )


async def seed(db: AsyncDatabase) -> None:
    """Create the namespaces and their content; those that exist stay as they are."""
    acting = db.acting(OPERATOR)
    for name in NAMESPACES:
        try:
            created = await arun(register(scope_of(acting), name), db)
        except AlreadyExists:
            continue
        await _fill(AsyncLimiter(db, created.id).acting(OPERATOR))


async def _fill(limits: AsyncLimiter) -> None:
    """Create an organisation with two users, limits at each level, and some usage."""
    await limits.create_entity("org-1", name="The organisation")
    await limits.create_entity("user-1", name="Ann", parent="org-1", cascade=True)
    await limits.create_entity("user-2", name="Ben", parent="org-1", cascade=True)
    await limits.set_limits(
        [Limit.per_minute("rpm", 60), Limit.per_minute("tpm", 10_000)], on_unavailable="block"
    )
    await limits.set_limits([Limit.per_minute("rpm", 30), Limit.per_minute("tpm", 3_000)], resource=MODEL)
    await limits.set_limits([Limit.per_minute("rpm", 40), Limit.per_minute("tpm", 4_000)], entity="org-1")
    await limits.set_limits(
        [Limit.per_minute("rpm", 5), Limit.per_minute("tpm", 500, burst=1_000)],
        entity="user-2",
        resource=MODEL,
    )
    for tokens in (120, 80):
        async with limits.acquire("user-1", MODEL, {"rpm": 1, "tpm": 250}) as lease:
            lease.adjust(tpm=tokens - 250)
    # No request of user-2: its five requests a minute are left to try.
    async with limits.acquire("user-2", MODEL, {"tpm": 200}):
        pass


async def prepare(url: str) -> None:
    """Create the data at a URL."""
    async with connect_async(url, limiter) as db:
        await seed(db)
    await asyncio.to_thread(do_jobs, url)


def demo_app(
    url: str,
    keys: Sequence[Credential],
    *,
    jobs_seconds: float | None = None,
    trusted_hosts: Sequence[str] = (),
) -> FastAPI:
    """Return the API with the echo."""
    app = create_app(
        url,
        auth=make_auth(keys),
        jobs_seconds=jobs_seconds,
        stream=StreamSettings(),
        trusted_hosts=trusted_hosts,
    )
    app.include_router(router)
    return app


def greeting(keys: Sequence[Credential], port: int) -> str:
    """Return the text to print: the keys, and commands to try."""
    base = f"http://127.0.0.1:{port}"
    by_name = {each.name: each.key for each in keys}
    rows = [f"  {each.role:<15} {each.tenant or 'all':<7} {each.key}" for each in keys]
    app, operator = f"-H 'x-api-key: {by_name['gateway']}'", f"-H 'x-api-key: {by_name['oscar']}'"
    json_ = "-H 'content-type: application/json'"
    said = '{"user": "user-2", "messages": [{"role": "user", "content": "Say hello."}]}'
    taken = '{"entity": "user-1", "resource": "echo-1", "consume": {"rpm": 1, "tpm": 500}}'
    return "\n".join(
        [
            f"The limiter is at {base}, its documentation at {base}/docs",
            "Two namespaces, each with org-1 and its users user-1 and user-2 (5 requests a minute).",
            "",
            "Keys, sent as x-api-key (with a key for all namespaces, x-tenant-id names one):",
            *rows,
            "",
            "Try these, the first one until it is refused with a 429:",
            f"  curl -si {app} {json_} -d '{said}' {base}/v1/chat/completions",
            f"  curl -s {app} {json_} -d '{taken}' {base}/acquire",
            f"  curl -s {app} '{base}/api/dashboard/availability/user-1?resource=echo-1'",
            f"  curl -s {operator} '{base}/usage/summary?entity=user-1'",
            f"  curl -sN {operator} {base}/api/dashboard/stream    # Ctrl-C ends it",
        ]
    )


def _prepared(url: str) -> str:
    asyncio.run(prepare(url))
    return ""


def _server(url: str, _: Path, keys: Sequence[Credential], trusted_proxies: Sequence[str]) -> uvicorn.Server:
    return server_of(demo_app(url, keys, jobs_seconds=1.0, trusted_hosts=trusted_proxies))


def make_demo(port: int = 8081) -> Demo:
    """Return the demo on a port."""
    return Demo(
        name="limiter",
        summary="A limiter to try.",
        port=port,
        prepare=_prepared,
        credentials=credentials,
        greeting=greeting,
        server=_server,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo."""
    return make_demo().run(argv)


if __name__ == "__main__":
    raise SystemExit(main())
