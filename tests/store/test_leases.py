"""Leases: one holder at a time, tokens that only grow, and transactions that fail without them."""

from __future__ import annotations

import multiprocessing
import random
from multiprocessing.synchronize import Barrier
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from solotable import Database, Entity, Key, Lease, Store, Table, connect
from solotable._flows.feed.feed import Feed
from solotable._store.handles.changes import Changes
from solotable.errors import DataError, DeclarationError, LeaseHeld, LeaseLost
from tests.waiting import HANG_SECONDS, jitter

from .blog import Note, blog
from .models import surveyor
from .opening import Opening

SECONDS = 30.0


@pytest.fixture
def db(opening: Opening) -> Database:
    return opening(blog)


def put_under(store: Store, lease: Lease, name: str) -> None:
    with store.transaction() as tx:
        tx.put(Note(note_id=name))
        tx.check_lease(lease)


def test_one_at_a_time_has_a_lease(db: Database) -> None:
    with db.lease("nightly", owner="one") as lease:
        assert (lease.token, lease.is_valid) == (1, True)
        with pytest.raises(LeaseHeld) as refused:
            db.lease("nightly").acquire()
        assert (refused.value.owner, refused.value.name) == ("one", "nightly")
        db.lease("other").acquire()
    assert (lease.is_valid, db.lease("nightly").acquire().token) == (False, 2)


def test_a_token_only_grows_over_release_expiry_and_return(db: Database, opening: Opening) -> None:
    tokens = []
    for number in range(4):
        lease = db.lease("nightly", seconds=SECONDS, owner=f"o{number % 2}").acquire()
        tokens.append(lease.token)
        if number % 2:
            lease.release()
        else:
            opening.clock.seconds += SECONDS + 2
    assert tokens == [1, 2, 3, 4]


def test_an_expired_lease_is_taken_over_only_behind_the_skew(db: Database, opening: Opening) -> None:
    first = db.lease("nightly", seconds=SECONDS).acquire()
    opening.clock.seconds += SECONDS
    assert not first.is_valid
    for _ in range(2):
        with pytest.raises(LeaseHeld):
            db.lease("nightly", skew_seconds=5).acquire()
        opening.clock.seconds += 2.5
    opening.clock.seconds += 0.5
    second = db.lease("nightly", skew_seconds=5).acquire()
    assert second.token == first.token + 1
    with pytest.raises(LeaseLost):
        first.renew()
    first.release()
    assert second.renew().is_valid


def test_a_lease_is_renewed_from_now_on(db: Database, opening: Opening) -> None:
    lease = db.lease("nightly", seconds=SECONDS).acquire()
    for _ in range(3):
        opening.clock.seconds += SECONDS - 1
        assert lease.renew().token == 1
    with pytest.raises(LeaseHeld):
        db.lease("nightly").acquire()


def test_a_transaction_that_checks_a_lease_is_done_only_by_its_holder(db: Database, opening: Opening) -> None:
    acme = db.tenant("acme")
    old = db.lease("nightly", seconds=SECONDS).acquire()
    put_under(acme, old, "a")
    opening.clock.seconds += SECONDS + 2
    # Nobody has taken it over: late, but nobody is in the way.
    put_under(acme, old, "b")
    new = db.lease("nightly").acquire()
    with pytest.raises(LeaseLost) as refused:
        put_under(acme, old, "c")
    assert refused.value.token == 1
    assert acme.get(Note, note_id="c") is None
    new.release()
    with pytest.raises(LeaseLost, match="not held"):
        put_under(acme, new, "c")


def test_a_lease_that_was_given_back_is_good_for_nothing(db: Database) -> None:
    lease = db.lease("nightly").acquire()
    kept = lease.held
    lease.release()
    copy: Any = SimpleNamespace(held=kept)
    with pytest.raises(LeaseLost):
        put_under(db.tenant("acme"), copy, "a")


def test_tenants_have_separate_leases(db: Database) -> None:
    db.tenant("acme").lease("nightly").acquire()
    assert db.tenant("other").lease("nightly").acquire().token == 1
    assert db.lease("nightly").acquire().token == 1


def test_waiting_ends_when_the_lease_is_free(db: Database, opening: Opening) -> None:
    def sleep(seconds: float) -> None:
        opening.clock.seconds += 10

    opening.spy.sleep = sleep
    first = db.lease("nightly", seconds=SECONDS).acquire()
    with pytest.raises(LeaseHeld):
        db.lease("nightly", wait_seconds=15).acquire()
    assert db.lease("nightly", wait_seconds=60).acquire().token == first.token + 1


def test_what_cannot_work_is_refused(db: Database, opening: Opening) -> None:
    for name, seconds, skew_seconds in (("", 1.0, 0.0), ("x", 0.0, 0.0), ("x", 1.0, -1.0)):
        with pytest.raises(DataError):
            db.lease(name, seconds=seconds, skew_seconds=skew_seconds)
    with pytest.raises(DeclarationError, match="table="):
        opening(blog, surveyor).lease("nightly")
    with pytest.raises(DeclarationError), db.transaction() as tx:
        tx.check_lease(db.lease("nightly").acquire())


ledger = Table("Ledger", stream=True)


class Entry(Entity, table=ledger):
    """What was done under a token."""

    key = Key("TOKEN#{token:06d}", "OWNER#{owner}#{number:06d}")
    token: int
    owner: str
    number: int


#: So many leases are taken in the race.
TOKENS = 40


def work(path: str, owner: str, seed: int, together: Barrier) -> None:
    dice = random.Random(seed)
    number = done = token = 0
    with connect(f"sqlite:///{path}", ledger) as db:
        together.wait(HANG_SECONDS)
        while token < TOKENS or not done:
            # No skew is allowed for, and work goes on after the time: only the token protects.
            lease = db.lease("race", seconds=0.02, owner=f"{owner}-{number}", skew_seconds=0.0)
            try:
                lease.acquire()
            except LeaseHeld:
                jitter(dice, 0.005)
                continue
            token = lease.token
            for _ in range(3):
                # Now and then longer than the lease.
                jitter(dice, dice.choice((0.0, 0.02, 0.08)))
                number += 1
                try:
                    with db.transaction() as tx:
                        tx.create(Entry(token=lease.token, owner=owner, number=number))
                        tx.check_lease(lease)
                except LeaseLost:
                    break
                done += 1


def test_of_racing_processes_only_the_holder_of_the_current_token_commits(tmp_path: Path) -> None:
    path = str(tmp_path / "race.db")
    connect(f"sqlite:///{path}", ledger).close()
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(3)
    workers = [context.Process(target=work, args=(path, f"w{seed}", seed, together)) for seed in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    # The stream has the commits in their order: the lease's own item says which token is current.
    current, done = 0, []
    with connect(f"sqlite:///{path}", ledger) as db:
        for record in Changes(db.engine, Feed(db.scope, [ledger], lambda record: [record])):
            item = record.after or {}
            if item.get("_type") == {"S": "_lease"}:
                assert int(item["token"]["N"]) >= current
                current = int(item["token"]["N"])
            elif item.get("_type") == {"S": "Entry"}:
                assert int(item["token"]["N"]) == current
                done.append((item["owner"]["S"], current))
    assert len({owner for owner, _ in done}) == 3
    assert len({token for _, token in done}) > 10
    assert current >= TOKENS
