"""The rule of surveys: a JSON document becomes metadata, parts, accesses, photos and a snapshot.

S4.25: nothing is lost and ids are kept. Parts without an id get one from their place, and the second part
with an id gets another one. S4.27: the snapshot has the sections, elements and components that the survey
was made of.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from solotable import Database, Entity
from solotable.migrations.mapping import Mapping as Rules
from solotable.migrations.mapping import stable_id
from solotable.systems.surveys.entities.access import Access, SurveyRole
from solotable.systems.surveys.entities.configs import (
    ComponentTemplate,
    Configuration,
    ElementTemplate,
    SectionTemplate,
)
from solotable.systems.surveys.entities.files import ImageUse
from solotable.systems.surveys.entities.library import Material
from solotable.systems.surveys.entities.surveys import (
    Part,
    PartKind,
    SurveyComponent,
    SurveyElement,
    SurveyMeta,
    SurveySection,
)
from solotable.systems.surveys.formats.order_keys import spread
from solotable.systems.surveys.services.survey.configs import pack_config

from .old_values import (
    condition_of,
    config_id,
    format_time,
    keep,
    old_spelling,
    old_values,
    order_of,
    parse_time,
    spelled,
    status_of,
    sync_of,
    texts,
    times_of,
    without_none,
)

Node = dict[str, Any]


def add_survey_rules(mapping: Rules) -> None:
    """Add the rule of surveys and its inverse."""
    mapping.rule("Surveys")(_survey)
    mapping.inverse(
        "Surveys",
        SurveyMeta,
        SurveySection,
        SurveyElement,
        SurveyComponent,
        key=lambda entity: {"id": entity.survey_id, "tenant_id": entity.tenant_id},
        read=_read_survey,
    )(_old_survey)


def _survey(item: dict[str, Any]) -> Iterator[Entity]:
    tenant_id, survey_id, times = item["tenant_id"], item["id"], times_of(item)
    content = item.get("content") or "{}"
    document: Node = json.loads(content) if isinstance(content, str) else dict(content)
    reader = _PartReader(tenant_id, survey_id, times)
    parts = list(reader.read(document.get("sections") or []))
    sections = [part for part in parts if isinstance(part, SurveySection)]
    snapshot_id = config_id(survey_id, times["created"])
    status = document.get("status") or item.get("status")
    meta = SurveyMeta(
        tenant_id=tenant_id,
        survey_id=survey_id,
        title=document.get("title") or item.get("title") or "Untitled",
        address=document.get("address") or "",
        client_name=document.get("clientName") or "",
        survey_date=(moment := parse_time(document.get("surveyDate"))) and moment.date(),
        status=status_of(status),
        config_id=snapshot_id,
        section_count=len(sections),
        completed_sections=sum(section.completed_at is not None for section in sections),
        owner=item.get("owner") or "unknown",
        editors=texts(item.get("editors")),
        viewers=texts(item.get("viewers")),
        version=int(item.get("version") or 1),
        **times,
        **sync_of(item, times["updated"]),
    )
    rest = {name: value for name, value in document.items() if name not in _DOCUMENT_FIELDS}
    old = json.dumps(rest, sort_keys=True) if rest else None
    keep(meta, {"old_status": old_spelling(status, meta.status), "old_content": old})
    yield meta
    yield from parts
    yield from _accesses(meta)
    yield from _photos(tenant_id, survey_id, parts)
    head, texts_of = pack_config(survey_id, snapshot_id, _configuration(parts), meta.owner, tenant_id)
    yield head.model_copy(update={"created": times["created"]})
    yield from texts_of


_DOCUMENT_FIELDS = frozenset({"title", "address", "clientName", "surveyDate", "status", "sections"})
_PART_FIELDS: Mapping[PartKind, frozenset[str]] = {
    "section": frozenset({"completedAt", "completedBy", "elements"}),
    "element": frozenset({"defects", "measurements", "components"}),
    "component": frozenset({"material", "age", "lastMaintenance", "defects"}),
}
_COMMON_FIELDS = frozenset(
    {"id", "name", "order", "notes", "condition", "photos", "createdAt", "updatedAt", "version"}
)


class _PartReader:
    """Reads the parts of a survey from its document."""

    def __init__(self, tenant_id: str, survey_id: str, times: Mapping[str, datetime]) -> None:
        self._tenant_id = tenant_id
        self._survey_id = survey_id
        self._times = times
        self._taken: dict[str, int] = {}

    def read(self, sections: list[Node]) -> Iterator[Part]:
        """Yield each section, its elements, and the components of each of them."""
        for section, order in _ordered(sections):
            made = SurveySection(
                **self._common("section", "section_id", section, order),
                completed_at=parse_time(section.get("completedAt")),
                completed_by=section.get("completedBy"),
            )
            yield self._kept(made, "section", section)
            for element, place in _ordered(section.get("elements") or []):
                child = SurveyElement(
                    **self._common("element", "element_id", element, place, made.section_id),
                    section_id=made.section_id,
                    defects=texts(element.get("defects")),
                    measurements={
                        str(name): str(value) for name, value in (element.get("measurements") or {}).items()
                    },
                )
                yield self._kept(child, "element", element)
                yield from self._components(child.element_id, element.get("components") or [])

    def _components(self, element_id: str, components: list[Node]) -> Iterator[Part]:
        for component, order in _ordered(components):
            made = SurveyComponent(
                **self._common("component", "component_id", component, order, element_id),
                element_id=element_id,
                material=str(component.get("material") or "Unknown"),
                age=str(component.get("age") or "Unknown"),
                last_maintenance=str(component.get("lastMaintenance") or ""),
                defects=texts(component.get("defects")),
            )
            yield self._kept(made, "component", component)

    def _common(
        self, kind: PartKind, id_field: str, node: Node, order: tuple[int, str], parent: str = ""
    ) -> dict[str, Any]:
        place, key = order
        return {
            "tenant_id": self._tenant_id,
            "survey_id": self._survey_id,
            id_field: self._id(kind, node, parent, place),
            "name": node.get("name") or "Untitled",
            "order": key,
            "notes": node.get("notes") or "",
            "condition": condition_of(node.get("condition")),
            "photos": texts(node.get("photos")),
            "created": parse_time(node.get("createdAt")) or self._times["created"],
            "updated": parse_time(node.get("updatedAt")) or self._times["updated"],
            "version": int(node.get("version") or 1),
        }

    def _id(self, kind: PartKind, node: Node, parent: str, place: int) -> str:
        """Return the id of a part, or another one for a part without an id, or with the id of another."""
        found = str(node.get("id") or "") or stable_id(self._survey_id, kind, parent, place)
        count = self._taken[f"{kind}#{found}"] = self._taken.get(f"{kind}#{found}", 0) + 1
        return found if count == 1 else f"{found}-{count}"

    @staticmethod
    def _kept(part: Part, kind: PartKind, node: Node) -> Part:
        """Keep the spelling of the condition, and everything that the part has no field for."""
        known = _COMMON_FIELDS | _PART_FIELDS[kind]
        rest = {name: value for name, value in node.items() if name not in known}
        if kind == "element":
            rest.setdefault("materials", [])
        if kind == "component":
            rest.setdefault("specifications", {})
        old = json.dumps(rest, sort_keys=True) if rest else None
        keep(part, {"old_fields": old, "old_condition": old_spelling(node.get("condition"), part.condition)})
        return part


def _ordered(nodes: list[Node]) -> Iterator[tuple[Node, tuple[int, str]]]:
    """Yield the parts of a list in order, with their place and order key; equal orders keep their places."""
    placed = sorted(enumerate(nodes), key=lambda pair: (order_of(pair[1].get("order")), pair[0]))
    for place, ((_, node), key) in enumerate(zip(placed, spread(len(nodes)), strict=True)):
        yield node, (place, key)


def _accesses(meta: SurveyMeta) -> Iterator[Entity]:
    roles: dict[str, SurveyRole] = dict.fromkeys(meta.viewers, "viewer")
    roles |= dict.fromkeys(meta.editors, "editor")
    roles[meta.owner] = "owner"
    for user_id, role in roles.items():
        yield Access(
            tenant_id=meta.tenant_id,
            user_id=user_id,
            survey_id=meta.survey_id,
            role=role,
            created=meta.created,
        )


def _photos(tenant_id: str, survey_id: str, parts: list[Part]) -> Iterator[Entity]:
    for part in parts:
        kind, part_id = _identity(part)
        for image_id in dict.fromkeys(part.photos):
            yield ImageUse(
                tenant_id=tenant_id,
                image_id=image_id,
                survey_id=survey_id,
                part_kind=kind,
                part_id=part_id,
            )


def _identity(part: Part) -> tuple[PartKind, str]:
    match part:
        case SurveySection():
            return "section", part.section_id
        case SurveyElement():
            return "element", part.element_id
        case SurveyComponent():
            return "component", part.component_id


def _configuration(parts: list[Part]) -> Configuration:
    """Return the templates that a survey was made of, with the materials that its parts name."""
    sections: dict[str, SectionTemplate] = {}
    elements: dict[str, ElementTemplate] = {}
    for part in parts:
        match part:
            case SurveySection():
                sections[part.section_id] = SectionTemplate(
                    section_id=part.section_id, name=part.name, order=part.order
                )
            case SurveyElement():
                elements[part.element_id] = ElementTemplate(
                    element_id=part.element_id, name=part.name, order=part.order
                )
                sections[part.section_id].elements.append(elements[part.element_id])
            case SurveyComponent():
                elements[part.element_id].components.append(
                    ComponentTemplate(
                        component_id=part.component_id,
                        name=part.name,
                        order=part.order,
                        materials=[Material(name=part.material[:100])],
                    )
                )
    return Configuration(sections=list(sections.values()))


def _read_survey(db: Database, key: Mapping[str, Any]) -> list[Entity]:
    """Read a survey with its parts."""
    store = db.tenant(str(key["tenant_id"]))
    return list(store.all(SurveyMeta.whole(str(key["id"])).consistent()))


def _old_survey(entities: list[Entity]) -> dict[str, Any] | None:
    meta = next((each for each in entities if isinstance(each, SurveyMeta)), None)
    if meta is None:
        return None
    kept = old_values(meta)
    document: Node = without_none(
        {
            "title": meta.title,
            "address": meta.address or None,
            "clientName": meta.client_name or None,
            "surveyDate": None if meta.survey_date is None else meta.survey_date.isoformat(),
            "status": spelled(meta, "status", meta.status),
            "sections": _old_sections(meta, entities),
        }
    )
    document |= json.loads(kept.get("old_content") or "{}")
    return without_none(
        {
            "id": meta.survey_id,
            "tenant_id": meta.tenant_id,
            "sync_key": f"{meta.tenant_id}#{meta.sync_status}",
            "sync_error": meta.sync_error,
            "owner": meta.owner,
            "editors": list(meta.editors),
            "viewers": list(meta.viewers),
            "content": json.dumps(document, ensure_ascii=False, separators=(",", ":")),
            "created": format_time(meta.created),
            "updated": format_time(meta.updated),
            "version": meta.version,
        }
    )


def _old_sections(meta: SurveyMeta, entities: list[Entity]) -> list[Node]:
    components: dict[str, list[Node]] = {}
    elements: dict[str, list[Node]] = {}
    sections: list[Node] = []
    parts = [each for each in entities if isinstance(each, (SurveySection, SurveyElement, SurveyComponent))]
    for part in sorted(parts, key=lambda each: (each.order, _identity(each)[1])):
        more: dict[str, Any]
        if isinstance(part, SurveySection):
            more = {"completedAt": format_time(part.completed_at), "completedBy": part.completed_by}
            siblings = sections
        elif isinstance(part, SurveyElement):
            more = {"defects": list(part.defects), "measurements": dict(part.measurements)}
            siblings = elements.setdefault(part.section_id, [])
        else:
            more = {
                "material": part.material,
                "age": part.age,
                "lastMaintenance": part.last_maintenance,
                "defects": list(part.defects),
            }
            siblings = components.setdefault(part.element_id, [])
        siblings.append(_old_node(meta, part, len(siblings), more))
    for section in sections:
        section["elements"] = elements.get(section["id"], [])
        for element in section["elements"]:
            element["components"] = components.get(element["id"], [])
    return sections


def _old_node(meta: SurveyMeta, part: Part, place: int, more: Mapping[str, Any]) -> Node:
    return without_none(
        {
            "id": _identity(part)[1],
            "name": part.name,
            "order": place,
            "notes": part.notes,
            "condition": spelled(part, "condition", part.condition),
            "photos": list(part.photos),
            **more,
            **json.loads(old_values(part).get("old_fields") or "{}"),
            "createdAt": None if part.created == meta.created else format_time(part.created),
            "updatedAt": None if part.updated == meta.updated else format_time(part.updated),
            "version": part.version if part.version > 1 else None,
        }
    )
