"""Updates that are built once and sent often, with other values each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from solotable._expressions.ast import Condition
from solotable._expressions.ast import Update as UpdateTree
from solotable._expressions.prepared.template import UpdateTemplate
from solotable._protocol.requests import PreparedUpdateItem, ReturnValues, UpdateItem
from solotable._values import Item
from solotable.errors import DeclarationError

from .codec import encode_value
from .item_update import ItemUpdate


class PreparedUpdate:
    """An update and a condition with a `Slot` in place of each value that changes.

    The embedded engine compiles it into one function; over the wire its expressions are the same texts in
    every request. The outcome of a request is that of the same UpdateItem built from scratch.

    >>> from solotable.flow import ItemUpdate, PreparedUpdate, Slot
    >>> from solotable.flow.conditions import at_most
    >>> take = PreparedUpdate(ItemUpdate().add("used", Slot(0)), at_most("used", Slot(1)))
    >>> take.request("Shop", {"pk": {"S": "a"}}, (5, 95)).update.actions
    (Add(path=('used',), value={'N': '5'}, to_list=False),)

    It is immutable and may be shared by threads. Keep one for each shape of an update: building one for each
    request takes longer than an UpdateItem.
    """

    __slots__ = ("_template",)

    def __init__(self, update: ItemUpdate | UpdateTree, condition: Condition | None = None) -> None:
        tree = update.build() if isinstance(update, ItemUpdate) else update
        self._template = UpdateTemplate(tree, condition)

    def __repr__(self) -> str:
        return f"PreparedUpdate({self._template.update!r}, {self._template.condition!r})"

    @property
    def slots(self) -> int:
        """How many values a request takes."""
        return self._template.slots

    def request(
        self,
        table: str,
        key: Item,
        values: Sequence[Any] = (),
        *,
        returns: ReturnValues = "NONE",
        returns_on_failure: bool = False,
    ) -> UpdateItem:
        """Return the UpdateItem with these values, in the order of the slots' numbers."""
        template = self._template
        if len(values) != template.slots:
            raise DeclarationError(
                f"The update has {template.slots} slots, got {len(values)} values; pass one for each slot."
            )
        return PreparedUpdateItem(
            table=table,
            key=key,
            # A whole number is by far the most frequent value.
            values=tuple(
                [{"N": str(value)} if value.__class__ is int else encode_value(value) for value in values]
            ),
            template=template,
            returns=returns,
            returns_on_failure=returns_on_failure,
        )
