"""`python -m solotable.systems.surveys.demo`: two tenants with surveys, and the API on 127.0.0.1:8082.

It prints new credentials at each start, and the link to a report that a browser opens. The data is in a
temporary folder that is deleted at the end, unless `--folder` names another. `--seed-only` writes the data,
prints the summary and exits.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from solotable import AsyncDatabase, AsyncStore, connect_async
from solotable.systems.demo_server import Credential, Demo, make_auth, make_credentials
from solotable.urls import Url

from . import (
    ComponentPatch,
    Components,
    Condition,
    Configs,
    ElementPatch,
    Elements,
    FolderStorage,
    ImageDraft,
    ImagePatch,
    Images,
    LibraryComponentDraft,
    LibraryComponents,
    LibraryElementDraft,
    LibraryElements,
    LibrarySectionDraft,
    LibrarySections,
    Material,
    MemberDraft,
    Members,
    PhraseDraft,
    Phrases,
    ReportLinks,
    SectionPatch,
    Sections,
    Storage,
    SurveyComponent,
    SurveyDraft,
    SurveyElement,
    SurveyPatch,
    Surveys,
    SurveySection,
    Tenant,
    TenantDraft,
    Tenants,
    surveyor,
)
from .app import create_app
from .demo_photos import draw_house
from .formats.order_keys import spread
from .services.commits import TransactionBatch

if TYPE_CHECKING:
    import uvicorn

TENANTS = {"acme": "Acme Surveyors", "globex": "Globex Property"}
#: The library of the demo: sections with their elements, and the materials of their components.
LIBRARY: dict[str, dict[str, tuple[str, ...]]] = {
    "Roof": {
        "Covering": ("Clay", "Concrete", "Slate"),
        "Gutters": ("Cast iron", "PVC"),
        "Chimney": ("Brick", "Stone"),
    },
    "Walls": {"Brickwork": ("Brick", "Stone"), "Render": ("Lime", "Cement")},
    "Windows": {"Frames": ("Timber", "PVC", "Aluminium"), "Glazing": ("Single", "Double")},
    "Floors": {"Ground floor": ("Timber", "Concrete"), "Upper floors": ("Timber",)},
    "Services": {"Heating": ("Gas boiler", "Heat pump"), "Electricity": ("Consumer unit",)},
}
#: The phrases of the demo: a name, what a report says, and the advice.
PHRASES = {
    "Slipped tiles": ("Several tiles have slipped.", "Refix them before the winter."),
    "Cracked render": ("The render is cracked; water may enter behind it.", "Cut out and renew the render."),
    "Damp": ("High moisture readings were taken.", "Let a specialist find the cause."),
    "Rot": ("The timber is soft.", "Replace it."),
}
#: What the surveyor found, element by element: a condition, the defect, notes.
FINDINGS: dict[str, tuple[Condition, str, str]] = {
    "Covering": ("Poor", "Slipped tiles", "Seen from the ground with binoculars. Four tiles above the door."),
    "Gutters": ("Fair", "", "Moss in the gutters at the rear."),
    "Chimney": ("Good", "", "Repointed some years ago."),
    "Brickwork": ("Good", "", "No cracks wider than 1 mm."),
    "Render": ("Poor", "Cracked render", "A vertical crack beside the kitchen window."),
    "Frames": ("Fair", "Rot", "The sills at the rear are soft."),
    "Glazing": ("Good", "", "Double glazing throughout."),
    "Ground floor": ("Fair", "Damp", "Readings of 22 % beside the back door."),
    "Upper floors": ("Good", "", "Level, and without springing."),
    "Heating": ("Good", "", "Serviced in the spring."),
    "Electricity": ("N/A", "", "Not tested: the supply was off."),
}
_SEVERITY: tuple[Condition, ...] = ("Poor", "Fair", "Good", "Excellent", "N/A")


def credentials() -> list[Credential]:
    """Return new keys: one for each role, and a member of the second tenant."""
    return make_credentials(
        [
            ("olga", "GLOBAL_ADMIN", None),
            ("ada", "TENANT_ADMIN", "acme"),
            ("ann", "MEMBER", "acme"),
            ("ben", "MEMBER", "acme"),
            ("gil", "MEMBER", "globex"),
        ]
    )


async def seed(db: AsyncDatabase, storage: Storage | None = None) -> None:
    """Write the tenants and their surveys, and photos with a storage; existing tenants stay as they are."""
    for tenant, name in TENANTS.items():
        if await db.get(Tenant, id=tenant) is not None:
            continue
        await Tenants(db).create(TenantDraft(id=tenant, name=name))
        store = db.tenant(tenant)
        await _write_library(store)
        owner = "demo-ann" if tenant == "acme" else "demo-gil"
        await Members(store).add(MemberDraft(user_id=owner, name=owner.removeprefix("demo-").title()))
        for survey_id, title in (("mill-lane", "12 Mill Lane"), ("old-school", "The Old School")):
            await _write_survey(store, survey_id, title, owner)
        if storage is not None:
            await _add_photos(store, storage, "mill-lane")
        await _write_large_survey(store, owner)


async def _write_library(store: AsyncStore) -> None:
    sections, elements = LibrarySections(store), LibraryElements(store)
    components, phrases = LibraryComponents(store), Phrases(store)
    for section_name, found in LIBRARY.items():
        section = await sections.create(LibrarySectionDraft(name=section_name), created_by="demo-ada")
        for name, materials in found.items():
            element = await elements.create(LibraryElementDraft(section_id=section.section_id, name=name))
            draft = LibraryComponentDraft(
                element_id=element.element_id,
                name=f"{name}: main part",
                materials=[Material(name=each) for each in materials],
            )
            await components.create(draft)
    for name, (text, advice) in PHRASES.items():
        await phrases.create(PhraseDraft(kind="Defect", name=name, text=text, level2=advice))


async def _write_survey(store: AsyncStore, survey_id: str, title: str, owner: str) -> None:
    """Write a survey from the library; the first one is completed, of the others one section is."""
    draft = SurveyDraft(
        survey_id=survey_id,
        title=title,
        address=f"{title}\nLeeds",
        client_name="Ada Byron",
        survey_date=date(2026, 11, 12),
    )
    await Configs(store).create_survey(draft, owner=owner)
    surveys = Surveys(store)
    await surveys.share(survey_id, editors=["demo-ben"])
    defects = {each.name: each.phrase_id for each in (await Phrases(store).of_kind("Defect")).items}
    tree = await surveys.whole(survey_id)
    is_complete = survey_id == "mill-lane"
    for node in tree.sections if is_complete else tree.sections[:1]:
        for element in node.elements:
            condition, defect, notes = FINDINGS[element.element.name]
            found = ElementPatch(
                condition=condition, defects=[defects[defect]] if defect else [], notes=notes
            )
            await Elements(store, survey_id).update(element.element.element_id, found)
            for component in element.components:
                material = ComponentPatch(
                    material=LIBRARY[node.section.name][element.element.name][0],
                    condition=condition,
                    age="about 40 years",
                    notes=notes if condition == "N/A" else "",
                )
                await Components(store, survey_id).update(component.component_id, material)
        worst = min((FINDINGS[each.element.name][0] for each in node.elements), key=_SEVERITY.index)
        done = SectionPatch(
            condition=worst, completed_at=datetime(2026, 11, 12, 15, tzinfo=UTC), completed_by=owner
        )
        await Sections(store, survey_id).update(node.section.section_id, done)
    await surveys.update(survey_id, SurveyPatch(status="completed" if is_complete else "in_progress"))


async def _add_photos(store: AsyncStore, storage: Storage, survey_id: str) -> None:
    """Add a photo to the first section, for the cover, and to every element that is not good."""
    images = Images(store, storage)
    tree = await Surveys(store).whole(survey_id)

    async def add(number: int, name: str) -> list[str]:
        data = draw_house(number)
        digest = hashlib.sha256(data).hexdigest()
        draft = ImageDraft(sha256=digest, name=f"{name}.png", mime="image/png", size=len(data))
        image, _ = await images.register(draft)
        await images.upload(image.image_id, data)
        await images.update(image.image_id, ImagePatch(caption=name))
        return [image.image_id]

    first = tree.sections[0].section
    front = SectionPatch(photos=await add(0, "The front from the street"))
    await Sections(store, survey_id).update(first.section_id, front)
    elements = [each.element for node in tree.sections for each in node.elements]
    for number, element in enumerate(elements, start=1):
        if element.condition in ("Poor", "Fair"):
            shown = ElementPatch(photos=await add(number, f"{element.name}: detail"))
            await Elements(store, survey_id).update(element.element_id, shown)


async def _write_large_survey(store: AsyncStore, owner: str) -> None:
    """Write a survey of 30 sections, 150 elements and 400 components."""
    await Surveys(store).create(SurveyDraft(survey_id="tower", title="Tower Block 7"), owner=owner)
    left = 400
    async with TransactionBatch(store) as batch:
        for number, order in enumerate(spread(30)):
            section = SurveySection(
                survey_id="tower", section_id=f"s{number}", name=f"Flat {number}", order=order
            )
            await store.create(section)
            for at, element_order in enumerate(spread(5)):
                element_id = f"s{number}e{at}"
                batch.put(
                    SurveyElement(
                        survey_id="tower",
                        element_id=element_id,
                        section_id=section.section_id,
                        name=f"Element {at}",
                        order=element_order,
                        notes="No defects were found. " * 20,
                    )
                )
                for of_element, component_order in enumerate(spread(3)):
                    if left:
                        left -= 1
                        batch.put(
                            SurveyComponent(
                                survey_id="tower",
                                component_id=f"{element_id}c{of_element}",
                                element_id=element_id,
                                name=f"Component {of_element}",
                                order=component_order,
                                notes="As built. " * 40,
                            )
                        )


def prepare(url: str) -> str:
    """Write the data at a URL, and return a summary."""

    async def write() -> str:
        async with connect_async(url, surveyor) as db:
            await seed(db, FolderStorage(_files(url)))
            counts = {tenant: len((await Surveys(db.tenant(tenant)).list()).items) for tenant in TENANTS}
        return "".join(f"{tenant}: {count} surveys\n" for tenant, count in counts.items())

    return asyncio.run(write())


def _files(url: str) -> Path:
    """Return the folder of the photos, beside the database."""
    return Path(Url.parse(url).path or "surveys.db").parent / "files"


def links(keys: Sequence[Credential]) -> ReportLinks:
    """Return what signs links to reports; its secret is as new as the keys."""
    return ReportLinks([link_secret(keys)])


def link_secret(keys: Sequence[Credential]) -> bytes:
    """Return the secret of this start, which only those who know all keys can compute."""
    return hashlib.sha256("".join(each.key for each in keys).encode()).digest()


def greeting(keys: Sequence[Credential], port: int) -> str:
    """Return the text that the demo prints: URLs, keys, and commands to try."""
    base = f"http://127.0.0.1:{port}"
    by_name = {each.name: each.key for each in keys}
    rows = [f"  {each.role:<13} {each.tenant or 'all tenants':<12} {each.key}" for each in keys]
    ada, ann, ben = (f"-H 'x-api-key: {by_name[name]}'" for name in ("ada", "ann", "ben"))
    token, _ = links(keys).sign("acme", "mill-lane", now=datetime.now(UTC), days=1)
    change = """-X PATCH -H 'content-type: application/json' -d '{"status": "in_progress"}'"""
    return "\n".join(
        [
            "Open this report in a browser. The link needs no key, and ends after a day or with the demo:",
            f"  {base}/reports/{token}",
            "",
            f"API documentation: {base}/docs",
            "",
            "Send a key as x-api-key. With a key for all tenants, select one with x-tenant-id.",
            *rows,
            "",
            "Try:",
            f"  curl -s {ann} {base}/surveys",
            f"  curl -s {ann} {base}/surveys/mill-lane",
            f"  curl -s {ben} {base}/surveys/tower    # 404: ben is not a user of that survey",
            f"  curl -s {ann} {change} {base}/surveys/mill-lane",
            f"  curl -s {ann} '{base}/phrases?type=Defect'",
            f"  curl -s {ada} {base}/tenant/export    # everything of the tenant",
        ]
    )


def server(
    url: str, folder: Path, keys: Sequence[Credential], trusted_proxies: Sequence[str] = ()
) -> uvicorn.Server:
    """Return the demo's server; it trusts forwarded headers from the given proxies only."""
    import uvicorn

    app = create_app(
        url,
        auth=make_auth(keys),
        storage=folder / "files",
        link_secrets=[link_secret(keys)],
        trusted_hosts=trusted_proxies,
    )
    # By default uvicorn trusts X-Forwarded-For from every process of this machine.
    return uvicorn.Server(uvicorn.Config(app, log_level="warning", proxy_headers=False))


def make_demo(port: int = 8082) -> Demo:
    """Return the demo on a port."""
    return Demo(
        name="surveys",
        summary="Building surveys to try.",
        port=port,
        prepare=prepare,
        credentials=credentials,
        greeting=greeting,
        server=server,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo."""
    return make_demo().run(argv)


if __name__ == "__main__":
    raise SystemExit(main())
