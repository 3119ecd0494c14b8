"""The library of a tenant: sections, elements and components as templates, and phrases.

Surveys have copies of what they need (`configs`), so a change or a delete here never changes a survey.
"""

from __future__ import annotations

from typing import Any, TypeVar

from solotable import ANY, AsyncTransaction, Query
from solotable.errors import ConditionFailed
from solotable.systems.errors import unwrap_failure, validate
from solotable.systems.surveys.entities.library import (
    Component,
    Element,
    Section,
)
from solotable.systems.surveys.errors import InUse, unwrap_part_failure
from solotable.systems.surveys.services.drafts import Input
from solotable.systems.surveys.services.ordered import ComponentPlace, ElementPlace, Ordered, SectionPlace

TemplateT = TypeVar("TemplateT", Section, Element, Component)


class _Templates(Ordered[TemplateT]):
    """The templates of one kind."""

    async def create(self, draft: Input, **more: Any) -> TemplateT:
        """Create a template behind another one, by default behind the last; its parent must exist."""
        fields = dict(draft)
        after = fields.pop("after", None)
        parent_id = str(fields.get(f"{self.parent_kind}_id", ""))
        order = await self._order(parent_id, after, at_end=after is None)
        template = validate(self.entity, **fields, **more, order=order)
        with unwrap_part_failure(self.parent_kind):
            async with self._store.transaction() as tx:
                self._check_parent(tx, parent_id)
                created = tx.create(template)
        return created

    async def delete(self, item_id: str, *, version: int | None = None) -> None:
        """Delete a template, or raise InUse if it has children."""
        raise NotImplementedError

    def _check_parent(self, tx: AsyncTransaction, parent_id: str) -> None:
        """Check nothing: the counter of the parent does."""


class LibrarySections(_Templates[Section]):
    """The sections of the library."""

    kind = "section"
    parent_kind = "library"
    entity = Section

    def _siblings(self, parent_id: str) -> Query[Any]:
        return Section.in_library.query().select(SectionPlace)

    def _parent_of(self, item: Any) -> str:
        return ""

    async def delete(self, item_id: str, *, version: int | None = None) -> None:
        """Delete a section, or raise InUse if it has elements."""
        expected = ANY if version is None else version
        try:
            await self._store.delete(
                Section,
                section_id=item_id,
                version=expected,
                where=lambda section: section.element_count == 0,
            )
        except ConditionFailed as failed:
            raise _in_use(failed, "section", "elements") from failed


class LibraryElements(_Templates[Element]):
    """The elements of the library."""

    kind = "element"
    parent_kind = "section"
    entity = Element

    def _siblings(self, parent_id: str) -> Query[Any]:
        return Element.by_order.query(section_id=parent_id).select(ElementPlace)

    async def delete(self, item_id: str, *, version: int | None = None) -> None:
        """Delete an element, or raise InUse if it has components."""
        expected = ANY if version is None else version
        try:
            with unwrap_failure():
                await self._store.delete(
                    Element,
                    element_id=item_id,
                    version=expected,
                    where=lambda element: element.component_count == 0,
                )
        except ConditionFailed as failed:
            raise _in_use(failed, "element", "components") from failed


class LibraryComponents(_Templates[Component]):
    """The components of the library."""

    kind = "component"
    parent_kind = "element"
    entity = Component

    def _siblings(self, parent_id: str) -> Query[Any]:
        return Component.by_order.query(element_id=parent_id).select(ComponentPlace)

    async def delete(self, item_id: str, *, version: int | None = None) -> None:
        """Delete a component."""
        found = await self.get(item_id, consistent=True)
        expected = found.version if version is None else version
        await self._store.delete(Component, component_id=item_id, version=expected)


def _in_use(failed: ConditionFailed, kind: str, children: str) -> ConditionFailed:
    """Return InUse if an item has children; the failure itself if its version is another one."""
    found = failed.found
    count = getattr(found, f"{children[:-1]}_count", 0)
    if not count:
        return failed
    return InUse(f"This {kind} has {count} {children}; delete them first.", item=failed.item)
