"""Copy and apply: the target becomes what the sources are, whatever changes while they are copied."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .lab import Lab
from .races import RACES


@pytest.mark.over_the_wire
@pytest.mark.parametrize("race", RACES, ids=lambda race: race.__name__)
def test_the_target_becomes_what_the_sources_are(lab: Lab, race: Callable[[Lab], None]) -> None:
    race(lab)
