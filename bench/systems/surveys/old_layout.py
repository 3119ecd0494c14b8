"""The layout before: eight tables, a survey as one JSON document, 18 indexes that project everything.

The written design names the tables and "potentially 15+" indexes without listing them. These are the ones
that its ten queries need. Sort keys follow the time of a change only where Q10 needs it, which favours this
layout: every other index entry is rewritten in place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any

from solotable import AsyncDatabase, Created, Entity, Json, Key, Query, Updated, Version
from solotable.systems.surveys.migration.old_tables import (
    OLD_TABLES,
    components,
    documents,
    elements,
    images,
    phrases,
    sections,
    surveys,
    tenants,
)

from .workload import NOTE, OWNER, TENANT, PartData, Size, parts_of, survey_ids

TABLES = OLD_TABLES
INDEXES = sum(len(table.indexes) for table in TABLES)


class OldTenant(Entity, table=tenants):
    """A tenant."""

    key = Key(("id",))
    id: str
    name: str


class _Synced(Entity):
    """What the old items share: a tenant, a synchronisation status, times."""

    id: str
    tenant_id: str = TENANT
    sync_key: str = f"{TENANT}#synced"
    created: Annotated[datetime | None, Created()] = None
    updated: Annotated[datetime | None, Updated()] = None


class OldSurvey(_Synced, table=surveys):
    """A survey: everything that was entered is in `content`."""

    key = Key(("id",))
    by_tenant = Key(("tenant_id",), ("updated",), index="by_tenant")
    by_sync = Key(("sync_key",), ("id",), index="by_sync")
    by_owner = Key(("owner",), ("id",), index="by_owner")
    owner: str = OWNER
    content: Annotated[dict[str, Any], Json()]
    version: Annotated[int, Version()] = 0


class OldSection(_Synced, table=sections):
    """A section of the library."""

    key = Key(("id",))
    by_tenant = Key(("tenant_id",), ("updated",), index="by_tenant")
    by_sync = Key(("sync_key",), ("id",), index="by_sync")
    name: str
    order: str
    description: str = ""


class OldElement(_Synced, table=elements):
    """An element of the library."""

    key = Key(("id",))
    by_tenant = Key(("tenant_id",), ("updated",), index="by_tenant")
    by_sync = Key(("sync_key",), ("id",), index="by_sync")
    by_section = Key(("section_id",), ("order",), index="by_section")
    section_id: str
    name: str
    order: str
    description: str = ""


class OldComponent(_Synced, table=components):
    """A component of the library."""

    key = Key(("id",))
    by_tenant = Key(("tenant_id",), ("updated",), index="by_tenant")
    by_sync = Key(("sync_key",), ("id",), index="by_sync")
    by_element = Key(("element_id",), ("order",), index="by_element")
    element_id: str
    name: str
    order: str
    materials: list[str]


class OldPhrase(_Synced, table=phrases):
    """A phrase with its associations."""

    key = Key(("id",))
    by_tenant = Key(("tenant_id",), ("updated",), index="by_tenant")
    by_sync = Key(("sync_key",), ("id",), index="by_sync")
    by_type = Key(("type_key",), ("name",), index="by_type")
    type_key: str
    name: str
    phrase: str
    element_ids: list[str]


class OldImage(_Synced, table=images):
    """The metadata of an image."""

    key = Key(("id",))
    by_tenant = Key(("tenant_id",), ("updated",), index="by_tenant")
    by_sync = Key(("sync_key",), ("id",), index="by_sync")
    path: str
    caption: str = ""


class OldDocument(Entity, table=documents):
    """A version of a document."""

    key = Key("{tenant_id}#{document_id}", "{label}")
    by_tenant = Key(("tenant_id",), ("updated",), index="by_tenant")
    by_owner = Key(("owner",), ("updated",), index="by_owner")
    tenant_id: str = TENANT
    document_id: str
    label: str
    owner: str = OWNER
    name: str
    path: str
    updated: Annotated[datetime | None, Updated()] = None


_LISTED = (OldSurvey, OldSection, OldElement, OldComponent, OldPhrase, OldImage, OldDocument)
_WAITING = (OldSurvey, OldSection, OldElement, OldComponent, OldPhrase, OldImage)


class OldLayout:
    """The eight tables on one database, with the ten queries and the typical edits."""

    def __init__(self, db: AsyncDatabase, size: Size) -> None:
        self._db = db
        self._size = size
        self._survey = survey_ids(size)[0]

    async def load(self) -> None:
        """Store the data of the tenant; a survey over 400 KB raises ItemTooLarge."""
        db, size = self._db, self._size
        await db.put(OldTenant(id=TENANT, name="Acme"))
        for survey_id in survey_ids(size):
            await db.create(OldSurvey(id=survey_id, content=_content(size)))
        async with db.batch(overwrite=True) as batch:
            for number in range(size.library):
                order, kind = f"{number:04d}", number % 10
                if kind == 0:
                    batch.put(OldSection(id=f"ls{number}", name=f"Section {number}", order=order))
                elif kind < 4:
                    section_id = f"ls{number // 10 * 10}"
                    element = OldElement(
                        id=f"le{number}", section_id=section_id, name=f"Element {number}", order=order
                    )
                    batch.put(element)
                else:
                    component = OldComponent(
                        id=f"lc{number}",
                        element_id=f"le{number // 10 * 10 + 1}",
                        name=f"Component {number}",
                        order=order,
                        materials=["Slate", "Clay"],
                    )
                    batch.put(component)
            for number in range(size.phrases):
                phrase = OldPhrase(
                    id=f"p{number}",
                    type_key=f"{TENANT}#{'Defect' if number % 4 else 'Condition'}",
                    name=f"Phrase {number:03d}",
                    phrase=NOTE,
                    element_ids=[f"le{number % 4 + 1}"],
                )
                batch.put(phrase)
            for number in range(size.images):
                batch.put(OldImage(id=f"i{number}", path=f"{TENANT}/images/{number}", caption="Front"))
            for label in ("LATEST", *(f"v{version}" for version in range(1, 6))):
                batch.put(
                    OldDocument(document_id="d1", label=label, name="Terms", path=f"{TENANT}/d1/{label}")
                )

    async def mark_changed(self) -> None:
        """Let five parts in each of two surveys wait for their synchronisation."""
        for survey_id in survey_ids(self._size)[:2]:
            found = await self._db.require(OldSurvey, id=survey_id)
            for element in _elements(found.content)[:5]:
                element["syncStatus"] = "pending"
            found.sync_key = f"{TENANT}#pending"
            await self._db.put(found)

    def operations(self, since: Callable[[], datetime]) -> dict[str, Callable[[int], Awaitable[object]]]:
        """Return the queries and edits by name; each takes the number of its call."""
        return {
            "Q1 all data of the tenant": lambda _: self._all_of_tenant(),
            "Q2 complete survey": lambda _: self._db.require(OldSurvey, id=self._survey),
            "Q3 list of surveys": lambda _: self._all(OldSurvey.by_tenant.query(tenant_id=TENANT)),
            "Q4 library": lambda _: self._each(
                *(each.by_tenant.query(tenant_id=TENANT) for each in (OldSection, OldElement, OldComponent))
            ),
            "Q5 phrases of a type": lambda _: self._all(OldPhrase.by_type.query(type_key=f"{TENANT}#Defect")),
            "Q6 phrases of an element": lambda _: self._phrases_of("le1"),
            "Q7 images": lambda _: self._all(OldImage.by_tenant.query(tenant_id=TENANT)),
            "Q8 document versions": lambda _: self._all(
                OldDocument.key.query(tenant_id=TENANT, document_id="d1")
            ),
            "Q9 items that wait": lambda _: self._each(
                *(each.by_sync.query(sync_key=f"{TENANT}#pending") for each in _WAITING)
            ),
            "Q10 items changed since": lambda _: self._each(
                *(each.by_tenant.query(tenant_id=TENANT).since(updated=since()) for each in _LISTED)
            ),
            "edit a section's note": lambda call: self._edit(lambda all_: _set_note(all_, call)),
            "edit an element's condition": lambda call: self._edit(
                lambda all_: _set_conditions(all_, call, 1)
            ),
            "add a component": lambda call: self._edit(lambda all_: _add_component(all_, call)),
            "move a section": lambda _: self._edit(_move_last_to_front),
            "complete a section": lambda call: self._edit(lambda all_: _complete(all_, call)),
            "change the title": lambda call: self._edit(lambda all_: all_.update(title=f"Mill Lane {call}")),
            "batch of 20 changes": lambda call: self._edit(lambda all_: _set_conditions(all_, call, 20)),
        }

    async def _edit(self, change: Callable[[dict[str, Any]], object]) -> OldSurvey:
        """Read the survey, change its document, and write it whole if no other write came between."""
        found = await self._db.require(OldSurvey, id=self._survey, consistent=True)
        change(found.content)
        return await self._db.put(found)

    async def _all_of_tenant(self) -> list[Any]:
        found = [await self._db.require(OldTenant, id=TENANT)]
        return [*found, *await self._each(*(each.by_tenant.query(tenant_id=TENANT) for each in _LISTED))]

    async def _phrases_of(self, element_id: str) -> list[Any]:
        """Read all phrases: no index finds a member of a list."""
        found = await self._all(OldPhrase.by_tenant.query(tenant_id=TENANT))
        return [phrase for phrase in found if element_id in phrase.element_ids]

    async def _each(self, *queries: Query[Any]) -> list[Any]:
        return [row for query in queries for row in await self._all(query)]

    async def _all(self, query: Query[Any]) -> list[Any]:
        return [row async for row in self._db.all(query)]


def _content(size: Size) -> dict[str, Any]:
    nodes: dict[str, dict[str, Any]] = {}
    roots: list[dict[str, Any]] = []
    children = {"section": "elements", "element": "components"}
    for part in parts_of(size):
        node = _node(part)
        if part.kind in children:
            node[children[part.kind]] = []
        nodes[part.id] = node
        if part.parent:
            parent = nodes[part.parent]
            parent["components" if part.kind == "component" else "elements"].append(node)
        else:
            roots.append(node)
    return {"title": "12 Mill Lane", "clientName": "Ada Byron", "status": "in_progress", "sections": roots}


def _node(part: PartData) -> dict[str, Any]:
    return {"id": part.id, "order": part.number, **part.fields()}


def _elements(content: dict[str, Any]) -> list[dict[str, Any]]:
    return [element for section in content["sections"] for element in section["elements"]]


def _set_note(content: dict[str, Any], call: int) -> None:
    content["sections"][0]["notes"] = f"{NOTE}{call:04d}"


def _set_conditions(content: dict[str, Any], call: int, count: int) -> None:
    nodes = _elements(content)
    nodes += [component for element in nodes for component in element["components"]]
    for node in nodes[:count]:
        node["condition"] = ("Good", "Poor")[call % 2]


def _add_component(content: dict[str, Any], call: int) -> None:
    _elements(content)[0]["components"].append(_node(PartData("component", f"new{call}", "e000", call)))


def _move_last_to_front(content: dict[str, Any]) -> None:
    content["sections"].insert(0, content["sections"].pop())
    for order, section in enumerate(content["sections"]):
        section["order"] = order


def _complete(content: dict[str, Any], call: int) -> None:
    section = content["sections"][call % len(content["sections"])]
    section["completedAt"] = None if section.get("completedAt") else "2026-11-16T12:00:00Z"
