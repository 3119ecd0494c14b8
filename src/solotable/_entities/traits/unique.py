"""UniqueRule: a unique field of an entity. `_flows.traits.unique` writes its lock items."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from solotable._entities.codecs.field_codecs import Attribute

from .trait import Trait


class UniqueRule(Trait):
    """A field with unique values among a tenant's entities, or among entities with equal `within` fields."""

    def __init__(
        self, attribute: Attribute, within: tuple[Attribute, ...], normalise: str, ends: tuple[str, ...]
    ) -> None:
        self.name = self.field = attribute.field
        self.attribute = attribute
        self.within = within
        self.normalise = normalise
        #: The entity's time to live field, which the lock copies; empty without one.
        self.ends = ends

    @property
    def depends(self) -> tuple[str, ...]:
        """The fields of the lock's key, and the time to live."""
        return (self.field, *(each.field for each in self.within), *self.ends)

    def key_of(self, values: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Return the parts of the lock's key; None when the field has no value."""
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
        # Case folding may return a text that is not in NFC.
        return unicodedata.normalize("NFC", normal.casefold()) if self.normalise == "casefold" else normal
