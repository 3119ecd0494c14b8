"""Rules of the library: Sections, Elements, Components and Phrases, forth and back (S4.26, S4.27)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from solotable import Entity
from solotable.migrations.mapping import Mapping as Rules
from solotable.systems.surveys.entities.library import (
    Component,
    Element,
    Material,
    Phrase,
    PhraseKind,
    PhraseLink,
    Section,
    TargetKind,
)

from .old_values import (
    format_time,
    keep,
    old_values,
    order_key,
    order_number,
    order_of,
    sync_of,
    texts,
    times_of,
    without_none,
)

_UNNAMED = "Untitled"
#: Attributes of the library that the new entities have no field for, and their defaults (S4.26).
_DEFAULTS: Mapping[str, Any] = {"is_active": True, "category": "General", "tags": []}
_TARGETS: Mapping[str, TargetKind] = {
    "element_ids": "ELEMENT",
    "component_ids": "COMPONENT",
    "material_ids": "MATERIAL",
}


def add_library_rules(mapping: Rules) -> None:
    """Add the rules of the library and their inverses."""
    mapping.rule("Sections")(_section)
    mapping.inverse("Sections", Section)(_old_section)
    mapping.rule("Elements")(_element)
    mapping.inverse("Elements", Element)(_old_element)
    mapping.rule("Components")(_component)
    mapping.inverse("Components", Component)(_old_component)
    mapping.rule("Phrases")(_phrase)
    mapping.inverse("Phrases", Phrase)(_old_phrase)
    # Elements are items of another table than their section, and components than their element.
    mapping.recounts(Section, "element_count")
    mapping.recounts(Element, "component_count")


def _common(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that all templates have."""
    times = times_of(item)
    return {
        "tenant_id": item["tenant_id"],
        "version": int(item.get("version") or 1),
        **times,
        **sync_of(item, times["updated"]),
    }


def _template(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_common(item),
        "name": item.get("name") or _UNNAMED,
        "order": order_key(order_of(item.get("order"))),
    }


def _kept(item: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: item.get(name, default) for name, default in _DEFAULTS.items()}
    found["tags"] = texts(found["tags"])
    return found


def _section(item: dict[str, Any]) -> Iterator[Entity]:
    section = Section(
        section_id=item["id"],
        description=item.get("description") or "",
        created_by=item.get("created_by") or "",
        **_template(item),
    )
    keep(section, _kept(item))
    yield section


def _element(item: dict[str, Any]) -> Iterator[Entity]:
    element = Element(
        element_id=item["id"],
        section_id=item["section_id"],
        description=item.get("description") or "",
        **_template(item),
    )
    keep(element, _kept(item))
    yield element


def _component(item: dict[str, Any]) -> Iterator[Entity]:
    component = Component(
        component_id=item["id"],
        element_id=item["element_id"],
        materials=[Material(name=name) for name in texts(item.get("materials"))],
        **_template(item),
    )
    keep(component, _kept(item))
    yield component


def _phrase(item: dict[str, Any]) -> Iterator[Entity]:
    kind: PhraseKind = "Condition" if str(item.get("type_key", "")).endswith("#Condition") else "Defect"
    text = str(item.get("phrase") or "")
    phrase = Phrase(
        phrase_id=item["id"],
        kind=kind,
        name=item.get("name") or text[:100] or _UNNAMED,
        text=text,
        level2=item.get("phrase_level2") or "",
        element_ids=texts(item.get("element_ids")),
        component_ids=texts(item.get("component_ids")),
        material_ids=texts(item.get("material_ids")),
        **_common(item),
    )
    yield phrase
    for field, target in _TARGETS.items():
        for target_id in dict.fromkeys(getattr(phrase, field)):
            yield PhraseLink(
                tenant_id=phrase.tenant_id,
                target_kind=target,
                target_id=target_id,
                phrase_id=phrase.phrase_id,
                kind=kind,
            )


def _old_common(entity: Section | Element | Component | Phrase) -> dict[str, Any]:
    return without_none(
        {
            "tenant_id": entity.tenant_id,
            "sync_key": f"{entity.tenant_id}#{entity.sync_status}",
            "sync_error": entity.sync_error,
            "name": entity.name,
            "created": format_time(entity.created),
            "updated": format_time(entity.updated),
            "version": entity.version,
        }
    )


def _old_template(entity: Section | Element | Component) -> dict[str, Any]:
    return {**_old_common(entity), "order": f"{order_number(entity.order):04d}", **_kept(old_values(entity))}


def _old_section(section: Section) -> dict[str, Any]:
    return {
        "id": section.section_id,
        "description": section.description,
        "created_by": section.created_by,
        **_old_template(section),
    }


def _old_element(element: Element) -> dict[str, Any]:
    return {
        "id": element.element_id,
        "section_id": element.section_id,
        "description": element.description,
        **_old_template(element),
    }


def _old_component(component: Component) -> dict[str, Any]:
    return {
        "id": component.component_id,
        "element_id": component.element_id,
        "materials": [material.name for material in component.materials],
        **_old_template(component),
    }


def _old_phrase(phrase: Phrase) -> dict[str, Any]:
    return {
        "id": phrase.phrase_id,
        "type_key": f"{phrase.tenant_id}#{phrase.kind}",
        "phrase": phrase.text,
        "phrase_level2": phrase.level2,
        **{field: list(getattr(phrase, field)) for field in _TARGETS},
        **_old_common(phrase),
    }
