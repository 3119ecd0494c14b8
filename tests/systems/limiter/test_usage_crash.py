"""kill -9 of who consumes and of two who count: usage is what was consumed, exactly."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Scan
from solotable._values import Item
from solotable.systems.limiter.table import limiter
from solotable.systems.limiter.usage import aggregate
from tests.killing import Start
from tests.torture.size import LIMIT_SECONDS, SEED, amount
from tests.waiting import jitter, wait_until

from .consuming import opened

ROUNDS = amount(3, 60)

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def sums(items: Iterable[Item], tag: str, prefix: str, *names: str) -> Counter[tuple[str, ...]]:
    """Return what the attributes that begin so come to, by other attributes and their own rest."""
    total: Counter[tuple[str, ...]] = Counter()
    for item in items:
        if item[limiter.internal_tag] == {"S": tag}:
            who = tuple(item[name]["S"] for name in names)
            for name, value in item.items():
                if name.startswith(prefix):
                    total[(*who, name.removeprefix(prefix))] += int(value["N"])
    return total


def test_c1_5_usage_is_what_was_consumed_when_a_worker_is_killed(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "limiter.db"
    dice = random.Random(SEED)
    opened(str(path)).close()
    told: Counter[str] = Counter()

    def play_round(seed: int) -> None:
        """Let one process consume and two count, and kill all three."""
        consumer, *counters = (
            start("-m", "tests.systems.limiter.consuming", role, str(path), str(seed))
            for role in ("consume", "count", "count")
        )
        consumer.wait_for_lines(dice.randrange(2, 100))
        wait_until(lambda: any("counted" in each.lines for each in counters))
        victims = [consumer, *counters]
        dice.shuffle(victims)
        for victim in victims:
            jitter(dice, 0.1)
            told.update(victim.kill())

    for round_ in range(ROUNDS):
        play_round(round_)
    with opened(str(path)) as db:
        aggregate(db)
        assert aggregate(db).records == 0
        found: list[Item] = []
        after = None
        while True:
            page = db.engine.handle(Scan(table=db.scope.table(limiter), start=after, consistent=True))
            found += decode_items(page.items or ())
            after = page.last_key
            if not after:
                break
    assert told["consumed"] > ROUNDS
    assert told["counted"] > 1
    consumed = sums(found, "Bucket", "consumed_", "entity", "resource")
    for window in ("hour", "day", "month"):
        rows = [item for item in found if item.get("window") == {"S": window}]
        assert sums(rows, "Usage", "tokens_", "entity", "resource") == consumed, f"seed {SEED}"
