"""`python -m solotable.systems.community.demo`: neighbourhoods and sites on 127.0.0.1:8084.

A worker process builds the sites while you watch; each opens at its subdomain of localhost. The identity
provider is a local one. A day of the demo takes a minute: then all data is exported and a restore is drilled.
It prints new passwords at each start, and deletes its folder at the end, unless `--folder` names another.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from solotable import AsyncDatabase, connect_async
from solotable.backup.file import append_drill
from solotable.errors import SolotableError
from solotable.systems.community.app import create_app
from solotable.systems.community.builds.requests import Builds
from solotable.systems.community.entities.users import User
from solotable.systems.community.identity.oauth.client import OAuthClient, OAuthSettings, local_client_id
from solotable.systems.community.identity.oauth.local_provider import LocalAccount, LocalProvider
from solotable.systems.community.identity.sessions import Sessions
from solotable.systems.community.recovery import Recovery
from solotable.systems.community.roles import Caller
from solotable.systems.community.routes.requests.rate_limits import LimitName, limit
from solotable.systems.community.services.drafts import NeighbourhoodDraft, PostDraft, ProfilePatch, SiteDraft
from solotable.systems.community.services.memberships import Memberships
from solotable.systems.community.services.neighbourhoods import Neighbourhoods
from solotable.systems.community.services.posts import Posts
from solotable.systems.community.services.sites import Sites
from solotable.systems.community.services.users import Users
from solotable.systems.community.settings import CommunitySettings
from solotable.systems.community.table import community
from solotable.systems.demo_server import Credential, Demo, make_credentials

from .content import NEIGHBOURHOODS, PEOPLE, SITES

if TYPE_CHECKING:
    import uvicorn

_SECRET = "the secret of a demo, and of no other installation"  # noqa: S105 - it protects a demo
#: How long a day of the demo takes.
DAY_SECONDS = 60.0
#: Higher than the defaults, so that trying things out does not end in a 429.
_LIMITS: dict[LimitName, int] = {
    "address": 2000,
    "user": 5000,
    "neighbourhoods": 100,
    "builds": 500,
    "profile_updates": 500,
    "logins": 500,
}
_PROVIDER = "/provider"


def credentials() -> list[Credential]:
    """Return new keys: the passwords of people, and the key of an operator."""
    people = [(name, "user", None) for name, _ in PEOPLE]
    return make_credentials([*people, ("operator", "operator", None)])


def did_of(name: str) -> str:
    """Return the account of a person of the demo."""
    return f"did:plc:demo{name}"


async def seed(db: AsyncDatabase) -> None:
    """Write people, neighbourhoods, sites, and builds that wait; an existing demo stays as it is."""
    if await db.get(User, did=did_of(PEOPLE[0][0])) is not None:
        return
    for name, full in PEOPLE:
        await Users(db).sign_in(did_of(name), handle=f"{name}.test", display_name=full)
    ids = {}
    for creator, draft, members in NEIGHBOURHOODS:
        made = await Neighbourhoods(db).create(
            Caller(did=did_of(creator)), NeighbourhoodDraft.model_validate(draft)
        )
        ids[made.slug] = made.id
        for name in members:
            member = Caller(did=did_of(name))
            if draft.get("privacy") == "private":
                await Memberships(db).invite(Caller(did=did_of(creator)), made.id, did_of(name))
            await Memberships(db).join(member, made.id)
    # One person waits for an approval.
    await Memberships(db).join(Caller(did=did_of("dele")), ids["weir-garden"])
    for owner, neighbourhood, site, posts in SITES:
        caller = Caller(did=did_of(owner))
        given = SiteDraft.model_validate({**site, "neighbourhood_id": ids[neighbourhood]})
        stored = await Sites(db).create(caller, given)
        for title, body in posts:
            await Posts(db).create(caller, stored.site_id, PostDraft(title=title, body=body))
        await Builds(db).request(stored.site_id)
    patch = ProfilePatch(bio="I write about the canal.", email="alice@demo.example")
    await Users(db).update(Caller(did=did_of("alice")), patch)


def _prepare(url: str) -> str:
    async def prepare() -> str:
        async with connect_async(url, community) as db:
            await seed(db)
            token = await Sessions(db, _SECRET).open(did_of("alice"), user_agent="demo")
        names = f"{len(PEOPLE)} people, {len(NEIGHBOURHOODS)} neighbourhoods, {len(SITES)} sites"
        return f"Neighbourhoods: {names}\n\nTOKEN={token}\n\n"

    recovery = Recovery(url, export_url=None)
    recovery.enable_backups()
    recovery.close()
    return asyncio.run(prepare())


def greeting(keys: Sequence[Credential], port: int) -> str:
    """Return the text that the demo prints: people, what to open, and calls to try."""
    base = f"http://127.0.0.1:{port}"
    rows = [f"  {each.name + '.test':<14} {each.key}" for each in keys if each.role == "user"]
    operator = next(each.key for each in keys if each.role == "operator")
    sites = [f"  http://{site['subdomain']}.localhost:{port}/" for _, _, site, _ in SITES]
    return "\n".join(
        [
            f"Open {base}/ and sign in with a handle and its password:",
            *rows,
            "",
            "See a site being built:",
            f"  1. Sign in as alice.test, open {base}/sites, and make a site.",
            "  2. Watch its build: the page loads itself again until readers see the site.",
            "  3. Press “Open the site”. It is at its own subdomain.",
            "",
            "Built by the worker process within seconds:",
            *sites,
            "",
            "Try the API. TOKEN is a session of alice for 7 days, as the login gives one:",
            f"  curl -s {base}/api/neighborhoods",
            f'  curl -s -H "authorization: Bearer $TOKEN" {base}/auth/me',
            f'  curl -s -H "authorization: Bearer $TOKEN" {base}/api/sites',
            f"  curl -s -H 'x-api-key: {operator}' {base}/api/users",
            f"  curl -s -H 'x-api-key: {operator}' -X POST {base}/admin/export",
            "",
            f"A day of the demo takes {DAY_SECONDS:.0f} seconds. Then all data is exported as JSON, and a "
            "restore is drilled.",
            f"Documentation: {base}/docs",
        ]
    )


class DayClock:
    """A clock that runs faster: a day of it takes `day_seconds`."""

    def __init__(self, day_seconds: float) -> None:
        self._started = datetime.now(UTC)
        self._began = time.monotonic()
        self._factor = 86_400 / day_seconds

    def now(self) -> datetime:
        """Return the time of the demo."""
        return self._started + timedelta(seconds=(time.monotonic() - self._began) * self._factor)


def run_day(recovery: Recovery, folder: Path) -> str:
    """Export the day (S2.17) and drill a restore (S2.20), and return what happened."""
    report, drill = recovery.export_day(), recovery.drill()
    append_drill(folder / "drills.jsonl", drill)
    result = "passed" if drill.passed else "FAILED"
    return (
        f"{report.day}: exported {report.items} items to {report.location}; drill {result}: "
        f"{drill.items} items as of {drill.at:%H:%M:%S} restored in {drill.restore_seconds:.1f} s\n"
    )


@contextlib.contextmanager
def running_days(url: str, folder: Path, day_seconds: float = DAY_SECONDS) -> Iterator[None]:
    """Run the jobs of a day at once, and again after each day of the demo."""
    stop, clock = threading.Event(), DayClock(day_seconds)
    recovery = Recovery(url, export_url=str(folder / "exports"), now=clock.now)

    def work() -> None:
        while not stop.is_set():
            try:
                sys.stdout.write(run_day(recovery, folder))
            except SolotableError as error:
                sys.stdout.write(f"The jobs of the day failed: {error}\n")
            sys.stdout.flush()
            stop.wait(day_seconds)

    thread = threading.Thread(target=work, name="community-days")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        recovery.close()


@contextlib.contextmanager
def stopping_in_order() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that the worker process ends too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def running_worker(url: str, folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run `solotable community worker` in its own process."""
    (folder / "sites").mkdir(exist_ok=True)
    arguments = [
        *("community", "worker", "-d", url, "--storage", str(folder / "sites"), "--poll", "0.3"),
        *("--site-url", f"http://{{subdomain}}.localhost:{port}"),
        *("--neighbourhood-url", f"http://127.0.0.1:{port}/n/{{slug}}"),
    ]
    process = subprocess.Popen([sys.executable, "-m", "solotable", *arguments])  # noqa: S603 - our own command
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def server(
    url: str,
    folder: Path,
    keys: Sequence[Credential],
    trusted_proxies: Sequence[str] = (),
    *,
    port: int,
) -> uvicorn.Server:
    """Return the demo's server, which runs the worker process and the jobs of a day beside itself."""
    import uvicorn

    base = f"http://127.0.0.1:{port}"
    accounts = [
        LocalAccount(did=did_of(each.name), handle=f"{each.name}.test", password=each.key)
        for each in keys
        if each.role == "user"
    ]
    provider = LocalProvider(f"{base}{_PROVIDER}", accounts)
    redirect = f"{base}/auth/callback"
    client = OAuthClient(
        OAuthSettings(issuer=provider.issuer, client_id=local_client_id(redirect), redirect_uri=redirect)
    )
    settings = CommunitySettings(
        secrets=[_SECRET],
        provider=client,
        base_url=base,
        storage=folder / "sites",
        sites_domain="localhost",
        export_url=str(folder / "exports"),
        limits=[limit(name, count) for name, count in _LIMITS.items()],
        trusted_hosts=trusted_proxies,
    )
    operators = [each.api_key() for each in keys if each.role == "operator"]
    app = create_app(url, operators=operators, settings=settings)
    app.mount(_PROVIDER, provider.app)

    class DemoServer(uvicorn.Server):
        def run(self, sockets: list[socket.socket] | None = None) -> None:
            with stopping_in_order(), running_worker(url, folder, port), running_days(url, folder):
                super().run(sockets)

    # By default uvicorn trusts X-Forwarded-For from every process of this machine.
    config = uvicorn.Config(app, log_level="warning", proxy_headers=False, timeout_graceful_shutdown=3)
    return DemoServer(config)


def make_demo(port: int = 8084) -> Demo:
    """Return the demo on a port."""
    return Demo(
        name="community",
        summary="Neighbourhoods and sites to try.",
        port=port,
        prepare=_prepare,
        credentials=credentials,
        greeting=greeting,
        server=partial(server, port=port),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo."""
    return make_demo(make_demo().port_of(argv)).run(argv)
