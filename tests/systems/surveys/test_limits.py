"""Bad input and limits: at the edge a value is stored, over it nothing is; and what two users do at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import pytest
from pydantic import ValidationError

from solotable import AsyncDatabase
from solotable._connect import to_async
from solotable._protocol.requests import TransactWriteItems, UpdateItem
from solotable.errors import DataError, NotFound, VersionConflict
from solotable.systems.errors import InvalidInput
from solotable.systems.storage import FolderStorage
from solotable.systems.surveys import (
    BatchChange,
    ComponentDraft,
    ElementDraft,
    ElementPatch,
    Elements,
    Image,
    Images,
    ImageUse,
    InUse,
    PhraseDraft,
    PhrasePatch,
    SectionDraft,
    SectionPatch,
    Sections,
    SurveyDraft,
    SurveyPatch,
    SurveySection,
    batch_update,
    read_report,
)
from solotable.systems.surveys.services.survey.photos import MAX_PHOTO_ACTIONS, photo_steps
from solotable.systems.surveys.services.survey.surveys import MAX_USERS

from .office import Office, put_many


def images(office: Office, count: int) -> list[str]:
    """Register images and return their ids."""
    store = office.beside()
    fields: dict[str, Any] = {"name": "a.jpg", "mime": "image/jpeg", "size": 1}
    return [
        store.create(Image(image_id=f"i{number:04d}", sha256=f"{number:064x}", **fields)).image_id
        for number in range(count)
    ]


def shown(office: Office, part_id: str) -> list[str]:
    """Return the images that the records name for a part."""
    found = (item for item in office.raw() if item["_type"] == {"S": "ImageUse"})
    return sorted(item["image_id"]["S"] for item in found if item["part_id"] == {"S": part_id})


@pytest.mark.parametrize(
    ("field", "fits", "too_much"),
    [
        ("title", "t" * 200, "t" * 201),
        ("title", "t", ""),
        ("title", "t", " \n\t"),
        ("address", "a" * 500, "a" * 501),
        ("client_name", "c" * 100, "c" * 101),
        ("survey_date", "2026-02-28", "2026-02-30"),
        ("survey_date", "2024-01-01", "yesterday"),
        ("survey_id", "a" * 64, "a" * 65),
        ("survey_id", "a-b", "a#b"),
    ],
)
def test_s4_41_the_limits_of_a_survey(field: str, fits: str, too_much: str) -> None:
    SurveyDraft(**{field: fits})  # type: ignore[arg-type]  # as JSON has it
    with pytest.raises(ValidationError):
        SurveyDraft(**{field: too_much})  # type: ignore[arg-type]  # as JSON has it


@pytest.mark.parametrize(
    ("draft", "field", "fits", "too_much"),
    [
        (ElementDraft, "name", "n" * 100, "n" * 101),
        (ElementDraft, "notes", "n" * 5000, "n" * 5001),
        (ElementDraft, "condition", "N/A", "n/a"),
        (ElementDraft, "defects", ["d"] * 50, ["d"] * 51),
        (ElementDraft, "photos", ["p"] * 50, ["p"] * 51),
        (ElementDraft, "measurements", {"k" * 50: "v" * 200}, {"k" * 51: "v"}),
        (ElementDraft, "measurements", {f"k{n}": "v" for n in range(50)}, {f"k{n}": "v" for n in range(51)}),
        (ComponentDraft, "material", "m" * 200, "m" * 201),
        (ComponentDraft, "age", "a" * 200, "a" * 201),
        (ComponentDraft, "notes", "n" * 5000, "n" * 5001),
    ],
)
def test_s4_41_the_limits_of_elements_and_components(
    draft: Any, field: str, fits: Any, too_much: Any
) -> None:
    parent = {"section_id": "x"} if draft is ElementDraft else {"element_id": "x"}
    draft(**{"name": "n", **parent, field: fits})
    with pytest.raises(ValidationError):
        draft(**{"name": "n", **parent, field: too_much})


def test_s4_41_what_is_at_the_edge_is_stored_and_read(office: Office) -> None:
    survey = office.survey(title="t" * 200, address="\u00e9" * 500, client_name="c" * 100)
    section = office.section(survey, "n" * 100, notes="\U0001f3e0" * 5000)
    stored = office.run(office.sections(survey).get(section.section_id, consistent=True))
    assert (len(stored.name), len(stored.notes), len(survey.address)) == (100, 5000, 500)


def test_s4_41_an_order_is_never_given_by_a_caller() -> None:
    # The design has numbers from 0; a caller says behind which part a new one is.
    with pytest.raises(ValidationError):
        SectionDraft(name="n", order=-1)  # type: ignore[call-arg]  # wrong
    with pytest.raises(ValidationError):
        SurveySection(survey_id="s", name="n", order="-1")
    with pytest.raises(ValidationError):
        SurveySection(survey_id="s", name="n", order="")


@pytest.mark.parametrize("status", ["published", "Draft", "DRAFT", "in progress", ""])
def test_c4_12_old_spellings_of_a_status_are_rejected(status: str) -> None:
    with pytest.raises(ValidationError):
        SurveyPatch(status=status)  # type: ignore[arg-type]  # wrong


@pytest.mark.parametrize("condition", ["good", "GOOD", "NA", "n/a", "Unknown", ""])
def test_c4_12_old_spellings_of_a_condition_are_rejected(condition: str) -> None:
    for patch in (SectionPatch, ElementPatch):
        with pytest.raises(ValidationError):
            patch.model_validate({"condition": condition})


def test_c4_12_one_list_of_statuses_and_conditions_serves_all_parts(office: Office) -> None:
    survey = office.survey(survey_date=date(2024, 1, 1))
    section = office.section(survey)
    for condition in ("Excellent", "Good", "Fair", "Poor", "N/A"):
        patch = SectionPatch.model_validate({"condition": condition})
        assert office.run(office.sections(survey).update(section.section_id, patch)).condition == condition
    for status in ("draft", "in_progress", "completed", "archived"):
        wanted = SurveyPatch.model_validate({"status": status})
        changed = office.run(office.surveys().update(survey.survey_id, wanted))
        assert changed.status == status
    # A user's surveys can be queried, which a list of editors in the metadata does not allow.
    office.run(office.surveys().share(survey.survey_id, editors=["ben"]))
    assert [each.survey_id for each in office.run(office.surveys().list_of("ben"))] == [survey.survey_id]


def test_a_note_of_400_kb_is_rejected_before_anything_is_sent(office: Office) -> None:
    survey = office.survey()
    section = office.section(survey)
    office.sent()
    with pytest.raises(ValidationError):
        SectionPatch(notes="n" * 400_000)
    change = BatchChange(kind="section", id=section.section_id, set={"notes": "n" * 400_000})
    with pytest.raises(InvalidInput, match="at most 5000 characters"):
        office.run(batch_update(office.store(), survey.survey_id, [change]))
    # The entity has the same limit, for code that does not use drafts.
    with pytest.raises((DataError, ValidationError)):
        office.beside().update(
            SurveySection,
            survey_id=survey.survey_id,
            section_id=section.section_id,
            version=1,
            set={"notes": "n" * 400_000},
        )
    assert office.sent() == []


@pytest.mark.parametrize("before", [0, 20, 50])
def test_s4_41_a_part_has_fifty_photos_whatever_it_showed_before(office: Office, before: int) -> None:
    survey = office.survey()
    known = images(office, 100)
    section = office.section(survey, photos=known[:before])
    assert section.photos == known[:before]
    assert shown(office, section.section_id) == known[:before]
    wanted = [*known[50:], *known[:0]][::-1]
    changed = office.run(
        office.sections(survey).update(section.section_id, SectionPatch(photos=wanted, notes="swapped"))
    )
    assert (changed.photos, changed.notes) == (wanted, "swapped"), "in the order that was given"
    assert shown(office, section.section_id) == sorted(wanted)
    office.run(office.sections(survey).delete(section.section_id))
    assert shown(office, section.section_id) == []


@pytest.mark.parametrize(
    ("old", "new"), [(0, 0), (0, 1), (0, 45), (0, 46), (0, 50), (50, 0), (50, 50), (30, 41)]
)
def test_no_step_of_a_change_of_photos_is_larger_than_a_transaction(old: int, new: int) -> None:
    shown_before, wanted = [f"a{n}" for n in range(old)], [f"b{n}" for n in range(new)]
    there = set(shown_before)
    steps = photo_steps(shown_before, wanted)
    for step in steps:
        assert 2 * len(step.added) + len(step.removed) <= MAX_PHOTO_ACTIONS
        there = (there | set(step.added)) - set(step.removed)
        assert set(step.photos) == there, "the part and the records agree"
        assert len(step.photos) <= 50
    assert steps[-1].photos == wanted


def test_a_change_of_many_photos_that_a_colleague_interrupts_is_a_conflict(office: Office) -> None:
    survey = office.survey()
    known = images(office, 50)
    section = office.section(survey)
    key: dict[str, Any] = {"survey_id": survey.survey_id, "section_id": section.section_id}

    def edit() -> None:
        """Let the first transaction pass, and edit before the second."""
        office.watched.slip_in(
            TransactWriteItems,
            lambda: office.beside().update(SurveySection, version=2, set={"notes": "edited"}, **key),
        )

    office.watched.slip_in(TransactWriteItems, edit)
    with pytest.raises(VersionConflict):
        office.run(office.sections(survey).update(section.section_id, SectionPatch(photos=known), version=1))
    stored = office.run(office.sections(survey).get(section.section_id, consistent=True))
    assert stored.notes == "edited"
    assert sorted(stored.photos) == shown(office, section.section_id), "a part of the photos, all recorded"
    # Without a version, the change begins again at what is stored.
    office.run(office.sections(survey).update(section.section_id, SectionPatch(photos=known)))
    assert shown(office, section.section_id) == known


def test_a_batch_with_too_many_photos_is_rejected_before_anything_is_written(office: Office) -> None:
    survey = office.survey()
    known = images(office, 60)
    sections = [office.section(survey, f"Room {number}") for number in range(2)]
    before = office.raw()
    changes = [
        BatchChange(kind="section", id=section.section_id, set={"photos": known[at * 30 : at * 30 + 30]})
        for at, section in enumerate(sections)
    ]
    with pytest.raises(InvalidInput, match="need 123 actions of one transaction, which has 98"):
        office.run(batch_update(office.store(), survey.survey_id, changes))
    assert office.raw() == before
    office.run(batch_update(office.store(), survey.survey_id, changes[:1]))
    assert len(shown(office, sections[0].section_id)) == 30


def test_a_survey_of_a_thousand_photos_is_read_and_reported_whole(office: Office) -> None:
    survey = office.survey()
    # Most of the images are not registered: the report says so for each.
    images(office, 3)
    known = [f"i{number:04d}" for number in range(1000)]
    section = office.section(survey)
    store = office.beside()
    with put_many(store) as batch:
        for number in range(20):
            element = office.element(section, f"Room {number}", element_id=f"e{number}")
            photos = known[number * 50 : number * 50 + 50]
            batch.put(element.model_copy(update={"photos": photos}))
            for image_id in photos:
                batch.put(
                    ImageUse(
                        image_id=image_id,
                        survey_id=survey.survey_id,
                        part_kind="element",
                        part_id=element.element_id,
                    )
                )
    report = office.run(read_report(office.store(), survey.survey_id))
    assert len(report.photos) == 1000
    assert sum(photo.image is not None for photo in report.photos) == 3

    async def uses() -> int:
        return len([each async for each in office.store().all(ImageUse.of_survey(survey.survey_id))])

    assert office.run(uses()) == 1000


def test_a_swap_of_more_users_than_a_transaction_holds_is_rejected(office: Office) -> None:
    survey = office.survey()
    first = [f"a{number}" for number in range(MAX_USERS - 1)]
    other = [f"b{number}" for number in range(MAX_USERS - 1)]
    office.run(office.surveys().share(survey.survey_id, viewers=first))
    with pytest.raises(InvalidInput, match=r"at most 95 users; got 178\. Make several calls"):
        office.run(office.surveys().share(survey.survey_id, viewers=other))
    assert office.run(office.surveys().role_of("a0", survey.survey_id)) == "viewer"
    office.run(office.surveys().share(survey.survey_id, viewers=[]))
    office.run(office.surveys().share(survey.survey_id, viewers=other))
    assert office.run(office.surveys().role_of("a0", survey.survey_id)) is None
    office.run(office.surveys().delete(survey.survey_id))
    assert office.run(office.surveys().list_of("b0")).items == []


def test_a_swap_of_more_associations_than_a_transaction_holds_is_rejected(office: Office) -> None:
    def targets(letter: str) -> dict[str, Any]:
        names = ("element_ids", "component_ids", "material_ids")
        return {name: [f"{letter}{number}" for number in range(30)] for name in names}

    phrases = office.phrases()
    phrase = office.run(phrases.create(PhraseDraft(kind="Defect", name="Rot", text="Rot.", **targets("a"))))
    with pytest.raises(InvalidInput, match="at most 95 associations of a phrase; got 180"):
        office.run(phrases.update("Defect", phrase.phrase_id, PhrasePatch(**targets("b"))))
    moved = office.run(phrases.update("Defect", phrase.phrase_id, PhrasePatch(kind="Condition")))
    assert (moved.kind, len(office.keys("PHRASEOF#"))) == ("Condition", 90)


def test_a_phrase_can_be_deleted_while_a_survey_refers_to_it(office: Office) -> None:
    phrase = office.run(office.phrases().create(PhraseDraft(kind="Defect", name="Rot", text="It is rotten.")))
    survey = office.run(office.configs().create_survey(SurveyDraft(title="x"), owner="ann"))
    element = office.element(office.section(survey), defects=[phrase.phrase_id])
    office.run(office.phrases().delete("Defect", phrase.phrase_id))
    assert survey.config_id is not None
    snapshot = office.run(office.configs().get(survey.survey_id, survey.config_id))
    assert [each.text for each in snapshot.phrases] == ["It is rotten."]
    stored = office.run(office.elements(survey).get(element.element_id))
    assert stored.defects == [phrase.phrase_id]


def elsewhere(office: Office) -> AsyncDatabase:
    """Return the database of another process."""
    return AsyncDatabase(to_async(office.engine), office.blocking.scope)


def run_apart(work: Any) -> Any:
    """Run a coroutine on an event loop in another thread, as the test's own loop is running."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(work)).result()


