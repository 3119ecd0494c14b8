"""Conditions that Python would evaluate itself are rejected with the form to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import computed_field

from solotable import Entity, Key, Table
from solotable._entities.patterns.conditions import record
from solotable.errors import DeclarationError


class Parcel(Entity, table=Table("Parcels")):
    key = Key("PARCEL", "{parcel}")
    parcel: str
    total: int = 0
    note: str | None = None
    tags: tuple[str, ...] = ()

    @computed_field  # type: ignore[prop-decorator]  # Pydantic documents this form
    @property
    def label(self) -> str:
        return self.parcel.lower()


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (lambda p: p.note is None, "instead of `is None`"),
        (lambda p: (p.total > 3) & (p.note is None), "False is not a condition.*instead of `is None`"),
        (lambda p: (p.note is None) | (p.total > 3), "False is not a condition.*instead of `is None`"),
        (lambda p: len(p.tags) > 2, r"Use size\(Parcel.tags\) instead of len"),
        (lambda p: p.label == "a", "Parcel.label is a computed field, which is not stored"),
    ],
)
def test_the_error_says_what_to_write(condition: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        record(Parcel.plan(), condition)
