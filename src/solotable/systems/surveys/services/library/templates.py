"""The library of a tenant: sections, elements and components as templates, and phrases.

Surveys have copies of what they need (`configs`), so a change or a delete here never changes a survey.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from solotable import ANY, AsyncTransaction, Query
from solotable.errors import ConditionFailed
from solotable.systems.errors import InvalidInput, unwrap_failure, validate
from solotable.systems.formats.inputs import Input
from solotable.systems.surveys.entities.library import (
    Component,
    Element,
    Section,
)
from solotable.systems.surveys.errors import InUse, unwrap_part_failure
from solotable.systems.surveys.services.ordered import ComponentPlace, ElementPlace, Ordered, SectionPlace

TemplateT = TypeVar("TemplateT", Section, Element, Component)


class _Templates(Ordered[TemplateT]):
    """The templates of one kind; one with children cannot be deleted."""

    #: The kind of the children, which the template counts.
    child_kind: ClassVar[str | None] = None
    within = "the library"

    async def create(self, draft: Input, **more: Any) -> TemplateT:
        """Create a template behind another one, by default behind the last; its parent must exist."""
        fields = dict(draft)
        after = fields.pop("after", None)
        parent_id = str(fields.get(f"{self.parent_kind}_id", ""))
        order = await self._order(parent_id, after, at_end=after is None)
        template = validate(self.entity, **fields, **more, order=order)
        with unwrap_part_failure(self.parent_kind, within=self.within):
            async with self._store.transaction() as tx:
                self._check_parent(tx, parent_id)
                created = tx.create(template)
        return created

    async def delete(self, item_id: str, *, version: int | None = None) -> None:
        """Delete a template, or raise InUse if it has children."""
        await self.get(item_id, consistent=True)
        count = f"{self.child_kind}_count"
        try:
            with unwrap_failure():
                await self._store.delete(
                    self.entity,
                    version=ANY if version is None else version,
                    where=None if self.child_kind is None else lambda each: getattr(each, count) == 0,
                    **self._key(item_id),
                )
        except ConditionFailed as failed:
            found = getattr(failed.found, count, 0)
            if not found:
                raise
            text = f"This {self.kind} has {found} {self.child_kind}s; delete them first."
            raise InUse(text, item=failed.item) from failed

    def _check_parent(self, tx: AsyncTransaction, parent_id: str) -> None:
        """Check nothing: the counter of the parent does."""


class LibrarySections(_Templates[Section]):
    """The sections of the library."""

    kind = "section"
    parent_kind = "library"
    child_kind = "element"
    entity = Section

    def _siblings(self, parent_id: str) -> Query[Any]:
        return Section.in_library.query().select(SectionPlace)

    def _parent_of(self, item: Any) -> str:
        return ""

    def _check_parent(self, tx: AsyncTransaction, parent_id: str) -> None:
        if parent_id:
            raise InvalidInput("to: a section of the library has no parent.")


class LibraryElements(_Templates[Element]):
    """The elements of the library."""

    kind = "element"
    parent_kind = "section"
    child_kind = "component"
    entity = Element

    def _siblings(self, parent_id: str) -> Query[Any]:
        return Element.by_order.query(section_id=parent_id).select(ElementPlace)


class LibraryComponents(_Templates[Component]):
    """The components of the library."""

    kind = "component"
    parent_kind = "element"
    entity = Component

    def _siblings(self, parent_id: str) -> Query[Any]:
        return Component.by_order.query(element_id=parent_id).select(ComponentPlace)
