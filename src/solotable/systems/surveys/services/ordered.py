"""Items in order among their siblings: create, change and move them.

The order is a key between two others (`formats.order_keys`), so a move writes one item. Places are read from
an index, which may be a moment behind: two items that are created at once may get the same order key, and
their ids decide then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel

from solotable import ANY, AsyncStore, AsyncTransaction, Entity, Query
from solotable.errors import SolotableError, VersionConflict
from solotable.systems.errors import InvalidInput
from solotable.systems.formats.inputs import Input
from solotable.systems.surveys.errors import missing_is_not_found, unwrap_part_failure
from solotable.systems.surveys.formats.order_keys import OrderKeysUsedUp, between, spread

ItemT = TypeVar("ItemT", bound=Entity)
ResultT = TypeVar("ResultT")


class Place(BaseModel):
    """The place of an item among its siblings, as the index holds it."""

    order: str


class SectionPlace(Place):
    """The place of a section."""

    section_id: str


class ElementPlace(Place):
    """The place of an element."""

    element_id: str


class ComponentPlace(Place):
    """The place of a component."""

    component_id: str


class Ordered(Generic[ItemT]):
    """Items of one kind, each in order in its parent."""

    kind: ClassVar[str]
    #: The kind of the parent, whose id the item has in a field.
    parent_kind: ClassVar[str]
    #: Where the parents are, for messages.
    within: ClassVar[str] = "this survey"
    entity: type[ItemT]

    def __init__(self, store: AsyncStore, **within: str) -> None:
        self._store = store
        #: The fields of the key that all items share.
        self._within: dict[str, Any] = dict(within)

    def _siblings(self, parent_id: str) -> Query[Any]:
        """Return the places of the children of a parent, in order."""
        raise NotImplementedError

    def _check_parent(self, tx: AsyncTransaction, parent_id: str) -> None:
        """Require that a parent exists, and that it is not being deleted."""
        raise NotImplementedError

    async def get(self, item_id: str, *, consistent: bool = False) -> ItemT:
        """Return an item, or raise NotFound."""
        return await self._store.require(self.entity, consistent=consistent, **self._key(item_id))

    async def update(self, item_id: str, patch: Input, *, version: int | None = None) -> ItemT:
        """Change the given fields and no others (S4.23), if `version` is the stored one (S4.39)."""
        changes = patch.given()
        if not changes:
            return await self.get(item_id)
        return await self._update(item_id, changes, ANY if version is None else version)

    async def move(
        self, item_id: str, *, after: str | None = None, to: str | None = None, version: int | None = None
    ) -> ItemT:
        """Move an item behind another one, or to the front; `to` is another parent.

        It writes one item: the order keys of the others stay.
        """

        async def attempt() -> ItemT:
            current: Any = await self.get(item_id, consistent=True)
            parent_id = self._parent_of(current)
            expected = current.version if version is None else version
            target = parent_id if to is None else to
            changes: dict[str, Any] = {"order": await self._order(target, after, moved=item_id)}
            if target == parent_id:
                return await self._update(item_id, changes, expected)
            changes[f"{self.parent_kind}_id"] = target
            with unwrap_part_failure(self.parent_kind, within=self.within):
                async with self._store.transaction() as tx:
                    self._check_parent(tx, target)
                    tx.update(self.entity, version=expected, set=changes, **self._key(item_id))
            return await self.get(item_id, consistent=True)

        return await self._retry(attempt, version)

    async def spread(self, parent_id: str) -> None:
        """Give the children of a parent short order keys again; their order stays."""
        places = await self._places(parent_id)
        for order, place in zip(spread(len(places)), places, strict=True):
            await self._update(self._id_of(place), {"order": order}, ANY)

    async def _order(
        self, parent_id: str, after: str | None, *, moved: str | None = None, at_end: bool = False
    ) -> str:
        """Return an order key behind an item of a parent; without one at the front, or at the end."""
        try:
            return await self._free_order(parent_id, after, moved, at_end=at_end)
        except OrderKeysUsedUp:
            await self.spread(parent_id)
            return await self._free_order(parent_id, after, moved, at_end=at_end)

    async def _free_order(self, parent_id: str, after: str | None, moved: str | None, *, at_end: bool) -> str:
        places = [place for place in await self._places(parent_id) if self._id_of(place) != moved]
        if at_end:
            return between(places[-1].order if places else None, None)
        if after is None:
            return between(None, places[0].order if places else None)
        # From the table: an index may not have a part yet that was created a moment ago.
        before: Any = await self._store.get(self.entity, consistent=True, **self._key(after))
        if before is None or self._parent_of(before) != parent_id:
            raise InvalidInput(f"after: this {self.kind} does not exist here.")
        mine = (before.order, after)
        return between(
            before.order, next((p.order for p in places if (p.order, self._id_of(p)) > mine), None)
        )

    async def _places(self, parent_id: str) -> list[Place]:
        return [place async for place in self._store.all(self._siblings(parent_id))]

    async def _update(self, item_id: str, changes: dict[str, Any], version: Any) -> ItemT:
        with missing_is_not_found(self.kind):
            return await self._store.update(self.entity, version=version, set=changes, **self._key(item_id))

    def _key(self, item_id: str) -> dict[str, Any]:
        return {**self._within, f"{self.kind}_id": item_id}

    def _id_of(self, item: Any) -> str:
        return str(getattr(item, f"{self.kind}_id"))

    def _parent_of(self, item: Any) -> str:
        return str(getattr(item, f"{self.parent_kind}_id"))

    async def _retry(self, attempt: Callable[[], Awaitable[ResultT]], version: int | None) -> ResultT:
        # A caller that names a version wants to see a conflict of that version.
        def may_retry(error: SolotableError) -> bool:
            return version is None and isinstance(error, VersionConflict)

        return await self._store.retry_conflicts(attempt, when=may_retry)
