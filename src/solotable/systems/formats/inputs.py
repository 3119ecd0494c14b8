"""The base of what callers give: unknown fields are errors, absent ones keep their value."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Input(BaseModel):
    """Input of a caller: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")

    def given(self) -> dict[str, Any]:
        """Return the given fields."""
        return {name: getattr(self, name) for name in self.model_fields_set}
