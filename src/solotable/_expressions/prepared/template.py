"""An update and a condition with slots for values.

A template is compiled into one function after a few uses. The function gives the result of `evaluate` and
`apply_update`, or none at all for an item that it does not cover, which those two then decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from solotable._expressions.ast import Condition, Update
from solotable._expressions.update import paths_of_update
from solotable._values import AttributeValue
from solotable.errors import DeclarationError

from .slots import Slot, fill, nodes_of

if TYPE_CHECKING:
    from .compile_function import Apply
    from .wire_texts import WireTexts

#: Uses before a template is compiled, which takes as long as a hundred evaluations.
_FIRST_USES: Final = 4
#: How many items a function may not cover before it is given up, and for how many uses.
_MOST_MISSES: Final = 64
_REST_USES: Final = 10_000


class UpdateTemplate:
    """An update and a condition whose values are slots, numbered from 0, or fixed."""

    __slots__ = ("_function", "_misses", "_texts", "_uses", "condition", "names", "slots", "update")

    def __init__(self, update: Update, condition: Condition | None) -> None:
        self.update = update
        self.condition = condition
        numbers = {node.number for node in nodes_of((update, condition)) if type(node) is Slot}
        #: How many values a request has.
        self.slots = len(numbers)
        if numbers and max(numbers) != self.slots - 1:
            missing = min(set(range(max(numbers))) - numbers)
            raise DeclarationError(f"Slots are numbered from 0 without a gap; Slot({missing}) is not used.")
        #: The top-level attributes that the update writes or reads.
        self.names = frozenset(str(path[0]) for path in paths_of_update(update))
        #: None before it is compiled, False for a template that cannot be.
        self._function: Apply | bool | None = None
        self._uses = 0
        self._misses = 0
        self._texts: WireTexts | None = None

    def __repr__(self) -> str:
        return f"UpdateTemplate({self.update!r}, {self.condition!r})"

    def bind(self, values: Sequence[AttributeValue]) -> tuple[Update, Condition | None]:
        """Return the trees with these values."""
        return fill(self.update, values), fill(self.condition, values)

    def function(self, values: Sequence[AttributeValue]) -> Any:
        """Return the compiled function, a false value without one."""
        found = self._function
        if found is None:
            # Two threads may lose a use, or compile the same function.
            self._uses += 1
            if self._uses >= _FIRST_USES:
                self.compile(values)
                found = self._function
        return found

    def compile(self, values: Sequence[AttributeValue]) -> bool:
        """Compile the function now; return whether the template has one."""
        # Imported here: most programs compile no template.
        from .compile_function import compile_function

        self._function = compile_function(self.update, self.condition, values) or False
        return self._function is not False

    def note_miss(self) -> None:
        """Count an item that the function does not cover; after many, stop trying for a while."""
        self._misses += 1
        if self._misses >= _MOST_MISSES:
            self._misses, self._uses, self._function = 0, -_REST_USES, None

    def wire_members(self, values: Sequence[AttributeValue]) -> dict[str, Any]:
        """Return the members of an UpdateItem that have the expressions and their placeholders."""
        texts = self._texts
        if texts is None:
            # Imported here: an embedded engine sends no text.
            from .wire_texts import WireTexts

            texts = self._texts = WireTexts(self.update, self.condition, self.slots)
        return texts.members(values)
