"""The export of a tenant: every item, of one tenant, in bounded memory, with a last line that counts them."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from solotable import AsyncStore, Entity, connect_async
from solotable._protocol.requests import PutItem, Query
from solotable.errors import TableNotFound
from solotable.systems.errors import InvalidInput
from solotable.systems.storage import FolderStorage
from solotable.systems.surveys import (
    ComponentDraft,
    Configs,
    Documents,
    ElementDraft,
    ImageDraft,
    Images,
    LibraryComponentDraft,
    LibraryComponents,
    LibraryElementDraft,
    LibraryElements,
    LibrarySectionDraft,
    LibrarySections,
    MemberDraft,
    Members,
    PhraseDraft,
    Phrases,
    SectionDraft,
    SurveyElement,
    TempData,
    TenantDraft,
    Tenants,
    surveyor,
)
from solotable.systems.surveys.services.commits import TransactionBatch
from solotable.systems.surveys.services.export import export_tenant

from .office import Office


def exported(office: Office, tenant: str = "acme") -> list[dict[str, Any]]:
    """Return the lines of an export, checked against its last line."""

    async def read() -> bytes:
        return b"".join([chunk async for chunk in await export_tenant(office.store(tenant))])

    first, *lines, end = [json.loads(line) for line in office.run(read()).splitlines()]
    assert (first["type"], first["tenant"], first["format"]) == ("export", tenant, "solotable-surveys-1")
    assert (end["type"], end["items"]) == ("end", len(lines))
    assert end["counts"] == Counter(each["type"] for each in lines)
    return lines


def furnish(office: Office, tenant: str, folder: Path) -> None:
    """Create one of everything in a tenant."""
    store, storage = office.store(tenant), FolderStorage(folder)
    office.run(Tenants(office.db).create(TenantDraft(id=tenant, name=f"firm {tenant}")))
    office.run(Members(store).add(MemberDraft(user_id="dan", name="Dan")))
    section = office.run(_library(office, tenant))
    office.run(
        Phrases(store).create(PhraseDraft(kind="Defect", name="Rot", text="Rot.", element_ids=[section]))
    )
    data = f"GIF89a{tenant}".encode()
    draft = ImageDraft(
        sha256=hashlib.sha256(data).hexdigest(), name="a.gif", mime="image/gif", size=len(data)
    )
    image, _ = office.run(Images(store, storage).register(draft))
    survey = office.survey(tenant, title=f"of {tenant}")
    office.run(office.surveys(tenant).share(survey.survey_id, editors=["ben"], viewers=["cy"]))
    part = office.run(
        office.sections(survey, tenant).create(SectionDraft(name="Roof", photos=[image.image_id]))
    )
    element = office.run(
        office.elements(survey, tenant).create(ElementDraft(section_id=part.section_id, name="Covering"))
    )
    office.run(
        office.components(survey, tenant).create(ComponentDraft(element_id=element.element_id, name="Tiles"))
    )
    office.run(Configs(store).take(survey.survey_id))
    document = office.run(
        Documents(store, storage).create(name="Note", mime="text/plain", data=b"1", owner="ann")
    )
    for version in (1, 2):
        office.run(
            Documents(store, storage).replace(
                document.document_id, mime="text/plain", data=b"more", version=version
            )
        )
    office.run(TempData(store).put("t1", {"a": 1}))
    gone = office.survey(tenant, title="Deleted")
    office.run(office.surveys(tenant).delete(gone.survey_id))


async def _library(office: Office, tenant: str) -> str:
    store = office.store(tenant)
    section = await LibrarySections(store).create(LibrarySectionDraft(name="Roof"))
    element = await LibraryElements(store).create(
        LibraryElementDraft(section_id=section.section_id, name="Covering")
    )
    await LibraryComponents(store).create(LibraryComponentDraft(element_id=element.element_id, name="Tile"))
    return element.element_id


def test_s4_19_q1_an_export_has_every_item_of_its_tenant_and_no_other(office: Office, tmp_path: Path) -> None:
    for tenant in ("acme", "acme2", "zeta"):
        furnish(office, tenant, tmp_path / tenant)
    lines = exported(office)
    tags = {plan.tag for plan in surveyor.plans.values()}
    assert {each["type"] for each in lines} == tags, "an entity of the table is missing from the test"
    stored = Counter(
        item["_type"]["S"].removeprefix("_version:")
        for item in office.raw()
        if item["PK"]["S"].split("#")[1] == "acme" and not item["PK"]["S"].startswith(("UNIQUE#", "SYNC#"))
    )
    exported_types = Counter(each["type"] for each in lines)
    assert exported_types["Document"] == 3, "the former versions too"
    assert sum(stored.values()) == len(lines)
    assert {each["fields"].get("tenant_id", each["fields"].get("id")) for each in lines} == {"acme"}
    assert "acme2" not in json.dumps(lines)
    assert "zeta" not in json.dumps(lines)


def test_a_line_has_what_is_needed_to_find_the_bytes_and_to_restore_a_snapshot(
    office: Office, tmp_path: Path
) -> None:
    furnish(office, "acme", tmp_path)
    by_type = {each["type"]: each for each in exported(office)}
    assert by_type["Image"]["storage_key"] == f"acme/images/{by_type['Image']['fields']['image_id']}"
    assert by_type["Document"]["storage_key"].startswith("acme/documents/")
    packed = base64.b64decode(by_type["SurveyConfigPart"]["fields"]["data"])
    assert hashlib.sha256(packed).hexdigest() == by_type["SurveyConfig"]["fields"]["sha256"]
    deleted = [each for each in exported(office) if "deleted_at" in each]
    assert [each["fields"]["title"] for each in deleted] == ["Deleted"]
    for line in exported(office):
        if line["type"] not in ("Document", "SurveyConfigPart"):
            entity: type[Entity] = surveyor.plans[line["type"]].entity
            entity.model_validate(line["fields"])


def test_items_of_no_entity_are_exported_and_expired_ones_are_not(office: Office) -> None:
    office.survey()
    name = office.prefix + surveyor.name
    strange = {"PK": {"S": "TENANT#acme"}, "SK": {"S": "OTHER#1"}, "_type": {"S": "Other"}, "n": {"N": "7"}}
    office.engine.handle(PutItem(table=name, item=strange))
    office.run(TempData(office.store()).put("old", {}))
    kept = exported(office)
    assert Counter(each["type"] for each in kept) == {"SurveyMeta": 1, "Access": 1, "unknown": 1, "Temp": 1}
    (unknown,) = (each for each in kept if each["type"] == "unknown")
    assert unknown["attributes"]["n"] == 7
    office.clock.seconds += 25 * 3600
    assert "Temp" not in {each["type"] for each in exported(office)}


def test_an_export_of_many_pages_needs_the_memory_of_one(tmp_path: Path) -> None:
    async def write(store: AsyncStore, numbers: range) -> None:
        fields: dict[str, Any] = {"survey_id": "s", "section_id": "x", "order": "V", "notes": "n" * 4900}
        async with TransactionBatch(store) as batch:
            for number in numbers:
                batch.put(SurveyElement(name=f"Room {number}", **fields))

    async def measure(store: AsyncStore) -> tuple[int, int, int]:
        """Return the size of an export, its largest chunk, and the memory that it needed."""
        total, largest = 0, 0
        tracemalloc.start()
        try:
            async for chunk in await export_tenant(store):
                total += len(chunk)
                largest = max(largest, len(chunk))
            return total, largest, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    async def grow() -> list[tuple[int, int, int]]:
        async with connect_async(f"sqlite:///{tmp_path / 'a.db'}?durability=relaxed", surveyor) as db:
            store = db.tenant("acme")
            await write(store, range(300))
            small = await measure(store)
            await write(store, range(300, 1200))
            return [small, await measure(store)]

    (small, _, few), (total, largest, many) = asyncio.run(grow())
    assert total > 3.9 * small > 6_000_000
    assert largest < 128 * 1024
    assert many < 1.3 * few


def test_an_error_is_raised_before_the_first_byte(office: Office) -> None:
    with pytest.raises(InvalidInput, match="takes the store of a tenant"):
        office.run(export_tenant(office.db))

    def fail() -> None:
        raise TableNotFound("gone")

    office.watched.slip_in(Query, fail)
    with pytest.raises(TableNotFound):
        office.run(export_tenant(office.store()))
