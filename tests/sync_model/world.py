"""A seeded world: clients, writers, operators and intruders on one hostile table, in simulated time.

A program that sends a request may be overtaken there: other programs run first, in processes of their own.
So the schedule is a stack, the same in every run of a seed, without threads.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from solotable import Database, Store, flow
from solotable._connect import over
from solotable._entities.synced import SPACE_VERSION
from solotable._flows.retry import Retries
from solotable.errors import ServiceError, SolotableError, SyncUnavailable, TransportError
from solotable.sync import Sync
from solotable.testing.clock import Clock
from solotable.testing.memory_tables import DatabaseTemplates
from solotable.urls import Url
from tests.store.syncing import Replica
from tests.waiting import HANG_SECONDS

from .domain import Card, Journal, Note, Todo, mutators, table
from .hostile import LONGEST_LAG, HostileEngine, Images
from .oracle import PROJECT, Oracle, Violation, require

_TEMPLATES = DatabaseTemplates()
_DEPTH = 2
_NAMES = ("a", "b", "c", "d")
_JOURNALS = ("x", "y")
_MUTATIONS = ("put", "put", "edit", "edit", "create", "delete", "card", "card", "note", "refuse")
#: Tenant, group, user and client.
_MEMBERS = (
    ("acme", "g1", "ann", "c1"),
    ("acme", "g1", "ann", "c2"),
    ("acme", "g2", "bob", "c3"),
    ("beta", "g1", "ann", "c4"),
)
#: What a web framework answers with 5xx: the client sends it again.
_FAILURES = (SyncUnavailable, ServiceError, TransportError)
#: Commits that are younger may not be visible.
_YOUNG = 10.0


class World:
    """One run of the model."""

    def __init__(self, seed: int, kind: str = "plain") -> None:
        #: Whether users read several spaces, and lose some.
        self._has_spaces = "spaces" in kind
        #: Whether operators import items and reset spaces.
        self._has_resets = "resets" in kind
        self.chance = random.Random(f"world {seed}")  # reproducible, not secret
        self.clock = Clock()
        engines = [_TEMPLATES.engine([table], clock=self.clock, controlled=True) for _ in range(3)]
        truth, strong, lagging = engines
        self.engine = HostileEngine(
            truth, strong, lagging, table=table.name, clock=self.clock, seed=f"engine {seed}"
        )
        self.oracle = Oracle(self.engine.items)
        self.engine.committed = self._committed
        self.engine.before = self._interleave
        self.db = self._open(seed)
        #: The spaces that a user reads, by tenant and user.
        both = {"", PROJECT} if self._has_spaces else {""}
        self.access = {("acme", "ann"): set(both), ("acme", "bob"): {""}, ("beta", "ann"): set(both)}
        page_items = 3 if "pages" in kind else None
        self.syncs = [self._sync(page_items) for _ in range(_DEPTH + 1)]
        self.members = [
            Replica(self.syncs[0], group=group, client=client, user=user, tenant=tenant)
            for tenant, group, user, client in _MEMBERS
        ]
        self._sent: dict[str, list[dict[str, Any]]] = {}
        self._busy: set[tuple[str, str]] = set()
        self._depth = 0
        self._imports = 0
        self._writes = itertools.count(1)
        self.errors: Violation | None = None

    def _open(self, seed: int) -> Database:
        address = Url("sqlite", "model", settings={"prefix": ""})
        found = over(self.engine.inner, [table], address, clock=self.clock)
        waits = random.Random(f"waits {seed}")  # reproducible, not secret
        tokens = itertools.count(1)
        scope = replace(
            found.scope, retries=Retries(random=waits.random), tokens=lambda: f"token-{next(tokens)}"
        )
        return Database(self.engine, scope)

    def _sync(self, page_items: int | None) -> Sync:
        def view(db: Store, user: str) -> set[str]:
            return self.access[flow.scope_of(db).tenant or "", user]

        return Sync(
            self.db,
            mutators=mutators,
            view=view,
            page_items=page_items,
            budget_seconds=HANG_SECONDS,
            poll_seconds=0,
        )

    def run(self, steps: int) -> None:
        """Run programs at random, then let everything become quiet; raise Violation."""
        try:
            for _ in range(steps):
                self._step()
            self._quiesce()
        finally:
            for engine in (self.engine, *self.engine.copies):
                engine.close()

    def _committed(self, images: Images) -> None:
        try:
            self.oracle.committed(images, self.clock())
        except Violation as error:
            # The code under test must not handle it.
            self.errors = self.errors or error

    def _interleave(self) -> None:
        if self._depth < _DEPTH and self.chance.random() < 0.06:
            self._depth += 1
            try:
                self._step()
            finally:
                self._depth -= 1

    def _step(self) -> None:
        programs: tuple[tuple[int, Callable[[], None]], ...] = (
            (34, self._mutate_and_push),
            (30, self._pull),
            (22, self._write),
            (6, self._probe),
            (3, self._pause),
            (2, self._trim),
            (2, self._intrude),
            (2, self._reset),
            (2, self._revoke),
        )
        weights = [weight for weight, _ in programs]
        (chosen,) = self.chance.choices([program for _, program in programs], weights)
        chosen()
        self._raise()

    def _raise(self) -> None:
        if self.errors is not None:
            raise self.errors

    @contextmanager
    def _working(self, replica: Replica, what: str) -> Iterator[bool]:
        """Let a client do one thing of a kind at a time, with the process of this depth."""
        key = (replica.client, what)
        if key in self._busy:
            yield False
            return
        self._busy.add(key)
        replica.sync = self.syncs[self._depth]
        try:
            yield True
        finally:
            self._busy.discard(key)

    def _mutate_and_push(self) -> None:
        replica = self.chance.choice(self.members)
        for _ in range(self.chance.choice((0, 1, 1, 2, 3))):
            arguments = {"journal": self.chance.choice(_JOURNALS), "name": self.chance.choice(_NAMES)}
            name = self.chance.choice(_MUTATIONS)
            replica.mutate(name, **arguments)
            self.oracle.made[replica.tenant, replica.client, replica.made] = name, arguments
        with self._working(replica, "push") as is_free:
            if is_free and replica.queue:
                self._push(replica, self._mutations(replica))

    def _mutations(self, replica: Replica) -> list[dict[str, Any]]:
        """Return the queue of a client, an old request, one with a gap, or a sibling's queue too."""
        roll, queue = self.chance.random(), list(replica.queue)
        if roll < 0.1 and replica.client in self._sent:
            return self._sent[replica.client]
        if roll < 0.16 and len(queue) > 2 and replica.confirmed.get(replica.client):
            return [queue[0], *queue[2:]]
        if roll < 0.22:
            for other in self.members:
                if other is not replica and (other.tenant, other.group) == (replica.tenant, replica.group):
                    queue += other.queue
        self._sent[replica.client] = queue
        return queue

    def _push(self, replica: Replica, mutations: list[dict[str, Any]]) -> None:
        try:
            answer = replica.push(*mutations)
        except _FAILURES:
            return
        finally:
            self._raise()
        ids = [each["id"] for each in mutations if each["clientID"] == replica.client]
        if answer and ids != list(range(ids[0], ids[0] + len(ids))):
            # No real client skips an id, so its state may count as lost.
            return
        require(answer == {}, "a client lost its queue", replica.client, answer)
        for each in mutations:
            last = self.oracle.lasts.get((replica.tenant, replica.group, each["clientID"]), 0)
            require(each["id"] <= last, "200 before the mutation was done", each["clientID"], each["id"])

    def _pull(self) -> None:
        replica = self.chance.choice(self.members)
        with self._working(replica, "pull") as is_free:
            if not is_free:
                return
            if self.chance.random() < 0.1:
                # The answer is lost.
                copied = self._fork(replica)
                self._pull_once(copied)
            else:
                self._pull_once(replica)

    def _fork(self, replica: Replica) -> Replica:
        """Return another client of the group, with the same cookie and view."""
        found = Replica(
            self.syncs[self._depth],
            group=replica.group,
            client=replica.client,
            user=replica.user,
            tenant=replica.tenant,
        )
        found.cookie, found.data, found.confirmed = (
            replica.cookie,
            dict(replica.data),
            dict(replica.confirmed),
        )
        return found

    def _probe(self) -> None:
        """Load a whole view."""
        replica = self._fork(self.chance.choice(self.members))
        replica.cookie, replica.data, replica.confirmed = None, {}, {}
        for _ in range(20):
            if not self._pull_once(replica) or "next" not in replica.cookie:
                return

    def _pull_once(self, replica: Replica) -> bool:
        imports, allowed = self._imports, set(self.access[replica.tenant, replica.user])
        try:
            answer = replica.pull()
        except _FAILURES:
            return False
        finally:
            self._raise()
        require("error" not in answer, "a client lost its state", replica.client, answer)
        allowed |= self.access[replica.tenant, replica.user]
        if imports == self._imports:
            self.oracle.check_pull(replica, allowed)
        return True

    def _write(self) -> None:
        """Write as a route or a job does."""
        tenant = self.chance.choice(("acme", "acme", "beta"))
        db, name, number = self.db.tenant(tenant), self.chance.choice(_NAMES), next(self._writes)
        text = f"w{number}"
        writes: tuple[Callable[[], object], ...] = (
            lambda: db.put(Todo(name=name, text=text)),
            lambda: db.delete(Todo, name=name),
            lambda: db.put(Card(name=name, text=text)),
            lambda: db.delete(Card, name=name),
            lambda: db.put(Note(project="p1", name=name, text=text)),
            lambda: db.delete(Note, project="p1", name=name),
            lambda: self._write_two(db, name, text),
            lambda: self._sign(db, tenant, f"w:{number}"),
            lambda: self._sign(db, tenant, f"w:{number}"),
        )
        try:
            self.chance.choice(writes)()
        except SolotableError:
            # The write failed, or its outcome is unknown; the oracle saw which.
            return

    def _write_two(self, db: Store, name: str, text: str) -> None:
        with db.transaction() as tx:
            tx.put(Todo(name=name, text=text))
            tx.delete(Note, project="p1", name=name)

    def _sign(self, db: Store, tenant: str, signature: str) -> None:
        name = self.chance.choice(_JOURNALS)

        def change(journal: Journal) -> Journal:
            signatures = f"{journal.signatures} {signature}".strip()
            return journal.model_copy(update={"signatures": signatures})

        db.modify(Journal, change, default=Journal(name=name), name=name)
        self.oracle.acknowledged[tenant].add(signature)

    def _pause(self) -> None:
        """Let time pass, often so much that every commit is visible and old."""
        self.clock.tick(self.chance.choice((0.1, 1.0, 15.0, 15.0)))

    def _trim(self) -> None:
        """Delete some old log records, as a time to live does: late, and in any order."""
        now = self.clock() * 1000
        for key, item in list(self.engine.items.items()):
            is_old = key[1].startswith("LOG#") and int(item["at"]["N"]) < now - _YOUNG * 1000
            if is_old and self.chance.random() < 0.6:
                self.engine.store(key, None)

    def _intrude(self) -> None:
        """Use the group of another user."""
        group, user = self.chance.choice((("g1", "bob"), ("g2", "ann")))
        since, owner = self.oracle.owners.get(("acme", group), (self.clock(), user))
        if self.clock() - since < 2 * LONGEST_LAG or owner == user:
            return
        thief = Replica(self.syncs[self._depth], group=group, client="thief", user=user)
        thief.mutate("put", journal="x", name="a")
        self.oracle.made["acme", "thief", 1] = "put", {"journal": "x", "name": "a"}
        try:
            require("error" in thief.pull(), "a foreign group was pulled", group, user)
            require("error" in thief.push(), "a foreign group was pushed", group, user)
        except _FAILURES:
            return
        finally:
            self._raise()

    def _reset(self) -> None:
        """Import an item without a store, and reset the space."""
        if not self._has_resets or self._depth:
            return
        self.engine.is_hostile = False
        self._imports += 1
        self.oracle.resets += 1
        number = next(self._writes)
        key = ("TENANT#acme", f"TODO#{self.chance.choice(_NAMES)}")
        item = self.engine.items.get(key)
        if item is not None:
            imported = {**item, "text": {"S": f"import {number}"}}
            if self.chance.random() < 0.5:
                # Another program knows no versions.
                imported.pop(SPACE_VERSION, None)
            self.engine.store(key, imported)
        self.clock.tick(_YOUNG)
        self.syncs[self._depth].reset("acme")
        self.engine.is_hostile = True

    def _revoke(self) -> None:
        """Take a space from a user, or give it back."""
        if self._has_spaces:
            self.access["acme", "ann"] ^= {PROJECT}

    def _quiesce(self) -> None:
        """Stop all trouble; every client must get everything."""
        self.engine.is_hostile = False
        self.clock.tick(2 * _YOUNG)
        for replica in self.members:
            self._push_all(replica)
        for replica in self.members:
            for _ in range(40):
                before = replica.cookie
                require(self._pull_once(replica), "no pull in a quiet world", replica.client)
                if replica.cookie == before:
                    break
            require(not replica.queue, "a mutation was never confirmed", replica.client, replica.queue)
            got = {key: value for key, value in replica.data.items() if not key.startswith("control/")}
            wanted = self.oracle.view(replica.tenant, self.access[replica.tenant, replica.user])
            require(got == wanted, "a replica differs from the table", replica.client, got, wanted)
            self._check_rejected(replica)

    def _push_all(self, replica: Replica) -> None:
        replica.sync = self.syncs[0]
        if replica.queue:
            self._push(replica, list(replica.queue))
            require(
                self.oracle.lasts[replica.tenant, replica.group, replica.client] == replica.made,
                "a mutation is left in a quiet world",
                replica.client,
            )

    def _check_rejected(self, replica: Replica) -> None:
        start = f"control/rejected/{replica.client}/"
        got = {int(key.removeprefix(start)) for key in replica.data if key.startswith(start)}
        wanted = self.oracle.rejected.get((replica.tenant, replica.client), set())
        require(got == set(sorted(wanted)[-20:]), "rejections differ", replica.client, got, wanted)
