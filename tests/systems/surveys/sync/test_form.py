"""The survey form in headless Chromium: two users, no connection, reloads, lost access, another tenant."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from starlette.responses import PlainTextResponse

from solotable import AsyncDatabase, connect_async
from solotable.systems.demo_server import make_auth, make_credentials
from solotable.systems.surveys import (
    ElementDraft,
    Elements,
    FolderStorage,
    PhraseDraft,
    Phrases,
    SectionDraft,
    Sections,
    SurveyDraft,
    Surveys,
    TenantDraft,
    Tenants,
    surveyor,
)
from solotable.systems.surveys.app import create_app
from solotable.systems.surveys.form.build import ClientMissing, build_form
from solotable.systems.surveys.form.demo import cache_folder
from solotable.systems.surveys.form.pages import mount_form
from tests.systems.looks import COLOURS, CONTROLS, contrast, launch
from tests.systems.serving import serving
from tests.waiting import HANG_SECONDS, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page
    from starlette.types import ASGIApp, Receive, Scope, Send

T = TypeVar("T")
USERS = [
    ("ann", "MEMBER", "acme"),
    ("ben", "MEMBER", "acme"),
    ("vi", "MEMBER", "acme"),
    ("gil", "MEMBER", "globex"),
]


@dataclass
class Gate:
    """An app behind a proxy, which answers 503 to every request while it is closed."""

    app: ASGIApp
    closed: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.closed and scope["type"] == "http":
            await PlainTextResponse("", 503)(scope, receive, send)
        else:
            await self.app(scope, receive, send)


@dataclass
class Site:
    """A served form, its users, and the stored surveys as another program sees them."""

    base: str
    url: str
    browser: Browser
    keys: dict[str, str]
    gate: Gate
    complaints: list[str] = field(default_factory=list)

    def context(self, **options: Any) -> BrowserContext:
        """Return a separate browser: another device."""
        made = self.browser.new_context(viewport={"width": 390, "height": 844}, **options)
        made.set_default_timeout(HANG_SECONDS * 1000)
        return made

    def open(self, context: BrowserContext, user: str, place: str = "") -> Page:
        """Open the form with a user's link, then a place in it."""
        page = context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self._hear(message.text))
        page.goto(f"{self.base}/form/#key={self.keys[user]}")
        page.wait_for_selector("#mark.synced")
        if place:
            page.goto(f"{self.base}/form/#/s/{place}")
        return page

    def _hear(self, text: str) -> None:
        # The browser and Replicache report every request that cannot be sent, or that the gate answers.
        if not any(
            each in text for each in ("net::ERR_", "status of 503", "doing pull: 503", "doing push: 503")
        ):
            self.complaints.append(text)

    def run(self, work: Callable[[AsyncDatabase], Awaitable[T]]) -> T:
        """Run something with the database, as another program."""

        async def connected() -> T:
            async with connect_async(self.url, surveyor) as db:
                return await work(db)

        # Playwright has an event loop in this thread.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, connected()).result()

    def notes(self, survey: str, *, tenant: str = "acme") -> dict[str, str]:
        """Return the stored notes of a survey's elements."""

        async def read(db: AsyncDatabase) -> dict[str, str]:
            tree = await Surveys(db.tenant(tenant)).whole(survey, consistent=True)
            return {
                each.element.element_id: each.element.notes
                for node in tree.sections
                for each in node.elements
            }

        return self.run(read)

    def versions(self, survey: str) -> dict[str, int]:
        """Return the number of writes of each element of a survey."""

        async def read(db: AsyncDatabase) -> dict[str, int]:
            tree = await Surveys(db.tenant("acme")).whole(survey, consistent=True)
            return {
                each.element.element_id: each.element.version
                for node in tree.sections
                for each in node.elements
            }

        return self.run(read)


