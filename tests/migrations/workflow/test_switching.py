"""Switch reads and writes, return, cancel and complete: no acknowledged write is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .lab import Lab
from .switches import SWITCHES


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.__name__)
def test_no_acknowledged_write_is_lost(lab: Lab, switch: Callable[[Lab], None]) -> None:
    switch(lab)
