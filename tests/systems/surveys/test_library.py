"""The library: one query for all of it, counters that protect parents, phrases and their associations."""

from __future__ import annotations

import pytest

from solotable.errors import NotFound, VersionConflict
from solotable.systems.errors import InvalidInput
from solotable.systems.surveys.errors import InUse, ParentGone
from solotable.systems.surveys.services.drafts import (
    LibraryComponentDraft,
    LibraryElementDraft,
    LibrarySectionDraft,
    LibrarySectionPatch,
    PhraseDraft,
    PhrasePatch,
)

from .office import Office


def test_s4_11_s4_20_q4_the_library_is_one_query(office: Office) -> None:
    sections, elements, components = office.library()
    walls = office.run(sections.create(LibrarySectionDraft(name="Walls")))
    roof = office.run(sections.create(LibrarySectionDraft(name="Roof")))
    office.run(sections.move(roof.section_id))
    tiles = office.run(elements.create(LibraryElementDraft(section_id=roof.section_id, name="Covering")))
    office.run(elements.create(LibraryElementDraft(section_id=walls.section_id, name="Brick")))
    for name in ("Tile", "Ridge"):
        office.run(components.create(LibraryComponentDraft(element_id=tiles.element_id, name=name)))
    office.sent()
    found = office.run(office.configs().read_library())
    # One for the library, and one for each kind of phrases.
    assert office.sent() == ["Query", "Query", "Query"]
    assert [(each.name, [e.name for e in each.elements]) for each in found.sections] == [
        ("Roof", ["Covering"]),
        ("Walls", ["Brick"]),
    ]
    assert [each.name for each in found.sections[0].elements[0].components] == ["Tile", "Ridge"]


def test_a_section_with_elements_is_not_deleted(office: Office) -> None:
    sections, elements, components = office.library()
    roof = office.run(sections.create(LibrarySectionDraft(name="Roof")))
    walls = office.run(sections.create(LibrarySectionDraft(name="Walls")))
    tiles = office.run(elements.create(LibraryElementDraft(section_id=roof.section_id, name="Covering")))
    tile = office.run(components.create(LibraryComponentDraft(element_id=tiles.element_id, name="Tile")))
    with pytest.raises(InUse, match="This section has 1 elements"):
        office.run(sections.delete(roof.section_id))
    with pytest.raises(InUse, match="This element has 1 components"):
        office.run(elements.delete(tiles.element_id))
    with pytest.raises(VersionConflict):
        office.run(sections.delete(walls.section_id, version=7))
    office.run(elements.move(tiles.element_id, to=walls.section_id))
    office.run(sections.delete(roof.section_id))
    office.run(components.delete(tile.component_id))
    office.run(elements.delete(tiles.element_id))
    office.run(sections.delete(walls.section_id))
    assert office.run(office.configs().read_library()).sections == []


def test_a_template_needs_its_parent(office: Office) -> None:
    sections, elements, components = office.library()
    with pytest.raises(ParentGone, match="The section does not exist in the library"):
        office.run(elements.create(LibraryElementDraft(section_id="none", name="x")))
    roof = office.run(sections.create(LibrarySectionDraft(name="Roof")))
    with pytest.raises(InvalidInput, match="a section of the library has no parent"):
        office.run(sections.move(roof.section_id, to="none"))
    for templates in (sections, elements, components):
        with pytest.raises(NotFound):
            office.run(templates.delete("none"))
    with pytest.raises(ParentGone):
        office.run(components.create(LibraryComponentDraft(element_id="none", name="x")))


def test_s4_13_templates_have_versions_and_times(office: Office) -> None:
    sections, _, _ = office.library()
    roof = office.run(sections.create(LibrarySectionDraft(name="Roof"), created_by="ann"))
    office.clock.seconds += 60
    changed = office.run(sections.update(roof.section_id, LibrarySectionPatch(name="Roofs"), version=1))
    assert (changed.name, changed.version, changed.created_by) == ("Roofs", 2, "ann")
    assert changed.created is not None
    assert changed.updated is not None
    assert (changed.updated - changed.created).total_seconds() == 60
    assert changed.sync_status == "synced"


def test_s4_12_s4_20_q5_phrases_by_kind_and_name(office: Office) -> None:
    phrases = office.phrases()
    for name in ("Slipped", "Cracked"):
        office.run(phrases.create(PhraseDraft(kind="Defect", name=name, text=f"{name}.")))
    office.run(phrases.create(PhraseDraft(kind="Condition", name="Fair", text="Fair.")))
    office.sent()
    found = office.run(phrases.of_kind("Defect"))
    assert [each.name for each in found] == ["Cracked", "Slipped"]
    assert office.sent() == ["Query"]


def test_c4_19_q6_the_phrases_of_an_element_or_component(office: Office) -> None:
    phrases = office.phrases()
    draft = PhraseDraft(
        kind="Defect", name="Cracked", text="c", element_ids=["e1", "e2"], component_ids=["c1"]
    )
    phrase = office.run(phrases.create(draft))
    office.run(phrases.create(PhraseDraft(kind="Condition", name="Fair", text="f", element_ids=["e1"])))

    def of(kind: str, target: str) -> list[str]:
        return sorted(each.name for each in office.run(phrases.of_target(kind, target)))  # type: ignore[arg-type]

    assert (of("ELEMENT", "e1"), of("ELEMENT", "e2")) == (["Cracked", "Fair"], ["Cracked"])
    assert (of("COMPONENT", "c1"), of("MATERIAL", "c1"), of("ELEMENT", "e")) == (["Cracked"], [], [])
    office.run(phrases.update("Defect", phrase.phrase_id, PhrasePatch(element_ids=["e2", "e3"])))
    assert (of("ELEMENT", "e1"), of("ELEMENT", "e3")) == (["Fair"], ["Cracked"])
    office.run(phrases.delete("Defect", phrase.phrase_id))
    assert (of("ELEMENT", "e2"), of("COMPONENT", "c1")) == ([], [])
    assert len(office.keys("PHRASEOF#")) == 1


def test_c4_19_a_phrase_of_another_kind_moves_with_its_associations(office: Office) -> None:
    phrases = office.phrases()
    phrase = office.run(phrases.create(PhraseDraft(kind="Defect", name="Worn", text="w", element_ids=["e1"])))
    moved = office.run(phrases.update("Defect", phrase.phrase_id, PhrasePatch(kind="Condition"), version=1))
    assert (moved.kind, moved.version, moved.text) == ("Condition", 1, "w")
    with pytest.raises(NotFound):
        office.run(phrases.get("Defect", phrase.phrase_id))
    (link,) = office.run(phrases.of_target("ELEMENT", "e1"))
    assert link.kind == "Condition"
    with pytest.raises(VersionConflict):
        office.run(phrases.update("Condition", phrase.phrase_id, PhrasePatch(kind="Defect"), version=5))
