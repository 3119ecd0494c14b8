"""Surveys for clients that work offline: every edit, who may make it, and what a client gets to see."""

from __future__ import annotations

from typing import Any

import pytest

from solotable.systems.surveys import FolderStorage, ImageDraft, Images, PhraseDraft, SectionPatch, SurveyMeta
from solotable.systems.surveys.sync.mutators import survey_mutators
from solotable.systems.surveys.sync.reset import reset_all_spaces
from tests.systems.surveys.office import Office

from .devices import Device, make_sync

_HIDDEN = {"tenant_id", "sync_status", "waiting_since", "sync_error", "changed", "deleting"}


def stored(office: Office, survey_id: str) -> dict[str, Any]:
    """Return a survey as a client should show it, read by the service."""
    tree = office.run(office.surveys().whole(survey_id, consistent=True))
    found = {f"survey/{survey_id}": tree.survey.model_dump(mode="json", exclude=_HIDDEN)}
    del found[f"survey/{survey_id}"]["section_count"], found[f"survey/{survey_id}"]["completed_sections"]
    for part in tree.parts():
        kind = type(part).__name__.removeprefix("Survey").lower()
        key = f"{kind}/{survey_id}/{getattr(part, f'{kind}_id')}"
        found[key] = part.model_dump(mode="json", exclude=_HIDDEN)
    return found


def image(office: Office, folder: Any, digit: str) -> str:
    draft = ImageDraft(sha256=digit * 64, name="a.png", mime="image/png", size=10)
    made, _ = office.run(Images(office.store(), FolderStorage(folder)).register(draft))
    return made.image_id


def test_every_edit_of_a_survey_is_a_mutation(office: Office, tmp_path: Any) -> None:
    """After each one the client shows what is stored; the names are all that the server knows."""
    ann = Device(make_sync(office), "ann")
    picture = image(office, tmp_path, "a")
    survey: dict[str, Any] = {"survey_id": "s"}
    part = {"kind": "element", "part_id": "e1", "image_id": picture, **survey}
    steps: list[tuple[str, dict[str, Any]]] = [
        ("createSurvey", {**survey, "title": "12 Mill Lane"}),
        ("updateSurvey", {**survey, "address": "Leeds", "status": "in_progress"}),
        ("createSection", {**survey, "section_id": "x1", "name": "Roof"}),
        ("createSection", {**survey, "section_id": "x2", "name": "Walls", "after": "x1"}),
        ("updateSection", {**survey, "section_id": "x1", "notes": "wet", "condition": "Poor"}),
        ("moveSection", {**survey, "section_id": "x2"}),
        ("createElement", {**survey, "section_id": "x1", "element_id": "e1", "name": "Covering"}),
        ("createElement", {**survey, "section_id": "x1", "element_id": "e2", "name": "Gutters"}),
        ("updateElement", {**survey, "element_id": "e1", "condition": "Fair", "measurements": {"area": "9"}}),
        ("moveElement", {**survey, "element_id": "e2", "to": "x2"}),
        ("createComponent", {**survey, "element_id": "e1", "component_id": "c1", "name": "Tiles"}),
        ("updateComponent", {**survey, "component_id": "c1", "material": "Slate"}),
        ("moveComponent", {**survey, "component_id": "c1", "to": "e2"}),
        ("addPhoto", part),
        ("removePhoto", part),
        ("deleteComponent", {**survey, "component_id": "c1"}),
        ("deleteElement", {**survey, "element_id": "e1"}),
        ("deleteSection", {**survey, "section_id": "x2"}),
    ]
    for name, args in steps:
        ann.do(name, **args)
        assert ann.rejections() == [], name
        assert ann.data() == stored(office, "s"), name
    assert set(ann.data()) == {"survey/s", "section/s/x1"}
    ann.do("deleteSurvey", **survey)
    assert (ann.data(), ann.rejections()) == ({}, [])
    assert {name for name, _ in steps} | {"deleteSurvey"} == set(survey_mutators)


