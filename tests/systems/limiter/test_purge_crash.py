"""kill -9 of a purge, again and again: it goes on where it was, and what it has to leave alone it leaves."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from solotable._connect import connect
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Scan
from solotable._store.runner import run
from solotable.systems.limiter import Limit, Limiter
from solotable.systems.limiter.admin import namespaces
from solotable.systems.limiter.table import limiter
from tests.killing import Start
from tests.torture.size import LIMIT_SECONDS, SEED, amount
from tests.waiting import jitter

KILLS = amount(4, 60)
PROGRAM = """
import sys
from solotable._connect import connect
from solotable._store.runner import run
from solotable.systems.limiter.admin import namespaces
from solotable.systems.limiter.table import limiter
from tests.killing import step, tell
namespaces._PAGE_ITEMS = 10
with connect(sys.argv[1], limiter) as db:
    run(namespaces.purge(db.scope, "gone", progress=lambda at: step(str(at.removed))), db.engine)
tell("done")
"""

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def killed_at_some_step(start: Start, url: str, dice: random.Random) -> list[str]:
    """Begin a purge, or go on with it, kill it during one of its next steps, and return what it told."""
    victim = start("-c", PROGRAM, url)
    for steps in range(1, dice.randrange(2, 5)):
        victim.wait_for_lines(steps)
        victim.release()
    jitter(dice, 0.005)
    return victim.kill()


def test_a_purge_that_is_killed_goes_on_and_touches_nothing_else(tmp_path: Path, start: Start) -> None:
    dice = random.Random(SEED)
    url = f"sqlite:///{tmp_path / 'limits.db'}?durability=relaxed"
    with connect(url, limiter) as db:
        ids = {name: run(namespaces.register(db.scope, name), db.engine).id for name in ("gone", "kept")}
        for each in ids.values():
            ours = Limiter(db, each, limits=[Limit.per_minute("rpm", 10)])
            for number in range(60 * KILLS):
                with ours.acquire(f"u{number}", "r", {"rpm": 1}):
                    pass
        run(namespaces.delete(db.scope, "gone"), db.engine)
    steps: list[list[str]] = [killed_at_some_step(start, url, dice) for _ in range(KILLS)]
    assert all("done" not in told for told in steps), f"seed {SEED}: it was over before it was killed"
    # What is noted as removed never goes back: a purge that begins goes on.
    counts = [int(count) for told in steps for count in told]
    assert counts == sorted(counts), f"seed {SEED}"
    assert counts[-1] > counts[0]
    with connect(url, limiter) as db:
        run(namespaces.purge(db.scope, "gone"), db.engine)
        owners: list[str] = []
        after = None
        while True:
            page = db.engine.handle(Scan(table=limiter.name, start=after))
            found = decode_items(page.items or ())
            owners += [item["namespace"]["S"] for item in found if item["_type"]["S"] == "Bucket"]
            after = page.last_key
            if not after:
                break
        assert owners == [ids["kept"]] * (60 * KILLS), f"seed {SEED}"
        assert list(run(namespaces.orphans(db.scope), db.engine).items) in ([], ["_"])
