"""A unique field as its entity keeps it; the locks are in `flows.unique`."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from solotable._entities.codecs.field_codecs import Attribute

from .trait import Trait


class UniqueRule(Trait):
    """A field whose values are unique: among a tenant's entities, or within some of their fields."""

    def __init__(
        self, attribute: Attribute, within: tuple[Attribute, ...], normalise: str, ends: tuple[str, ...]
    ) -> None:
        self.name = self.field = attribute.field
        self.attribute = attribute
        self.within = within
        self.normalise = normalise
        #: The field that says when the entity ends, and its lock with it; none without a time to live.
        self.ends = ends

    @property
    def depends(self) -> tuple[str, ...]:
        """The fields that the lock's key and its end are made of."""
        return (self.field, *(each.field for each in self.within), *self.ends)

    def key_of(self, values: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Return the parts of the lock's key; None while the field has no value."""
        texts = []
        for attribute in (*self.within, self.attribute):
            value = attribute.encode(values[attribute.field])
            if value is None or "NULL" in value:
                return None
            ((kind, content),) = value.items()
            texts.append(self._normal(content) if kind == "S" else str(content))
        return tuple(texts)

    def _normal(self, text: str) -> str:
        if self.normalise == "exact":
            return text
        normal = unicodedata.normalize("NFC", text)
        # Folding may leave a form that is not composed.
        return unicodedata.normalize("NFC", normal.casefold()) if self.normalise == "casefold" else normal
