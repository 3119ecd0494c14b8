"""How much is played: little in every test run, much with TORTURE=long."""

from __future__ import annotations

import os
import random
import sys

from tests.waiting import HANG_SECONDS

LONG = os.environ.get("TORTURE") == "long"
SEED = int(os.environ.get("TORTURE_SEED") or random.SystemRandom().randrange(1 << 32))


def amount(short: int, long: int) -> int:
    """Return how often something is played."""
    return long if LONG else short


#: pytest's limit for a test of this folder, which only ends a hang.
LIMIT_SECONDS = 2 * amount(int(HANG_SECONDS), 1800)


def report(line: str) -> None:
    """Say what was found, also where pytest captures what is printed."""
    out = sys.__stdout__ if LONG else sys.stdout
    if out is not None:
        out.write(f"\n  {line}\n")