def test_s4_36_a_push_is_one_transaction_and_a_pull_has_the_changes_since_the_cookie(office: Office) -> None:
    """Differs: a push is one transaction for all its mutations, not one for each."""
    survey = office.survey(survey_id="s")
    section = office.section(survey, section_id="x")
    office.element(section, element_id="e")
    ann = Device(make_sync(office), "ann")
    ann.pull()
    office.sent()
    ann.push(
        ann.mutation("updateSurvey", survey_id="s", title="Changed"),
        ann.mutation("updateSection", survey_id="s", section_id="x", notes="wet"),
        ann.mutation("createElement", survey_id="s", section_id="x", element_id="new", name="Chimney"),
    )
    assert office.sent().count("TransactWriteItems") == 1
    changed = {each["key"] for each in ann.pull()}
    assert changed == {"survey/s", "section/s/x", "element/s/new"}
    assert ann.pull() == []
    assert ann.data() == stored(office, "s")


def test_s4_17_c4_6_the_pull_needs_no_index(office: Office) -> None:
    survey = office.survey(survey_id="s")
    office.section(survey, section_id="x")
    ann = Device(make_sync(office), "ann")
    ann.pull()
    office.run(office.sections(survey).update("x", SectionPatch(notes="wet")))
    office.journal.clear()
    ann.pull()
    assert ann.data()["section/s/x"]["notes"] == "wet"
    queries = office.journal.requests("Query")
    assert queries
    assert all(each.index is None for each in queries), "C4.6: no index can be behind"  # type: ignore[attr-defined]


def test_c4_7_changes_of_one_moment_and_deletes_all_arrive(office: Office) -> None:
    """The clock stands still: every change has the same time, and none is lost between two pulls."""
    survey = office.survey(survey_id="s")
    ann, ben = Device(make_sync(office), "ann"), Device(make_sync(office), "ann")
    for number in range(4):
        office.section(survey, f"Room {number}", section_id=f"x{number}")
        ben.pull()
        office.run(office.sections(survey).update(f"x{number}", SectionPatch(notes=f"{number}")))
    ann.pull()
    office.run(office.sections(survey).delete("x1"))
    for device in (ann, ben):
        device.pull()
        assert device.data() == stored(office, "s")
    assert "section/s/x1" not in ann.data()


def test_c4_8_the_last_mutation_is_of_a_client_and_in_the_transaction_of_its_effect(office: Office) -> None:
    survey = office.survey(survey_id="s")
    office.section(survey, section_id="x")
    sync = make_sync(office)
    phone, tablet = Device(sync, "ann", group="one-group"), Device(sync, "ann", group="one-group")
    first = phone.mutation("updateSection", survey_id="s", section_id="x", notes="by phone")
    phone.push(first, tablet.mutation("updateSection", survey_id="s", section_id="x", condition="Poor"))
    phone.push(first)
    phone.pull()
    assert phone.confirmed == {phone.client: 1, tablet.client: 1}
    section = phone.data()["section/s/x"]
    assert (section["notes"], section["condition"], section["version"]) == ("by phone", "Poor", 3)
    assert not [name for name in SurveyMeta.model_fields if "mutation" in name]


def test_a_write_over_http_or_by_another_program_reaches_every_device(office: Office) -> None:
    survey = office.survey(survey_id="s")
    ann = Device(make_sync(office), "ann")
    ann.pull()
    section = office.section(survey, section_id="x")
    element = office.element(section)
    office.component(element)
    ann.pull()
    assert ann.data() == stored(office, "s")
    office.run(office.sections(survey).delete("x"))
    ann.pull()
    assert set(ann.data()) == {"survey/s"}


