"""Workers that are killed, engines that fail, clocks that differ: the target is right in the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .failures import FAILURES
from .lab import Lab


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.__name__)
def test_the_target_is_right_after(lab: Lab, failure: Callable[[Lab], None]) -> None:
    failure(lab)
