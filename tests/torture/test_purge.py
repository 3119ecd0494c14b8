"""kill -9 of a purge, again and again: what is due goes, the rest stays, and each item has one receipt."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from solotable import ANY, Database
from solotable._flows.jobs.purge_queue import digest_of
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Scan
from solotable._values import Item
from solotable.jobs.purge import list_receipts, purge
from tests.killing import Start
from tests.waiting import jitter

from .purger import Account, Order, Session, opened, site
from .size import LIMIT_SECONDS, SEED, amount

SESSIONS, ACCOUNTS, ORDERS = amount(1500, 20_000), amount(25, 200), 20
KILLS = amount(5, 100)
DAY = 86_400
START = 1_900_000_000.0

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def raw(db: Database) -> list[Item]:
    found: list[Item] = []
    start = None
    while True:
        page = db.engine.handle(Scan(table="Site", start=start))
        found += decode_items(page.items or ())
        start = page.last_key
        if not start:
            return sorted(found, key=repr)


def populate(path: Path) -> tuple[set[str], list[Item]]:
    """Fill a file; return the digests of what is due after 31 days, and the items that must stay."""
    with opened(str(path), START) as db:
        acme = db.tenant("acme")
        for begin in range(0, SESSIONS, 40):
            names = [str(each) for each in range(begin, min(begin + 40, SESSIONS))]
            with acme.transaction() as tx:
                for name in names:
                    tx.create(Session(session_id=name))
            with acme.transaction() as tx:
                for name in names:
                    tx.delete(Session, session_id=name)
        for number in range(ACCOUNTS):
            _account(db, f"a{number}", 1)
            acme.delete(Account, account_id=f"a{number}", version=ANY)
        due = {
            digest_of(plan, item)
            for plan in (Session.plan(), Account.plan(), Order.plan())
            for item in raw(db)
            if item[site.internal_tag] == plan.tag_value
        }
    before = {repr(item) for item in _stored(path)}
    with opened(str(path), START + 25 * DAY) as db:
        for number in range(5):
            _account(db, f"kept{number}", 2)
            _account(db, f"young{number}", 2)
            db.tenant("acme").delete(Account, account_id=f"young{number}", version=ANY)
            db.tenant("acme").create(Session(session_id=f"kept{number}"))
    return due, [item for item in _stored(path) if repr(item) not in before]


def _stored(path: Path) -> list[Item]:
    with opened(str(path), START) as db:
        return raw(db)


def _account(db: Database, name: str, versions: int) -> None:
    acme = db.tenant("acme")
    account = acme.create(Account(account_id=name, email=f"{name}@x"))
    for _ in range(versions):
        account = acme.put(account)
    with acme.transaction() as tx:
        for order in range(ORDERS):
            tx.create(Order(account_id=name, order_id=f"{name}-{order}"))


def test_a_purge_that_is_killed_goes_on_where_it_was(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "site.db"
    due, stays = populate(path)
    dice = random.Random(SEED)
    command = ("-m", "tests.torture.purger", str(path), str(START + 31 * DAY))
    for _ in range(KILLS):
        victim = start(*command)
        # Killed in the step after the last one that it was let do.
        for steps in range(1, dice.randrange(2, 5)):
            victim.wait_for_lines(steps)
            victim.release()
        jitter(dice)
        assert "done" not in victim.kill()[-1], "it was over before it was killed"
    last = start(*command).end()[-1]
    assert last.startswith("done")
    assert last.endswith("[]"), "there were problems"
    with opened(str(path), START + 31 * DAY) as db:
        receipts = [each.digest for each in list_receipts(db.admin())]
        assert Counter(receipts).most_common(1)[0][1] == 1, "an item went once"
        assert set(receipts) == due
        assert [item for item in raw(db) if item[site.internal_tag] != {"S": "_receipt"}] == stays
        assert purge(db.admin()).items == 0
