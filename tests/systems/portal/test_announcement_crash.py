"""kill -9 of workers that notify, again and again: each subscriber has each notification exactly once."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from solotable import Database, connect
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Scan
from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.entities.notifications import Announcement
from solotable.systems.portal.entities.subscriptions import Subscription
from solotable.systems.portal.services.lifecycle import Change, plan_change
from solotable.systems.portal.services.notifications.announcements import Announcer
from solotable.systems.portal.tables import TABLES, notifications
from solotable.systems.storage import FolderStorage
from tests.killing import Start
from tests.torture.size import LIMIT_SECONDS, SEED, amount
from tests.waiting import jitter

KILLS = amount(3, 120)
SUBSCRIBERS = amount(200, 6000)

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def prepare(db: Database) -> tuple[Content, list[str]]:
    """Create subscribers, and content that is approved, deprecated and approved again."""
    users = [f"user{number:05}" for number in range(SUBSCRIBERS)]
    for first in range(0, SUBSCRIBERS, 100):
        with db.transaction() as tx:
            for user in users[first : first + 100]:
                tx.create(Subscription(user_id=user, product_suite="Compass"))
    content = db.create(Content(title="Pricing", owner_user_id="ann", product_suite="Compass"))
    changes: list[Change] = ["approve", "deprecate", "approve"]
    for change in changes:
        planned = plan_change(content, change, datetime.now(UTC))
        with db.transaction() as tx:
            content = planned.write(tx)
    return content, users


def counts(db: Database) -> tuple[Counter[str], dict[str, int]]:
    """Return the notifications of each user, and the kept numbers of unread ones."""
    found: Counter[str] = Counter()
    unread: dict[str, int] = {}
    after = None
    while True:
        page = db.engine.handle(Scan(table=notifications.name, start=after, consistent=True))
        for item in decode_items(page.items or ()):
            if item["_type"] == {"S": "Notification"}:
                found[item["user_id"]["S"]] += 1
            elif item["_type"] == {"S": "UnreadCount"}:
                user = item["inbox_user_id"]["S"]
                unread[user] = unread.get(user, 0) + int(item["unread"]["N"])
        after = page.last_key
        if not after:
            return found, unread


def test_a_worker_that_is_killed_anywhere_notifies_exactly_once(tmp_path: Path, start: Start) -> None:
    dice = random.Random(SEED)
    path, folder = tmp_path / "portal.db", tmp_path / "files"
    with connect(f"sqlite:///{path}?durability=relaxed", *TABLES) as db:
        _, users = prepare(db)
    finished = 0
    for kill in range(KILLS):
        arguments = (str(path), str(folder), str(60 * (kill + 1)))
        victim = start("-m", "tests.systems.portal.announcing", *arguments)
        for steps in range(1, dice.randrange(2, 5)):
            victim.wait_for_lines(steps)
            victim.release()
        # In the next transaction, behind it, or before it.
        jitter(dice, 0.02)
        finished += any(line.startswith("done") for line in victim.kill())
    assert finished < KILLS, f"seed {SEED}: it was over before it was killed"
    ahead = timedelta(hours=KILLS).total_seconds()
    with connect(f"sqlite:///{path}", *TABLES, clock=lambda: datetime.now(UTC).timestamp() + ahead) as db:
        Announcer(db, FolderStorage(folder)).run_once()
        assert list(db.all(Announcement.waiting())) == []
        found, unread = counts(db)
    # Three changes: no notification is missing, none is there twice, and the numbers agree.
    assert found == dict.fromkeys(users, 3), f"seed {SEED}"
    assert unread == dict.fromkeys(users, 3), f"seed {SEED}"


def test_ten_thousand_subscribers_are_notified_within_ten_seconds_of_a_core(tmp_path: Path) -> None:
    """The short form counts requests. The long form has 10,000 subscribers, and measures CPU time."""
    subscribers = amount(500, 10_000)
    seen: Counter[str] = Counter()
    with connect(
        f"sqlite:///{tmp_path / 'portal.db'}",
        *TABLES,
        observer=lambda record: seen.update([record.operation]),
    ) as db:
        for first in range(0, subscribers, 100):
            with db.transaction() as tx:
                for number in range(first, first + 100):
                    tx.create(Subscription(user_id=f"user{number:05}", product_suite="Compass"))
        content = db.create(Content(title="Pricing", owner_user_id="ann", product_suite="Compass"))
        planned = plan_change(content, "approve", datetime.now(UTC))
        with db.transaction() as tx:
            planned.write(tx)
        seen.clear()
        before = time.process_time()
        done = Announcer(db, FolderStorage(tmp_path)).run_once()
        used = time.process_time() - before
        assert done.notified == subscribers
    # 49 users a transaction; two partitions of the index, in eight shards each.
    assert seen["TransactWriteItems"] == math.ceil(subscribers / 49)
    assert seen["Query"] <= 1 + 2 * 8 + subscribers // 100
    assert used < 10 or subscribers < 10_000
