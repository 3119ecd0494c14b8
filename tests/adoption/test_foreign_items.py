"""What the other libraries store; the presets of `Table(adopt=...)` depend on it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .foreign import LIBRARIES, ForeignProgram

TAGS = {"electrodb": "__edb_e__", "onetable": "_type", "toolbox": "_et", "pynamodb": "cls"}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_writes_its_type_attribute(library: str, foreign: Callable[[str], ForeignProgram]) -> None:
    items = foreign(library).run("write")
    # PynamoDB's model without a discriminator has its own table.
    typed = [item for item in items if "happened_at" not in item]
    assert len(typed) >= 3
    assert all(TAGS[library] in item for item in typed)
