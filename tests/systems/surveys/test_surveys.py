"""Surveys: their keys, the whole survey as a tree, lists, access and deletes."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from solotable._protocol.requests import Query, TransactWriteItems
from solotable._values import Item
from solotable.errors import AlreadyExists, NotFound, VersionConflict
from solotable.jobs.purge import purge
from solotable.systems.errors import InvalidInput
from solotable.systems.surveys.entities.surveys import SurveyElement, SurveyMeta, SurveySection
from solotable.systems.surveys.formats.order_keys import spread
from solotable.systems.surveys.services.drafts import SurveyPatch
from solotable.systems.surveys.services.survey.surveys import MAX_USERS
from solotable.systems.surveys.table import surveyor

from .office import SYNCED_WRITE, Office


def test_s4_4_s4_6_s4_9_the_items_of_a_survey_sort_behind_its_metadata(office: Office) -> None:
    survey = office.survey(survey_id="s1")
    section = office.section(survey, section_id="x")
    element = office.element(section, element_id="e")
    office.component(element, component_id="c")
    assert office.keys("SURVEY#") == [
        "SURVEY#s1",
        "SURVEY#s1#COMPONENT#c",
        "SURVEY#s1#ELEMENT#e",
        "SURVEY#s1#SECTION#x",
    ]
    (stored,) = (item for item in office.raw() if item["_type"] == {"S": "SurveyMeta"})
    assert "notes" not in stored
    assert (stored["section_count"], stored["GSI1PK"]) == ({"N": "1"}, {"S": "TENANT#acme#TYPE#SURVEY"})


def test_s4_22_a_survey_is_read_whole_in_order_by_one_query(office: Office) -> None:
    survey = office.survey()
    roof, walls = office.section(survey, "Roof"), office.section(survey, "Walls")
    first = office.element(walls, "Render")
    office.element(roof, "Gutters")
    office.run(office.elements(survey).move(office.element(walls, "Brick").element_id))
    for name in ("Sand", "Cement"):
        office.component(first, name)
    office.sent()
    tree = office.run(office.surveys().whole(survey.survey_id))
    assert office.sent() == ["Query"]
    found = [
        (
            node.section.name,
            [(each.element.name, [c.name for c in each.components]) for each in node.elements],
        )
        for node in tree.sections
    ]
    assert found == [
        ("Roof", [("Gutters", [])]),
        ("Walls", [("Brick", []), ("Render", ["Sand", "Cement"])]),
    ]
    assert (tree.survey.title, tree.orphans) == ("12 Mill Lane", [])


def test_s4_22_an_unknown_survey_is_not_found(office: Office) -> None:
    with pytest.raises(NotFound, match="not found"):
        office.run(office.surveys().whole("none"))


def test_c4_1_surveys_whose_ids_begin_alike_are_apart(office: Office) -> None:
    surveys = [office.survey(survey_id=name) for name in ("s", "s-1", "s.1", "s0", "S", "s:1", "s1")]
    for survey in surveys:
        office.section(survey, f"of {survey.survey_id}")
    for survey in surveys:
        tree = office.run(office.surveys().whole(survey.survey_id))
        assert [node.section.name for node in tree.sections] == [f"of {survey.survey_id}"]


def test_c4_15_a_survey_of_several_pages_is_read_whole(office: Office) -> None:
    survey = office.survey()
    store = office.beside()
    for order in spread(300):
        store.create(SurveySection(survey_id=survey.survey_id, name="Room", order=order, notes="n" * 4000))
    office.sent()
    tree = office.run(office.surveys().whole(survey.survey_id))
    assert len(tree.sections) == 300
    assert office.sent() == ["Query", "Query"]
    orders = [node.section.order for node in tree.sections]
    assert orders == sorted(orders)


def test_c4_15_parts_without_their_parent_are_reported(office: Office) -> None:
    survey = office.survey()
    lost = SurveyElement(survey_id=survey.survey_id, section_id="gone", name="Lost", order="V")
    office.beside().put(lost)
    tree = office.run(office.surveys().whole(survey.survey_id))
    assert [part.name for part in tree.orphans] == ["Lost"]


def test_c4_2_s4_19_a_list_of_surveys_reads_metadata_only(office: Office) -> None:
    survey = office.survey()
    store = office.beside()
    for order in spread(30):
        store.create(SurveySection(survey_id=survey.survey_id, name="Room", order=order, notes="n" * 5000))
    office.survey(title="Second")
    office.sent()
    page, used = office.measured(office.surveys().list())
    assert [each.title for each in page] == ["Second", "12 Mill Lane"]
    (request,) = office.journal.requests("Query")
    assert isinstance(request, Query)
    assert request.index == "GSI1"
    assert used.rcu == 0.5


def test_s4_38_lists_have_pages_of_100_and_a_cursor(office: Office) -> None:
    for number in range(3):
        office.survey(title=f"Survey {number}")
    first = office.run(office.surveys().list(limit=2))
    rest = office.run(office.surveys().list(limit=2, cursor=first.cursor))
    assert [each.title for each in (*first, *rest)] == ["Survey 2", "Survey 1", "Survey 0"]
    assert rest.cursor is None


def test_s4_38_a_page_has_100_surveys_by_default_and_an_iterator_has_them_all(office: Office) -> None:
    store = office.beside()
    for number in range(103):
        store.create(SurveyMeta(survey_id=f"s{number:03d}", title=f"Survey {number}", owner="ann"))
    page = office.run(office.surveys().list())
    assert (len(page.items), page.cursor is not None) == (100, True)

    async def every() -> list[str]:
        return [each.survey_id async for each in office.store().all(SurveyMeta.listed())]

    assert office.run(every()) == [f"s{number:03d}" for number in range(102, -1, -1)]


def test_s4_23_an_update_of_the_metadata_changes_what_is_given(office: Office) -> None:
    survey = office.survey(client_name="Ada", survey_date=date(2026, 1, 2))
    changed = office.run(
        office.surveys().update(survey.survey_id, SurveyPatch(title="New", status="completed"))
    )
    assert (changed.title, changed.client_name, changed.survey_date) == ("New", "Ada", date(2026, 1, 2))
    assert (changed.status, changed.version) == ("completed", 2)
    cleared = office.run(office.surveys().update(survey.survey_id, SurveyPatch(survey_date=None)))
    assert cleared.survey_date is None


def test_s4_39_a_stale_version_is_a_conflict(office: Office) -> None:
    survey = office.survey()
    office.run(office.surveys().update(survey.survey_id, SurveyPatch(title="A"), version=1))
    with pytest.raises(VersionConflict):
        office.run(office.surveys().update(survey.survey_id, SurveyPatch(title="B"), version=1))
    with pytest.raises(NotFound):
        office.run(office.surveys().update("none", SurveyPatch(title="B")))


def test_s4_18_access_and_metadata_change_in_one_transaction(office: Office) -> None:
    survey = office.survey()
    surveys = office.surveys()
    office.sent()
    shared = office.run(surveys.share(survey.survey_id, editors=["ben"], viewers=["cy", "ben", "ann"]))
    assert office.sent() == ["GetItem", *SYNCED_WRITE, "GetItem"]
    assert (shared.owner, shared.editors, shared.viewers) == ("ann", ["ben"], ["cy"])
    for user, role in (("ann", "owner"), ("ben", "editor"), ("cy", "viewer"), ("dan", None)):
        assert office.run(surveys.role_of(user, survey.survey_id)) == role
    assert [each.title for each in office.run(surveys.list_of("cy"))] == ["12 Mill Lane"]
    moved = office.run(surveys.share(survey.survey_id, owner="ben", editors=[], viewers=[]))
    assert (moved.owner, moved.editors) == ("ben", [])
    assert office.run(surveys.role_of("ann", survey.survey_id)) is None
    assert [each.survey_id for each in office.run(surveys.list_of("ben"))] == [survey.survey_id]


def test_s4_18_a_survey_has_so_many_users_and_no_more(office: Office) -> None:
    survey = office.survey()
    users = [f"u{number}" for number in range(MAX_USERS)]
    office.run(office.surveys().share(survey.survey_id, viewers=users[:-1]))
    with pytest.raises(InvalidInput, match="at most 90 users"):
        office.run(office.surveys().share(survey.survey_id, viewers=users))


def test_s4_18_of_two_who_share_at_once_both_are_kept(office: Office) -> None:
    survey = office.survey()
    office.watched.slip_in(
        TransactWriteItems,
        lambda: office.beside().update(
            SurveyMeta, survey_id=survey.survey_id, version=1, set={"title": "Other"}
        ),
    )
    shared = office.run(office.surveys().share(survey.survey_id, editors=["ben"]))
    assert (shared.title, shared.editors) == ("Other", ["ben"])


def test_c4_17_a_user_of_another_tenant_with_the_same_id_has_no_access(office: Office) -> None:
    survey = office.survey()
    assert office.run(office.surveys("zeta").role_of("ann", survey.survey_id)) is None
    assert office.run(office.surveys("zeta").list_of("ann")).items == []
    with pytest.raises(NotFound):
        office.run(office.surveys("zeta").whole(survey.survey_id))


def test_a_survey_is_created_once(office: Office) -> None:
    office.survey(survey_id="s1", title="First")
    with pytest.raises(AlreadyExists):
        office.survey(survey_id="s1", title="Second")
    assert office.run(office.surveys().get("s1")).title == "First"


def test_a_deleted_survey_is_hidden_at_once_and_purged_with_its_parts(office: Office) -> None:
    survey, other = office.survey(), office.survey(title="Other")
    office.element(office.section(survey))
    office.section(other)
    office.run(office.surveys().delete(survey.survey_id))
    with pytest.raises(NotFound):
        office.run(office.surveys().whole(survey.survey_id))
    assert [each.title for each in office.run(office.surveys().list())] == ["Other"]
    assert [each.title for each in office.run(office.surveys().list_of("ann"))] == ["Other"]
    office.clock.seconds += timedelta(days=31).total_seconds()
    purge(office.blocking.admin(), surveyor)
    office.journal.clear()
    assert not [key for key in office.keys("SURVEY#") if survey.survey_id in key]
    assert len([key for key in office.keys("SURVEY#") if other.survey_id in key]) == 2


def test_a_deleted_survey_is_restored_with_its_parts_and_its_users(office: Office) -> None:
    survey = office.survey()
    office.element(office.section(survey))
    surveys = office.surveys()
    office.run(surveys.share(survey.survey_id, editors=["ben"], viewers=["cy"]))
    before = office.raw()
    office.run(surveys.delete(survey.survey_id))
    assert office.run(surveys.role_of("ben", survey.survey_id)) is None
    restored = office.run(surveys.restore(survey.survey_id))
    assert (restored.title, restored.section_count) == ("12 Mill Lane", 1)

    def stable(items: list[Item]) -> list[Item]:
        return [
            {name: value for name, value in item.items() if name not in ("created", "_sv")}
            for item in items
            if item["_type"]["S"] != "_sync"
        ]

    assert stable(office.raw()) == stable(before), "everything but when the access was granted"
    assert len(office.run(surveys.whole(survey.survey_id)).sections) == 1
    for wrong in (survey.survey_id, "none"):
        with pytest.raises(NotFound):
            office.run(surveys.restore(wrong))
    with pytest.raises(NotFound):
        office.run(office.surveys("zeta").restore(survey.survey_id))
    office.run(surveys.delete(survey.survey_id))
    office.clock.seconds += timedelta(days=31).total_seconds()
    with pytest.raises(NotFound):
        office.run(surveys.restore(survey.survey_id))