async def _write_survey(
    db: AsyncDatabase, survey: str, *, tenant: str = "acme", owner: str = "demo-ann"
) -> None:
    """Write a survey of two sections with an element each, shared with ben and vi."""
    store = db.tenant(tenant)
    await Surveys(store).create(SurveyDraft(survey_id=survey, title=f"{tenant} {survey}"), owner=owner)
    await Surveys(store).share(survey, editors=["demo-ben"], viewers=["demo-vi"])
    for name in ("roof", "walls"):
        await Sections(store, survey).create(SectionDraft(section_id=name, name=name.title()))
        draft = ElementDraft(element_id=f"{name}-1", section_id=name, name=f"{name.title()} one")
        await Elements(store, survey).create(draft)


async def _write(db: AsyncDatabase) -> None:
    for tenant in ("acme", "globex"):
        await Tenants(db).create(TenantDraft(id=tenant, name=tenant))
        await Phrases(db.tenant(tenant)).create(
            PhraseDraft(kind="Defect", name="Rot", text="The timber is soft.")
        )
    for survey in ("merge", "same", "queue", "reload", "access", "photos", "rights"):
        await _write_survey(db, survey)
    await _write_survey(db, "theirs", tenant="globex", owner="demo-gil")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    from playwright.sync_api import sync_playwright

    try:
        files = build_form(cache_folder())
    except ClientMissing as missing:
        pytest.skip(f"the survey form cannot be built: {missing}")
    folder: Path = tmp_path_factory.mktemp("form")
    url = f"sqlite:///{folder / 'surveys.db'}?durability=relaxed"
    keys = make_credentials(USERS)
    app = create_app(url, auth=make_auth(keys), storage=FolderStorage(folder / "files"))
    mount_form(app, files)
    gate = Gate(app)
    with serving(gate) as base, sync_playwright() as playwright:
        made = Site(base, url, launch(playwright), {each.name: each.key for each in keys}, gate)
        made.run(_write)
        try:
            yield made
        finally:
            made.browser.close()
    assert made.complaints == []


def type_notes(page: Page, element: str, text: str) -> None:
    """Write the notes of the element that is open."""
    page.fill(f"#notes-{element}", text)
    page.dispatch_event(f"#notes-{element}", "blur")


def shown_notes(page: Page, element: str) -> str:
    return page.input_value(f"#notes-{element}")


def pending(page: Page) -> int:
    found: int = page.evaluate("form.rep.experimentalPendingMutations().then(found => found.length)")
    return found


def test_s4_32_two_users_edit_different_sections_and_both_edits_arrive(site: Site) -> None:
    """Each sees the other's edit without a reload, and only what changed travels."""
    one, two = site.context(), site.context()
    ann, ben = site.open(one, "ann", "merge/roof"), site.open(two, "ben", "merge/walls")
    type_notes(ann, "roof-1", "by ann")
    type_notes(ben, "walls-1", "by ben")
    wait_until(lambda: site.notes("merge") == {"roof-1": "by ann", "walls-1": "by ben"})
    ann.goto(f"{site.base}/form/#/s/merge/walls")
    ben.goto(f"{site.base}/form/#/s/merge/roof")
    wait_until(lambda: shown_notes(ann, "walls-1") == "by ben" and shown_notes(ben, "roof-1") == "by ann")
    one.close()
    two.close()


def test_the_same_field_has_the_value_of_the_last_writer_by_the_servers_order(site: Site) -> None:
    """ann types first and arrives last: both show her text, wherever the clocks stand."""
    one, two = site.context(), site.context()
    ann, ben = site.open(one, "ann", "same/roof"), site.open(two, "ben", "same/roof")
    one.set_offline(True)
    type_notes(ann, "roof-1", "typed first, sent last")
    type_notes(ben, "roof-1", "typed last, sent first")
    wait_until(lambda: site.notes("same")["roof-1"] == "typed last, sent first")
    assert shown_notes(ann, "roof-1") == "typed first, sent last"
    one.set_offline(False)
    wait_until(lambda: site.notes("same")["roof-1"] == "typed first, sent last")
    ben.dispatch_event("#notes-roof-1", "blur")
    wait_until(lambda: shown_notes(ben, "roof-1") == "typed first, sent last")
    one.close()
    two.close()


