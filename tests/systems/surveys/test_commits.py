"""The seam for synchronisation: every write of the services is a transaction that `on_commit` adds to."""

from __future__ import annotations

import base64
import hashlib
import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from solotable import AsyncStore, AsyncTransaction
from solotable._protocol.requests import PutItem, TransactWriteItems
from solotable.errors import AlreadyExists, ConditionFailed, DataError, NotFound, NotUnique, VersionConflict
from solotable.systems.storage import FolderStorage
from solotable.systems.surveys import (
    BatchChange,
    CommitStore,
    ComponentDraft,
    ComponentPatch,
    Components,
    Configs,
    Documents,
    ElementDraft,
    ElementPatch,
    Elements,
    Image,
    ImageDraft,
    ImagePatch,
    Images,
    LibraryComponentDraft,
    LibraryComponents,
    LibraryElementDraft,
    LibraryElements,
    LibrarySectionDraft,
    LibrarySectionPatch,
    LibrarySections,
    MemberDraft,
    Members,
    PhraseDraft,
    PhrasePatch,
    Phrases,
    SectionDraft,
    SectionPatch,
    Sections,
    SurveyDraft,
    SurveyMeta,
    SurveyPatch,
    Surveys,
    SurveySection,
    Temp,
    TempData,
    Written,
    batch_update,
)

from .office import Office

#: One pixel.
GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
FOREVER = datetime(2100, 1, 1, tzinfo=UTC)


class Log:
    """A version log: a record in every transaction, and what was written."""

    def __init__(self) -> None:
        self.commits: list[tuple[Written, ...]] = []

    async def __call__(self, tx: AsyncTransaction, written: Sequence[Written]) -> None:
        self.commits.append(tuple(written))
        tx.put(Temp(temp_id=f"log-{len(self.commits)}", ttl=FOREVER))

    def taken(self) -> set[str]:
        """Return what was written since the last call, as `create SurveySection`."""
        found = {f"{each.verb} {each.entity.__name__}" for commit in self.commits for each in commit}
        self.commits.clear()
        return found


def unlogged(office: Office) -> list[str]:
    """Return the writes that were sent without a record in their transaction."""
    single = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem")
    found = [record.operation for record in office.journal.records if record.operation in single]
    for request in office.journal.requests("TransactWriteItems"):
        assert isinstance(request, TransactWriteItems)
        puts = [each for each in request.actions if isinstance(each, PutItem)]
        if not any(each.item["_type"] == {"S": "Temp"} for each in puts):
            found.append("TransactWriteItems")
    office.journal.clear()
    return found


Verb = Callable[[], Awaitable[Any]]


