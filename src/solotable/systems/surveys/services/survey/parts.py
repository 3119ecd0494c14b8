"""The parts of a survey: create, change, move and delete sections, elements and components.

A part is one item. A change of its fields writes that item and no other, so two people who edit different
parts never conflict (S4.31, S4.32). A change of its photos, or of its parent, is a transaction with what it
refers to.

A part with children is deleted from the leaves up. It is marked first, so that nothing is added to it;
repeating a delete that was interrupted finishes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from solotable import AsyncStore, AsyncTransaction, Query
from solotable.errors import NotFound
from solotable.systems.errors import InvalidInput, unwrap_failure, validate
from solotable.systems.formats.inputs import Input
from solotable.systems.surveys.entities.surveys import PartKind, SurveyComponent, SurveyElement, SurveySection
from solotable.systems.surveys.errors import unwrap_part_failure
from solotable.systems.surveys.services.ordered import ComponentPlace, ElementPlace, Ordered, SectionPlace

from .photos import PhotoStep, add_uses, check_photos, photo_steps, remove_uses

PartT = TypeVar("PartT", bound=SurveySection | SurveyElement | SurveyComponent)


class Parts(Ordered[PartT]):
    """The parts of one kind in one survey."""

    kind: ClassVar[PartKind]

    def __init__(self, store: AsyncStore, survey_id: str) -> None:
        super().__init__(store, survey_id=survey_id)
        self._survey = survey_id

    async def create(self, draft: Input) -> PartT:
        """Create a part behind another one, by default behind the last; its parent must exist."""
        fields = dict(draft)
        after = fields.pop("after", None)
        parent_id = str(fields.get(f"{self.parent_kind}_id", self._survey))
        order = await self._order(parent_id, after, at_end=after is None)
        first, *others = photo_steps([], check_photos(fields.pop("photos")))
        part = validate(self.entity, **fields, photos=first.photos, survey_id=self._survey, order=order)
        part_id = self._id_of(part)
        with unwrap_part_failure(self.parent_kind):
            async with self._store.transaction() as tx:
                self._check_parent(tx, parent_id)
                created = tx.create(part)
                add_uses(tx, self._survey, self.kind, part_id, first.added)
        return await self._show(part_id, others, {}, created.version) if others else created

    async def update(self, item_id: str, patch: Input, *, version: int | None = None) -> PartT:
        """Change the given fields and no others (S4.23), if `version` is the stored one (S4.39)."""
        changes = patch.given()
        if "photos" in changes:
            return await self._update_photos(item_id, changes, version)
        return await super().update(item_id, patch, version=version)

    async def _update_photos(self, part_id: str, changes: dict[str, Any], version: int | None) -> PartT:
        photos = check_photos(changes["photos"])

        async def attempt() -> PartT:
            current = await self.get(part_id, consistent=True)
            steps = photo_steps(current.photos, photos)
            return await self._show(part_id, steps, changes, current.version if version is None else version)

        return await self._retry(attempt, version)

    async def _show(
        self, part_id: str, steps: Sequence[PhotoStep], changes: dict[str, Any], version: int
    ) -> PartT:
        """Change the photos of a part step by step, and the other fields in the first step."""
        for number, step in enumerate(steps):
            fields = {**({} if number else changes), "photos": step.photos}
            with unwrap_part_failure():
                async with self._store.transaction() as tx:
                    tx.update(self.entity, version=version + number, set=fields, **self._key(part_id))
                    add_uses(tx, self._survey, self.kind, part_id, step.added)
                    remove_uses(tx, self._survey, self.kind, part_id, step.removed)
        return await self.get(part_id, consistent=True)

    async def delete(self, part_id: str, *, version: int | None = None) -> int:
        """Delete a part with its children; return how many parts were deleted."""

        async def attempt() -> int:
            current = await self.get(part_id, consistent=True)
            marked = await self._mark(current, current.version if version is None else version)
            deleted = await self._delete_children(marked)
            with unwrap_failure():
                async with self._store.transaction() as tx:
                    tx.delete(self.entity, version=marked.version, **self._key(part_id))
                    remove_uses(tx, self._survey, self.kind, part_id, marked.photos)
            return deleted + 1

        return await self._retry(attempt, version)

    async def _mark(self, part: PartT, version: int) -> PartT:
        """Mark a part that can have children as being deleted, on the condition that it has a version."""
        return await self._update(self._id_of(part), {"deleting": True}, version)

    async def _delete_children(self, part: PartT) -> int:
        """Delete the children of a part; return how many parts were deleted."""
        raise NotImplementedError


class Sections(Parts[SurveySection]):
    """The sections of a survey; the counters of the survey follow them (C4.20)."""

    kind = "section"
    parent_kind = "survey"
    entity = SurveySection

    def _siblings(self, parent_id: str) -> Query[Any]:
        return SurveySection.by_order.query(survey_id=parent_id).select(SectionPlace)

    def _check_parent(self, tx: AsyncTransaction, parent_id: str) -> None:
        if parent_id != self._survey:
            raise InvalidInput("to: a section stays in its survey.")
        # The section's counter is an update of the survey, which must exist.

    async def _delete_children(self, part: SurveySection) -> int:
        # From the table, consistently: an index may lack an element that was created a moment ago.
        found = SurveyElement.key.query(survey_id=self._survey).consistent()
        elements = Elements(self._store, self._survey)
        ids = [each.element_id async for each in self._store.all(found) if each.section_id == part.section_id]
        return sum([await _delete_if_there(elements, element_id) for element_id in ids])


class Elements(Parts[SurveyElement]):
    """The elements of a survey."""

    kind = "element"
    parent_kind = "section"
    entity = SurveyElement

    def _siblings(self, parent_id: str) -> Query[Any]:
        return SurveyElement.by_order.query(survey_id=self._survey, section_id=parent_id).select(ElementPlace)

    def _check_parent(self, tx: AsyncTransaction, parent_id: str) -> None:
        tx.check(
            SurveySection,
            survey_id=self._survey,
            section_id=parent_id,
            where=lambda section: section.deleting == False,  # noqa: E712 - a condition
        )

    async def _delete_children(self, part: SurveyElement) -> int:
        found = SurveyComponent.key.query(survey_id=self._survey).consistent()
        components = Components(self._store, self._survey)
        ids = [
            each.component_id async for each in self._store.all(found) if each.element_id == part.element_id
        ]
        return sum([await _delete_if_there(components, component_id) for component_id in ids])


class Components(Parts[SurveyComponent]):
    """The components of a survey."""

    kind = "component"
    parent_kind = "element"
    entity = SurveyComponent

    def _siblings(self, parent_id: str) -> Query[Any]:
        return SurveyComponent.by_order.query(survey_id=self._survey, element_id=parent_id).select(
            ComponentPlace
        )

    def _check_parent(self, tx: AsyncTransaction, parent_id: str) -> None:
        tx.check(
            SurveyElement,
            survey_id=self._survey,
            element_id=parent_id,
            where=lambda element: element.deleting == False,  # noqa: E712 - a condition
        )

    async def _mark(self, part: SurveyComponent, version: int) -> SurveyComponent:
        return part  # it has no children

    async def _delete_children(self, part: SurveyComponent) -> int:
        return 0


async def _delete_if_there(parts: Parts[Any], part_id: str) -> int:
    try:
        return await parts.delete(part_id)
    except NotFound:
        return 0  # another request was first
