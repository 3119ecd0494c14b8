"""Clients, writers and operators on a hostile table: nothing is lost, doubled, torn or shown to others."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.torture.size import LIMIT_SECONDS, LONG

from .bugs import BUGS, SEEDS, UNSEEN, planted
from .world import World

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)

STEPS = 120
FOUND = [name for name in BUGS if name not in UNSEEN]


@pytest.fixture(autouse=True)
def quiet_log() -> Iterator[None]:
    """Leave out the errors that the faults cause."""
    logger = logging.getLogger("solotable")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


#: The runs of the correct code: those of all planted bugs, and more in the long form.
RUNS = sorted({(BUGS[name][0], SEEDS.get(name, 0)) for name in FOUND})
if LONG:
    RUNS += [(kind, seed) for kind in ("plain", "pages") for seed in range(6, 300)]


@pytest.mark.parametrize(("kind", "seed"), RUNS)
def test_every_pull_is_one_version_and_nothing_is_lost(kind: str, seed: int) -> None:
    World(seed, kind).run(STEPS)


@pytest.mark.parametrize("name", FOUND)
def test_a_planted_bug_is_found(name: str) -> None:
    kind, patches = BUGS[name]
    with planted(*patches), pytest.raises(AssertionError):
        World(SEEDS.get(name, 0), kind).run(STEPS)