class Writes:
    """Every verb of the services that writes, over one store, in an order in which each can run."""

    def __init__(self, store: AsyncStore, folder: Path) -> None:
        self.store = store
        self.sections, self.elements = Sections(store, "s1"), Elements(store, "s1")
        self.components, self.surveys, self.configs = Components(store, "s1"), Surveys(store), Configs(store)
        storage = FolderStorage(folder)
        self.images, self.documents = Images(store, storage), Documents(store, storage)
        self.library = LibrarySections(store), LibraryElements(store), LibraryComponents(store)
        self.phrases, self.members = Phrases(store), Members(store)
        draft = ImageDraft(
            image_id="i1", sha256=hashlib.sha256(GIF).hexdigest(), name="a", mime="image/gif", size=len(GIF)
        )
        self.image = draft

    def verbs(self) -> dict[str, tuple[Verb, set[str]]]:
        """Return each verb with what it writes."""
        sections, elements, components = self.library
        change = BatchChange(kind="section", id="roof", set={"notes": "batch"})
        defect = PhraseDraft(phrase_id="p1", kind="Defect", name="Rot", text="Rot.", element_ids=["le"])
        return {
            "Images.register": (lambda: self.images.register(self.image), {"create Image"}),
            "Surveys.create": (
                lambda: self.surveys.create(SurveyDraft(survey_id="s1"), owner="ann"),
                {"create SurveyMeta", "put Access"},
            ),
            "Surveys.update": (
                lambda: self.surveys.update("s1", SurveyPatch(title="New")),
                {"update SurveyMeta"},
            ),
            "Surveys.share": (
                lambda: self.surveys.share("s1", editors=["ben"]),
                {"update SurveyMeta", "put Access"},
            ),
            "Sections.create": (
                lambda: self.sections.create(SectionDraft(section_id="roof", name="Roof")),
                {"create SurveySection"},
            ),
            "Sections.create, another": (
                lambda: self.sections.create(SectionDraft(section_id="walls", name="Walls")),
                {"create SurveySection"},
            ),
            "Sections.update": (
                lambda: self.sections.update("roof", SectionPatch(notes="wet")),
                {"update SurveySection"},
            ),
            "Sections.update, photos": (
                lambda: self.sections.update("roof", SectionPatch(photos=["i1"])),
                {"update SurveySection", "put ImageUse"},
            ),
            "Sections.move": (lambda: self.sections.move("walls"), {"update SurveySection"}),
            "Sections.spread": (lambda: self.sections.spread("s1"), {"update SurveySection"}),
            "Elements.create": (
                lambda: self.elements.create(ElementDraft(element_id="e", section_id="roof", name="Tiles")),
                {"create SurveyElement"},
            ),
            "Elements.update": (
                lambda: self.elements.update("e", ElementPatch(condition="Poor")),
                {"update SurveyElement"},
            ),
            "Elements.move, to another section": (
                lambda: self.elements.move("e", to="walls"),
                {"update SurveyElement"},
            ),
            "Components.create": (
                lambda: self.components.create(ComponentDraft(component_id="c", element_id="e", name="Clay")),
                {"create SurveyComponent"},
            ),
            "Components.update": (
                lambda: self.components.update("c", ComponentPatch(age="old")),
                {"update SurveyComponent"},
            ),
            "batch_update": (
                lambda: batch_update(self.store, "s1", [change]),
                {"update SurveySection", "update SurveyMeta"},
            ),
            "LibrarySections.create": (
                lambda: sections.create(LibrarySectionDraft(section_id="ls", name="Roof")),
                {"create Section"},
            ),
            "LibraryElements.create": (
                lambda: elements.create(LibraryElementDraft(element_id="le", section_id="ls", name="Tiles")),
                {"create Element"},
            ),
            "LibraryComponents.create": (
                lambda: components.create(
                    LibraryComponentDraft(component_id="lc", element_id="le", name="Clay")
                ),
                {"create Component"},
            ),
            "LibrarySections.update": (
                lambda: sections.update("ls", LibrarySectionPatch(name="Roofs")),
                {"update Section"},
            ),
            "LibrarySections.move": (lambda: sections.move("ls"), {"update Section"}),
            "Phrases.create": (lambda: self.phrases.create(defect), {"create Phrase", "put PhraseLink"}),
            "Phrases.update": (
                lambda: self.phrases.update("Defect", "p1", PhrasePatch(text="Soft.")),
                {"update Phrase"},
            ),
            "Configs.take": (
                lambda: self.configs.take("s1"),
                {"update SurveyMeta", "create SurveyConfig", "create SurveyConfigPart"},
            ),
            "Configs.create_survey": (
                lambda: self.configs.create_survey(SurveyDraft(survey_id="s2"), owner="ann"),
                {
                    *("create SurveyMeta", "put Access", "update SurveyMeta", "create SurveyConfig"),
                    *("create SurveyConfigPart", "create SurveySection"),
                    *("put SurveyElement", "put SurveyComponent"),
                },
            ),
            "Phrases.delete": (
                lambda: self.phrases.delete("Defect", "p1"),
                {"delete Phrase", "delete PhraseLink"},
            ),
            "LibraryComponents.delete": (lambda: components.delete("lc"), {"delete Component"}),
            "Images.upload": (lambda: self.images.upload("i1", GIF), {"update Image"}),
            "Images.update": (lambda: self.images.update("i1", ImagePatch(caption="c")), {"update Image"}),
            "Sections.delete, with children": (
                lambda: self.sections.delete("walls"),
                {
                    *("update SurveySection", "delete SurveySection", "update SurveyElement"),
                    *("delete SurveyElement", "delete SurveyComponent"),
                },
            ),
            "Sections.delete, with a photo": (
                lambda: self.sections.delete("roof"),
                {"update SurveySection", "delete SurveySection", "delete ImageUse"},
            ),
            "Images.delete": (lambda: self.images.delete("i1"), {"delete Image"}),
            "Images.undelete": (lambda: self.images.undelete("i1"), {"undelete Image"}),
            "Documents.create": (
                lambda: self.documents.create(
                    name="Note", mime="text/plain", data=b"1", owner="ann", document_id="d"
                ),
                {"create Document"},
            ),
            "Documents.replace": (
                lambda: self.documents.replace("d", mime="text/plain", data=b"2", version=1),
                {"put Document"},
            ),
            "Members.add": (
                lambda: self.members.add(MemberDraft(user_id="ben", name="Ben")),
                {"create Member"},
            ),
            "Members.change_role": (lambda: self.members.change_role("ben", "admin"), {"update Member"}),
            "Members.remove": (lambda: self.members.remove("ben"), {"delete Member"}),
            "TempData.put": (lambda: TempData(self.store).put("t", {}), {"put Temp"}),
            "Surveys.delete": (
                lambda: self.surveys.delete("s1"),
                {"delete SurveyMeta", "delete Access"},
            ),
            "Surveys.restore": (
                lambda: self.surveys.restore("s1"),
                {"undelete SurveyMeta", "put Access"},
            ),
        }