def test_two_hundred_edits_without_a_connection_arrive_once(site: Site) -> None:
    context = site.context()
    page = site.open(context, "ann", "queue/roof")
    before = site.versions("queue")["roof-1"]
    context.set_offline(True)
    page.evaluate(
        """async () => {
            for (let number = 1; number <= 200; number += 1) {
                const notes = `edit ${number}`;
                await form.rep.mutate.updateElement({survey_id: 'queue', element_id: 'roof-1', notes});
            }
        }"""
    )
    page.wait_for_selector("#mark.offline >> text=Offline, 200 kept")
    assert shown_notes(page, "roof-1") == "edit 200"
    assert site.notes("queue")["roof-1"] == ""
    context.set_offline(False)
    page.wait_for_selector("#mark.synced")
    assert pending(page) == 0
    assert site.notes("queue")["roof-1"] == "edit 200"
    # The server may make one write of several edits of a push, and never makes two of one.
    assert 1 <= site.versions("queue")["roof-1"] - before <= 200
    context.close()


def test_a_form_opens_while_its_server_fails(site: Site) -> None:
    """A proxy answers 503 during a deployment: the worker shows the files of the last visit."""
    context = site.context()
    page = site.open(context, "ann", "rights/roof")
    page.evaluate("navigator.serviceWorker.ready.then(() => undefined)")
    page.reload()  # the worker has the files now
    page.wait_for_selector("#notes-roof-1")
    wait_until(lambda: persisted(page, "Roof one"))
    site.gate.closed = True
    try:
        page.reload()
        page.wait_for_selector("#notes-roof-1")
    finally:
        site.gate.closed = False
    context.close()


def test_a_reload_without_a_connection_keeps_the_page_and_the_edits(site: Site) -> None:
    context = site.context()
    page = site.open(context, "ann", "reload/roof")
    page.evaluate("navigator.serviceWorker.ready.then(() => undefined)")
    page.reload()  # the worker has the files now
    page.wait_for_selector("#notes-roof-1")
    context.set_offline(True)
    # Once, an edit reached the server from an offline context, for an unknown reason. The gate prevents it.
    site.gate.closed = True
    type_notes(page, "roof-1", "in the basement")
    page.click(".el[open] .choose .poor")
    wait_until(lambda: pending(page) == 2)
    wait_until(lambda: persisted(page, "in the basement", '"Poor"'))
    page.reload()
    page.wait_for_selector("#mark.offline")
    page.wait_for_selector("text=Roof one")
    wait_until(lambda: shown_notes(page, "roof-1") == "in the basement")
    assert site.notes("reload")["roof-1"] == ""
    site.gate.closed = False
    context.set_offline(False)
    wait_until(lambda: site.notes("reload")["roof-1"] == "in the basement")
    page.wait_for_selector("#mark.synced")
    context.close()


def title(site: Site, survey: str) -> str:
    return site.run(lambda db: Surveys(db.tenant("acme")).get(survey, consistent=True)).title


def persisted(page: Page, *texts: str) -> bool:
    """Whether IndexedDB has some texts: Replicache writes its memory there when the page has time."""
    found: bool = page.evaluate(
        """async texts => {
            const names = (await indexedDB.databases()).map(each => each.name);
            for (const name of names.filter(each => each.startsWith('rep:'))) {
                const db = await new Promise(done => {
                    const open = indexedDB.open(name);
                    open.onsuccess = () => done(open.result);
                });
                const stored = await new Promise(done => {
                    const all = db.transaction([...db.objectStoreNames]).objectStore('chunks').getAll();
                    all.onsuccess = () => done(JSON.stringify(all.result));
                });
                db.close();
                if (texts.every(text => stored.includes(text))) return true;
            }
            return false;
        }""",
        list(texts),
    )
    return found


