"""`python -m solotable.systems.surveys.demo`: two tenants with surveys, and the API on 127.0.0.1:8082.

It prints new credentials at each start. The data is in a temporary folder that is deleted at the end, unless
`--folder` names another. `--seed-only` writes the data, prints the summary and exits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from solotable import AsyncDatabase, AsyncStore, connect_async
from solotable.systems.demo_server import Credential, Demo, make_auth, make_credentials

from .app import create_app
from .entities.access import Tenant
from .entities.library import Material
from .entities.surveys import SurveyComponent, SurveyElement, SurveySection
from .formats.order_keys import spread
from .services.drafts import (
    ComponentPatch,
    ElementPatch,
    LibraryComponentDraft,
    LibraryElementDraft,
    LibrarySectionDraft,
    PhraseDraft,
    SectionPatch,
    SurveyDraft,
    TenantDraft,
)
from .services.library.phrases import Phrases
from .services.library.templates import LibraryComponents, LibraryElements, LibrarySections
from .services.survey.configs import Configs
from .services.survey.parts import Components, Elements, Sections
from .services.survey.surveys import Surveys
from .services.tenants import Tenants
from .table import surveyor

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
PHRASES = {
    "Slipped tiles": "Several tiles have slipped and should be refixed.",
    "Cracked render": "The render is cracked; water may enter behind it.",
    "Damp": "High moisture readings were taken; the cause should be found.",
    "Rot": "The timber is soft and should be replaced.",
}


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


async def seed(db: AsyncDatabase) -> None:
    """Write the tenants and their surveys; existing tenants stay as they are."""
    for tenant, name in TENANTS.items():
        if await db.get(Tenant, id=tenant) is not None:
            continue
        await Tenants(db).create(TenantDraft(id=tenant, name=name))
        store = db.tenant(tenant)
        await _write_library(store)
        owner = "demo-ann" if tenant == "acme" else "demo-gil"
        for survey_id, title in (("mill-lane", "12 Mill Lane"), ("old-school", "The Old School")):
            await _write_survey(store, survey_id, title, owner)
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
    for name, text in PHRASES.items():
        await phrases.create(PhraseDraft(kind="Defect", name=name, text=text))


async def _write_survey(store: AsyncStore, survey_id: str, title: str, owner: str) -> None:
    """Write a survey from the library, with its first section surveyed."""
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
    defects = [each.phrase_id for each in (await Phrases(store).of_kind("Defect")).items]
    tree = await surveys.whole(survey_id)
    first = tree.sections[0]
    for number, node in enumerate(first.elements):
        condition = ("Poor", "Fair", "Good")[number % 3]
        patch = ElementPatch.model_validate(
            {
                "condition": condition,
                "defects": defects[:1] if condition == "Poor" else [],
                "notes": "Seen from the ground with binoculars.",
            }
        )
        await Elements(store, survey_id).update(node.element.element_id, patch)
        for component in node.components:
            await Components(store, survey_id).update(
                component.component_id,
                ComponentPatch(material="Slate", condition="Fair", age="about 40 years"),
            )
    done = SectionPatch(
        condition="Fair", completed_at=datetime(2026, 11, 12, 15, tzinfo=UTC), completed_by=owner
    )
    await Sections(store, survey_id).update(first.section.section_id, done)


async def _write_large_survey(store: AsyncStore, owner: str) -> None:
    """Write a survey of 30 sections, 150 elements and 400 components."""
    await Surveys(store).create(SurveyDraft(survey_id="tower", title="Tower Block 7"), owner=owner)
    left = 400
    async with store.batch(overwrite=True) as batch:
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


def _prepare(url: str) -> str:
    async def prepare() -> str:
        async with connect_async(url, surveyor) as db:
            await seed(db)
            counts = {tenant: len((await Surveys(db.tenant(tenant)).list()).items) for tenant in TENANTS}
        return "".join(f"{tenant}: {count} surveys\n" for tenant, count in counts.items())

    return asyncio.run(prepare())


def greeting(keys: Sequence[Credential], port: int) -> str:
    """Return the text that the demo prints: URLs, keys, and commands to try."""
    base = f"http://127.0.0.1:{port}"
    by_name = {each.name: each.key for each in keys}
    rows = [f"  {each.role:<13} {each.tenant or 'all tenants':<12} {each.key}" for each in keys]
    ann, ben = (f"-H 'x-api-key: {by_name[name]}'" for name in ("ann", "ben"))
    change = """-X PATCH -H 'content-type: application/json' -d '{"status": "in_progress"}'"""
    return "\n".join(
        [
            f"API documentation: {base}/docs (it loads scripts from a CDN; offline use {base}/openapi.json)",
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
        ]
    )


def server(
    url: str, folder: Path, keys: Sequence[Credential], trusted_proxies: Sequence[str] = ()
) -> uvicorn.Server:
    """Return the demo's server; it trusts forwarded headers from the given proxies only."""
    import uvicorn

    app = create_app(url, auth=make_auth(keys), storage=folder / "files", trusted_hosts=trusted_proxies)
    # By default uvicorn trusts X-Forwarded-For from every process of this machine.
    return uvicorn.Server(uvicorn.Config(app, log_level="warning", proxy_headers=False))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo."""
    demo = Demo(
        name="surveys",
        summary="Building surveys to try.",
        port=8082,
        prepare=_prepare,
        credentials=credentials,
        greeting=greeting,
        server=server,
    )
    return demo.run(argv)


if __name__ == "__main__":
    raise SystemExit(main())