#: What the services have that writes nothing, or nothing that a client synchronises.
READS = {"get", "whole", "list", "list_of", "role_of", "read_library", "of_kind", "of_target", "stream"}
READS |= {"version", "versions", "read"}
#: The former versions of a document are not its writes; expiry removes temporary data.
NOT_LISTED = {"Documents.delete", "TempData.delete"}
#: Methods of a base class, listed for one of its classes.
ONCE = {
    *("Elements.spread", "Components.spread", "Components.move", "Elements.delete", "Components.delete"),
    *(f"Library{kind}.{verb}" for kind in ("Elements", "Components") for verb in ("update", "move")),
    *(f"Library{kind}.spread" for kind in ("Sections", "Elements", "Components")),
    *("LibrarySections.delete", "LibraryElements.delete"),
}


def test_every_method_of_the_services_that_writes_is_listed(tmp_path: Path) -> None:
    services = (Surveys, Sections, Elements, Components, Configs, Images, Documents, Members, TempData)
    library = (LibrarySections, LibraryElements, LibraryComponents, Phrases)
    there = {
        f"{service.__name__}.{name}"
        for service in (*services, *library)
        for name, _ in inspect.getmembers(service, inspect.iscoroutinefunction)
        if not name.startswith("_") and name not in READS
    }
    store: Any = None
    listed = {name.partition(",")[0] for name in Writes(store, tmp_path).verbs()} - {"batch_update"}
    assert there == listed | NOT_LISTED | ONCE


def test_every_write_of_every_service_carries_the_record_of_a_log(office: Office, tmp_path: Path) -> None:
    log = Log()
    writes = Writes(CommitStore(office.store(), log), tmp_path)
    for name, (verb, expected) in writes.verbs().items():
        office.journal.clear()
        office.run(verb())  # type: ignore[arg-type]  # a coroutine
        assert unlogged(office) == [], name
        assert log.taken() == expected, name


def test_the_same_verbs_leave_the_same_items_without_a_log(office: Office, tmp_path: Path) -> None:
    def types(tenant: str) -> Counter[str]:
        return Counter(
            item["_type"]["S"]
            for item in office.raw()
            if item["PK"]["S"].split("#")[1] == tenant and item["_type"]["S"] not in ("Temp", "_sync")
        )

    log = Log()
    for tenant, store in (("acme", CommitStore(office.store(), log)), ("zeta", office.store("zeta"))):
        for verb, _ in Writes(store, tmp_path / tenant).verbs().values():
            office.run(verb())  # type: ignore[arg-type]  # a coroutine
    assert types("acme") == types("zeta")


def test_what_the_log_rejects_is_not_written(office: Office) -> None:
    survey = office.survey()
    section = office.section(survey)
    before = office.raw()

    async def reject(tx: AsyncTransaction, _: Sequence[Written]) -> None:
        tx.check(SurveyMeta, survey_id="none")

    sections = Sections(CommitStore(office.store(), reject), survey.survey_id)
    for work in (
        lambda: sections.update(section.section_id, SectionPatch(notes="x")),
        lambda: sections.delete(section.section_id),
        lambda: sections.move(section.section_id),
    ):
        with pytest.raises(NotFound):
            office.run(work())
    assert office.raw() == before


def test_the_errors_are_those_of_a_plain_store(office: Office) -> None:
    survey = office.survey()
    section = office.section(survey)
    store = CommitStore(office.store(), Log())
    key: dict[str, Any] = {"survey_id": survey.survey_id, "section_id": section.section_id}
    office.run(store.update(SurveySection, version=1, set={"notes": "a"}, **key))
    with pytest.raises(VersionConflict):
        office.run(store.update(SurveySection, version=1, set={"notes": "b"}, **key))
    with pytest.raises(AlreadyExists):
        office.run(store.create(section))
    assert office.run(store.delete(SurveySection, version=1, **{**key, "section_id": "none"})) is None
    with pytest.raises(VersionConflict):
        office.run(store.delete(SurveySection, version=1, **key))
    with pytest.raises(ConditionFailed):
        office.run(
            store.update(
                SurveySection, version=2, set={"notes": "b"}, where=lambda each: each.name == "no", **key
            )
        )
    image = Image(image_id="i1", sha256="a" * 64, name="a", mime="image/gif", size=1)
    office.run(store.create(image))
    with pytest.raises(NotUnique) as taken:
        office.run(store.create(image.model_copy(update={"image_id": "i2"})))
    assert (taken.value.holder or {})["image_id"] == "i1"
    for verb in (store.upsert, store.modify, store.delete_partition):
        with pytest.raises(DataError, match="A CommitStore has no"):
            office.run(verb(SurveyMeta))


def test_a_write_names_what_it_writes_by_its_key(office: Office) -> None:
    survey = office.survey()
    section = office.section(survey)
    log = Log()
    sections = Sections(CommitStore(office.store(), log), survey.survey_id)
    office.run(sections.update(section.section_id, SectionPatch(notes="x")))
    ((written,),) = log.commits
    assert written == Written(
        verb="update",
        entity=SurveySection,
        key={"survey_id": survey.survey_id, "section_id": section.section_id},
    )
