"""Planted bugs: each is found by a scenario of the suite."""

from __future__ import annotations

import pytest

from .lab import Lab
from .mutants import MUTANTS, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_found(here: Lab, mutant: Mutant) -> None:
    with pytest.MonkeyPatch.context() as patch:
        mutant.patch(patch)
        try:
            mutant.scenario(here)
        except KeyboardInterrupt:
            raise
        except BaseException as found:  # noqa: BLE001 - an assertion, or the error that the bug causes
            assert not isinstance(found, (NameError, TypeError)), found
            return
    pytest.fail("no scenario has found the bug")