def test_access_that_is_removed_takes_the_survey_from_the_device(site: Site) -> None:
    context = site.context()
    page = site.open(context, "ben", "access")
    page.wait_for_selector("text=acme access")
    site.run(lambda db: Surveys(db.tenant("acme")).share("access", editors=[]))
    page.wait_for_selector("text=This survey is not on this device")
    left = page.evaluate("form.rep.query(async tx => await tx.scan().keys().toArray())")
    assert not [key for key in left if "/access" in key]
    assert "survey/merge" in left
    context.close()


def test_a_viewers_edit_is_undone_with_the_reason(site: Site) -> None:
    context = site.context()
    page = site.open(context, "vi", "rights/roof")
    type_notes(page, "roof-1", "not allowed")
    page.wait_for_selector("#mark.conflict >> text=1 not sent")
    page.dispatch_event("#notes-roof-1", "blur")
    page.click("#mark")
    page.wait_for_selector("text=This needs the role editor in the survey.")
    assert site.notes("rights")["roof-1"] == ""
    context.close()


def test_another_tenant_in_the_same_browser_sees_nothing_of_the_first(site: Site) -> None:
    """The queue of the first tenant waits for its own user, and is sent when that user is back."""
    context = site.context()
    page = site.open(context, "ann", "merge/roof")
    context.set_offline(True)
    page.evaluate("form.rep.mutate.updateSurvey({survey_id: 'merge', title: 'Renamed offline'})")
    wait_until(lambda: persisted(page, "Renamed offline"))
    page.close()
    context.set_offline(False)
    gil = site.open(context, "gil")
    gil.wait_for_selector("text=globex theirs")
    assert gil.locator("text=acme").count() == 0
    keys = gil.evaluate("form.rep.query(async tx => await tx.scan({prefix: 'survey/'}).keys().toArray())")
    assert keys == ["survey/theirs"]
    gil.close()
    back = site.open(context, "ann")
    back.wait_for_selector("text=acme same")
    assert back.locator("text=globex").count() == 0
    back.wait_for_selector("text=Renamed offline")
    wait_until(lambda: title(site, "merge") == "Renamed offline")
    context.close()


def test_a_photo_taken_offline_is_uploaded_later(site: Site) -> None:
    from solotable.systems.surveys.demo_photos import draw_house

    context = site.context()
    page = site.open(context, "ann", "photos/roof")
    page.wait_for_selector("#photo-roof-1", state="attached")
    context.set_offline(True)
    photo: Any = {"name": "front.png", "mimeType": "image/png", "buffer": draw_house(3)}
    page.set_input_files("#photo-roof-1", [photo])
    page.wait_for_selector("li.wait >> text=Waiting to send")
    context.set_offline(False)
    page.wait_for_selector("li[data-image] img[src^=blob]")
    page.wait_for_selector("#mark.synced")
    element = site.run(lambda db: Elements(db.tenant("acme"), "photos").get("roof-1"))
    assert len(element.photos) == 1
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_form_is_readable_and_fits(site: Site, scheme: Any) -> None:
    context = site.context(color_scheme=scheme, reduced_motion="reduce")
    page = site.open(context, "ann")
    low, wide, controls = [], [], []
    for place in ("#/", "#/s/merge", "#/s/merge/roof", "#/sending", "#/s/missing"):
        page.goto(f"{site.base}/form/{place}")
        page.wait_for_function("hash => form && location.hash === hash", arg=place)
        page.wait_for_selector("h1, .empty")
        for text, front, behind in page.evaluate(COLOURS):
            if contrast(front, behind) < (3 if text == "border" else 4.5):
                low.append((place, text, round(contrast(front, behind), 2)))
        # A radio button or file that its label covers shows its focus on the label.
        found = [
            each
            for each in page.evaluate(CONTROLS)
            if 'type="radio"' not in each[0] and 'class="sr"' not in each[0]
        ]
        controls += found
        for width in (320, 390, 640, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            if page.evaluate("document.documentElement.scrollWidth") > width:
                wide.append((place, width))
    assert (low, wide, controls) == ([], [], [])
    context.close()
