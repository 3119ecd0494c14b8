"""`python -m solotable.systems.portal.demo`: a portal with people and content on 127.0.0.1:8083.

It prints new keys at each start; a key is also the password of its user. The data is in a temporary folder
that is deleted at the end, unless `--folder` names another. `--seed-only` writes the data and exits.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solotable import AsyncDatabase, connect_async
from solotable.systems.demo_server import Credential, Demo, make_auth, make_credentials
from solotable.systems.signed_folder import SignedFolderStorage
from solotable.systems.storage import Storage
from solotable.urls import Url

from .app import ALL_TABLES, PortalSettings, create_app
from .entities.events import ActivityEvent
from .identity.directory import InvitationDraft, LocalDirectory
from .roles import Caller, Role
from .routes.files import NewFile, store_file
from .routes.requests.envelope import STORAGE_PATH
from .routes.requests.rate_limits import LimitName, limit
from .services.contents import Contents
from .services.drafts import ContentDraft, SubscriptionDraft
from .services.files import Files, sanitise
from .services.lifecycle import Lifecycle
from .services.subscriptions import Subscriptions

if TYPE_CHECKING:
    import uvicorn

#: The people of the demo: name, full name, role.
PEOPLE: tuple[tuple[str, str, Role], ...] = (
    ("vic", "Vic Stone", "Viewer"),
    ("jonas", "Jonas Ekdahl", "Contributor"),
    ("mila", "Mila Varga", "Approver"),
    ("ada", "Ada Byron", "Admin"),
)
_JONAS = Caller(user_id="demo-jonas", role="Contributor", name="Jonas Ekdahl")
_MILA = Caller(user_id="demo-mila", role="Approver", name="Mila Varga")
_VIC = Caller(user_id="demo-vic", role="Viewer", name="Vic Stone")
#: Title, summary, concept, tags, the changes of its status. All is of the suite Compass but the last.
CONTENT: tuple[tuple[str, str, str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "Compass pricing, explained on one page",
        "The three plans, what counts as a seat, and the two exceptions that customers ask about.",
        "Compass",
        "Billing",
        ("pricing", "one-pager"),
        ("approve",),
    ),
    (
        "How to talk about the January price change",
        "What changes, for whom, and a letter that you may send. Do not share before 1 December.",
        "Compass",
        "Billing",
        ("pricing", "rollout"),
        ("approve",),
    ),
    (
        "Discount rules for partners",
        "Who may give what, and how to write it into the order.",
        "Compass",
        "Partners",
        ("pricing", "partners"),
        ("approve",),
    ),
    (
        "Demo: a bill from click to payment",
        "A six-minute recording with the demo tenant. Replaces the 2024 recording.",
        "Compass",
        "Billing",
        ("demo", "pricing"),
        ("approve", "deprecate"),
    ),
    (
        "Pricing calculator, spreadsheet",
        "Old rates. Use the calculator in the product.",
        "Compass",
        "Billing",
        ("pricing", "tool"),
        ("approve", "expire"),
    ),
    (
        "Questions about invoices: ten good answers",
        "Short answers that support has tested on real questions.",
        "Compass",
        "Billing",
        ("support", "pricing"),
        (),
    ),
    (
        "Harbor in five slides",
        "What Harbor does, for whom, and three pictures that explain it.",
        "Harbor",
        "Onboarding",
        ("demo",),
        ("approve",),
    ),
)
_NOT_FOUND = ("tern migration", "refund policy", "security questionnaire", "price list 2025")
_DAYS = 30
#: Higher than the defaults, so that trying things out does not end in a 429.
_LIMITS: dict[LimitName, int] = {
    "reads": 5000,
    "writes": 500,
    "telemetry": 5000,
    "forms": 500,
    "sign_ins": 50,
    "sign_in_totals": 500,
}
_SECRET = b"the secret of a demo, not of yours"


def credentials() -> list[Credential]:
    """Return new keys: one for each person."""
    return make_credentials([(name, role, None) for name, _, role in PEOPLE])


async def seed(db: AsyncDatabase, storage: Storage) -> None:
    """Write people, content, subscriptions and events; an existing demo stays as it is."""
    directory = LocalDirectory(db)
    if await directory.get("demo-ada") is not None:
        return
    for name, full, role in PEOPLE:
        draft = InvitationDraft(email=f"{name}@demo.example", name=full, role=role)
        await directory.add(f"demo-{name}", draft)
    for subscription in (
        SubscriptionDraft(product_suite="Compass", product_concept="Billing"),
        SubscriptionDraft(tags=["rollout", "security"]),
        SubscriptionDraft(product_suite="Harbor", tags=["partners"]),
    ):
        await Subscriptions(db).create(_VIC, subscription)
    written = [await _write_content(db, storage, each) for each in CONTENT]
    for events in batched(_events(written), 50):
        async with db.transaction() as tx:
            for event in events:
                tx.create(event)


async def _write_content(db: AsyncDatabase, storage: Storage, given: tuple[Any, ...]) -> str:
    """Write content with a small PDF, and change its status."""
    title, summary, suite, concept, tags, changes = given
    draft = ContentDraft(
        title=title,
        summary=summary,
        product_suite=suite,
        product_concept=concept,
        tags=list(tags),
        audience_role="Sales",
        expiry_date=datetime.now(UTC) + timedelta(days=120),
    )
    content = await Contents(db).create(_JONAS, draft)
    file = NewFile(f"{sanitise(title).lower()}.pdf", "application/pdf", make_pdf(title))
    await store_file(Files(db, storage), storage, _JONAS, content.content_id, file)
    for change in changes:
        await getattr(Lifecycle(db), change)(_MILA, content.content_id)
    return content.content_id


def _events(content_ids: Sequence[str]) -> Iterator[ActivityEvent]:
    """Yield the views, downloads and searches of the last days: fewer at weekends, more towards the end."""
    now = datetime.now(UTC)
    for back in range(2 * _DAYS, 0, -1):
        at = now - timedelta(days=back)
        busy = 1.0 if at.weekday() < 5 else 0.3
        views = int((14 + (2 * _DAYS - back) / 4 + 3 * math.sin(back)) * busy)
        for number in range(views):
            name = "content_download" if number % 5 == 4 else "content_view"
            # The first items are read most.
            content = content_ids[min(number * number % 11, len(content_ids) - 1)]
            user = f"demo-{PEOPLE[number % len(PEOPLE)][0]}"
            yield ActivityEvent(
                event_name=name, user_id=user, content_id=content, timestamp=at + timedelta(seconds=number)
            )
        if back % 2:
            text = _NOT_FOUND[back % 7 % len(_NOT_FOUND)]
            yield ActivityEvent(
                event_name="search",
                user_id="demo-vic",
                metadata={"query": text, "results": 0},
                timestamp=at + timedelta(minutes=5),
            )


def batched(events: Iterator[ActivityEvent], size: int) -> Iterator[list[ActivityEvent]]:
    """Yield lists of up to so many events."""
    while chunk := list(islice(events, size)):
        yield chunk


def make_pdf(text: str) -> bytes:
    """Return a PDF of one page with one line of ASCII text."""
    plain = text.encode("ascii", "replace").replace(b"(", b"[").replace(b")", b"]").replace(b"\\", b"/")
    drawn = b"BT /F1 18 Tf 60 760 Td (" + plain + b") Tj ET"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
    ]
    made, places = bytearray(b"%PDF-1.4\n"), []
    for number, each in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    start = len(made)
    made += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    made += b"".join(b"%010d 00000 n \n" % place for place in places)
    made += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(made)


def _storage(folder: Path) -> SignedFolderStorage:
    return SignedFolderStorage(folder / "files", secret=_SECRET, base_url=STORAGE_PATH)


def _prepare(url: str) -> str:
    folder = Path(Url.parse(url).path or ".").parent

    async def prepare() -> str:
        async with connect_async(url, *ALL_TABLES) as db:
            await seed(db, _storage(folder))
        return f"Lantern: {len(PEOPLE)} people, {len(CONTENT)} items of content, {_DAYS * 2} days of events\n"

    return asyncio.run(prepare())


def greeting(keys: Sequence[Credential], port: int) -> str:
    """Return the text that the demo prints: people, and what to click to see a message arrive."""
    base = f"http://127.0.0.1:{port}"
    rows = [f"  {each.role:<12} {each.name + '@demo.example':<20} {each.key}" for each in keys]
    vic = f"-H 'x-api-key: {keys[0].key}'"
    return "\n".join(
        [
            f"Open {base}/ and sign in. The password is also the key of the API (x-api-key).",
            *rows,
            "",
            "See an approval notify:",
            f"  1. Sign in as vic, and leave {base}/inbox open.",
            "  2. In a private window, sign in as mila. Open the draft “Questions about invoices”.",
            "  3. Press Approve. The message appears in vic's inbox within two seconds, without a reload.",
            "  4. Sign in as ada for analytics, people and deletion.",
            "",
            "Try the API:",
            f"  curl -s {vic} {base}/v1/content",
            f"  curl -s {vic} '{base}/v1/content?query=pricing'",
            f"  curl -s {vic} {base}/v1/notifications",
            f"Documentation: {base}/docs",
        ]
    )


def server(
    url: str, folder: Path, keys: Sequence[Credential], trusted_proxies: Sequence[str] = ()
) -> uvicorn.Server:
    """Return the demo's server; it trusts forwarded headers from the given proxies only."""
    import uvicorn

    async def set_passwords() -> None:
        async with connect_async(url, *ALL_TABLES) as db:
            for each in keys:
                await LocalDirectory(db).set_password(f"demo-{each.name}", each.key)

    asyncio.run(set_passwords())
    settings = PortalSettings(
        storage=_storage(folder),
        limits=[limit(name, count) for name, count in _LIMITS.items()],
        trusted_hosts=trusted_proxies,
    )
    app = create_app(url, auth=make_auth(keys), settings=settings)
    # By default uvicorn trusts X-Forwarded-For from every process of this machine.
    config = uvicorn.Config(app, log_level="warning", proxy_headers=False, timeout_graceful_shutdown=3)
    return uvicorn.Server(config)


def make_demo(port: int = 8083) -> Demo:
    """Return the demo on a port."""
    return Demo(
        name="portal",
        summary="An enablement portal to try.",
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