@pytest.mark.parametrize(
    ("user", "code"), [("ann", None), ("ed", None), ("vi", "forbidden"), ("eve", "not_found")]
)
def test_only_owners_and_editors_edit(office: Office, user: str, code: str | None) -> None:
    survey = office.survey(survey_id="s")
    office.section(survey, section_id="x")
    office.run(office.surveys().share("s", editors=["ed"], viewers=["vi"]))
    device = Device(make_sync(office), user)
    device.do("updateSection", survey_id="s", section_id="x", notes="changed")
    device.do("createSection", survey_id="s", section_id="y", name="Walls")
    found = office.run(office.sections(survey).get("x", consistent=True))
    assert device.rejections() == ([] if code is None else [code, code])
    assert found.notes == ("changed" if code is None else "")
    if user == "eve":
        assert device.data() == {}, "nothing of a survey that is not shared"
    else:
        assert device.data() == stored(office, "s")
        device.do("deleteSurvey", survey_id="s")
        assert device.rejections()[-1:] == ([] if user == "ann" else ["forbidden"])


def test_losing_access_removes_a_survey_from_the_device_and_getting_it_brings_it_back(office: Office) -> None:
    for name in ("s", "t"):
        office.section(office.survey(survey_id=name), section_id="x")
        office.run(office.surveys().share(name, editors=["ed"]))
    device = Device(make_sync(office), "ed")
    device.pull()
    assert device.data() == stored(office, "s") | stored(office, "t")
    office.run(office.surveys().share("s", editors=[]))
    device.pull()
    assert device.data() == stored(office, "t")
    device.do("updateSection", survey_id="s", section_id="x", notes="too late")
    assert device.rejections() == ["not_found"]
    office.run(office.surveys().share("s", viewers=["ed"]))
    device.pull()
    assert device.data() == stored(office, "s") | stored(office, "t")


def test_surveys_of_another_tenant_do_not_exist(office: Office) -> None:
    office.survey("zeta", survey_id="s")
    device = Device(make_sync(office), "ann")
    device.do("updateSurvey", survey_id="s", title="x")
    assert (device.rejections(), device.data()) == (["not_found"], {})
    assert office.run(office.surveys("zeta").get("s")).title == "12 Mill Lane"


def test_phrases_are_on_every_device_of_the_tenant(office: Office) -> None:
    made = office.run(office.phrases().create(PhraseDraft(kind="Defect", name="Rot", text="Soft timber.")))
    device = Device(make_sync(office), "without-surveys")
    device.pull()
    assert [each["text"] for each in device.data().values()] == ["Soft timber."]
    assert list(device.data()) == [f"phrase/Defect/{made.phrase_id}"]


def test_what_a_mutation_rejects_says_why(office: Office) -> None:
    survey = office.survey(survey_id="s")
    device = Device(make_sync(office), "ann")
    device.push(
        device.mutation("createElement", survey_id="s", section_id="none", element_id="e", name="x"),
        device.mutation("updateSection", survey_id="s", section_id="none", notes="x"),
        device.mutation("createSection", survey_id="s", section_id="x", name="n" * 101),
        device.mutation("createSection", survey_id="s", section_id="y"),
        device.mutation("addPhoto", survey_id="s", kind="section", part_id="none", image_id="i"),
        device.mutation("createSurvey", survey_id="s", title="Again"),
        device.mutation("createSection", survey_id="s", section_id="ok", name="Roof"),
    )
    device.pull()
    assert len(device.rejections()) == 6
    assert set(device.data()) == {"survey/s", "section/s/ok"}
    assert office.run(office.surveys().get("s")).title == survey.title


def test_after_a_reset_every_device_loads_its_surveys_again(office: Office) -> None:
    """What a restore or a migration wrote has no log."""
    survey = office.survey(survey_id="s")
    office.section(survey, section_id="x")
    sync = make_sync(office)
    device = Device(sync, "ann")
    device.pull()
    assert office.run(reset_all_spaces(office.db, sync)) == 0, "a tenant that is not registered is not listed"
    from solotable.systems.surveys import TenantDraft, Tenants

    office.run(Tenants(office.db).create(TenantDraft(id="acme", name="Acme")))
    assert office.run(reset_all_spaces(office.db, sync)) == 2
    assert device.pull()[0] == {"op": "clear"}
    assert device.data() == stored(office, "s")