def test_of_two_who_move_the_same_element_at_once_both_moves_are_made_in_turn(office: Office) -> None:
    survey = office.survey()
    roof, walls, floor = (office.section(survey, name) for name in ("Roof", "Walls", "Floor"))
    element = office.element(roof)
    other = Elements(elsewhere(office).tenant("acme"), survey.survey_id)
    office.watched.slip_in(
        TransactWriteItems, lambda: run_apart(other.move(element.element_id, to=walls.section_id))
    )
    moved = office.run(office.elements(survey).move(element.element_id, to=floor.section_id))
    assert (moved.section_id, moved.version) == (floor.section_id, 3)
    tree = office.run(office.surveys().whole(survey.survey_id, consistent=True))
    assert [len(node.elements) for node in tree.sections] == [0, 0, 1], "it is in one place"


def test_an_edit_of_a_part_that_is_being_deleted_does_not_bring_it_back(office: Office) -> None:
    survey = office.survey()
    section = office.section(survey)
    office.element(section)
    other = Sections(elsewhere(office).tenant("acme"), survey.survey_id)
    office.watched.slip_in(TransactWriteItems, lambda: run_apart(other.delete(section.section_id)))
    with pytest.raises(NotFound):
        office.run(office.sections(survey).update(section.section_id, SectionPatch(notes="late")))
    assert [key for key in office.keys("SURVEY#") if "#SECTION#" in key or "#ELEMENT#" in key] == []


def test_an_image_that_a_part_gets_during_its_delete_stays(office: Office, tmp_path: Any) -> None:
    (image_id,) = images(office, 1)
    survey = office.survey()
    section = office.section(survey)
    other = Sections(elsewhere(office).tenant("acme"), survey.survey_id)
    service = Images(office.store(), FolderStorage(tmp_path))
    kinds: Sequence[Any] = (UpdateItem, TransactWriteItems)
    office.sent()
    probe = images_kind(office, service, tmp_path)
    assert probe in kinds
    office.watched.slip_in(
        probe, lambda: run_apart(other.update(section.section_id, SectionPatch(photos=[image_id])))
    )
    with pytest.raises(InUse):
        office.run(service.delete(image_id))
    assert office.run(service.get(image_id, consistent=True)).image_id == image_id
    assert shown(office, section.section_id) == [image_id]


def images_kind(office: Office, service: Images, folder: Any) -> Any:
    """Return the kind of request that deletes an image."""
    store = office.beside()
    store.create(Image(image_id="probe", sha256="f" * 64, name="a", mime="image/jpeg", size=1))
    office.run(service.delete("probe"))
    names = {each.operation for each in office.journal.records}
    return TransactWriteItems if "TransactWriteItems" in names else UpdateItem
